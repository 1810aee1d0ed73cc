//! Where the lanes are that a mask leaves out: at addresses that no memory can have.
//!
//! So all records of a unit have the same accesses, of the same sizes, and nobody who reads them
//! has to know that some did not happen: nothing is ever found there. What is left out of a load is
//! elsewhere than what is left out of a store, so that no load seems to find what was stored.

/// The CPU takes no such address, because its upper bits are not all alike.
const FIRST: u64 = 1 << 63;
const LAST: u64 = FIRST + (2 << KIND);
const KIND: u32 = 16;
/// The bytes that each lane has for itself.
const LANE: u64 = 64;

#[derive(Clone, Copy)]
pub enum Use {
    Read,
    Write,
}

impl Use {
    /// The place of a lane that is left out.
    pub fn nowhere(self, lane: u8) -> u64 {
        FIRST + ((self as u64) << KIND) + LANE * u64::from(lane)
    }
}

pub fn is_nowhere(address: u64) -> bool {
    (FIRST..LAST).contains(&address)
}
