//! A set of positions, a bit for each.

use crate::control::Position;
use crate::large;
use crate::memory::bits;
use std::ops::Range;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Positions(Vec<u64>);

impl Positions {
    /// Room for positions below this one.
    pub fn up_to(end: Position) -> Positions {
        // One more word, so that the next positions never end.
        Positions(large::zeros((end / 64 + 2) as usize))
    }

    pub fn add(&mut self, position: Position) {
        self.0[(position / 64) as usize] |= 1 << (position % 64);
    }

    /// Those of the next 64 positions that have a bit.
    #[inline]
    pub fn add_mask(&mut self, position: Position, mask: u64) {
        let (word, shift) = ((position / 64) as usize, (position % 64) as u32);
        let [low, high] = &mut self.0[word..word + 2] else { unreachable!("there are two") };
        *low |= mask << shift;
        // All of them cannot be shifted away at once.
        *high |= mask >> 1 >> (63 - shift);
    }

    pub fn remove(&mut self, position: Position) {
        if let Some(word) = self.0.get_mut((position / 64) as usize) {
            *word &= !(1 << (position % 64));
        }
    }

    /// Those that are not among others.
    pub fn without(mut self, others: &Positions) -> Positions {
        self.0.iter_mut().zip(&others.0).for_each(|(own, other)| *own &= !other);
        self
    }

    /// Those and others.
    pub fn and(mut self, others: &Positions) -> Positions {
        self.0.iter_mut().zip(&others.0).for_each(|(own, other)| *own |= other);
        self
    }

    pub fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// How much memory they take.
    pub fn size(&self) -> usize {
        size_of_val(self.0.as_slice())
    }

    /// The first and the last.
    pub fn ends(&self) -> Option<(Position, Position)> {
        let first = self.0.iter().position(|word| *word != 0)?;
        let last = self.0.iter().rposition(|word| *word != 0)?;
        let (low, high) = (self.0[first].trailing_zeros(), 63 - self.0[last].leading_zeros());
        let at = |word: usize, bit: u32| 64 * word as Position + Position::from(bit);
        Some((at(first, low), at(last, high)))
    }

    /// All of them in order, those that follow each other together.
    pub fn runs(&self) -> impl Iterator<Item = Range<Position>> {
        let mut at: Position = 0;
        let end = 64 * self.0.len() as Position;
        // Where the next one is that belongs to them, or the next one that does not.
        let next = move |from: Position, belongs: bool| {
            let turned = |word: &u64| if belongs { *word } else { !*word };
            let (first, behind) = ((from / 64) as usize, from % 64);
            let here = self.0.get(first).map_or(0, turned) >> behind << behind;
            let rest = self.0.iter().skip(first + 1).map(turned);
            let mut words = std::iter::once(here).chain(rest).zip(first as Position..);
            let found = words.find(|(word, _)| *word != 0);
            found.map_or(end, |(word, at)| 64 * at + Position::from(word.trailing_zeros()))
        };
        std::iter::from_fn(move || {
            let start = next(at, true);
            at = next(start, false);
            (start < end).then_some(start..at)
        })
    }

    pub fn has(&self, position: Position) -> bool {
        self.0.get((position / 64) as usize).is_some_and(|word| word >> (position % 64) & 1 == 1)
    }

    /// Whether any of the next positions does.
    #[inline]
    pub fn has_some(&self, position: Position, count: usize) -> bool {
        let each = (0..count).step_by(64);
        let mask = |at: usize| self.mask(position + at as Position, (count - at).min(64) as u32);
        each.map(mask).any(|mask| mask != 0)
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
    let low = words.get(word).map_or(0, |word| word >> shift);
    let high = words.get(word + 1).map_or(0, |word| word << 1 << (63 - shift));
    (low | high) & bits(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_all_of_them() {
        for step in [1, 2, 3, 63, 64, 65, 200] {
            let mut positions = Positions::up_to(1000);
            let own = |position: &Position| {
                position.is_multiple_of(step) || (120..250).contains(position)
            };
            let all: Vec<Position> = (0..1000).filter(own).collect();
            all.iter().for_each(|position| positions.add(*position));
            let runs: Vec<Range<Position>> = positions.runs().collect();
            assert!(runs.is_sorted_by(|one, other| one.end < other.start), "{runs:?}");
            assert_eq!(runs.into_iter().flatten().collect::<Vec<_>>(), all);
        }
        assert_eq!(Positions::default().runs().count(), 0);
    }
}
