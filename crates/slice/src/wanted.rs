//! The bytes whose definitions are still to be found.

use rustc_hash::FxHashMap;
use std::ops::Range;
use why_effects::Cell;
use why_effects::cells::CELLS;

const WORD: u64 = u64::BITS as u64;
const PAGE: u64 = 4096;
const CELL_WORDS: usize = CELLS.div_ceil(WORD as usize);

/// Which bytes of a page are wanted, and by whom, if anybody asks.
#[derive(Clone)]
struct Page {
    words: [u64; (PAGE / WORD) as usize],
    wanters: Vec<Wanter>,
}

/// Registers of one thread.
type Cells = [u64; CELL_WORDS];

/// Registers as a whole, a bit for each, and one for all flags: to see quickly that nothing of
/// them is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Groups(u64);

impl Groups {
    pub fn of(mut cells: Range<Cell>) -> Groups {
        let mut groups = 0;
        while cells.start < cells.end {
            let (group, all) = Groups::around(cells.start);
            groups |= 1 << group;
            cells.start = all.end;
        }
        Groups(groups)
    }

    pub fn and(self, other: Groups) -> Groups {
        Groups(self.0 | other.0)
    }

    #[inline]
    pub fn have_common(self, other: Groups) -> bool {
        self.0 & other.0 != 0
    }

    /// The number of the group that a cell belongs to, and all of its cells.
    fn around(cell: Cell) -> (u32, Range<Cell>) {
        const FLAGS: Cell = 128;
        const OTHERS: Cell = 144;
        const VECTORS: Cell = 256;
        match cell {
            0..FLAGS => (u32::from(cell / 8), cell / 8 * 8..cell / 8 * 8 + 8),
            FLAGS..OTHERS => (16, FLAGS..OTHERS),
            OTHERS..VECTORS => (17, OTHERS..VECTORS),
            _ => {
                let number = (cell - VECTORS) / 64;
                let first = VECTORS + number * 64;
                (18 + u32::from(number), first..first + 64)
            }
        }
    }
}

#[derive(Clone)]
pub struct Wanted {
    /// Those of this thread are meant.
    thread: u64,
    cells: Cells,
    /// At least all groups of which a cell is wanted.
    groups: Groups,
    others: FxHashMap<u64, (Cells, Groups)>,
    /// Pages in which bytes are wanted, or were.
    memory: FxHashMap<u64, Box<Page>>,
    /// Who wants what is wanted from now on, and who wanted what is wanted so far, if anybody
    /// asks.
    wanter: Wanter,
    cell_wanters: Option<Box<[Wanter; CELLS]>>,
    others_wanters: FxHashMap<u64, Box<[Wanter; CELLS]>>,
}

/// Somebody who wants bytes, by number, and what for. The first is who asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanter {
    pub number: u32,
    pub role: Role,
}

/// What bytes are wanted for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// To compute something from them.
    #[default]
    Value,
    /// To find out where something is.
    Address,
    /// To decide where to go.
    Condition,
}

impl Default for Wanted {
    fn default() -> Wanted {
        let (others, memory) = (FxHashMap::default(), FxHashMap::default());
        let cells = [0; CELL_WORDS];
        let groups = Groups::default();
        Wanted {
            thread: 0,
            cells,
            groups,
            others,
            memory,
            wanter: Wanter::default(),
            cell_wanters: None,
            others_wanters: FxHashMap::default(),
        }
    }
}

impl Wanted {
    /// Registers are those of this thread from now on.
    pub fn turn_to(&mut self, thread: u64) {
        if thread != self.thread {
            let nothing = ([0; CELL_WORDS], Groups::default());
            let (cells, groups) = self.others.remove(&thread).unwrap_or(nothing);
            let cells = std::mem::replace(&mut self.cells, cells);
            let groups = std::mem::replace(&mut self.groups, groups);
            if let Some(wanters) = &mut self.cell_wanters {
                let next = self.others_wanters.remove(&thread).unwrap_or_else(nobody);
                let before = std::mem::replace(wanters, next);
                self.others_wanters.insert(self.thread, before);
            }
            self.others.insert(std::mem::replace(&mut self.thread, thread), (cells, groups));
        }
    }

    /// Whether any cell of these groups may be wanted.
    #[inline]
    pub fn may_have(&self, groups: Groups) -> bool {
        self.groups.have_common(groups)
    }

    /// Remembers from now on who wants what.
    pub fn remember_wanters(&mut self) {
        self.cell_wanters = Some(nobody());
    }

    /// Whatever is wanted from now on, somebody else wants.
    pub fn turn_to_wanter(&mut self, wanter: Wanter) {
        self.wanter = wanter;
    }

    /// The same one wants from now on for another reason.
    pub fn turn_to_role(&mut self, role: Role) {
        self.wanter.role = role;
    }

    pub fn want_cells(&mut self, cells: Range<Cell>) {
        let mut at = cells.start;
        while at < cells.end {
            let count = (cells.end - at).min(64 - at % 64);
            self.want_some_cells(at, bits(count.into()));
            at += count;
        }
    }

    /// Those cells from there on that have a bit; none is in another word.
    pub fn want_some_cells(&mut self, from: Cell, mask: u64) {
        if mask == 0 {
            return;
        }
        let (word, mask) = (usize::from(from / 64), mask << (from % 64));
        if let Some(wanters) = &mut self.cell_wanters {
            // Whoever wanted one before wants it still.
            let mut new = mask & !self.cells[word];
            while new != 0 {
                wanters[64 * word + new.trailing_zeros() as usize] = self.wanter;
                new &= new - 1;
            }
        }
        self.cells[word] |= mask;
        let last = 64 * word as Cell + (63 - mask.leading_zeros()) as Cell;
        let first = 64 * word as Cell + mask.trailing_zeros() as Cell;
        self.groups = self.groups.and(Groups::of(first..last + 1));
    }

    /// Those of the next bytes from there on that have a bit.
    pub fn want_some_memory(&mut self, from: u64, mask: u64) {
        let mut left = mask;
        while left != 0 {
            let first = left.trailing_zeros();
            let count = (left >> first).trailing_ones();
            let start = from.wrapping_add(first.into());
            self.want_memory(start..start.wrapping_add(count.into()));
            left &= !(bits(count) << first);
        }
    }

    pub fn want_memory(&mut self, bytes: Range<u64>) {
        for (number, bits) in words(bytes) {
            let page = self.memory.entry(number).or_insert_with(|| {
                let asked = self.cell_wanters.is_some();
                let wanters =
                    if asked { vec![Wanter::default(); PAGE as usize] } else { Vec::new() };
                Box::new(Page { words: [0; 64], wanters })
            });
            let mut new = bits.mask & !page.words[bits.word];
            page.words[bits.word] |= bits.mask;
            while new != 0 && !page.wanters.is_empty() {
                page.wanters[64 * bits.word + new.trailing_zeros() as usize] = self.wanter;
                new &= new - 1;
            }
        }
    }

    /// Who wanted a cell that was just taken.
    pub fn who_wanted_cell(&self, cell: Cell) -> Wanter {
        self.cell_wanters.as_ref().map_or(Wanter::default(), |cells| cells[usize::from(cell)])
    }

    /// The same for memory.
    pub fn who_wanted_memory(&self, at: u64) -> Wanter {
        let page = self.memory.get(&(at / PAGE));
        page.and_then(|page| page.wanters.get((at % PAGE) as usize)).copied().unwrap_or_default()
    }

    /// Whether any of these cells is wanted.
    pub fn has_cells(&self, cells: Range<Cell>) -> bool {
        let mut at = cells.start;
        while at < cells.end {
            let count = (cells.end - at).min(64 - at % 64);
            if self.cells[usize::from(at / 64)] >> (at % 64) & bits(count.into()) != 0 {
                return true;
            }
            at += count;
        }
        false
    }

    /// Whether any of these bytes is.
    pub fn has_memory(&self, bytes: Range<u64>) -> bool {
        words(bytes).any(|(page, bits)| {
            self.memory.get(&page).is_some_and(|page| page.words[bits.word] & bits.mask != 0)
        })
    }

    pub fn wants_nothing(&self) -> bool {
        let threads = self.others.values().map(|(cells, _)| cells).chain([&self.cells]);
        threads.flatten().all(|word| *word == 0)
            && self.memory.values().all(|page| page.words.iter().all(|word| *word == 0))
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
        for (index, word) in self.cells.iter().enumerate() {
            let mut left = *word;
            while left != 0 {
                let cell = 64 * index as Cell + left.trailing_zeros() as Cell;
                taken.push((cell, self.who_wanted_cell(cell)));
                left &= left - 1;
            }
        }
        (self.cells, self.groups) = ([0; CELL_WORDS], Groups::default());
        taken
    }

    /// Which of these cells are wanted, which are all in one word; they are so no more.
    #[inline]
    pub fn take_cells(&mut self, cells: Range<Cell>, taken: &mut Taken) {
        taken.clear();
        if !self.may_have(Groups::of(cells.clone())) {
            return;
        }
        let word = &mut self.cells[usize::from(cells.start / 64)];
        let shift = cells.start % 64;
        taken.mask = *word >> shift & bits((cells.end - cells.start).into());
        if taken.mask != 0 {
            *word &= !(taken.mask << shift);
            self.settle_groups(cells);
        }
    }

    /// Groups of which nothing is wanted any more are not.
    fn settle_groups(&mut self, mut cells: Range<Cell>) {
        while cells.start < cells.end {
            let (group, all) = Groups::around(cells.start);
            if !self.has_cells(all.clone()) {
                self.groups.0 &= !(1 << group);
            }
            cells.start = all.end;
        }
    }

    /// The first of these bytes that is wanted; none of them is so any more.
    pub fn take_any(&mut self, bytes: Range<u64>) -> Option<u64> {
        let mut taken = Taken::default();
        self.take_memory(bytes.clone(), &mut taken);
        taken.bytes().next().map(|byte| bytes.start.wrapping_add(byte))
    }

    /// The same for memory.
    #[inline]
    pub fn take_memory(&mut self, bytes: Range<u64>, taken: &mut Taken) {
        taken.clear();
        let start = bytes.start;
        taken.is_long = bytes.end.wrapping_sub(start) > WORD;
        for (number, bits) in words(bytes) {
            let Some(page) = self.memory.get_mut(&number) else {
                continue;
            };
            let mut found = page.words[bits.word] & bits.mask;
            if found == 0 {
                continue;
            }
            page.words[bits.word] &= !bits.mask;
            let first = (number * PAGE).wrapping_add(bits.word as u64 * WORD);
            if !taken.is_long {
                let distance = start.wrapping_sub(first) as i64;
                taken.mask |= if distance >= 0 {
                    found >> distance
                } else {
                    found << distance.unsigned_abs()
                };
                continue;
            }
            while found != 0 {
                let address = first.wrapping_add(u64::from(found.trailing_zeros()));
                taken.long.push(address.wrapping_sub(start));
                found &= found - 1;
            }
        }
    }
}

/// For all registers of a thread.
fn nobody() -> Box<[Wanter; CELLS]> {
    Box::new([Wanter::default(); CELLS])
}

/// So many bits.
pub fn bits(count: u32) -> u64 {
    u64::MAX.checked_shr(64 - count.min(64)).unwrap_or(0)
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

/// Some bits of a word of a page.
struct Bits {
    word: usize,
    mask: u64,
}

/// The words of pages in which these bytes have their bits. Addresses may wrap around.
fn words(bytes: Range<u64>) -> impl Iterator<Item = (u64, Bits)> {
    let mut at = bytes.start;
    let mut left = bytes.end.wrapping_sub(bytes.start);
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let bit = at % WORD;
        let count = left.min(WORD - bit);
        let mask = (u64::MAX >> (WORD - count)) << bit;
        let found = (at / PAGE, Bits { word: (at % PAGE / WORD) as usize, mask });
        at = at.wrapping_add(count);
        left -= count;
        Some(found)
    })
}
