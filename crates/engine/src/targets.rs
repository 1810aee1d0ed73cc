//! The table through which indirect branches go: code addresses by the low bits of the
//! application's.
//!
//! Translated code looks at 16 bits. Most programs have few indirect targets, and memory
//! for all entries would be most of what their start costs: so at first there is only the
//! beginning of the table, mapped again and again behind itself, and fewer bits count.

use crate::error::Result;
use crate::memory::Address;
use crate::shared::SharedMemory;
use why_translate::context::TARGETS_BYTES;

const ALL_BITS: u32 = 16;
const FEW_BITS: u32 = 14;

/// A small table is good for so many links: with more, too many would have to look at
/// another one's first.
const FEW: usize = 3 << (FEW_BITS - 5);

pub struct Targets {
    pub memory: SharedMemory,
    bits: u32,
}

impl Targets {
    pub fn small() -> Result<Targets> {
        Targets::new(FEW_BITS)
    }

    pub fn large() -> Result<Targets> {
        Targets::new(ALL_BITS)
    }

    /// A table of the same kind, empty.
    pub fn same(&self) -> Result<Targets> {
        Targets::new(self.bits)
    }

    fn new(bits: u32) -> Result<Targets> {
        let memory = SharedMemory::new("targets", 8 << bits)?;
        memory.populate(0, memory.size());
        Ok(Targets { memory, bits })
    }

    pub fn is_too_small_for(&self, links: usize) -> bool {
        self.bits < ALL_BITS && links > FEW
    }

    /// How often it must be mapped for translated code.
    pub fn times(&self) -> usize {
        TARGETS_BYTES / self.memory.size()
    }

    /// Addresses with the same one share an entry.
    pub fn hash(&self, pc: Address) -> u16 {
        (pc & ((1 << self.bits) - 1)) as u16
    }

    pub fn set(&self, hash: u16, code: Address) {
        self.memory.write_u64(usize::from(hash) * 8, code);
    }
}
