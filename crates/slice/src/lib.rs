//! Which of the instructions that were executed made a value.
//!
//! A slice goes backwards through what was executed. At each moment there are bytes that are
//! [`Wanted`]; an instruction that defines one of them belongs to the slice, and what it
//! computed that byte from is wanted instead ([`backward`]). So is the branch that decided that it
//! was executed at all ([`control`]).

mod across;
mod again;
mod arguments;
pub mod backward;
mod binding;
pub mod births;
mod builder;
mod calls;
pub mod control;
mod course;
mod deciders;
pub mod decisions;
mod decoding;
mod events;
pub mod excerpt;
mod executed;
mod families;
mod finder;
mod following;
pub mod forward;
mod kept;
mod large;
mod learnt;
mod marks;
mod memory;
mod noting;
mod once;
mod order;
mod outline;
mod over;
mod own;
mod packing;
mod paged;
pub mod partly;
mod passages;
mod patterns;
mod places;
mod ports;
pub mod positions;
pub mod races;
pub mod reasons;
pub mod region;
mod remembered;
pub mod returns;
mod saves;
mod search;
mod shortcut;
mod shortcuts;
mod sketch;
mod spread;
mod store;
mod targets;
mod units;
mod waiting;
mod wanted;
mod way;
mod words;
mod writers;

pub use units::Ways;
pub use wanted::{Role, Wanted};
