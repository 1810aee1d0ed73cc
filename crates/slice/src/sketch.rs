//! What going back over a unit does to what is wanted, whatever else is.

use crate::backward::{Area, Dependences, Made};
use crate::control::Position;
use crate::course::Restored;
use crate::events::Record;
use crate::memory::{bits, each_bit};
use crate::over::{Instance, Notes, Over};
use crate::partly::{Partly, Share};
use crate::patterns::{MOST, Test};
use crate::waiting::Aside;
use crate::wanted::{Role, Wanted, Wanter};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use why_effects::Cell;

/// What is wanted behind a unit of what it may make.
pub struct Behind<'a> {
    /// What of each test of its crossing.
    pub tests: &'a [(Test, u64)],
    /// Which of its instructions belong to the slice whatever they make.
    pub decide: u64,
    /// What is wanted of registers that it put aside: the instruction, and which cells.
    pub asides: &'a [(usize, u8)],
    /// Which of its instructions count as if they had been made of nothing.
    pub left: u64,
    /// What of its instructions counts, where that is not all.
    pub partly: Option<&'a Partly>,
}

/// What is wanted in front of it because of that, and what follows.
#[derive(Debug, Default)]
pub struct Found {
    /// The instructions that belong to the slice.
    pub members: u64,
    pub cells: Vec<(usize, u64, By)>,
    /// Bytes of accesses, at most 64 of each.
    pub memory: Vec<(usize, u64, By)>,
    /// What decided over some of them, by its number in the record.
    pub decided: Vec<(usize, By)>,
    /// What was brought back, by its number in the record: each cell, and who wants it.
    pub restored: Vec<(usize, [Option<By>; 8])>,
    /// Why each instruction belongs to the slice, the last first.
    pub causes: Vec<(usize, Cause)>,
}

/// Why an instruction belongs to a slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// It made these cells, of which one was wanted by somebody.
    Cells { made: Range<Cell>, by: By },
    /// It made these bytes of an access: the same.
    Memory { access: usize, made: Range<u64>, by: By },
    /// It decided over an instruction of the unit.
    Decided(By),
    /// Whatever it makes.
    Anyway,
}

/// Who wants something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum By {
    /// Whoever wanted it behind the unit.
    Behind,
    /// An instruction of the unit.
    Instruction(usize, Role),
    /// Whoever wants a cell of a register that an instruction put aside.
    Aside(usize, usize),
}

impl By {
    /// While sketching, numbers stand for them.
    fn wanter(self) -> Wanter {
        match self {
            By::Behind => Wanter::default(),
            By::Instruction(index, role) => Wanter::new(1 + index as u32, role),
            By::Aside(index, cell) => {
                Wanter::new((1 + MOST + 8 * index + cell) as u32, Role::Value)
            }
        }
    }

    fn of(wanter: Wanter) -> By {
        match wanter.number() as usize {
            0 => By::Behind,
            number @ 1..=MOST => By::Instruction(number - 1, wanter.role()),
            number => By::Aside((number - 1 - MOST) / 8, (number - 1 - MOST) % 8),
        }
    }
}

pub struct Sketcher {
    over: Over,
}

impl Sketcher {
    pub fn new(dependences: Dependences) -> Sketcher {
        Sketcher { over: Over::new(dependences, Wanted::new(true)) }
    }

    /// Goes back over a unit with nothing else wanted.
    pub fn sketch(&mut self, record: &Record, behind: &Behind, control: bool) -> Found {
        let Over { wanted, .. } = &mut self.over;
        for (test, mask) in behind.tests {
            test.want(*mask, By::Behind.wanter(), record, wanted);
        }
        let asides = behind.asides.iter().map(|(index, cells)| (*index, aside(*index, *cells)));
        let mut sketch = Sketch {
            record,
            control,
            decide: behind.decide,
            left: behind.left,
            partly: behind.partly,
            asides: asides.collect(),
            deciders: Vec::new(),
            found: Found::default(),
        };
        for index in (0..record.count).rev() {
            self.over.instruction(record, index, &mut sketch);
        }
        let mut found = sketch.found;
        self.take_cells(&mut found);
        self.take_memory(record, &mut found);
        found
    }

    /// Which cells are wanted now.
    fn take_cells(&mut self, found: &mut Found) {
        for (cell, wanter) in self.over.wanted.take_registers() {
            let (word, bit, by) = (usize::from(cell / 64), 1 << (cell % 64), By::of(wanter));
            match found.cells.iter_mut().find(|(at, _, for_whom)| (*at, *for_whom) == (word, by)) {
                Some((_, mask, _)) => *mask |= bit,
                None => found.cells.push((word, bit, by)),
            }
        }
    }

    /// Which bytes are. Whoever wants them has accessed them.
    fn take_memory(&mut self, record: &Record, found: &mut Found) {
        let memory = &mut self.over.wanted.memory;
        // Who comes later wanted them first.
        let planned = &record.unit.plan.accesses;
        for (number, start) in record.starts.iter().enumerate().rev() {
            let instruction = usize::from(planned[number].instruction);
            let size = planned[number].fixed_size().unwrap_or(0).into();
            let first = found.memory.len();
            each_bit(memory.mask(*start, size), |bit| {
                let by = By::of(memory.who(start.wrapping_add(bit.into())));
                if !matches!(by, By::Instruction(index, _) if index == instruction) {
                    return;
                }
                match found.memory[first..].iter_mut().find(|(_, _, for_whom)| *for_whom == by) {
                    Some((_, mask, _)) => *mask |= 1 << bit,
                    None => found.memory.push((number, 1 << bit, by)),
                }
            });
        }
        for (start, access) in record.starts.iter().zip(planned) {
            memory.remove(*start, bits(access.fixed_size().unwrap_or(0).into()));
        }
    }
}

/// As if each cell was wanted by somebody of its own.
fn aside(index: usize, cells: u8) -> Aside {
    let wanters = std::array::from_fn(|cell| By::Aside(index, cell).wanter());
    Aside { cells, wanters }
}

/// What is noted while sketching.
struct Sketch<'a> {
    record: &'a Record<'a>,
    control: bool,
    decide: u64,
    left: u64,
    partly: Option<&'a Partly>,
    asides: Vec<(usize, Aside)>,
    /// Instructions that decided over others of the unit, and for whom.
    deciders: Vec<(usize, By)>,
    found: Found,
}

impl Sketch<'_> {
    /// The number of an instruction, if it is one of the unit.
    fn index(&self, position: Position) -> Option<usize> {
        position.checked_sub(self.record.position).map(|index| index as usize)
    }

    fn cause(&self, instance: &Instance, made: Option<&Made>, wanted: &Wanted) -> Option<Cause> {
        let Some(made) = made else {
            let decided = self.deciders.iter().find(|(index, _)| *index == instance.index);
            return Some(decided.map_or(Cause::Anyway, |(_, by)| Cause::Decided(*by)));
        };
        let by = By::of(made.wanter(wanted));
        Some(match &made.area {
            Area::Cells(made) => Cause::Cells { made: made.clone(), by },
            Area::Memory(made) => {
                let unit = self.record.unit;
                let own = unit.first_access[instance.index]..unit.first_access[instance.index + 1];
                let start = |access: usize| self.record.starts[access];
                let size = |access: usize| unit.plan.accesses[access].fixed_size().unwrap_or(0);
                let mut holding = own.filter(|access| {
                    made.start.wrapping_sub(start(*access)) < size(*access).into()
                });
                let access = holding.next()?;
                let away = |at: u64| at.wrapping_sub(start(access));
                Cause::Memory { access, made: away(made.start)..away(made.end), by }
            }
        })
    }
}

impl Notes for Sketch<'_> {
    fn decides(&mut self, instance: &Instance) -> bool {
        self.decide >> instance.index & 1 == 1
    }

    fn depending(&self, position: Position) -> Option<Share<'_>> {
        self.partly?.of(position)
    }

    fn belongs(
        &mut self,
        instance: &Instance,
        made: Option<&Made>,
        wanted: &Wanted,
    ) -> Option<Wanter> {
        if self.left >> instance.index & 1 == 1 {
            return None;
        }
        let cause = self.cause(instance, made, wanted)?;
        self.found.causes.push((instance.index, cause));
        self.found.members |= 1 << instance.index;
        Some(By::Instruction(instance.index, Role::Value).wanter())
    }

    fn is_decided(&mut self, instance: &Instance, wanter: Wanter) {
        let index = instance.index;
        let decided = self.record.decided.iter().rposition(|d| d.from() <= index);
        let Some(number) = decided.filter(|_| self.control) else { return };
        let Some(by) = self.record.decided[number].by() else { return };
        if let Some(index) = self.index(by) {
            if self.decide >> index & 1 == 0 {
                self.deciders.push((index, By::of(wanter)));
            }
            self.decide |= 1 << index;
        } else if !self.found.decided.iter().any(|(other, _)| *other == number) {
            self.found.decided.push((number, By::of(wanter)));
        }
    }

    fn put_aside(&mut self, restored: &Restored, aside: &Aside) {
        if let Some(index) = self.index(restored.saved()) {
            match self.asides.iter_mut().find(|(at, _)| *at == index) {
                Some((_, other)) => other.add(aside),
                None => self.asides.push((index, *aside)),
            }
        } else if let Some(number) = self.record.restored.iter().position(|r| r == restored) {
            let by =
                |cell: usize| (aside.cells >> cell & 1 == 1).then(|| By::of(aside.wanters[cell]));
            self.found.restored.push((number, std::array::from_fn(by)));
        }
    }

    fn brought_back(&mut self, instance: &Instance) -> Option<Aside> {
        let found = self.asides.iter().position(|(index, _)| *index == instance.index);
        found.map(|found| self.asides.swap_remove(found).1)
    }
}
