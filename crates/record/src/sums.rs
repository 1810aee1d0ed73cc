//! Sums of the blocks of a kept file: whether somebody has read what is in it is told by them,
//! without reading the file again.

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// How many bytes have a sum. They stay in the CPU's cache.
pub const BLOCK: u64 = 64 << 10;

#[derive(Default)]
pub struct Sums {
    of_blocks: Vec<u64>,
    length: u64,
    /// What there is so far of a block that is not whole.
    begun: Xxh3,
}

impl Sums {
    /// More of the file.
    pub(crate) fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let missing = BLOCK - self.length % BLOCK;
            let (next, rest) = bytes.split_at(bytes.len().min(missing as usize));
            self.begun.update(next);
            self.length += next.len() as u64;
            if self.length.is_multiple_of(BLOCK) {
                self.end_block();
            }
            bytes = rest;
        }
    }

    /// That was all.
    pub(crate) fn end(&mut self) {
        if !self.length.is_multiple_of(BLOCK) {
            self.end_block();
        }
    }

    fn end_block(&mut self) {
        self.of_blocks.push(self.begun.digest());
        self.begun.reset();
    }

    /// Whether the file holds these bytes there, if they are as many as have a sum.
    pub fn hold(&self, offset: u64, bytes: &[u8]) -> Option<bool> {
        let size = bytes.len() as u64;
        let is_last = offset.checked_add(size) == Some(self.length) && size < BLOCK;
        if !offset.is_multiple_of(BLOCK) || size == 0 || !(size == BLOCK || is_last) {
            return None;
        }
        let sum = self.of_blocks.get((offset / BLOCK) as usize);
        Some(sum == Some(&xxh3_64(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_blocks_are_told_and_only_if_they_are_the_files() {
        let block = BLOCK as usize;
        let file: Vec<u8> = (0..2 * block + 100).map(|i| (i * 31 / 7) as u8).collect();
        for piece in [1000, block - 1, block, block + 1, file.len()] {
            let mut sums = Sums::default();
            file.chunks(piece).for_each(|bytes| sums.add(bytes));
            sums.end();
            for at in [0, block, 2 * block] {
                let bytes = &file[at..file.len().min(at + block)];
                assert_eq!(sums.hold(at as u64, bytes), Some(true), "{piece} {at}");
                assert_eq!(sums.hold(at as u64, &bytes[1..]), None, "{piece} {at}");
                assert_eq!(sums.hold(at as u64 + 1, bytes), None, "{piece} {at}");
                let mut others = bytes.to_vec();
                others[50] ^= 1;
                assert_eq!(sums.hold(at as u64, &others), Some(false), "{piece} {at}");
            }
            assert_eq!(sums.hold(4 * BLOCK, &file[..block]), Some(false));
            assert_eq!(sums.hold(0, &[]), None);
        }
    }
}
