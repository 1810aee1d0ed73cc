//! The bytes whose definitions are still to be found.

use crate::course::Moved;
use crate::memory::{Memory, bits, each_bit};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use why_effects::Cell;
use why_effects::cells::CELLS;

const CELL_WORDS: usize = CELLS.div_ceil(64);

/// Registers of a thread: a bit for each cell.
pub type Cells = [u64; CELL_WORDS];

/// Somebody who wants bytes, by number, and what for. The first is who asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanter(u32);

/// What bytes are wanted for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Role {
    /// To compute something from them.
    #[default]
    Value,
    /// To find out where something is.
    Address,
    /// To decide where to go.
    Condition,
}

impl Wanter {
    /// No role has this number.
    const MIXED: u32 = 3;

    /// It depends on the byte who it is: those of this number.
    pub(crate) fn mixed(number: u32) -> Wanter {
        Wanter(number << 2 | Wanter::MIXED)
    }

    /// The number, if it does.
    #[inline]
    pub(crate) fn as_mixed(self) -> Option<usize> {
        (self.0 & 3 == Wanter::MIXED).then_some((self.0 >> 2) as usize)
    }

    pub fn new(number: u32, role: Role) -> Wanter {
        Wanter(number << 2 | role as u32)
    }

    pub fn number(self) -> u32 {
        self.0 >> 2
    }

    pub fn role(self) -> Role {
        match self.0 & 3 {
            0 => Role::Value,
            1 => Role::Address,
            _ => Role::Condition,
        }
    }

    /// The same for something else.
    pub fn with(self, role: Role) -> Wanter {
        Wanter::new(self.number(), role)
    }
}

pub struct Wanted {
    /// Those of this thread are meant.
    thread: u64,
    pub(crate) registers: Registers,
    others: FxHashMap<u64, Registers>,
    pub(crate) memory: Memory,
    /// Who wants what is wanted from now on.
    wanter: Wanter,
    asks: bool,
}

/// So many cells are a group: a general register has one, and no other has cells of it.
pub(crate) const GROUP: usize = 8;
const GROUPS: usize = 64 / GROUP;

/// What is wanted of a thread's registers, and by whom, if anybody asks.
pub(crate) struct Registers {
    pub cells: Cells,
    /// Of each group.
    wanters: Box<[[Wanter; GROUP]]>,
}

impl Registers {
    fn new(asks: bool) -> Registers {
        let groups = if asks { GROUPS * CELL_WORDS } else { 0 };
        let wanters = vec![[Wanter::default(); GROUP]; groups].into();
        Registers { cells: [0; CELL_WORDS], wanters }
    }

    /// Those cells of a word that have a bit; whoever wanted one before wants it still.
    pub fn want(&mut self, word: usize, mask: u64, wanter: Wanter) {
        for (group, mask) in groups(word, mask) {
            self.want_group(group, mask, [wanter; GROUP]);
        }
    }

    /// Those cells of a group that have a bit, each by somebody.
    #[inline(always)]
    pub fn want_group(&mut self, group: usize, mask: u8, wanters: [Wanter; GROUP]) {
        let (word, shift) = (&mut self.cells[group / GROUPS], group % GROUPS * GROUP);
        let new = mask & !((*word >> shift) as u8);
        *word |= u64::from(mask) << shift;
        if let Some(own) = self.wanters.get_mut(group) {
            match new {
                0 => {}
                // Most are registers, or their lower halves.
                0xff => *own = wanters,
                0x0f => own[..GROUP / 2].copy_from_slice(&wanters[..GROUP / 2]),
                _ => each_bit(new.into(), |bit| own[bit as usize] = wanters[bit as usize]),
            }
        }
    }

    /// Who wants each cell of a group, or did.
    #[inline]
    pub fn who_of_group(&self, group: usize) -> [Wanter; GROUP] {
        self.wanters.get(group).copied().unwrap_or_default()
    }

    /// Who wants a cell, or did.
    pub fn who(&self, cell: Cell) -> Wanter {
        self.who_of_group(usize::from(cell) / GROUP)[usize::from(cell) % GROUP]
    }
}

/// The groups of which cells of a word have a bit.
pub(crate) fn groups(word: usize, mask: u64) -> impl Iterator<Item = (usize, u8)> {
    let all = (GROUPS * word..).zip(mask.to_le_bytes());
    all.filter(|(_, mask)| *mask != 0)
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted::new(false)
    }
}

impl Wanted {
    /// Nothing is wanted yet. It may be of interest by whom things are.
    pub fn new(asks: bool) -> Wanted {
        Wanted {
            thread: 0,
            registers: Registers::new(asks),
            others: FxHashMap::default(),
            memory: Memory::new(asks),
            wanter: Wanter::default(),
            asks,
        }
    }

    /// Registers are those of this thread from now on.
    #[inline]
    pub fn turn_to(&mut self, thread: u64) {
        if thread != self.thread {
            let next = self.others.remove(&thread).unwrap_or_else(|| Registers::new(self.asks));
            let before = std::mem::replace(&mut self.registers, next);
            self.others.insert(std::mem::replace(&mut self.thread, thread), before);
        }
    }

    /// Whatever is wanted from now on, somebody else wants.
    pub fn turn_to_wanter(&mut self, wanter: Wanter) {
        self.wanter = wanter;
    }

    /// The same one wants from now on for another reason.
    pub fn turn_to_role(&mut self, role: Role) {
        self.wanter = self.wanter.with(role);
    }

    pub fn want_cells(&mut self, cells: Range<Cell>) {
        for (word, mask) in cell_words(cells) {
            self.registers.want(word, mask, self.wanter);
        }
    }

    /// Those cells from there on that have a bit; none is in another word.
    pub fn want_some_cells(&mut self, from: Cell, mask: u64) {
        self.registers.want(usize::from(from / 64), mask << (from % 64), self.wanter);
    }

    /// Those of the next bytes from there on that have a bit.
    pub fn want_some_memory(&mut self, from: u64, mask: u64) {
        self.memory.add_some(from, mask, self.wanter);
    }

    pub fn want_memory(&mut self, bytes: Range<u64>) {
        self.memory.add_all(bytes, self.wanter);
    }

    /// Who wanted a cell that was just taken.
    pub fn who_wanted_cell(&self, cell: Cell) -> Wanter {
        self.registers.who(cell)
    }

    /// The same for memory.
    pub fn who_wanted_memory(&self, at: u64) -> Wanter {
        self.memory.who(at)
    }

    /// Whether any of these cells is wanted.
    pub fn has_cells(&self, cells: Range<Cell>) -> bool {
        cell_words(cells).any(|(word, mask)| self.registers.cells[word] & mask != 0)
    }

    /// Which of these cells are wanted, of which there are at most 64.
    pub fn cells_mask(&self, cells: Range<Cell>) -> u64 {
        let mut mask = 0;
        for (word, found) in cell_words(cells.clone()) {
            let found = self.registers.cells[word] & found;
            let (first, start) = (64 * word, usize::from(cells.start));
            mask |= if first < start { found >> (start - first) } else { found << (first - start) };
        }
        mask
    }

    /// These are not wanted.
    pub fn drop_cells(&mut self, cells: Range<Cell>) {
        for (word, mask) in cell_words(cells) {
            self.registers.cells[word] &= !mask;
        }
    }

    /// Nor is that.
    pub fn drop_memory(&mut self, bytes: Range<u64>) {
        match bytes.end.wrapping_sub(bytes.start) {
            size @ 0..=64 => self.memory.remove(bytes.start, bits(size as u32)),
            _ => self.memory.take(bytes, |_| ()),
        }
    }

    /// Whether any of these bytes is.
    pub fn has_memory(&self, bytes: Range<u64>) -> bool {
        self.memory.has(bytes)
    }

    pub fn wants_nothing(&self) -> bool {
        let mut threads = self.others.values().chain([&self.registers]);
        threads.all(|thread| thread.cells.iter().all(|word| *word == 0)) && self.memory.is_empty()
    }

    /// Those of these cells that are wanted; they are so no more.
    pub fn take_wanted(&mut self, cells: Range<Cell>) -> Vec<Cell> {
        let mut taken = Taken::default();
        self.take_cells(cells.clone(), &mut taken);
        taken.bytes().map(|index| cells.start + index as Cell).collect()
    }

    /// All registers that are wanted, and by whom; they are so no more.
    pub fn take_registers(&mut self) -> Vec<(Cell, Wanter)> {
        let mut taken = Vec::new();
        let cells = std::mem::replace(&mut self.registers.cells, [0; CELL_WORDS]);
        for (word, mask) in cells.into_iter().enumerate() {
            each_bit(mask, |bit| {
                let cell = (64 * word) as Cell + bit as Cell;
                taken.push((cell, self.registers.who(cell)));
            });
        }
        taken
    }

    /// Which of these cells are wanted, which are all in one word; they are so no more.
    #[inline]
    pub fn take_cells(&mut self, cells: Range<Cell>, taken: &mut Taken) {
        taken.clear();
        let word = &mut self.registers.cells[usize::from(cells.start / 64)];
        let shift = cells.start % 64;
        taken.mask = *word >> shift & bits((cells.end - cells.start).into());
        *word &= !(taken.mask << shift);
    }

    /// The first of these bytes that is wanted; none of them is so any more.
    pub fn take_any(&mut self, bytes: Range<u64>) -> Option<u64> {
        let mut first = None;
        self.memory.take(bytes.clone(), |byte| {
            first.get_or_insert(bytes.start.wrapping_add(byte));
        });
        first
    }

    /// Memory was moved to these bytes: what is wanted of them is so where they were before. What is
    /// wanted there nobody has made yet.
    pub fn move_back(&mut self, bytes: Range<u64>, moved: Moved) {
        let before = moved.from..moved.from.wrapping_add(moved.size);
        self.move_memory(&bytes, &before);
    }

    /// The same on the way forwards.
    pub fn move_on(&mut self, bytes: Range<u64>, moved: Moved) {
        let before = moved.from..moved.from.wrapping_add(moved.size);
        self.move_memory(&before, &bytes);
    }

    /// What was there is gone, and what is new there is empty. They may be the same from there on.
    fn move_memory(&mut self, from: &Range<u64>, to: &Range<u64>) {
        let mut moved = Vec::new();
        self.memory.take(from.clone(), |byte| moved.push(byte));
        let known = moved.into_iter().map(|byte| {
            let at = from.start.wrapping_add(byte);
            (to.start.wrapping_add(byte), self.memory.who(at))
        });
        let known: Vec<(u64, Wanter)> = known.collect();
        self.memory.take(to.clone(), |_| ());
        let size = to.end.wrapping_sub(to.start);
        for (at, wanter) in known {
            if at.wrapping_sub(to.start) < size {
                self.memory.add_all(at..at.wrapping_add(1), wanter);
            }
        }
    }

    /// The same for memory.
    #[inline]
    pub fn take_memory(&mut self, bytes: Range<u64>, taken: &mut Taken) {
        taken.clear();
        let size = bytes.end.wrapping_sub(bytes.start);
        taken.is_long = size > 64;
        if taken.is_long {
            self.memory.take(bytes, |byte| taken.long.push(byte));
        } else {
            taken.mask = self.memory.mask(bytes.start, size as u32);
            if taken.mask != 0 {
                self.memory.remove(bytes.start, taken.mask);
            }
        }
    }
}

/// The words in which cells have their bits.
pub(crate) fn cell_words(cells: Range<Cell>) -> impl Iterator<Item = (usize, u64)> {
    let mut at = cells.start;
    std::iter::from_fn(move || {
        let count = cells.end.saturating_sub(at).min(64 - at % 64);
        let found = (usize::from(at / 64), bits(count.into()) << (at % 64));
        at += count;
        (count > 0).then_some(found)
    })
}

/// Which bytes of a place were wanted, in order.
#[derive(Default)]
pub struct Taken {
    /// A bit for each, if there are not more.
    mask: u64,
    is_long: bool,
    long: Vec<u64>,
}

impl Taken {
    fn clear(&mut self) {
        self.mask = 0;
        self.is_long = false;
        self.long.clear();
    }

    /// Only some of them.
    pub fn retain(&mut self, is_kept: impl Fn(u64) -> bool) {
        each_bit(self.mask, |bit| {
            if !is_kept(bit.into()) {
                self.mask &= !(1 << bit);
            }
        });
        self.long.retain(|byte| is_kept(*byte));
    }

    pub fn is_empty(&self) -> bool {
        self.mask == 0 && self.long.is_empty()
    }

    /// A bit for each; none if there are too many bytes.
    pub fn mask(&self) -> Option<u64> {
        (!self.is_long).then_some(self.mask)
    }

    pub fn bytes(&self) -> impl Iterator<Item = u64> {
        let mut left = self.mask;
        let short = std::iter::from_fn(move || {
            let next = (left != 0).then(|| left.trailing_zeros().into());
            left &= left.wrapping_sub(1);
            next
        });
        short.chain(self.long.iter().copied())
    }
}
