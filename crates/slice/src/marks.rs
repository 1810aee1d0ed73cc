//! Two bits for each of many positions, of which the last are needed first and then no more.

/// So many words of each kind are together. Fewer would be looked for more often, and more would take
/// fresh memory where little is marked.
const WORDS: usize = 512;
const PAGE: usize = 64 * WORDS;

#[derive(Clone, Copy)]
pub enum Kind {
    First,
    Second,
}

#[derive(Default)]
pub struct Marks {
    pages: Vec<Option<Box<Page>>>,
    /// No longer used, to be used again.
    free: Vec<Box<Page>>,
    /// From this page on nothing is needed any more.
    passed: usize,
}

/// The words of both kinds.
type Page = [[u64; WORDS]; 2];

impl Marks {
    /// Nothing is marked up to there.
    pub fn up_to(count: usize) -> Marks {
        let passed = count.div_ceil(PAGE) + 1;
        let mut pages = Vec::new();
        pages.resize_with(passed, || None);
        Marks { pages, free: Vec::new(), passed }
    }

    /// The marks of the next 64 positions, of both kinds.
    #[inline(always)]
    pub fn masks(&self, index: usize) -> (u64, u64) {
        let (word, shift) = (index / 64 % WORDS, index as u32 % 64);
        let page = self.pages.get(index / PAGE).and_then(Option::as_deref);
        if word + 1 == WORDS {
            return self.masks_of_two(page, index / PAGE + 1, shift);
        }
        let Some(page) = page else { return (0, 0) };
        // All of them cannot be shifted away at once.
        let mask =
            |words: &[u64; WORDS]| words[word] >> shift | words[word + 1] << 1 << (63 - shift);
        (mask(&page[0]), mask(&page[1]))
    }

    /// Those from the last word of a page and from the first one of the next.
    #[cold]
    fn masks_of_two(&self, page: Option<&Page>, next: usize, shift: u32) -> (u64, u64) {
        let next = self.pages.get(next).and_then(Option::as_ref);
        let mask = |kind: usize| {
            let low = page.map_or(0, |page| page[kind][WORDS - 1] >> shift);
            low | next.map_or(0, |next| next[kind][0] << 1 << (63 - shift))
        };
        (mask(0), mask(1))
    }

    pub fn has(&self, kind: Kind, index: usize) -> bool {
        let page = self.pages.get(index / PAGE).and_then(Option::as_ref);
        page.is_some_and(|page| page[kind as usize][index / 64 % WORDS] >> (index % 64) & 1 == 1)
    }

    /// Marks a position; whether it was not. None if it is too far.
    #[inline]
    pub fn mark(&mut self, kind: Kind, index: usize) -> Option<bool> {
        let Marks { pages, free, .. } = self;
        let page = pages.get_mut(index / PAGE)?;
        let page = page.get_or_insert_with(|| free.pop().unwrap_or_else(Marks::page));
        let (word, bit) = (&mut page[kind as usize][index / 64 % WORDS], 1 << (index % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        Some(is_new)
    }

    #[cold]
    fn page() -> Box<Page> {
        Box::new([[0; WORDS]; 2])
    }

    /// A position is not marked any more.
    pub fn clear(&mut self, kind: Kind, index: usize) {
        if let Some(Some(page)) = self.pages.get_mut(index / PAGE) {
            page[kind as usize][index / 64 % WORDS] &= !(1 << (index % 64));
        }
    }

    /// What is marked from here on is needed no more.
    #[inline]
    pub fn pass(&mut self, index: usize) {
        // Some behind may be asked for together with those in front.
        let page = index / PAGE + 2;
        while self.passed > page {
            self.passed -= 1;
            if let Some(mut page) = self.pages.get_mut(self.passed).and_then(Option::take) {
                *page = [[0; WORDS]; 2];
                self.free.push(page);
            }
        }
    }

    /// How much memory that takes.
    pub fn size(&self) -> usize {
        let pages = self.pages.iter().flatten().count() + self.free.len();
        size_of_val(self.pages.as_slice()) + pages * size_of::<Page>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::bits;

    /// Against one list for each kind, across pages and with pages that are used again.
    #[test]
    fn marks_are_those_that_were_made() {
        let count = 5 * PAGE;
        let mut marks = Marks::up_to(count);
        let mut expected = [vec![false; count + 64], vec![false; count + 64]];
        let mut random = 1u64;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) as usize % below
        };
        for end in (64..count).rev().step_by(41) {
            marks.pass(end);
            for kind in [Kind::First, Kind::Second] {
                // Most are near.
                let farthest = if next(8) == 0 { end } else { 64 };
                let index = end - 1 - next(farthest);
                let is_new = !std::mem::replace(&mut expected[kind as usize][index], true);
                assert_eq!(marks.mark(kind, index), Some(is_new));
                assert!(marks.has(kind, index));
            }
            let cleared = end - 1 - next(64);
            marks.clear(Kind::Second, cleared);
            expected[1][cleared] = false;
            let (first, size) = (end - 1 - next(64), 1 + next(64));
            let size = size.min(end - first);
            let mask = |kind: usize| {
                let own = (0..size).filter(|bit| expected[kind][first + bit]);
                own.fold(0, |mask, bit| mask | 1 << bit)
            };
            let (one, other) = marks.masks(first);
            let all = bits(size as u32);
            assert_eq!((one & all, other & all), (mask(0), mask(1)), "{first} {size}");
        }
        assert_eq!(marks.mark(Kind::First, 2 * count), None);
    }
}
