//! The bytes whose definitions are still to be found.

use rustc_hash::FxHashMap;
use std::ops::Range;
use why_effects::Cell;
use why_effects::cells::CELLS;

const WORD: u64 = u64::BITS as u64;
const PAGE: u64 = 4096;
const CELL_WORDS: usize = CELLS.div_ceil(WORD as usize);

type Page = [u64; (PAGE / WORD) as usize];

/// Registers of one thread.
type Cells = [u64; CELL_WORDS];

#[derive(Clone)]
pub struct Wanted {
    /// Those of this thread are meant.
    thread: u64,
    cells: Cells,
    others: FxHashMap<u64, Cells>,
    /// Pages in which bytes are wanted, or were.
    memory: FxHashMap<u64, Box<Page>>,
    /// Who wants what is wanted from now on, and who wanted what is wanted so far, if anybody
    /// asks.
    wanter: Wanter,
    wanters: Option<Box<Wanters>>,
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

/// Who wanted a byte first.
#[derive(Clone, Default)]
struct Wanters {
    cells: FxHashMap<u64, Box<[Wanter; CELLS]>>,
    memory: FxHashMap<u64, Box<[Wanter; PAGE as usize]>>,
}

impl Default for Wanted {
    fn default() -> Wanted {
        let (others, memory) = (FxHashMap::default(), FxHashMap::default());
        let cells = [0; CELL_WORDS];
        Wanted { thread: 0, cells, others, memory, wanter: Wanter::default(), wanters: None }
    }
}

impl Wanted {
    /// Registers are those of this thread from now on.
    pub fn turn_to(&mut self, thread: u64) {
        if thread != self.thread {
            let cells = self.others.remove(&thread).unwrap_or([0; CELL_WORDS]);
            let before = std::mem::replace(&mut self.cells, cells);
            self.others.insert(std::mem::replace(&mut self.thread, thread), before);
        }
    }

    /// Remembers from now on who wants what.
    pub fn remember_wanters(&mut self) {
        self.wanters = Some(Box::default());
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
        if self.wanters.is_some() {
            self.remember_cells(cells.clone());
        }
        for cell in cells {
            self.cells[usize::from(cell) / 64] |= 1 << (cell % 64);
        }
    }

    pub fn want_memory(&mut self, bytes: Range<u64>) {
        if self.wanters.is_some() {
            self.remember_memory(bytes.clone());
        }
        for (page, bits) in words(bytes) {
            let words = self.memory.entry(page).or_insert_with(|| Box::new([0; 64]));
            words[bits.word] |= bits.mask;
        }
    }

    /// Those who wanted a byte before want it still.
    fn remember_cells(&mut self, cells: Range<Cell>) {
        for cell in cells.filter(|cell| !self.has_cells(*cell..cell + 1)).collect::<Vec<_>>() {
            let (wanter, Some(wanters)) = (self.wanter, &mut self.wanters) else { return };
            let of_thread = wanters
                .cells
                .entry(self.thread)
                .or_insert_with(|| Box::new([Wanter::default(); CELLS]));
            of_thread[usize::from(cell)] = wanter;
        }
    }

    fn remember_memory(&mut self, bytes: Range<u64>) {
        let size = bytes.end.wrapping_sub(bytes.start);
        for at in (0..size).map(|byte| bytes.start.wrapping_add(byte)) {
            if self.has_memory(at..at.wrapping_add(1)) {
                continue;
            }
            let (wanter, Some(wanters)) = (self.wanter, &mut self.wanters) else { return };
            let page = wanters.memory.entry(at / PAGE);
            let page = page.or_insert_with(|| Box::new([Wanter::default(); PAGE as usize]));
            page[(at % PAGE) as usize] = wanter;
        }
    }

    /// Who wanted a cell that was just taken.
    pub fn who_wanted_cell(&self, cell: Cell) -> Wanter {
        let wanters = self.wanters.as_ref().and_then(|wanters| wanters.cells.get(&self.thread));
        wanters.map_or(Wanter::default(), |cells| cells[usize::from(cell)])
    }

    /// The same for memory.
    pub fn who_wanted_memory(&self, at: u64) -> Wanter {
        let wanters = self.wanters.as_ref().and_then(|wanters| wanters.memory.get(&(at / PAGE)));
        wanters.map_or(Wanter::default(), |page| page[(at % PAGE) as usize])
    }

    /// Whether any of these cells is wanted.
    pub fn has_cells(&self, mut cells: Range<Cell>) -> bool {
        cells.any(|cell| self.cells[usize::from(cell) / 64] >> (cell % 64) & 1 == 1)
    }

    /// Whether any of these bytes is.
    pub fn has_memory(&self, bytes: Range<u64>) -> bool {
        words(bytes).any(|(page, bits)| {
            self.memory.get(&page).is_some_and(|words| words[bits.word] & bits.mask != 0)
        })
    }

    pub fn wants_nothing(&self) -> bool {
        let threads = self.others.values().chain([&self.cells]);
        threads.flatten().all(|word| *word == 0)
            && self.memory.values().all(|page| page.iter().all(|word| *word == 0))
    }

    /// Those of these cells that are wanted; they are so no more.
    pub fn take_wanted(&mut self, cells: Range<Cell>) -> Vec<Cell> {
        let mut taken = Taken::default();
        self.take_cells(cells.clone(), &mut taken);
        taken.0.iter().map(|index| cells.start + *index as Cell).collect()
    }

    /// Which of these cells are wanted, in order; they are so no more.
    pub fn take_cells(&mut self, cells: Range<Cell>, taken: &mut Taken) {
        taken.clear();
        for (index, cell) in cells.enumerate() {
            let word = &mut self.cells[usize::from(cell) / 64];
            let bit = 1 << (cell % 64);
            if *word & bit != 0 {
                *word &= !bit;
                taken.add(index as u64);
            }
        }
    }

    /// The first of these bytes that is wanted; none of them is so any more.
    pub fn take_any(&mut self, bytes: Range<u64>) -> Option<u64> {
        let mut taken = Taken::default();
        self.take_memory(bytes.clone(), &mut taken);
        taken.0.first().map(|byte| bytes.start.wrapping_add(*byte))
    }

    /// The same for memory.
    pub fn take_memory(&mut self, bytes: Range<u64>, taken: &mut Taken) {
        taken.clear();
        let start = bytes.start;
        for (page, bits) in words(bytes) {
            let Some(words) = self.memory.get_mut(&page) else {
                continue;
            };
            let mut found = words[bits.word] & bits.mask;
            words[bits.word] &= !bits.mask;
            let first = (page * PAGE).wrapping_add(bits.word as u64 * WORD);
            while found != 0 {
                let address = first.wrapping_add(u64::from(found.trailing_zeros()));
                taken.add(address.wrapping_sub(start));
                found &= found - 1;
            }
        }
    }
}

/// Which bytes of a place were wanted, in order.
#[derive(Default)]
pub struct Taken(Vec<u64>);

impl Taken {
    fn clear(&mut self) {
        self.0.clear();
    }

    fn add(&mut self, index: u64) {
        self.0.push(index);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn bytes(&self) -> &[u64] {
        &self.0
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
