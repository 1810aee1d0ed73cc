//! A set of positions, a bit for each.

use crate::control::Position;
use crate::memory::bits;

pub struct Positions(Vec<u64>);

impl Positions {
    /// Room for positions below this one.
    pub fn up_to(end: Position) -> Positions {
        Positions(vec![0; (end / 64 + 1) as usize])
    }

    pub fn add(&mut self, position: Position) {
        self.0[(position / 64) as usize] |= 1 << (position % 64);
    }

    pub fn has(&self, position: Position) -> bool {
        self.0.get((position / 64) as usize).is_some_and(|word| word >> (position % 64) & 1 == 1)
    }

    /// Which of the next positions belong to them, at most 64.
    pub fn mask(&self, position: Position, count: u32) -> u64 {
        bits_of(&self.0, position as usize, count)
    }
}

/// So many bits of words from one on, at most 64.
#[inline]
pub(crate) fn bits_of(words: &[u64], first: usize, count: u32) -> u64 {
    let (word, shift) = (first / 64, first as u32 % 64);
    let mut found = words.get(word).map_or(0, |word| word >> shift);
    if shift + count > 64 {
        found |= words.get(word + 1).map_or(0, |word| word << (64 - shift));
    }
    found & bits(count)
}
