//! Values that are nowhere in memory as a whole: what they are put together of.

use crate::evaluate::Origin;
use std::rc::Rc;

/// A byte that is nowhere in memory as the variable has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Byte {
    pub value: u8,
    /// Those of its bits that were kept are set.
    pub known: u8,
    pub from: Rc<[Origin]>,
    /// The program has not made it: whoever looks for it computes it from what there is.
    pub is_computed: bool,
}

impl Byte {
    pub fn constant(value: u8) -> Byte {
        Byte { value, known: 0xff, from: Rc::from([]), is_computed: false }
    }

    fn lost() -> Byte {
        Byte { known: 0, ..Byte::constant(0) }
    }

    /// Puts so many bits of another byte into it.
    fn take(&mut self, other: &Byte, from: u64, to: u64, count: u64) {
        let mask = 0xffu8 >> (8 - count);
        self.value |= (other.value >> from & mask) << to;
        self.known |= (other.known >> from & mask) << to;
        self.is_computed |= other.is_computed;
        if self.from != other.from {
            let mut all = [&*self.from, &*other.from].concat();
            all.sort_unstable();
            all.dedup();
            self.from = Rc::from(all);
        }
    }
}

/// Pieces, one behind the other, which need not begin or end where bytes do.
#[derive(Default)]
pub struct Assembled {
    pub bytes: Vec<Byte>,
    pub bits: u64,
}

impl Assembled {
    /// Adds so many bits of some bytes; those that are not there are lost.
    pub fn append(&mut self, bytes: &[Byte], first: u64, count: u64) {
        let (mut first, mut left) = (first, count);
        while left > 0 {
            let (from, to) = (first % 8, self.bits % 8);
            let count = left.min(8 - from).min(8 - to);
            if to == 0 {
                self.bytes.push(Byte::lost());
            }
            if let (Some(byte), Some(own)) =
                (bytes.get((first / 8) as usize), self.bytes.last_mut())
            {
                own.take(byte, from, to, count);
            }
            first += count;
            left -= count;
            self.bits += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_may_be_of_bits() {
        let bytes: Vec<Byte> = [0xab, 0xcd].into_iter().map(Byte::constant).collect();
        let mut whole = Assembled::default();
        whole.append(&bytes, 4, 8);
        assert_eq!((whole.bytes[0].value, whole.bytes[0].known), (0xda, 0xff));
        whole.append(&bytes, 0, 4);
        whole.append(&[], 0, 4);
        whole.append(&bytes[1..], 0, 8);
        let all: Vec<(u8, u8)> = whole.bytes.iter().map(|byte| (byte.value, byte.known)).collect();
        assert_eq!(all, [(0xda, 0xff), (0x0b, 0x0f), (0xcd, 0xff)]);
        assert_eq!(whole.bits, 24);
    }
}
