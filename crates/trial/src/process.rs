//! A worker as the pool sees it: a process, what it does, and until when it has to answer.

use crate::files::Files;
use crate::message::{FromWorker, Spec, ToWorker, receive, send};
use crate::slurm::last_complaint;
use nix::unistd::Pid;
use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A worker that is silent for so much longer than its test may take is given up.
const SILENCE: Duration = Duration::from_secs(30);
/// What is left of a dead one ends by itself in this time, or never.
const MOMENT: Duration = Duration::from_secs(2);

/// One test to be made.
#[derive(Clone)]
pub struct Task {
    pub ticket: u64,
    pub files: Files,
    /// So many workers have died of it.
    pub deaths: u32,
}

pub enum State {
    /// It has not said yet that it is there.
    Starting,
    Idle,
    Busy {
        task: Task,
        until: Instant,
    },
    /// What comes of its test is of no interest any more.
    Cancelled {
        until: Instant,
    },
}

pub struct Process {
    child: Child,
    /// Nothing, once it has been told to end.
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    complaints: File,
    pub state: State,
    /// So many in its place have ended before they said that they are there.
    pub stillborn: u32,
}

impl Process {
    pub fn start(mut command: Command, spec: &Spec, stillborn: u32) -> io::Result<Process> {
        let complaints = tempfile::tempfile()?;
        // Whoever interrupts `why` from a terminal interrupts no worker.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.stderr(complaints.try_clone()?).spawn()?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("piped");
        let state = State::Starting;
        let mut process = Process { child, stdin, stdout, complaints, state, stillborn };
        process.tell(&ToWorker::Setup(spec.clone()));
        Ok(process)
    }

    /// One that is gone is noticed when it is to answer.
    fn tell(&mut self, message: &ToWorker) {
        tell(&mut self.stdin, message);
    }

    pub fn give(&mut self, task: Task, limit: Duration, traced: bool) {
        let until = Instant::now() + limit + SILENCE;
        let (ticket, files) = (task.ticket, Cow::Borrowed(&task.files));
        let limit = limit.as_millis() as u64;
        tell(&mut self.stdin, &ToWorker::Test { ticket, files, limit, traced });
        self.state = State::Busy { task, until };
    }

    pub fn cancel(&mut self) {
        if let State::Busy { .. } = self.state {
            self.state = State::Cancelled { until: Instant::now() + SILENCE };
            self.tell(&ToWorker::Cancel);
        }
    }

    /// Nothing, if it is gone.
    pub fn answer(&mut self) -> Option<FromWorker> {
        receive(&mut self.stdout).ok().flatten()
    }

    pub fn answers(&self) -> BorrowedFd<'_> {
        self.stdout.as_fd()
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// When to give it up, unless it answers.
    pub fn until(&self) -> Option<Instant> {
        match self.state {
            State::Starting | State::Idle => None,
            State::Busy { until, .. } | State::Cancelled { until } => Some(until),
        }
    }

    /// Ends what is left of it, and returns what it complained about last.
    pub fn bury(&mut self) -> String {
        self.stdin = None;
        self.wait(MOMENT);
        last_complaint(&mut self.complaints)
    }

    /// A worker whose pool is gone ends its test and itself.
    pub fn leave(&mut self) {
        self.stdin = None;
    }

    /// Waits until it has done so.
    pub fn end(&mut self) {
        self.wait(SILENCE);
    }

    fn wait(&mut self, patience: Duration) {
        let end = Instant::now() + patience;
        while let (Ok(None), true) = (self.child.try_wait(), Instant::now() < end) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tell(stdin: &mut Option<ChildStdin>, message: &ToWorker) {
    let _ = stdin.as_mut().map(|stdin| send(stdin, message));
}
