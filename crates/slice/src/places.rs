//! Where accesses were, in 32 bits: each block of memory that the units of a chunk touch has a number.

use crate::families::SPAN;
use crate::memory::PAGE;
use rustc_hash::FxHashMap;

/// A family is in the block where it begins, even if it goes on behind that: a place tells one bit
/// more than a block has.
const BITS: u32 = 16;
const BLOCK: u64 = 1 << (BITS - 1);
const _: () = assert!(SPAN <= BLOCK);

/// More blocks have no numbers.
const MOST_BLOCKS: usize = 1 << (u32::BITS - BITS);

/// So many pages each has, with those behind it.
pub const PAGES: usize = (1 << BITS) / PAGE as usize;
const OWN_PAGES: u64 = BLOCK / PAGE;

/// So many pages and blocks there are: behind the last comes the first.
const ALL_PAGES: u64 = u64::MAX / PAGE + 1;
const ALL_BLOCKS: u64 = u64::MAX / BLOCK + 1;

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

    /// So many bytes behind it, in the same family.
    #[inline(always)]
    pub fn plus(self, bytes: u16) -> Place {
        Place(self.0 + u32::from(bytes))
    }

    /// Its address, by the blocks that have numbers.
    #[inline]
    pub fn address(self, blocks: &[u64]) -> u64 {
        let within = u64::from(self.0) % (1 << BITS);
        (blocks[(self.0 >> BITS) as usize] * BLOCK).wrapping_add(within)
    }
}

/// The pages of a block and behind it.
pub fn pages(block: u64) -> impl Iterator<Item = u64> {
    (0..PAGES as u64).map(move |page| (block * OWN_PAGES + page) % ALL_PAGES)
}

/// The blocks that a page is of, or behind, and which of their pages it is.
pub fn blocks(page: u64) -> [(u64, usize); 2] {
    let (block, own) = (page / OWN_PAGES, page % OWN_PAGES);
    [(block, own as usize), (block.wrapping_sub(1) % ALL_BLOCKS, (OWN_PAGES + own) as usize)]
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

    /// Where families are, of which each base is where it begins; false if one is in a block without
    /// a number. New blocks are added to those that have one.
    #[inline]
    pub fn places(&mut self, bases: &[u64], blocks: &mut Vec<u64>, places: &mut Vec<u32>) -> bool {
        places.reserve(bases.len());
        for base in bases {
            let number = self.number(base / BLOCK, blocks);
            places.push(number << BITS | (base % BLOCK) as u32);
        }
        blocks.len() < MOST_BLOCKS
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

    #[test]
    fn places_are_addresses() {
        let (mut numbering, mut blocks) = (Numbering::default(), Vec::new());
        for at in [0x7fff_1234_5678, 0x40_ffff, 0x40_fff8, 0x7fff_1234_5679, u64::MAX - 7] {
            let mut places = Vec::new();
            assert!(numbering.places(&[at], &mut blocks, &mut places));
            for behind in [0, 1, SPAN as u16 - 1] {
                let place = Place(places[0]).plus(behind);
                let address = at.wrapping_add(behind.into());
                assert_eq!(place.address(&blocks), address);
                // The page of the place is that of the address, whatever block it is in.
                let page = blocks.iter().copied().flat_map(pages).nth(place.page());
                assert_eq!(page, Some(address / PAGE), "{at:x}");
                assert_eq!(place.within(), address % PAGE);
            }
        }
        assert_eq!(blocks, [0xfffe_2468, 0x81, u64::MAX / BLOCK]);
    }

    #[test]
    fn blocks_know_their_pages_and_pages_their_blocks() {
        for page in [0, 1, OWN_PAGES, 0x7_fff1_2345, ALL_PAGES - 1] {
            for (block, own) in super::blocks(page) {
                assert_eq!(pages(block).nth(own), Some(page));
            }
        }
    }
}
