//! A command to run, natively or under `why`, with all it needs around it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Job {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub stdin: Vec<u8>,
    /// Put into the working directory first; those with `#!` are executable.
    pub files: Vec<(String, Vec<u8>)>,
    /// Beyond the small fixed environment that every run gets.
    pub env: Vec<(String, OsString)>,
    pub limit: Duration,
    /// Before the program is executed, in its process.
    pub before: Vec<Before>,
}

/// What a child changes in itself before it executes the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// Address space layout randomisation off.
    NoRandomLayout,
    /// Core files as large as they come; otherwise there are none.
    Cores,
    /// The system calls refused that a container's default filter refuses.
    ContainerFilter,
    /// User and group nobody, no other groups, no way back.
    Nobody,
}

impl Job {
    pub fn new(program: impl Into<PathBuf>) -> Job {
        Job {
            program: program.into(),
            args: Vec::new(),
            stdin: Vec::new(),
            files: Vec::new(),
            env: Vec::new(),
            limit: Duration::from_secs(60),
            before: Vec::new(),
        }
    }

    pub fn args<S: Into<OsString>>(mut self, args: impl IntoIterator<Item = S>) -> Job {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub fn stdin(mut self, text: impl Into<Vec<u8>>) -> Job {
        self.stdin = text.into();
        self
    }

    pub fn file(mut self, name: &str, content: impl Into<Vec<u8>>) -> Job {
        self.files.push((name.into(), content.into()));
        self
    }

    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Job {
        self.env.push((name.into(), value.into()));
        self
    }

    pub fn limit(mut self, seconds: u64) -> Job {
        self.limit = Duration::from_secs(seconds);
        self
    }

    pub fn before(mut self, before: Before) -> Job {
        self.before.push(before);
        self
    }
}
