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

    /// Where accesses are; false if one is in two pages, or in one without a number. New pages are
    /// added to those that have one.
    #[inline]
    pub fn places(
        &mut self,
        accesses: impl Iterator<Item = (u64, u16)>,
        pages: &mut Vec<u64>,
        places: &mut Vec<u32>,
    ) -> bool {
        let (mut last, mut crosses) = ((u64::MAX, 0), 0);
        places.extend(accesses.map(|(at, size)| {
            let (page, within) = (at / PAGE, at % PAGE);
            // Most are near each other.
            if page != last.0 {
                last = (page, self.number(page, pages) << BITS);
            }
            crosses |= (within + u64::from(size)).saturating_sub(1) / PAGE;
            last.1 | within as u32
        }));
        crosses == 0 && pages.len() < MOST_PAGES
    }

    /// The number of a page.
    #[inline]
    fn number(&mut self, page: u64, pages: &mut Vec<u64>) -> u32 {
        match self.recent[(page ^ page >> 9) as usize % RECENT] {
            (recent, number) if recent == page => number,
            _ => self.look_for(page, pages),
        }
    }

    #[cold]
    fn look_for(&mut self, page: u64, pages: &mut Vec<u64>) -> u32 {
        let number = match self.numbers.get(&page) {
            Some(number) => *number,
            // Then nothing has a place any more.
            None if pages.len() == MOST_PAGES => return 0,
            None => {
                pages.push(page);
                self.numbers.insert(page, pages.len() as u32 - 1);
                pages.len() as u32 - 1
            }
        };
        self.recent[(page ^ page >> 9) as usize % RECENT] = (page, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_addresses() {
        let (mut numbering, mut pages) = (Numbering::default(), Vec::new());
        let mut place = |at: u64, size: u16| {
            let mut places = Vec::new();
            let is_in_pages = numbering.places([(at, size)].into_iter(), &mut pages, &mut places);
            is_in_pages.then(|| Place(places[0]).address(&pages))
        };
        for at in [0x7fff_1234_5678, 0x40_0fff, 0x40_0ff8, 0x7fff_1234_5679, u64::MAX - 7] {
            assert_eq!(place(at, 1), Some(at));
            assert_eq!(place(at, 0), Some(at));
        }
        assert_eq!(place(0x40_0ff9, 8), None, "it is in two pages");
        assert_eq!(place(0x40_0ff8, 8), Some(0x40_0ff8));
        assert_eq!(pages.len(), 3);
        numbering.clear();
        pages.clear();
        let mut places = Vec::new();
        let accesses = [(0x5008, 8), (0x6000, 8), (0x5010, 4)];
        assert!(numbering.places(accesses.into_iter(), &mut pages, &mut places));
        assert_eq!((places, pages), (vec![8, 0x1000, 0x10], vec![5, 6]));
    }
}
