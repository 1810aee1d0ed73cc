//! The bytes whose definitions are still to be found.

use rustc_hash::FxHashMap;
use std::ops::Range;
use why_effects::Cell;
use why_effects::cells::CELLS;

const WORD: u64 = u64::BITS as u64;
const PAGE: u64 = 4096;
const CELL_WORDS: usize = CELLS.div_ceil(WORD as usize);

type Page = [u64; (PAGE / WORD) as usize];

#[derive(Clone)]
pub struct Wanted {
    cells: [u64; CELL_WORDS],
    /// Pages in which bytes are wanted, or were.
    memory: FxHashMap<u64, Box<Page>>,
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted { cells: [0; CELL_WORDS], memory: FxHashMap::default() }
    }
}

impl Wanted {
    pub fn want_cells(&mut self, cells: Range<Cell>) {
        for cell in cells {
            self.cells[usize::from(cell) / 64] |= 1 << (cell % 64);
        }
    }

    pub fn want_memory(&mut self, bytes: Range<u64>) {
        for (page, bits) in words(bytes) {
            let words = self.memory.entry(page).or_insert_with(|| Box::new([0; 64]));
            words[bits.word] |= bits.mask;
        }
    }

    pub fn wants_nothing(&self) -> bool {
        self.cells.iter().all(|word| *word == 0)
            && self.memory.values().all(|page| page.iter().all(|word| *word == 0))
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
