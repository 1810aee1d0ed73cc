//! Which of the instructions that were executed made a value.
//!
//! A slice goes backwards through what was executed. At each moment there are bytes that are
//! [`Wanted`]; an instruction that defines one of them belongs to the slice, and what it
//! computed that byte from is wanted instead ([`backward`]). So is the branch that decided that it
//! was executed at all ([`control`]).

mod again;
pub mod backward;
mod births;
mod calls;
pub mod control;
mod course;
mod decoding;
mod events;
pub mod excerpt;
mod executed;
pub mod forward;
mod kept;
mod memory;
mod order;
mod over;
mod patterns;
pub mod positions;
pub mod races;
pub mod reasons;
pub mod region;
mod saves;
mod search;
mod shortcuts;
mod sketch;
mod spread;
mod store;
mod targets;
mod units;
mod waiting;
mod wanted;
mod words;
mod writers;

pub use units::Ways;
pub use wanted::{Role, Wanted};
