//! What the test targets share. Each file holds one idea; none of them knows
//! anything of the engine but its command line (`why.rs`) and its report
//! (`report.rs`).

// Every test target compiles all of this and uses a part of it.
#![allow(dead_code)]

pub mod access;
pub mod access_oracle;
pub mod assemble;
pub mod build;
pub mod compare;
pub mod directives;
pub mod extended_state;
pub mod fixture;
pub mod instruction_accesses;
pub mod job;
pub mod lanes;
pub mod leftover;
pub mod mask;
pub mod needs;
pub mod outcome;
pub mod package;
pub mod pty;
pub mod registers;
pub mod report;
pub mod reserve;
pub mod run;
pub mod seccomp;
pub mod single_step;
pub mod why;
