//! Who those are that decide over others, by their positions.

use crate::control::Position;
use crate::memory::each_bit;
use crate::positions::Positions;
use crate::wanted::Wanter;

/// So many positions share a count.
const BLOCK: Position = 4096;

/// In the order of their positions, which somebody else keeps: the number of a position among them
/// tells where it is.
#[derive(Default)]
pub struct Deciders {
    all: Vec<Wanter>,
    /// How many there are before each block of positions.
    before: Vec<u64>,
}

impl Deciders {
    /// One behind all others.
    #[inline]
    pub fn add(&mut self, position: Position, wanter: Wanter) {
        let block = (position / BLOCK) as usize;
        if self.before.len() <= block {
            self.before.resize(block + 1, self.all.len() as u64);
        }
        self.all.push(wanter);
    }

    /// Those of the next 64 positions that have a bit, behind all others.
    #[inline]
    pub fn add_mask(&mut self, position: Position, mask: u64, wanters: &[Wanter]) {
        let first = position / BLOCK;
        if (position + 63) / BLOCK == first && self.before.len() as Position == first + 1 {
            self.all.extend_from_slice(wanters);
        } else {
            let mut wanters = wanters.iter();
            each_bit(mask, |index| {
                let wanter = wanters.next().copied().unwrap_or_default();
                self.add(position + Position::from(index), wanter);
            });
        }
    }

    /// The one at a position, if it is one of these positions.
    pub fn find(&self, position: Position, positions: &Positions) -> Wanter {
        let first = position / BLOCK * BLOCK;
        let words = (first..position).step_by(64);
        let counts = words.map(|word| {
            u64::from(positions.mask(word, (position - word).min(64) as u32).count_ones())
        });
        let Some(before) = self.before.get((position / BLOCK) as usize) else {
            return Wanter::default();
        };
        let number = before + counts.sum::<u64>();
        let found = self.all.get(number as usize).filter(|_| positions.has(position));
        found.copied().unwrap_or_default()
    }

    /// How much memory they take.
    pub fn size(&self) -> usize {
        size_of_val(self.all.as_slice()) + size_of_val(self.before.as_slice())
    }
}
