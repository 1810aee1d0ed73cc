//! A set of bytes of memory, and who put each into it.

use crate::wanted::Wanter;
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::ops::Range;

const WORD: u64 = u64::BITS as u64;
const PAGE: u64 = 4096;

/// So many pages that were looked for last are found at once.
const RECENT: usize = 256;

/// There is no such page.
const NONE: u32 = u32::MAX;

pub struct Memory {
    pages: Vec<Page>,
    index: FxHashMap<u64, u32>,
    /// The numbers of pages, and where each is, if it is.
    recent: Box<[Cell<(u64, u32)>; RECENT]>,
    /// Whether anybody asks for who it was.
    asks: bool,
}

/// Which bytes of a page belong to the set, and who put them there, if anybody asks.
struct Page {
    words: [u64; (PAGE / WORD) as usize],
    wanters: Box<[Wanter]>,
}

impl Memory {
    pub fn new(asks: bool) -> Memory {
        let recent = Box::new([const { Cell::new((u64::MAX, NONE)) }; RECENT]);
        Memory { pages: Vec::new(), index: FxHashMap::default(), recent, asks }
    }

    /// Where a page is; nowhere if it holds nothing.
    #[inline]
    fn place(&self, number: u64) -> usize {
        let recent = self.recent(number);
        if recent.get().0 != number {
            recent.set((number, self.index.get(&number).copied().unwrap_or(NONE)));
        }
        recent.get().1 as usize
    }

    #[inline]
    fn recent(&self, number: u64) -> &Cell<(u64, u32)> {
        &self.recent[(number ^ number >> 8) as usize % RECENT]
    }

    #[inline]
    fn word(&self, at: u64) -> u64 {
        let page = self.pages.get(self.place(at / PAGE));
        page.map_or(0, |page| page.words[(at % PAGE / WORD) as usize])
    }

    #[cold]
    fn add_page(&mut self, number: u64) {
        let size = if self.asks { PAGE as usize } else { 0 };
        let wanters = vec![Wanter::default(); size].into_boxed_slice();
        let place = self.pages.len() as u32;
        self.pages.push(Page { words: [0; (PAGE / WORD) as usize], wanters });
        self.index.insert(number, place);
        self.recent(number).set((number, place));
    }

    /// Which of at most 64 bytes belong to the set.
    #[inline]
    pub fn mask(&self, at: u64, size: u32) -> u64 {
        let shift = at % WORD;
        let mut found = self.word(at) >> shift;
        if shift + u64::from(size) > WORD {
            found |= self.word(at.wrapping_add(WORD - shift)) << (WORD - shift);
        }
        found & bits(size)
    }

    /// These of the next 64 bytes do not belong to the set any more.
    #[inline]
    pub fn remove(&mut self, at: u64, mask: u64) {
        let shift = at % WORD;
        self.remove_from_word(at, mask << shift);
        let above = mask.checked_shr((WORD - shift) as u32).unwrap_or(0);
        if above != 0 {
            self.remove_from_word(at.wrapping_add(WORD - shift), above);
        }
    }

    #[inline]
    fn remove_from_word(&mut self, at: u64, mask: u64) {
        let place = self.place(at / PAGE);
        if let Some(page) = self.pages.get_mut(place) {
            page.words[(at % PAGE / WORD) as usize] &= !mask;
        }
    }

    /// These of the next 64 bytes belong to the set; those that did not because of somebody.
    #[inline]
    pub fn add_some(&mut self, at: u64, mask: u64, wanter: Wanter) {
        let shift = at % WORD;
        self.add_to_word(at - shift, mask << shift, wanter);
        let above = mask.checked_shr((WORD - shift) as u32).unwrap_or(0);
        if above != 0 {
            self.add_to_word(at.wrapping_add(WORD - shift), above, wanter);
        }
    }

    #[inline]
    fn add_to_word(&mut self, at: u64, mask: u64, wanter: Wanter) {
        if mask == 0 {
            return;
        }
        if self.place(at / PAGE) == NONE as usize {
            self.add_page(at / PAGE);
        }
        let place = self.place(at / PAGE);
        let page = &mut self.pages[place];
        let (word, first) = ((at % PAGE / WORD) as usize, (at % PAGE) as usize);
        let new = mask & !page.words[word];
        page.words[word] |= mask;
        if self.asks && new != 0 {
            let wanters = &mut page.wanters[first..first + WORD as usize];
            each_run(new, |run| wanters[run].fill(wanter));
        }
    }

    /// These bytes belong to the set.
    pub fn add_all(&mut self, bytes: Range<u64>, wanter: Wanter) {
        for (at, size) in words(bytes) {
            self.add_some(at, bits(size), wanter);
        }
    }

    /// Whether any of these bytes belongs to the set.
    pub fn has(&self, bytes: Range<u64>) -> bool {
        words(bytes).any(|(at, size)| self.mask(at, size) != 0)
    }

    /// Those of these bytes that belong to the set, counted from the first; none does any more.
    pub fn take(&mut self, bytes: Range<u64>, mut each: impl FnMut(u64)) {
        let start = bytes.start;
        for (at, size) in words(bytes) {
            let found = self.mask(at, size);
            if found != 0 {
                self.remove(at, found);
                each_bit(found, |bit| each(at.wrapping_sub(start) + u64::from(bit)));
            }
        }
    }

    /// All bytes that belong to the set, in runs that somebody put there.
    pub fn runs(&self) -> Vec<(Range<u64>, Wanter)> {
        let mut runs: Vec<(Range<u64>, Wanter)> = Vec::new();
        let mut pages: Vec<(u64, u32)> = self.index.iter().map(|(page, at)| (*page, *at)).collect();
        pages.sort_unstable();
        for (number, place) in pages {
            let page = &self.pages[place as usize];
            for (word, mask) in (0..).zip(page.words) {
                each_bit(mask, |bit| {
                    let byte = word * WORD + u64::from(bit);
                    let at = number * PAGE + byte;
                    let who = page.wanters.get(byte as usize).copied().unwrap_or_default();
                    match runs.last_mut() {
                        Some((run, by)) if run.end == at && *by == who => run.end += 1,
                        _ => runs.push((at..at.wrapping_add(1), who)),
                    }
                });
            }
        }
        runs
    }

    /// Who put a byte into the set, where it is or was.
    pub fn who(&self, at: u64) -> Wanter {
        let page = self.pages.get(self.place(at / PAGE));
        page.and_then(|page| page.wanters.get((at % PAGE) as usize)).copied().unwrap_or_default()
    }

    /// How much memory that takes.
    pub fn size(&self) -> usize {
        let wanters = if self.asks { PAGE as usize * size_of::<Wanter>() } else { 0 };
        self.pages.len() * (size_of::<Page>() + wanters)
    }

    pub fn is_empty(&self) -> bool {
        self.pages.iter().all(|page| page.words.iter().all(|word| *word == 0))
    }
}

/// So many bits.
#[inline]
pub fn bits(count: u32) -> u64 {
    u64::MAX.checked_shr(64 - count.min(64)).unwrap_or(0)
}

/// Which of some bytes, at most 64 from an address on, are among others, too: a bit for each.
pub fn covered((own, size): (u64, u32), (other, other_size): (u64, u32)) -> u64 {
    let (above, below) = (other.wrapping_sub(own), own.wrapping_sub(other));
    let mask = match (u32::try_from(above), u32::try_from(below)) {
        (Ok(above), _) => bits(other_size).checked_shl(above).unwrap_or(0),
        (_, Ok(below)) => bits(other_size).checked_shr(below).unwrap_or(0),
        _ => 0,
    };
    mask & bits(size)
}

/// Each bit that is set, the lowest first.
#[inline]
pub fn each_bit(mut mask: u64, mut each: impl FnMut(u32)) {
    while mask != 0 {
        each(mask.trailing_zeros());
        mask &= mask - 1;
    }
}

/// Each run of bits that are set.
#[inline]
pub fn each_run(mut mask: u64, mut each: impl FnMut(Range<usize>)) {
    while mask != 0 {
        let first = mask.trailing_zeros();
        let count = (mask >> first).trailing_ones();
        each(first as usize..(first + count) as usize);
        mask &= !(bits(count) << first);
    }
}

/// Bytes in parts that are each within 64 that are together. Addresses may wrap around.
fn words(bytes: Range<u64>) -> impl Iterator<Item = (u64, u32)> {
    let mut at = bytes.start;
    let mut left = bytes.end.wrapping_sub(bytes.start);
    std::iter::from_fn(move || {
        let count = left.min(WORD - at % WORD);
        let part = (at, count as u32);
        at = at.wrapping_add(count);
        left -= count;
        (count > 0).then_some(part)
    })
}
