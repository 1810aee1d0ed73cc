//! A set of positions, a bit for each.

use crate::control::Position;

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
}
