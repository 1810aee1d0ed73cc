//! Where workers run.

use crate::slurm::{Allocation, SlurmError};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::process::Command;
use why_reduce::oracle::{Outcome, Stopped};

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Local,
    Slurm,
}

pub enum Place {
    Here,
    Slurm(Allocation),
}

impl Place {
    pub fn find(
        backend: Backend,
        jobs: usize,
        interrupted: fn() -> bool,
        tell: fn(&str),
    ) -> Result<Place, SlurmError> {
        match backend {
            Backend::Local => Ok(Place::Here),
            Backend::Slurm => Allocation::request(jobs, interrupted, tell).map(Place::Slurm),
        }
    }

    pub fn command(&self, words: &[OsString]) -> Command {
        match self {
            Place::Here => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]);
                command
            }
            Place::Slurm(allocation) => allocation.command(words),
        }
    }

    /// Can be read from when the place is lost.
    pub fn lifeline(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Place::Here => None,
            Place::Slurm(allocation) => Some(allocation.lifeline()),
        }
    }

    /// Whether there still is such a place.
    pub fn check(&mut self) -> Outcome<()> {
        let lost = match self {
            Place::Here => None,
            Place::Slurm(allocation) => allocation.lost(),
        };
        lost.map_or(Ok(()), |message| Err(Stopped::Broken(message)))
    }

    /// The process of our own that keeps it.
    pub fn keeper(&self) -> Option<Pid> {
        match self {
            Place::Here => None,
            Place::Slurm(allocation) => Some(allocation.keeper()),
        }
    }
}
