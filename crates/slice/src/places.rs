//! Where accesses were, in 32 bits: each page that the units of a chunk touch has a number.

use rustc_hash::FxHashMap;

const BITS: u32 = 12;
const PAGE: u64 = 1 << BITS;

/// More pages have no numbers.
const MOST_PAGES: usize = 1 << (u32::BITS - BITS);

/// So many pages that were looked for last are found at once.
const RECENT: usize = 1 << 9;

/// A byte of a page that has a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(pub u32);

impl Place {
    /// The number of the page.
    #[inline(always)]
    pub fn page(self) -> usize {
        (self.0 >> BITS) as usize
    }

    /// Which of its bytes.
    #[inline(always)]
    pub fn within(self) -> usize {
        self.0 as usize % PAGE as usize
    }

    /// So many bytes behind it, in the same page.
    #[inline(always)]
    pub fn plus(self, bytes: u16) -> Place {
        Place(self.0 + u32::from(bytes))
    }

    /// Its address, by the pages that have numbers.
    #[inline]
    pub fn address(self, pages: &[u64]) -> u64 {
        pages[self.page()] * PAGE + self.within() as u64
    }
}

/// Gives numbers to pages.
pub struct Numbering {
    numbers: FxHashMap<u64, u32>,
    recent: Box<[(u64, u32); RECENT]>,
}

/// No page is there.
const NOBODY: (u64, u32) = (u64::MAX, 0);

impl Default for Numbering {
    fn default() -> Numbering {
        let recent = vec![NOBODY; RECENT].into_boxed_slice();
        let recent = recent.try_into().expect("it is so long");
        Numbering { numbers: FxHashMap::default(), recent }
    }
}

impl Numbering {
    /// No page has a number.
    pub fn clear(&mut self) {
        self.numbers.clear();
        self.recent.fill(NOBODY);
    }

    /// Where so many bytes are; none if that is in two pages, or in one without a number. New pages
    /// are added to those that have one.
    #[inline]
    pub fn place(&mut self, at: u64, size: u16, pages: &mut Vec<u64>) -> Option<Place> {
        let (page, within) = (at / PAGE, at % PAGE);
        let number = match self.recent[(page ^ page >> 9) as usize % RECENT] {
            (recent, number) if recent == page => number,
            _ => self.look_for(page, pages)?,
        };
        (within + u64::from(size) <= PAGE).then_some(Place(number << BITS | within as u32))
    }

    #[cold]
    fn look_for(&mut self, page: u64, pages: &mut Vec<u64>) -> Option<u32> {
        let number = match self.numbers.get(&page) {
            Some(number) => *number,
            None if pages.len() == MOST_PAGES => return None,
            None => {
                pages.push(page);
                self.numbers.insert(page, pages.len() as u32 - 1);
                pages.len() as u32 - 1
            }
        };
        self.recent[(page ^ page >> 9) as usize % RECENT] = (page, number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_addresses() {
        let (mut numbering, mut pages) = (Numbering::default(), Vec::new());
        let addresses = [0x7fff_1234_5678, 0x40_0fff, 0x40_0ff8, 0x7fff_1234_5679, u64::MAX - 7];
        for at in addresses {
            let place = numbering.place(at, 1, &mut pages).expect("one byte is in one page");
            assert_eq!(place.address(&pages), at);
        }
        assert_eq!(pages.len(), 3);
        assert_eq!(numbering.place(0x40_0ff9, 8, &mut pages), None, "it is in two pages");
        assert!(numbering.place(0x40_0ff8, 8, &mut pages).is_some());
        numbering.clear();
        pages.clear();
        assert_eq!(numbering.place(0x5000, 8, &mut pages), Some(Place(0)));
    }
}
