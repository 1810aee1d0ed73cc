//! Makes a failing input smaller.
//!
//! Everything here works on lists and trees of parts, and asks an [`Oracle`] whether what is
//! left still fails. Nothing here knows a format, a process or a file.

pub mod auto;
pub mod changes;
pub mod lexical;
pub mod lists;
pub mod oracle;
pub mod shrinking;
pub mod tester;
pub mod trees;
pub mod units;

pub use oracle::{Oracle, Outcome, Stopped, Verdict};
