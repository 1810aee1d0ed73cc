//! Workers on the machines of a Slurm cluster: one allocation, and one job step for each
//! worker, whose standard streams `srun` carries from machine to machine.
//!
//! The allocation belongs to a `salloc` that runs a command which waits for the end of its
//! standard input. So it is given back whatever becomes of `why`, and its end is noticed.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Who waits longer than this for an allocation is told so.
const SHORT: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
pub enum SlurmError {
    #[error("cannot start salloc: {0}; is Slurm installed here?")]
    NoSalloc(io::Error),
    #[error("cannot wait for Slurm: {0}")]
    NoWaiting(io::Error),
    #[error(
        "Slurm allocates nothing: {0}; sinfo shows what there is, \
         SALLOC_PARTITION and SALLOC_ACCOUNT choose"
    )]
    Refused(String),
    #[error("interrupted while waiting for an allocation by Slurm")]
    Interrupted,
}

pub struct Allocation {
    salloc: Child,
    lifeline: ChildStdout,
    complaints: File,
    job: String,
}

impl Allocation {
    /// Waits until Slurm has room for so many tasks.
    pub fn request(
        tasks: usize,
        interrupted: fn() -> bool,
        tell: fn(&str),
    ) -> Result<Allocation, SlurmError> {
        let complaints = tempfile::tempfile().map_err(SlurmError::NoWaiting)?;
        let stderr = complaints.try_clone().map_err(SlurmError::NoWaiting)?;
        let mut command = slurm_command("salloc");
        // The rest of the allocation stays when a node fails.
        command.args(["--job-name=why", "--no-kill", "--kill-command=TERM"]);
        command.arg(format!("--ntasks={tasks}"));
        command.args(["sh", "-c", "echo $SLURM_JOB_ID; exec cat"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr).process_group(0);
        let mut salloc = command.spawn().map_err(SlurmError::NoSalloc)?;
        let lifeline = salloc.stdout.take().expect("piped");
        let mut allocation = Allocation { salloc, lifeline, complaints, job: String::new() };
        let start = Instant::now();
        let mut told = false;
        while !allocation.hears(Duration::from_millis(200)) {
            if interrupted() {
                return Err(SlurmError::Interrupted);
            }
            if !told && start.elapsed() > SHORT {
                tell(&format!("waiting for an allocation by Slurm, for {tasks} at once"));
                told = true;
            }
        }
        let mut line = Vec::new();
        let mut byte = [0];
        while allocation.lifeline.read(&mut byte).map_err(SlurmError::NoWaiting)? == 1 {
            if byte[0] == b'\n' {
                allocation.job = String::from_utf8_lossy(&line).into_owned();
                return Ok(allocation);
            }
            line.push(byte[0]);
        }
        Err(SlurmError::Refused(last_complaint(&mut allocation.complaints)))
    }

    /// A command that runs on one of its machines.
    pub fn command(&self, words: &[OsString]) -> Command {
        let mut command = slurm_command("srun");
        command.args(["--quiet", "--ntasks=1", "--nodes=1", "--exact", "--mem=0"]);
        command.arg(format!("--jobid={}", self.job)).args(words);
        command
    }

    pub fn keeper(&self) -> Pid {
        Pid::from_raw(self.salloc.id() as i32)
    }

    /// Can be read from when the allocation is gone.
    pub fn lifeline(&self) -> BorrowedFd<'_> {
        self.lifeline.as_fd()
    }

    /// What is said when it is gone. Workers may end a moment before.
    pub fn lost(&mut self) -> Option<String> {
        let gone = self.hears(Duration::from_secs(1));
        gone.then(|| format!("Slurm has ended the allocation (job {})", self.job))
    }

    fn hears(&self, patience: Duration) -> bool {
        let mut fds = [PollFd::new(self.lifeline.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
        poll(&mut fds, timeout).is_ok_and(|ready| ready > 0)
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        drop(self.salloc.stdin.take());
        if self.job.is_empty() {
            // It still waits for its turn.
            let _ = kill(self.keeper(), Signal::SIGTERM);
        }
        let _ = self.salloc.wait();
    }
}

/// Without what is said of another job, in which `why` may run.
fn slurm_command(name: &str) -> Command {
    let mut command = Command::new(name);
    for (variable, _) in std::env::vars_os() {
        let bytes = variable.as_encoded_bytes();
        if bytes.starts_with(b"SLURM_") && !bytes.starts_with(b"SLURM_CONF") {
            command.env_remove(variable);
        }
    }
    command
}

/// The last line of what a command has complained about, without the name of the command.
pub fn last_complaint(complaints: &mut File) -> String {
    let mut text = Vec::new();
    let _ = complaints.rewind().and_then(|()| complaints.read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
    let behind = ["error: ", "fatal: "].iter().find_map(|mark| Some(line.split_once(mark)?.1));
    behind.unwrap_or(line).trim().to_owned()
}
