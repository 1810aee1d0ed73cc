//! Translates application code into code that runs in the cache.
//!
//! A pure function from bytes to bytes: nothing here knows of processes, ptrace
//! or files. The engine places the result, links it, and asks [`Unit`] which
//! application instruction a cache address belongs to.

pub mod chain;
pub mod context;
mod count;
mod emit;
mod features;
mod gs;
mod operand;
mod returns;
mod scan;
pub mod trace;
mod translate;
mod unit;
mod verify;
mod x87;
mod xsave;

pub use emit::{Literal, Patch};
pub use features::Features;
pub use scan::{Fetch, is_cut_off};
pub use translate::{Calls, LeaveBefore, Request, TranslateError, translate};
pub use unit::{Borrowed, Exit, ExitKind, InsnSpan, Place, SpanDetail, Unit};

/// What is woven into the translated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tool {
    None,
    /// An exact count of executed instructions.
    Count,
    /// The same, and a stop at any instruction that is asked for.
    Exact,
    /// Every executed unit and every address it touched.
    Trace,
    /// What a replay is traced with: both of these.
    ExactTrace,
}

impl Tool {
    /// Whether the context's slots count instructions.
    pub fn counts(self) -> bool {
        matches!(self, Tool::Count | Tool::Exact | Tool::ExactTrace)
    }

    /// Whether units look at the count, and stop where they are to.
    pub fn is_exact(self) -> bool {
        matches!(self, Tool::Exact | Tool::ExactTrace)
    }

    /// Whether units write records into the trace.
    pub fn traces(self) -> bool {
        matches!(self, Tool::Trace | Tool::ExactTrace)
    }
}
