//! Instructions that belong to a slice whatever they make, and those that put a register aside
//! that is wanted: they come when the search gets there.

use crate::control::Position;
use crate::large;
use crate::paged::Paged;
use crate::positions::bits_of;
use crate::saves::Kept;
use crate::wanted::{Wanted, Wanter};
use rustc_hash::FxHashMap;

pub struct Waiting {
    /// What was executed before does not count.
    start: Position,
    /// A bit for each position from there on.
    decide: Vec<u64>,
    put_aside: Vec<u64>,
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

impl Waiting {
    /// Nobody waits yet, between two positions.
    pub fn between(start: Position, end: Position) -> Waiting {
        let count = end.saturating_sub(start) as usize;
        let nobody = || large::zeros(count.div_ceil(64) + 1);
        Waiting {
            start,
            decide: nobody(),
            put_aside: nobody(),
            wanters: Paged::up_to(count),
            asides: Vec::new(),
            numbers: Paged::up_to(count),
            free: Vec::new(),
            wrote: FxHashMap::default(),
        }
    }

    /// How much memory that takes.
    pub fn size(&self) -> usize {
        size_of_val(self.decide.as_slice())
            + size_of_val(self.put_aside.as_slice())
            + self.wanters.size()
            + self.numbers.size()
            + size_of_val(self.asides.as_slice())
    }

    fn index(&self, position: Position) -> Option<usize> {
        position.checked_sub(self.start).map(|index| index as usize)
    }

    /// An instruction belongs to the slice whatever it makes; whether that is new.
    #[inline]
    pub fn decide(&mut self, position: Position, wanter: Wanter) -> bool {
        let Some(index) = self.index(position) else { return false };
        let Some(word) = self.decide.get_mut(index / 64) else { return false };
        let bit = 1 << (index % 64);
        let is_new = *word & bit == 0;
        if is_new {
            *word |= bit;
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
        let Some(word) = self.put_aside.get_mut(index / 64) else { return };
        let bit = 1 << (index % 64);
        if *word & bit != 0 {
            let number = self.numbers.get(index).expect("it has one");
            self.asides[number as usize].add(aside);
            return;
        }
        *word |= bit;
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
        let is_there = bits_of(&self.put_aside, index, 1) == 1;
        self.numbers.get(index).filter(|_| is_there)
    }

    /// Those of the next instructions that decide; those that put something aside.
    #[inline]
    pub fn masks(&self, position: Position, count: u32) -> (u64, u64) {
        let Some(index) = self.index(position) else { return (0, 0) };
        (bits_of(&self.decide, index, count), bits_of(&self.put_aside, index, count))
    }

    /// Whether an instruction belongs to the slice whatever it makes: for whom, and where it had
    /// somebody write.
    pub fn decision(&self, position: Position) -> Option<(Wanter, Option<u64>)> {
        let index = self.index(position)?;
        let is_waiting = bits_of(&self.decide, index, 1) == 1;
        let wanter = self.wanters.get(index).filter(|_| is_waiting)?;
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
        self.put_aside[index / 64] &= !(1 << (index % 64));
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
        }
    }
}
