//! Keys that were met before, or some of them: what comes once is not worth being remembered.

use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

pub struct Once(Vec<u32>);

impl Once {
    const SIZE: usize = 1 << 16;

    pub fn new() -> Once {
        Once(vec![0; Once::SIZE])
    }

    /// Whether a key is there; it is from now on.
    pub fn is_there(&mut self, key: impl Hash) -> bool {
        let mut hasher = FxHasher::default();
        key.hash(&mut hasher);
        let hash = hasher.finish();
        let seen = &mut self.0[(hash >> 32) as usize % Once::SIZE];
        std::mem::replace(seen, hash as u32) == hash as u32
    }
}
