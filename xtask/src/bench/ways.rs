//! The ways to run a program that are compared.

use std::ffi::OsString;
use std::path::PathBuf;

use super::programs::{Cache, Program, Work};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Native,
    None,
    Count,
    Trace,
    Valgrind,
    Record,
    /// Recording with a region that never comes.
    Before,
    /// What `Record` recorded last.
    Replay,
    /// The last instruction of what `Record` recorded last, from a cold start.
    End,
}

impl Way {
    pub fn name(self) -> &'static str {
        match self {
            Way::Native => "native",
            Way::None => "none",
            Way::Count => "count",
            Way::Trace => "trace",
            Way::Valgrind => "valgrind",
            Way::Record => "record",
            Way::Before => "before",
            Way::Replay => "replay",
            Way::End => "end",
        }
    }

    /// How much of what the native run left behind this way leaves, too.
    pub fn leaves(self) -> Leaves {
        match self {
            Way::Before => Leaves::AllAndMessage,
            Way::Replay => Leaves::Output,
            Way::End => Leaves::Nothing,
            _ => Leaves::All,
        }
    }
}

pub enum Leaves {
    All,
    /// All, and a message of ours on standard error.
    AllAndMessage,
    /// What was written to the standard streams, and no files.
    Output,
    Nothing,
}

/// Where what runs programs is.
pub struct Runners {
    pub why: PathBuf,
    pub valgrind: Option<PathBuf>,
    /// Recordings go there, and are replayed from there.
    pub recording: PathBuf,
}

impl Runners {
    /// The command that runs a program this way; None if there is no point in it.
    pub fn command(&self, way: Way, program: &Program) -> Option<Vec<OsString>> {
        let why = |words: &[&str]| {
            let why = [self.why.clone().into_os_string()].into_iter();
            why.chain(words.iter().map(OsString::from)).collect::<Vec<_>>()
        };
        let recording = || self.recording.clone().into_os_string();
        let mut words = match way {
            Way::Native => Vec::new(),
            Way::None | Way::Count | Way::Trace => why(&["run", "--tool", way.name(), "--"]),
            // A cold cache is nothing to valgrind, which keeps none.
            Way::Valgrind if program.cache == Cache::Cold => return None,
            Way::Valgrind => {
                let valgrind = self.valgrind.clone()?.into_os_string();
                let options = ["--tool=none", "-q", "--trace-children=yes", "--log-file=/dev/null"];
                [valgrind].into_iter().chain(options.map(OsString::from)).collect()
            }
            Way::Record => {
                let mut words = why(&["record", "-o"]);
                words.extend([recording(), "--".into()]);
                words
            }
            Way::Before => {
                let never = u64::MAX.to_string();
                // As `why run` does, which shows programs the CPU that there is.
                let mut words = why(&["record", "--cpu", "native", "--from", &never, "-o"]);
                words.extend([recording(), "--".into()]);
                words
            }
            Way::Replay => {
                let mut words = why(&["replay"]);
                words.push(recording());
                return Some(words);
            }
            Way::End if program.work != Work::LongRun => return None,
            Way::End => {
                let mut words = why(&["print"]);
                words.extend([recording(), "end".into()]);
                return Some(words);
            }
        };
        words.extend(program.command.iter().cloned());
        Some(words)
    }
}
