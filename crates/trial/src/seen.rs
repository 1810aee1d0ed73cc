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

/// The last line that says something, with what varies from run to run masked: numbers in
/// any base become `#`. What a sanitizer sums up says more than its last words, and advice that
/// always is the same says nothing.
pub fn telling_line(stderr: &[u8]) -> String {
    const LONGEST: usize = 300;
    const ADVICE: &str = "note: run with `RUST_BACKTRACE=";
    let text = String::from_utf8_lossy(stderr);
    let says = |line: &&str| !line.is_empty() && !line.starts_with(ADVICE);
    let lines = || text.lines().map(str::trim).filter(says).rev();
    let summary = lines().find(|line| line.starts_with("SUMMARY: ") && line.contains("Sanitizer"));
    let line = summary.or_else(|| lines().next()).unwrap_or("");
    mask(line).chars().take(LONGEST).collect()
}

fn mask(line: &str) -> String {
    let mut masked = String::new();
    let mut word = String::new();
    // A blank at the end closes the last word.
    for char in line.chars().chain([' ']) {
        if char.is_alphanumeric() || char == '_' {
            word.push(char);
            continue;
        }
        masked.push_str(if is_number(&word) { "#" } else { &word });
        word.clear();
        masked.push(char);
    }
    masked.trim_end().to_owned()
}

fn is_number(word: &str) -> bool {
    word.starts_with(|char: char| char.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_varies_is_masked() {
        let check =
            |stderr: &str, expected: &str| assert_eq!(telling_line(stderr.as_bytes()), expected);
        check("", "");
        check("one\ntwo 17\n\n", "two #");
        check("==4711==ERROR: at 0x7fff12 in f2 (a.c:12)", "==#==ERROR: at # in f2 (a.c:#)");
        check("x1: bad", "x1: bad");
    }

    #[test]
    fn the_line_that_tells_most() {
        let check = |stderr: &str, expected: &str| {
            assert_eq!(telling_line(stderr.as_bytes()), expected);
        };
        check(
            "SUMMARY: AddressSanitizer: SEGV a.c:3 in f\n0x00 00\n==7==ABORTING\n",
            "SUMMARY: AddressSanitizer: SEGV a.c:# in f",
        );
        check("SUMMARY: 3 errors\nlast", "last");
        let panic = "thread 'main' panicked at a.rs:1:2:\nno such thing\n";
        check(
            &format!("{panic}note: run with `RUST_BACKTRACE=1` environment variable\n"),
            "no such thing",
        );
    }
}
