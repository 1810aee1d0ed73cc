//! A set of bytes of memory, and who put each into it.

use crate::places::{self, PAGES, Place};
use crate::wanted::Wanter;
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::ops::Range;

const WORD: u64 = u64::BITS as u64;
pub const PAGE: u64 = 4096;

/// So many pages that were looked for last are found at once.
const RECENT: usize = 1 << 12;

const WORDS: usize = (PAGE / WORD) as usize;

/// So many bytes share the number of who put them into the set, as nearly all have the same.
const SHARING: usize = 4;
const SHARES: usize = WORD as usize / SHARING;

pub struct Memory {
    /// A bit for each byte, page by page. The first page is no page's: nothing is ever in it.
    words: Vec<u64>,
    /// Who put bytes into the set, if anybody asks;
    wanters: Vec<[Wanter; SHARES]>,
    /// and where not all that share are of the same.
    mixed: Mixed,
    /// Where the words of each page begin.
    pages: FxHashMap<u64, u32>,
    recent: Box<[Cell<(u64, u32)>; RECENT]>,
    /// The blocks that places are in ([`crate::places`]), by their numbers, and their numbers;
    blocks: Vec<u64>,
    numbered: FxHashMap<u64, u32>,
    /// and where the words of each of their pages begin.
    firsts: Vec<u32>,
    /// Whether anybody asks for who it was.
    asks: bool,
}

impl Memory {
    pub fn new(asks: bool) -> Memory {
        let recent = vec![Cell::new((u64::MAX, 0)); RECENT].into_boxed_slice();
        let mut memory = Memory {
            words: Vec::new(),
            wanters: Vec::new(),
            mixed: Mixed::default(),
            pages: FxHashMap::default(),
            recent: recent.try_into().expect("it is so long"),
            blocks: Vec::new(),
            numbered: FxHashMap::default(),
            firsts: Vec::new(),
            asks,
        };
        memory.add_words();
        memory
    }

    /// Where the words of a page begin; those of no page if it holds nothing.
    #[inline]
    fn first(&self, number: u64) -> usize {
        match self.recent(number).get() {
            (recent, first) if recent == number => first as usize,
            _ => self.look_for(number),
        }
    }

    #[inline]
    fn recent(&self, number: u64) -> &Cell<(u64, u32)> {
        &self.recent[(number ^ number >> 12) as usize % RECENT]
    }

    #[cold]
    fn look_for(&self, number: u64) -> usize {
        let first = self.pages.get(&number).copied().unwrap_or(0);
        self.recent(number).set((number, first));
        first as usize
    }

    /// Where the word with a byte is.
    #[inline]
    fn index(&self, at: u64) -> usize {
        self.first(at / PAGE) + (at % PAGE / WORD) as usize
    }

    fn add_words(&mut self) -> usize {
        let first = self.words.len();
        self.words.resize(first + WORDS, 0);
        if self.asks {
            self.wanters.resize(first + WORDS, [Wanter::default(); SHARES]);
        }
        first
    }

    #[cold]
    fn add_page(&mut self, number: u64) -> usize {
        let first = self.add_words();
        self.pages.insert(number, first as u32);
        self.recent(number).set((number, first as u32));
        for (block, page) in places::blocks(number) {
            if let Some(numbered) = self.numbered.get(&block) {
                self.firsts[*numbered as usize * PAGES + page] = first as u32;
            }
        }
        first
    }

    /// Places are in these blocks from now on.
    pub fn turn_to_blocks(&mut self, blocks: &[u64]) {
        self.blocks.clear();
        self.blocks.extend_from_slice(blocks);
        self.numbered.clear();
        self.numbered.extend(blocks.iter().copied().zip(0..));
        self.firsts.clear();
        let pages = blocks.iter().copied().flat_map(places::pages);
        self.firsts.extend(pages.map(|page| self.pages.get(&page).copied().unwrap_or(0)));
    }

    /// Where the word with the byte at a place is.
    #[inline(always)]
    fn index_of(&self, place: Place) -> usize {
        self.firsts[place.page()] as usize + (place.within() / WORD) as usize
    }

    /// The place in the next word.
    #[inline]
    fn next_word(place: Place) -> Place {
        place.plus(WORD as u16)
    }

    /// Which of some of the next bytes of a block belong to the set.
    #[inline(always)]
    pub fn some_at(&self, place: Place, mask: u64) -> u64 {
        let (index, shift) = (self.index_of(place), place.within() % WORD);
        let found = self.words[index] >> shift;
        match mask << shift >> shift == mask {
            true => found & mask,
            false => {
                (found | self.words[self.index_of(Memory::next_word(place))] << (WORD - shift))
                    & mask
            }
        }
    }

    /// These of the next bytes of a block do not belong to the set any more.
    #[inline(always)]
    pub fn remove_at(&mut self, place: Place, mask: u64) {
        let index = self.index_of(place);
        let (low, high) = at_words(place.within(), mask);
        self.words[index] &= !low;
        if high != 0 {
            let next = self.index_of(Memory::next_word(place));
            self.words[next] &= !high;
        }
    }

    /// These of the next bytes of a block belong to the set; those that did not because of somebody.
    #[inline(always)]
    pub fn add_at(&mut self, place: Place, mask: u64, wanter: Wanter) {
        let (low, high) = at_words(place.within(), mask);
        self.add_to_place(place, low, wanter);
        if high != 0 {
            self.add_to_place(Memory::next_word(place), high, wanter);
        }
    }

    /// The same for bytes of the word with a place.
    #[inline(always)]
    fn add_to_place(&mut self, place: Place, mask: u64, wanter: Wanter) {
        let mut index = self.index_of(place);
        if index < WORDS {
            index += self.add_page(place.address(&self.blocks) / PAGE);
        }
        self.add_to_word(index, mask, wanter);
    }

    /// Which of at most 64 bytes belong to the set.
    #[inline]
    pub fn mask(&self, at: u64, size: u32) -> u64 {
        self.some(at, bits(size))
    }

    /// Which of some of the next 64 bytes do.
    #[inline(always)]
    pub fn some(&self, at: u64, mask: u64) -> u64 {
        let shift = at % WORD;
        let found = self.words[self.index(at)] >> shift;
        // Seldom some are in the next word.
        match mask << shift >> shift == mask {
            true => found & mask,
            false => (found | self.beyond(at, shift)) & mask,
        }
    }

    #[cold]
    fn beyond(&self, at: u64, shift: u64) -> u64 {
        self.words[self.index(at.wrapping_add(WORD))] << (WORD - shift)
    }

    /// These of the next 64 bytes do not belong to the set any more.
    #[inline(always)]
    pub fn remove(&mut self, at: u64, mask: u64) {
        let (low, high) = at_words(at, mask);
        self.remove_from_word(at, low);
        if high != 0 {
            self.remove_from_word(at.wrapping_add(WORD), high);
        }
    }

    #[inline(always)]
    fn remove_from_word(&mut self, at: u64, mask: u64) {
        let index = self.index(at);
        self.words[index] &= !mask;
    }

    /// These of the next 64 bytes belong to the set; those that did not because of somebody.
    #[inline(always)]
    pub fn add_some(&mut self, at: u64, mask: u64, wanter: Wanter) {
        let (low, high) = at_words(at, mask);
        self.add_to(at, low, wanter);
        if high != 0 {
            self.add_to(at.wrapping_add(WORD), high, wanter);
        }
    }

    #[inline]
    fn add_to(&mut self, at: u64, mask: u64, wanter: Wanter) {
        let mut index = self.index(at);
        if index < WORDS {
            index += self.add_page(at / PAGE);
        }
        self.add_to_word(index, mask, wanter);
    }

    #[inline(always)]
    fn add_to_word(&mut self, index: usize, mask: u64, wanter: Wanter) {
        let word = &mut self.words[index];
        let (before, new) = (*word, mask & !*word);
        *word |= mask;
        if !self.asks || new == 0 {
            return;
        }
        let first = new.trailing_zeros() as usize;
        let share = first / SHARING;
        let own = bits(SHARING as u32) << (share * SHARING);
        let wanters = &mut self.wanters[index];
        // Most are a register, or a part of one.
        if new & !own == 0 && before & own == 0 {
            wanters[share] = wanter;
        } else if first.is_multiple_of(SHARING) && new >> first == 0xff {
            wanters[share..share + 2].fill(wanter);
        } else {
            self.put_by(index, before, new, wanter);
        }
    }

    /// Somebody has put bytes of a word into the set, where others were before.
    #[inline(never)]
    fn put_by(&mut self, index: usize, before: u64, new: u64, wanter: Wanter) {
        let mut left = new;
        if self.mixed.is_full() {
            self.mixed.collect(&self.wanters);
        }
        while left != 0 {
            let share = left.trailing_zeros() as usize / SHARING;
            let all = bits(SHARING as u32) << (share * SHARING);
            let who = &mut self.wanters[index][share];
            if before & all == 0 {
                *who = wanter;
            } else if *who != wanter {
                let own = self.mixed.of(who);
                each_bit((left & all) >> (share * SHARING), |bit| own[bit as usize] = wanter);
            }
            left &= !all;
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
        // There may be many of which nothing ever was.
        for page in pages(bytes) {
            if self.first(page.start / PAGE) < WORDS {
                continue;
            }
            for (at, size) in words(page) {
                let found = self.mask(at, size);
                if found != 0 {
                    self.remove(at, found);
                    each_bit(found, |bit| each(at.wrapping_sub(start) + u64::from(bit)));
                }
            }
        }
    }

    /// All bytes that belong to the set, in runs that somebody put there.
    pub fn runs(&self) -> Vec<(Range<u64>, Wanter)> {
        let mut runs: Vec<(Range<u64>, Wanter)> = Vec::new();
        let mut pages: Vec<(u64, u32)> = self.pages.iter().map(|(page, at)| (*page, *at)).collect();
        pages.sort_unstable();
        for (number, first) in pages {
            for word in 0..WORDS {
                let index = first as usize + word;
                each_bit(self.words[index], |bit| {
                    let at = number * PAGE + word as u64 * WORD + u64::from(bit);
                    let who = self.who_at(index, bit as usize);
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
        self.who_at(self.index(at), (at % WORD) as usize)
    }

    fn who_at(&self, index: usize, byte: usize) -> Wanter {
        let who = self.wanters.get(index).map_or(Wanter::default(), |own| own[byte / SHARING]);
        who.as_mixed().map_or(who, |number| self.mixed.all[number][byte % SHARING])
    }

    /// How much memory that takes.
    pub fn size(&self) -> usize {
        size_of_val(self.words.as_slice())
            + size_of_val(self.wanters.as_slice())
            + size_of_val(self.mixed.all.as_slice())
    }

    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }
}

/// Who put bytes into a set that share a number, where that is not the same for all.
#[derive(Default)]
struct Mixed {
    all: Vec<[Wanter; SHARING]>,
    /// Those that nobody has any more. When somebody else is put there instead that is not noticed,
    /// as it would take long to look: it is found when there are many.
    free: Vec<u32>,
    many: usize,
}

impl Mixed {
    const FEW: usize = 1 << 12;

    /// Those of bytes that share a number; from now on not all are of the same.
    fn of(&mut self, who: &mut Wanter) -> &mut [Wanter; SHARING] {
        let number = who.as_mixed().unwrap_or_else(|| {
            let number = self.free.pop().unwrap_or_else(|| {
                self.all.push([Wanter::default(); SHARING]);
                self.all.len() as u32 - 1
            });
            self.all[number as usize] = [std::mem::replace(who, Wanter::mixed(number)); SHARING];
            number as usize
        });
        &mut self.all[number]
    }

    /// Whether it is time to look for those that nobody has any more.
    fn is_full(&self) -> bool {
        self.all.len() > self.many && self.free.len() < SHARES
    }

    /// Finds them.
    #[cold]
    fn collect(&mut self, wanters: &[[Wanter; SHARES]]) {
        let mut is_free = vec![true; self.all.len()];
        let used = wanters.iter().flatten().filter_map(|who| who.as_mixed());
        used.for_each(|number| is_free[number] = false);
        let free = is_free.iter().enumerate().filter(|(_, is_free)| **is_free);
        self.free = free.map(|(number, _)| number as u32).collect();
        self.many = (2 * (self.all.len() - self.free.len())).max(Mixed::FEW);
    }
}

/// A mask of the bytes from an address on: in the word with that address, and in the next one.
#[inline]
fn at_words(at: u64, mask: u64) -> (u64, u64) {
    let shift = at % WORD;
    // All of them cannot be shifted away at once.
    (mask << shift, mask >> 1 >> (WORD - 1 - shift))
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

/// Bytes in parts that are each within 64 that are together.
fn words(bytes: Range<u64>) -> impl Iterator<Item = (u64, u32)> {
    parts::<WORD>(bytes).map(|part| (part.start, part.end.wrapping_sub(part.start) as u32))
}

/// In parts that are each within a page.
fn pages(bytes: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    parts::<PAGE>(bytes)
}

/// In parts that are each within so many that are together. Addresses may wrap around.
#[inline]
fn parts<const SIZE: u64>(bytes: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut at = bytes.start;
    let mut left = bytes.end.wrapping_sub(bytes.start);
    std::iter::from_fn(move || {
        let count = left.min(SIZE - at % SIZE);
        let part = at..at.wrapping_add(count);
        at = part.end;
        left -= count;
        (count > 0).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wanted::Role;

    /// Against one entry for each byte: at addresses and at places of three blocks, two of which follow
    /// each other, across words, pages and blocks, and with more who share than are remembered before they are looked through.
    #[test]
    fn whoever_put_a_byte_there_is_known() {
        let mut memory = Memory::new(true);
        let blocks = [0xfffe_2468, 0x80, 0x81];
        memory.turn_to_blocks(&blocks);
        let mut expected: FxHashMap<u64, (bool, Wanter)> = FxHashMap::default();
        let mut random = 1u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) % below
        };
        for _ in 0..200_000 {
            // Across borders between pages, and behind the block.
            let place = Place((next(3) << 16 | (0x6000 + next(0x2800))) as u32);
            let (at, mask) = (place.address(&blocks), bits(1 + next(16) as u32));
            let by_place = next(2) == 0;
            let all = (0..16).filter(|bit| mask >> bit & 1 == 1);
            let set = |bit: &u64| expected.get(&(at + bit)).is_some_and(|(is_set, _)| *is_set);
            let found = all.clone().filter(set).fold(0, |found, bit| found | 1 << bit);
            assert_eq!(memory.some_at(place, mask), found);
            assert_eq!(memory.some(at, mask), found);
            if next(3) == 0 {
                match by_place {
                    true => memory.remove_at(place, mask),
                    false => memory.remove(at, mask),
                }
                all.for_each(|bit| expected.entry(at + bit).or_default().0 = false);
                continue;
            }
            let wanter = Wanter::new(next(50) as u32, Role::Address);
            match by_place {
                true => memory.add_at(place, mask, wanter),
                false => memory.add_some(at, mask, wanter),
            }
            for bit in all {
                let own = expected.entry(at + bit).or_default();
                *own = if own.0 { *own } else { (true, wanter) };
            }
        }
        for (at, (is_set, wanter)) in &expected {
            assert_eq!(memory.has(*at..at + 1), *is_set);
            assert!(!is_set || memory.who(*at) == *wanter, "{at:x}");
        }
        assert!(memory.mixed.many > Mixed::FEW, "they were looked through");
        let shares = expected.len() / SHARING + 1;
        assert!(memory.mixed.all.len() < 4 * shares, "and are not more and more");
    }
}
