//! Instructions that belong to a slice whatever they make, and those that put a register aside
//! that is wanted: they come when the search gets there.

use crate::control::Position;
use crate::marks::{Kind, Marks};
use crate::paged::Paged;
use crate::saves::Kept;
use crate::wanted::{Wanted, Wanter};
use rustc_hash::FxHashMap;

pub struct Waiting {
    /// What was executed before does not count.
    start: Position,
    /// Of positions from there on.
    marks: Marks,
    /// Who wants those that decide.
    wanters: Paged<Wanter>,
    /// What was put aside, by the numbers of those who did;
    asides: Vec<Aside>,
    numbers: Paged<u32>,
    /// and those that are free.
    free: Vec<u32>,
    /// Those that had somebody else write to memory, and where.
    wrote: FxHashMap<Position, u64>,
}

/// What is wanted of a register that was put aside, and by whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aside {
    pub cells: u8,
    pub wanters: [Wanter; 8],
}

impl Aside {
    /// What is wanted of a register is taken.
    pub fn take(kept: Kept, wanted: &mut Wanted) -> Aside {
        let mut aside = Aside::default();
        let first = kept.cells().start;
        for cell in wanted.take_wanted(kept.cells()) {
            let index = usize::from(cell - first);
            aside.cells |= 1 << index;
            aside.wanters[index] = wanted.who_wanted_cell(cell);
        }
        aside
    }

    /// It is wanted again.
    pub fn want(&self, kept: Kept, wanted: &mut Wanted) {
        wanted.registers.want_group(kept.group(), self.cells, self.wanters);
    }

    /// Whoever wants it already still does.
    pub fn add(&mut self, other: &Aside) {
        for index in 0..8 {
            if other.cells & !self.cells & 1 << index != 0 {
                self.wanters[index] = other.wanters[index];
            }
        }
        self.cells |= other.cells;
    }
}

/// Who belongs to the slice whatever it makes, and who has put something aside.
const DECIDES: Kind = Kind::First;
const PUTS_ASIDE: Kind = Kind::Second;

impl Waiting {
    /// Nobody waits yet, between two positions.
    pub fn between(start: Position, end: Position) -> Waiting {
        let count = end.saturating_sub(start) as usize;
        Waiting {
            start,
            marks: Marks::up_to(count),
            wanters: Paged::up_to(count),
            asides: Vec::new(),
            numbers: Paged::up_to(count),
            free: Vec::new(),
            wrote: FxHashMap::default(),
        }
    }

    /// How much memory that takes.
    pub fn size(&self) -> usize {
        self.marks.size()
            + self.wanters.size()
            + self.numbers.size()
            + size_of_val(self.asides.as_slice())
    }

    #[inline]
    fn index(&self, position: Position) -> Option<usize> {
        position.checked_sub(self.start).map(|index| index as usize)
    }

    /// An instruction belongs to the slice whatever it makes; whether that is new.
    #[inline]
    pub fn decide(&mut self, position: Position, wanter: Wanter) -> bool {
        let Some(index) = self.index(position) else { return false };
        let is_new = self.marks.mark(DECIDES, index) == Some(true);
        if is_new {
            self.wanters.put(index, wanter);
        }
        is_new
    }

    /// One belongs to it because it had somebody else write there.
    pub fn decide_writing(&mut self, position: Position, wanter: Wanter, byte: u64) {
        if self.decide(position, wanter) {
            self.wrote.insert(position, byte);
        }
    }

    /// A register is wanted again where it was put aside.
    pub fn put_aside(&mut self, position: Position, aside: &Aside) {
        let Some(index) = self.index(position) else { return };
        let Some(is_new) = self.marks.mark(PUTS_ASIDE, index) else { return };
        if !is_new {
            let number = self.numbers.get(index).expect("it has one");
            self.asides[number as usize].add(aside);
            return;
        }
        let number = self.free.pop().unwrap_or(self.asides.len() as u32);
        self.numbers.put(index, number);
        match self.asides.get_mut(number as usize) {
            Some(free) => *free = *aside,
            None => self.asides.push(*aside),
        }
    }

    /// The number of what was put aside by an instruction.
    #[inline]
    fn number(&self, position: Position) -> Option<u32> {
        let index = self.index(position)?;
        self.numbers.get(index).filter(|_| self.marks.has(PUTS_ASIDE, index))
    }

    /// Those of the next instructions, which have these bits, that decide; those that put something
    /// aside.
    #[inline(always)]
    pub fn masks(&self, position: Position, all: u64) -> (u64, u64) {
        let masks = self.index(position).map_or((0, 0), |index| self.marks.masks(index));
        (masks.0 & all, masks.1 & all)
    }

    /// Whether an instruction belongs to the slice whatever it makes: for whom, and where it had
    /// somebody write.
    pub fn decision(&self, position: Position) -> Option<(Wanter, Option<u64>)> {
        let index = self.index(position)?;
        let wanter = self.wanters.get(index).filter(|_| self.marks.has(DECIDES, index))?;
        Some((wanter, self.wrote.get(&position).copied()))
    }

    /// What was put aside by an instruction.
    pub fn aside(&self, position: Position) -> Option<&Aside> {
        self.number(position).map(|number| &self.asides[number as usize])
    }

    /// It was put aside there, and is wanted as before.
    pub fn take_aside(&mut self, position: Position) -> Option<Aside> {
        let number = self.number(position)?;
        let index = self.index(position)?;
        self.marks.clear(PUTS_ASIDE, index);
        self.free.push(number);
        Some(self.asides[number as usize])
    }

    /// From there on nobody waits any more.
    #[inline]
    pub fn pass(&mut self, position: Position) {
        let index = position.saturating_sub(self.start) as usize;
        if self.wanters.may_pass(index) {
            self.wanters.pass(index);
            self.numbers.pass(index);
            self.marks.pass(index);
        }
    }
}
