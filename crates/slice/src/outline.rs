//! What going over a unit does to what is touched, whatever else is.

use crate::across::{Across, Cause, Notes, REGISTER, is_whole};
use crate::backward::Dependences;
use crate::control::Position;
use crate::course::Restored;
use crate::events::Record;
use crate::forward::Becomes;
use crate::memory::{bits, covered, each_bit};
use crate::over::Instance;
use crate::partly::Shape;
use crate::patterns::{MOST, Test};
use crate::ports::Ports;
use crate::wanted::{Role, Wanter};
use why_effects::Cell;

/// What is touched before a unit of what it uses.
pub struct Before<'a> {
    /// What of each thing that it uses.
    pub uses: &'a [u64],
    /// Which of those that decided belong to the slice, a bit for each number in the record.
    pub decided: u64,
    /// What of registers that it brings back.
    pub brings: &'a [u64],
}

/// What is touched behind it because of that, and what follows.
#[derive(Debug, Default)]
pub struct Outline {
    /// The instructions that belong to the slice; and those that do so too, but only put aside what
    /// others bring back.
    pub members: u64,
    pub met: u64,
    /// Those that decide over others.
    pub decide: u64,
    /// What is touched of what it defines, by the number of that.
    pub made: Vec<Act>,
    /// And of registers that it puts aside, by the number of that.
    pub asides: Vec<Act>,
    /// The instructions of which not all depends on the source, and what does.
    pub partly: Vec<(u8, Shape)>,
    /// There are some of these that have no shape.
    pub has_other: bool,
}

/// Something that is touched: its number, which bits of it, and by whom.
pub type Act = (u16, u64, By);

/// Who touched something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Whoever touched the same cell before the unit.
    Before,
    /// An instruction of the unit.
    Instruction(u8),
    /// Whoever touched the same byte of a register that was put aside before, and is brought back.
    Aside(u8),
}

impl By {
    /// While sketching, numbers stand for them.
    fn wanter(self) -> Wanter {
        let number = match self {
            By::Before => 0,
            By::Instruction(index) => 1 + u32::from(index),
            By::Aside(number) => 1 + MOST as u32 + u32::from(number),
        };
        Wanter::new(number, Role::Value)
    }

    fn of(wanter: Wanter) -> By {
        match wanter.number() as usize {
            0 => By::Before,
            number @ 1..=MOST => By::Instruction((number - 1) as u8),
            number => By::Aside((number - 1 - MOST) as u8),
        }
    }
}

pub struct Outliner {
    across: Across,
}

impl Outliner {
    pub fn new(dependences: Dependences, control: bool) -> Outliner {
        Outliner { across: Across::new(dependences, control, true) }
    }

    /// Goes over a unit with nothing else touched.
    pub fn outline(&mut self, record: &Record, ports: &Ports, before: &Before) -> Outline {
        let Across { touched, stored, .. } = &mut self.across;
        for (test, mask) in ports.uses().iter().zip(before.uses) {
            test.want(*mask, By::Before.wanter(), record, touched);
        }
        for (number, (brings, mask)) in (0..).zip(ports.brings.iter().zip(before.brings)) {
            stored.add_some(brings.slot.at(record), *mask, By::Aside(number).wanter());
        }
        let mut sketch = Sketch { record, decided: before.decided, found: Outline::default() };
        for index in 0..record.count {
            self.across.instruction(record, index, &mut sketch);
        }
        let mut found = sketch.found;
        self.read(record, ports, &mut found);
        self.clear(record, ports);
        found
    }

    /// What is touched now of what the unit defines.
    fn read(&self, record: &Record, ports: &Ports, found: &mut Outline) {
        let Across { touched, stored, .. } = &self.across;
        for (number, test) in (0..).zip(ports.defines()) {
            let who = |bit: u32| match *test {
                Test::Cells { word, .. } => touched.who_wanted_cell(64 * word + bit as Cell),
                Test::Bytes { access, offset, .. } => {
                    let start = record.starts[usize::from(access)];
                    touched
                        .who_wanted_memory(start.wrapping_add(u64::from(offset) + u64::from(bit)))
                }
            };
            let mask = test.wanted(record, touched);
            each_toucher(mask, who, |mask, by| found.made.push((number, mask, by)));
        }
        for (number, aside) in (0u16..).zip(&*ports.asides) {
            let at = aside.at(record);
            let who = |bit: u32| stored.who(at.wrapping_add(bit.into()));
            // Where another register was put later, that is what is there now.
            let later = ports.asides[usize::from(number) + 1..].iter();
            let covered = later
                .fold(0, |all, later| all | covered((at, REGISTER), (later.at(record), REGISTER)));
            let mask = stored.mask(at, REGISTER) & !covered;
            each_toucher(mask, who, |mask, by| found.asides.push((number, mask, by)));
        }
    }

    /// Nothing is touched any more.
    fn clear(&mut self, record: &Record, ports: &Ports) {
        let Across { touched, stored, .. } = &mut self.across;
        touched.take_registers();
        for (start, access) in record.starts.iter().zip(&record.unit.plan.accesses) {
            touched.memory.remove(*start, bits(access.fixed_size().unwrap_or(0).into()));
        }
        let asides = ports.asides.iter().map(|aside| aside.at(record));
        let slots = asides.chain(ports.brings.iter().map(|brings| brings.slot.at(record)));
        slots.for_each(|at| stored.remove(at, bits(REGISTER)));
    }
}

/// Bits, apart for each who touched some of them.
fn each_toucher(mask: u64, who: impl Fn(u32) -> Wanter, mut each: impl FnMut(u64, By)) {
    let mut left = mask;
    while left != 0 {
        let first = who(left.trailing_zeros());
        let mut own = 0;
        each_bit(left, |bit| own |= u64::from(who(bit) == first) << bit);
        each(own, By::of(first));
        left &= !own;
    }
}

/// What is noted while sketching.
struct Sketch<'a> {
    record: &'a Record<'a>,
    decided: u64,
    found: Outline,
}

impl Sketch<'_> {
    /// The bit of an instruction, if it is one of the unit.
    fn bit(&self, position: Position) -> Option<u64> {
        position.checked_sub(self.record.position).map(|index| 1 << index)
    }
}

impl Notes for Sketch<'_> {
    fn is_decided(&self, instance: &Instance) -> bool {
        let decided = self.record.decided;
        let Some(number) = decided.iter().rposition(|d| d.from() <= instance.index) else {
            return false;
        };
        match decided[number].by().map(|by| self.bit(by)) {
            None => false,
            Some(Some(bit)) => self.found.decide & bit != 0,
            Some(None) => self.decided >> number & 1 == 1,
        }
    }

    fn belongs(&mut self, instance: &Instance, _: Cause) -> Wanter {
        self.found.members |= 1 << instance.index;
        self.found.met |= 1 << instance.index;
        By::Instruction(instance.index as u8).wanter()
    }

    fn becomes(&mut self, instance: &Instance, made: &[Becomes], decides: bool) {
        if is_whole(instance, made, decides) {
            return;
        }
        match Shape::of(&instance.insn.effects, made, decides) {
            Some(shape) => self.found.partly.push((instance.index as u8, shape)),
            None => self.found.has_other = true,
        }
    }

    fn decides(&mut self, instance: &Instance, _: Wanter) {
        self.found.decide |= 1 << instance.index;
    }

    fn brought_back(&mut self, restored: &Restored) {
        if let Some(bit) = self.bit(restored.saved()) {
            self.found.members &= !bit;
        }
    }
}
