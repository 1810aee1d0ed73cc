//! Runs a command on one candidate after the other, and says whether each fails in the same
//! way as the original.
//!
//! Tests are made by workers: processes of their own, here or on machines of a cluster, which
//! are started once and live as long as the pool that feeds them. A worker is the reaper of everything that a test starts, so that
//! nothing of it outlives the test; and when `why` is killed, its workers notice and clean up.

mod call;
mod condition;
mod fault;
mod files;
mod message;
mod orphans;
mod place;
mod pool;
mod process;
mod room;
mod run;
mod seen;
mod slurm;
mod telling;
mod tracer;
mod worker;

pub use call::{Call, Given};
pub use condition::{BadCondition, Condition, Facts};
pub use files::{Files, FilesError, Shape};
pub use message::{Spec, Target};
pub use place::Backend;
pub use pool::{Criterion, Pool, PoolError, Settings};
pub use seen::{Ended, Seen};
pub use worker::serve;
