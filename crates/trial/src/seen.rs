//! What was seen of a run, and whether two runs failed in the same way.

use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    Status(i32),
    Signal(i32),
    /// It was ended for taking too long.
    TimedOut,
    /// It was ended for writing without end.
    TooMuchOutput,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Ended::Status(status) => write!(f, "exit {status}"),
            Ended::Signal(number) => match nix::sys::signal::Signal::try_from(*number) {
                Ok(signal) => f.write_str(signal.as_str()),
                Err(_) => write!(f, "signal {number}"),
            },
            Ended::TimedOut => f.write_str("no end in time"),
            Ended::TooMuchOutput => f.write_str("output without end"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    pub ended: Ended,
    /// The function that a signal ended it in, if it was traced and that has a name.
    pub function: Option<String>,
    /// The most telling line of standard error, with numbers and addresses masked.
    pub message: String,
    pub milliseconds: u64,
    /// Whether the condition held, if there is one.
    pub holds: Option<bool>,
}

impl Seen {
    /// How it ended, and what it said last.
    pub fn summary(&self) -> String {
        let function = self.function.as_ref().map(|function| format!(" in {function}"));
        let ended = format!("{}{}", self.ended, function.unwrap_or_default());
        match self.message.as_str() {
            "" => ended,
            message => format!("{ended}: {message}"),
        }
    }

    /// What is said last counts only if it is not known where the original crashed.
    pub fn same_failure(&self, original: &Seen) -> bool {
        let same_place = match &original.function {
            Some(_) => self.function == original.function,
            None => self.message == original.message,
        };
        self.ended == original.ended && same_place
    }
}
