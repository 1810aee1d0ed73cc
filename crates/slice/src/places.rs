//! Where accesses were, in 32 bits: each block of memory that the units of a chunk touch has a number.

use crate::families::Family;
use crate::memory::PAGE;
use rustc_hash::FxHashMap;

/// Those who are in one block are near each other; in large ones hardly anybody is in two.
const BITS: u32 = 16;
const BLOCK: u64 = 1 << BITS;

/// More blocks have no numbers.
const MOST_BLOCKS: usize = 1 << (u32::BITS - BITS);

/// So many pages each has.
pub const PAGES: usize = (BLOCK / PAGE) as usize;

/// So many blocks that were looked for last are found at once.
const RECENT: usize = 1 << 9;

/// A byte of a block that has a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(pub u32);

impl Place {
    /// The number of the page, with those of all blocks in the order of their numbers.
    #[inline(always)]
    pub fn page(self) -> usize {
        (u64::from(self.0) / PAGE) as usize
    }

    /// Which byte of the page.
    #[inline(always)]
    pub fn within(self) -> u64 {
        u64::from(self.0) % PAGE
    }

    /// So many bytes behind it, in the same block.
    #[inline(always)]
    pub fn plus(self, bytes: u16) -> Place {
        Place(self.0 + u32::from(bytes))
    }

    /// Its address, by the blocks that have numbers.
    #[inline]
    pub fn address(self, blocks: &[u64]) -> u64 {
        blocks[(self.0 >> BITS) as usize] * BLOCK + u64::from(self.0) % BLOCK
    }
}

/// The pages of a block.
pub fn pages(block: u64) -> impl Iterator<Item = u64> {
    (0..PAGES as u64).map(move |page| block * PAGES as u64 + page)
}

/// Gives numbers to blocks.
pub struct Numbering {
    numbers: FxHashMap<u64, u32>,
    recent: Box<[(u64, u32); RECENT]>,
}

/// No block is there.
const NOBODY: (u64, u32) = (u64::MAX, 0);

impl Default for Numbering {
    fn default() -> Numbering {
        let recent = vec![NOBODY; RECENT].into_boxed_slice();
        let recent = recent.try_into().expect("it is so long");
        Numbering { numbers: FxHashMap::default(), recent }
    }
}

impl Numbering {
    /// No block has a number.
    pub fn clear(&mut self) {
        self.numbers.clear();
        self.recent.fill(NOBODY);
    }

    /// Where families are, of which each base is where it begins; false if one is in two blocks, or
    /// in one without a number. New blocks are added to those that have one.
    #[inline]
    pub fn places(
        &mut self,
        families: &[Family],
        bases: &[u64],
        blocks: &mut Vec<u64>,
        places: &mut Vec<u32>,
    ) -> bool {
        let mut crosses = 0;
        places.reserve(families.len());
        for (family, base) in families.iter().zip(bases) {
            let (block, within) = (base / BLOCK, base % BLOCK);
            // What has no bytes is where it begins.
            crosses |= (within + u64::from(family.span.max(1)) - 1) / BLOCK;
            places.push(self.number(block, blocks) << BITS | within as u32);
        }
        crosses == 0 && blocks.len() < MOST_BLOCKS
    }

    /// The number of a block.
    #[inline]
    fn number(&mut self, block: u64, blocks: &mut Vec<u64>) -> u32 {
        match self.recent[slot(block)] {
            (recent, number) if recent == block => number,
            _ => self.look_for(block, blocks),
        }
    }

    #[cold]
    fn look_for(&mut self, block: u64, blocks: &mut Vec<u64>) -> u32 {
        let number = match self.numbers.get(&block) {
            Some(number) => *number,
            // Then nothing has a place any more.
            None if blocks.len() == MOST_BLOCKS => return 0,
            None => {
                blocks.push(block);
                self.numbers.insert(block, blocks.len() as u32 - 1);
                blocks.len() as u32 - 1
            }
        };
        self.recent[slot(block)] = (block, number);
        number
    }
}

/// Where a block is among those that were looked for last.
#[inline]
fn slot(block: u64) -> usize {
    (block ^ block >> 9) as usize % RECENT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::Families;
    use why_trace::plan::Start;

    #[test]
    fn places_are_addresses() {
        let (mut numbering, mut blocks) = (Numbering::default(), Vec::new());
        let mut place = |at: u64, size: u16| {
            let mut places = Vec::new();
            let families = Families::of_fixed(&[(Start { value: 0, plus: 0 }, size)]).all;
            let has_place = numbering.places(&families, &[at], &mut blocks, &mut places);
            has_place.then(|| Place(places[0]).address(&blocks))
        };
        for at in [0x7fff_1234_5678, 0x40_ffff, 0x40_fff8, 0x7fff_1234_5679, u64::MAX - 7] {
            assert_eq!(place(at, 1), Some(at));
            assert_eq!(place(at, 0), Some(at));
        }
        assert_eq!(place(0x40_fff9, 8), None, "it is in two blocks");
        assert_eq!(place(0x40_fff8, 8), Some(0x40_fff8));
        assert_eq!(place(0x40_0ff9, 8), Some(0x40_0ff9), "two pages of a block");
        assert_eq!(blocks, [0x7fff_1234, 0x40, u64::MAX >> BITS]);
        assert_eq!(pages(blocks[1]).nth(3), Some(0x403));
        let place = Place(0x1_3ff9).plus(8);
        assert_eq!((place.page(), place.within()), (PAGES + 4, 1));
    }
}
