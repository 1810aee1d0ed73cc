//! Where execution can go within a function, and where all ways meet again.
//!
//! [`Graph`] is made of a function's code by following it from its entry, calls passed over;
//! what indirect jumps lead to is read from tables where they have the usual form, and is
//! otherwise what somebody saw. [`PostDominators`] tells for each block the next one that
//! every way to the function's end comes through: what lies between depends on how the block
//! was left.

mod graph;
mod instructions;
mod landings;
mod postdominators;
mod tables;

pub use graph::{Block, BlockId, Graph};
pub use landings::landings;
pub use postdominators::PostDominators;

/// What has to be known of a program to follow a function.
pub trait Program {
    /// Copies what is at an address, and tells how much of it there is.
    fn read(&self, at: u64, into: &mut [u8]) -> usize;

    /// Whether an address belongs to the function that begins at `entry`, of which compilers
    /// put parts elsewhere. A jump that leads out of it is a call that does not come back.
    fn is_within(&self, entry: u64, address: u64) -> bool;

    /// Whether what is called at an address may return.
    fn may_return(&self, callee: u64) -> bool;

    /// Where a call at an address goes on, within the same function, if what it called throws.
    fn landing_pad(&self, _call: u64) -> Option<u64> {
        None
    }

    /// Where an indirect jump was seen to lead.
    fn seen_targets(&self, jump: u64) -> Vec<u64>;
}
