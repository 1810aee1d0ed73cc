//! What is told of the course of a run, and to whom.

use super::{Completion, Note};
use crate::calls::Told;
use crate::control::Position;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use why_trace::plan::Values;

/// A unit that was executed, or a part of it.
pub struct Executed<'a> {
    pub unit: usize,
    pub thread: u64,
    /// Of its first instruction.
    pub position: Position,
    /// How many instructions of it.
    pub count: usize,
    /// Who decided over its instructions, and which of them brought a register back.
    pub notes: &'a [Note],
    /// When that was of which notes say no more than that it was before.
    pub told: &'a [Position],
    /// From which instruction on which call is shown for those that are not.
    pub sites: &'a [Site],
    /// Where the accesses of the plan were.
    pub values: &'a Values,
}

/// From an instruction of a unit on, the call that is shown for those that are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site(u64);

impl Site {
    /// Programs have no addresses of more bits than are left.
    pub fn new(from: usize, call: u64) -> Site {
        Site(call << 16 | from as u64)
    }

    pub fn from(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    pub fn call(self) -> u64 {
        self.0 >> 16
    }

    /// Both in one number.
    pub fn number(self) -> u64 {
        self.0
    }

    pub fn numbered(number: u64) -> Site {
        Site(number)
    }
}

/// Where the instruction at a position is in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    pub position: Position,
    pub event: u64,
    pub ticks: u64,
}

/// Somebody else, such as the kernel, wrote to memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wrote {
    /// How many instructions had been executed then.
    pub at: Position,
    /// The last instruction of the thread that it was done for; none if another process did it.
    pub by: Option<Position>,
    pub thread: u64,
    /// The one whose end it may have been done for instead.
    pub ended: Option<u64>,
    pub bytes: Range<u64>,
    /// Nothing was written to these but that they were elsewhere before, from there on, and how
    /// many: the others are empty.
    pub moved: Option<Moved>,
}

/// From where on memory was, and how many bytes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    pub from: u64,
    pub size: u64,
}

impl Wrote {
    /// Whether that was behind the beginning of a part of the run. What the kernel writes just there
    /// is of an instruction before it.
    pub fn is_behind(&self, start: Position) -> bool {
        self.at > start || self.at == start && self.by.is_none()
    }
}

/// A handler of a signal begins or is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// How many instructions had been executed then.
    pub at: Position,
    pub thread: u64,
    /// And when the handler began.
    pub handler: Position,
    pub begins: bool,
}

/// Bytes that came from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// How many instructions had been executed then.
    pub at: Position,
    pub thread: u64,
    pub bytes: Range<u64>,
    /// The stream, and from which byte of it on.
    pub stream: u64,
    pub offset: u64,
}

/// Who is told what happened.
pub trait Sink {
    /// Whether it is to be told who decided what, and which calls are shown.
    const DETAILS: bool;

    fn executed(&mut self, _executed: Executed<'_>) {}

    /// The last of these instructions was interrupted in the middle: its accesses are those that it
    /// has made.
    fn interrupted(&mut self, _executed: Executed<'_>) {}

    /// One that was is completed.
    fn completed(&mut self, _completion: Completion) {}

    /// Somebody else wrote to memory.
    fn wrote(&mut self, _wrote: Wrote) {}

    /// A handler of a signal begins or is over.
    fn signal(&mut self, _signal: Signal) {}

    /// What was written last came from outside.
    fn read(&mut self, _input: Input) {}

    /// The last instruction makes a system call, which has this number.
    fn called(&mut self, _number: u64) {}

    /// A thread begins, or a call of one means something to others.
    fn told(&mut self, _told: Told) {}

    /// A thread goes on there, which is a moment of a recording.
    fn moment(&mut self, _moment: Moment) {}
}
