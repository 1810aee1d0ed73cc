//! What a run left behind for the eye: its streams, its end and its files.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use nix::sys::signal::Signal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Status(i32),
    Signal(Signal),
    /// A real-time signal has a number and no name.
    RealTime(i32),
    /// It had to be killed.
    TimedOut,
}

impl From<ExitStatus> for Ended {
    fn from(status: ExitStatus) -> Ended {
        match (status.code(), status.signal()) {
            (Some(code), _) => Ended::Status(code),
            (None, Some(number)) => {
                Signal::try_from(number).map_or(Ended::RealTime(number), Ended::Signal)
            }
            (None, None) => unreachable!("wait() reports only the end of a process"),
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Ended::Status(code) => write!(f, "status {code}"),
            Ended::Signal(signal) => write!(f, "signal {signal}"),
            Ended::RealTime(number) => write!(f, "signal {number}"),
            Ended::TimedOut => write!(f, "no end: it was killed after its time limit"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    File { mode: u32, bytes: Vec<u8> },
    Directory { mode: u32 },
    Symlink(String),
    Other(&'static str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub ended: Ended,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// By path below the working directory.
    pub files: BTreeMap<String, Entry>,
}

impl Outcome {
    /// The same with `change` applied to every text in it.
    pub fn map(mut self, change: impl Fn(Vec<u8>) -> Vec<u8>) -> Outcome {
        self.stdout = change(self.stdout);
        self.stderr = change(self.stderr);
        for entry in self.files.values_mut() {
            if let Entry::File { bytes, .. } = entry {
                *bytes = change(std::mem::take(bytes));
            }
        }
        self
    }
}

/// Everything below a directory.
pub fn files_below(dir: &Path) -> BTreeMap<String, Entry> {
    let mut found = BTreeMap::new();
    collect(dir, "", &mut found);
    found
}

fn collect(dir: &Path, prefix: &str, found: &mut BTreeMap<String, Entry>) {
    // A directory without permission to read is an entry like any other.
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let Ok(meta) = entry.path().symlink_metadata() else {
            continue;
        };
        let (kind, mode) = (meta.file_type(), meta.permissions().mode() & 0o7777);
        let what = if kind.is_dir() {
            collect(&entry.path(), &format!("{name}/"), found);
            Entry::Directory { mode }
        } else if kind.is_symlink() {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            Entry::Symlink(target.to_string_lossy().into_owned())
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).unwrap_or_else(|_| b"<unreadable>".into());
            Entry::File { mode, bytes }
        } else if kind.is_fifo() {
            Entry::Other("fifo")
        } else if kind.is_socket() {
            Entry::Other("socket")
        } else {
            Entry::Other("device")
        };
        found.insert(name, what);
    }
}
