//! Instructions that belong to a slice whatever they make, and those that put a register aside
//! that is wanted: they come when the search gets there.

use crate::control::Position;
use crate::large;
use crate::positions::bits_of;
use crate::saves::Kept;
use crate::wanted::{Wanted, Wanter};
use rustc_hash::FxHashMap;
use why_effects::Cell;

/// So many wanters are kept together.
const PAGE: usize = 4096;

pub struct Waiting {
    /// What was executed before does not count.
    start: Position,
    /// A bit for each position from there on.
    decide: Vec<u64>,
    put_aside: Vec<u64>,
    /// Who wants those that decide.
    wanters: Vec<Option<Box<[Wanter; PAGE]>>>,
    /// No longer used, to be used again.
    free: Vec<Box<[Wanter; PAGE]>>,
    /// From here on nothing is waiting any more.
    passed: usize,
    asides: FxHashMap<Position, Aside>,
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
        let first = kept.cells().start;
        for (index, wanter) in (0..).zip(self.wanters) {
            if self.cells >> index & 1 == 1 {
                wanted.turn_to_wanter(wanter);
                wanted.want_some_cells(first + index as Cell, 1);
            }
        }
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
            wanters: vec![None; count.div_ceil(PAGE)],
            free: Vec::new(),
            passed: count.div_ceil(PAGE),
            asides: FxHashMap::default(),
            wrote: FxHashMap::default(),
        }
    }

    /// How much memory that takes.
    pub fn size(&self) -> usize {
        let pages = self.wanters.iter().flatten().count() + self.free.len();
        size_of_val(self.decide.as_slice())
            + size_of_val(self.put_aside.as_slice())
            + size_of_val(self.wanters.as_slice())
            + pages * PAGE * size_of::<Wanter>()
            + self.asides.len() * size_of::<(Position, Aside)>()
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
            let room = || Box::new([Wanter::default(); PAGE]);
            let free = &mut self.free;
            let page =
                self.wanters[index / PAGE].get_or_insert_with(|| free.pop().unwrap_or_else(room));
            page[index % PAGE] = wanter;
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
        if let Some(index) = self.index(position)
            && let Some(word) = self.put_aside.get_mut(index / 64)
        {
            *word |= 1 << (index % 64);
            self.asides.entry(position).or_default().add(aside);
        }
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
        let page = self.wanters.get(index / PAGE)?.as_ref().filter(|_| is_waiting)?;
        Some((page[index % PAGE], self.wrote.get(&position).copied()))
    }

    /// What was put aside by an instruction.
    pub fn aside(&self, position: Position) -> Option<&Aside> {
        self.asides.get(&position)
    }

    /// It was put aside there, and is wanted as before.
    pub fn take_aside(&mut self, position: Position) -> Option<Aside> {
        self.asides.remove(&position)
    }

    /// From there on nobody waits any more.
    #[inline]
    pub fn pass(&mut self, position: Position) {
        let page = position.saturating_sub(self.start) as usize / PAGE + 1;
        while self.passed > page {
            self.passed -= 1;
            if let Some(page) = self.wanters.get_mut(self.passed).and_then(Option::take) {
                self.free.push(page);
            }
        }
    }
}
