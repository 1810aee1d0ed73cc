//! Runs an unmodified program from a code cache under a supervisor.
//!
//! The only crate that knows ptrace. [`launch::run`] is its entrance.

mod archive;
mod arena;
mod attach;
mod cache;
mod call_log;
mod calls;
mod chaos;
mod code;
mod confine;
pub mod cpu;
mod deadlock;
mod deliver;
mod description;
mod directions;
mod error;
mod free_memory;
mod frozen;
mod gait;
mod glue;
mod hashing;
mod held;
mod image;
mod images;
mod inherited;
mod inject;
pub mod launch;
mod lend;
mod maps;
mod memory;
mod memory_calls;
mod messages;
mod outputs;
mod own_paths;
mod pages;
mod proc_calls;
mod processor;
mod program;
mod ptrace;
mod recording;
mod regions;
mod relay;
mod replaying;
mod report;
mod schedule;
mod settle;
mod shared;
mod shown_maps;
mod signals;
mod space;
mod stopping;
mod stub;
mod supervisor;
mod syscall;
mod targets;
mod task;
mod threads;
mod timer;
mod trace_calls;
mod tracing;
mod turns;
mod unknown;

pub use error::EngineError;
pub use recording::{Border, Landmark, MappedCode, Region, Wanted};
pub use replaying::{InputStream, Look, Module, Observer, Scene, Then};
pub use report::{Ended, Missed, Replayed, Report};
pub use tracing::{Readers, TraceReader};
pub use why_translate::Tool;

/// The supervisor's readers of what a program can write to, for those who try to confuse them.
#[doc(hidden)]
pub mod hostile {
    pub use crate::call_log::{Record, records};
    pub use crate::stopping::allowances;
}

/// The name of a signal, such as `SIGSEGV`.
pub fn signal_name(signal: i32) -> String {
    signals::name(signal)
}
