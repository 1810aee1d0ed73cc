//! What the test targets share. Each file holds one idea; none of them knows
//! anything of the engine but its command line (`why.rs`) and its report
//! (`report.rs`).

// Every test target compiles all of this and uses a part of it.
#![allow(dead_code)]

pub mod assemble;
pub mod build;
pub mod compare;
pub mod directives;
pub mod fixture;
pub mod job;
pub mod leftover;
pub mod mask;
pub mod native;
pub mod needs;
pub mod outcome;
pub mod package;
pub mod process;
pub mod pty;
pub mod random;
pub mod recorded;
pub mod recording;
pub mod report;
pub mod retraced;
pub mod run;
pub mod seccomp;
pub mod single_step;
pub mod why;
