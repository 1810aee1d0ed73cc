//! The workers, and what their answers mean.

use crate::files::{Files, Shape};
use crate::message::{FromWorker, Spec, ToWorker, receive, send};
use crate::seen::{Ended, Seen};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use why_reduce::oracle::{Outcome, Stopped, Verdict};
use why_reduce::tester::{Judge, Judgement};

/// Nobody waits longer for the original.
const LONGEST: Duration = Duration::from_secs(300);
/// A candidate may take this many times as long as the original, and a little more.
const PATIENCE: u32 = 10;
const LITTLE: Duration = Duration::from_secs(1);
/// A test whose worker dies is made again so many times.
const RETRIES: u32 = 3;

/// When a candidate fails.
pub enum Criterion {
    /// When the script says so, by exit status 0.
    Script,
    /// When the condition of the [`Spec`] holds.
    Condition,
    /// When it fails as the original did, which is the first that is tested.
    Same(Option<Seen>),
}

#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    #[error("cannot start a process for tests: {0}")]
    NoWorker(io::Error),
    #[error("cannot make a directory for tests: {0}; TMPDIR says where else to make it")]
    NoDirectory(io::Error),
}

pub struct Pool {
    /// The command of a worker.
    worker: Vec<OsString>,
    spec: Spec,
    criterion: Criterion,
    shape: Shape,
    timeout: Option<Duration>,
    limit: Duration,
    workers: Vec<Worker>,
    interrupted: fn() -> bool,
    _directory: TempDir,
}

struct Worker {
    process: Child,
    task: Option<Task>,
}

#[derive(Clone)]
struct Task {
    ticket: u64,
    files: Files,
    retries: u32,
}

/// What all tests of a pool have in common.
pub struct Settings {
    pub worker: Vec<OsString>,
    pub jobs: usize,
    pub timeout: Option<Duration>,
    pub interrupted: fn() -> bool,
}

impl Pool {
    /// The directory of the specification is made here.
    pub fn new(
        mut spec: Spec,
        criterion: Criterion,
        shape: Shape,
        settings: Settings,
    ) -> Result<Pool, PoolError> {
        let directory = tempfile::Builder::new().prefix("why-").tempdir();
        let directory = directory.map_err(PoolError::NoDirectory)?;
        spec.directory = directory.path().to_owned();
        let limit = settings.timeout.unwrap_or(LONGEST);
        let Settings { worker, jobs, timeout, interrupted } = settings;
        let mut pool = Pool {
            worker,
            spec,
            criterion,
            shape,
            timeout,
            limit,
            workers: Vec::new(),
            interrupted,
            _directory: directory,
        };
        for _ in 0..jobs.max(1) {
            let worker = pool.start_worker().map_err(PoolError::NoWorker)?;
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    fn start_worker(&self) -> io::Result<Worker> {
        let mut process = Command::new(&self.worker[0])
            .args(&self.worker[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Whoever interrupts `why` from a terminal interrupts no worker.
            .process_group(0)
            .spawn()?;
        let setup = ToWorker::Setup(self.spec.clone());
        send(process.stdin.as_mut().expect("piped"), &setup)?;
        Ok(Worker { process, task: None })
    }

    fn give(&mut self, index: usize, task: Task) -> Outcome<()> {
        let limit = self.limit.as_millis() as u64;
        let message = ToWorker::Test { ticket: task.ticket, files: task.files.clone(), limit };
        let worker = &mut self.workers[index];
        let sent = send(worker.process.stdin.as_mut().expect("piped"), &message);
        worker.task = Some(task);
        match sent {
            Ok(()) => Ok(()),
            Err(_) => self.replace(index),
        }
    }

    /// A worker has died; another one does what it had to do.
    fn replace(&mut self, index: usize) -> Outcome<()> {
        let new = self.start_worker();
        let new = new.map_err(|error| Stopped::Broken(PoolError::NoWorker(error).to_string()))?;
        let mut old = std::mem::replace(&mut self.workers[index], new);
        let _ = old.process.kill();
        let _ = old.process.wait();
        match old.task {
            Some(task) if task.retries == RETRIES => {
                let message = "the process that makes tests was killed again and again";
                Err(Stopped::Broken(message.into()))
            }
            Some(task) => self.give(index, Task { retries: task.retries + 1, ..task }),
            None => Ok(()),
        }
    }

    /// Waits until one of those that have something to do answers.
    fn ready(&self) -> Outcome<usize> {
        loop {
            self.go_on()?;
            let busy: Vec<usize> =
                (0..self.workers.len()).filter(|&i| self.workers[i].task.is_some()).collect();
            let fd = |index: &usize| self.workers[*index].process.stdout.as_ref().expect("piped");
            let wanted = |index| PollFd::new(fd(index).as_fd(), PollFlags::POLLIN);
            let mut fds: Vec<PollFd> = busy.iter().map(wanted).collect();
            match poll(&mut fds, PollTimeout::NONE) {
                Err(Errno::EINTR) => {}
                Err(error) => return Err(Stopped::Broken(format!("waiting for a test: {error}"))),
                Ok(_) => {
                    let at = fds.iter().position(|fd| fd.any() == Some(true));
                    return Ok(busy[at.expect("poll says so")]);
                }
            }
        }
    }

    fn answer(&mut self, index: usize) -> Option<FromWorker> {
        let from = self.workers[index].process.stdout.as_mut().expect("piped");
        receive(from).ok().flatten()
    }

    fn judge(&mut self, seen: Seen) -> Judgement {
        let verdict = match &mut self.criterion {
            Criterion::Script => match seen.ended {
                Ended::Status(0) => Verdict::Fails,
                Ended::Status(status) if status != 125 => Verdict::Passes,
                _ => Verdict::Unresolved,
            },
            Criterion::Condition => match (seen.holds, seen.ended) {
                (Some(true), _) => Verdict::Fails,
                (_, Ended::Status(_)) => Verdict::Passes,
                _ => Verdict::Unresolved,
            },
            Criterion::Same(original) => match (original, seen.ended) {
                (_, Ended::Status(0)) => Verdict::Passes,
                (Some(original), _) if seen.same_failure(original) => Verdict::Fails,
                (Some(_), _) => Verdict::Unresolved,
                (None, Ended::TimedOut | Ended::TooMuchOutput) => Verdict::Unresolved,
                (original, _) => {
                    *original = Some(seen.clone());
                    Verdict::Fails
                }
            },
        };
        Judgement { verdict, reason: seen.summary().into() }
    }

    /// The original's time says how long others may take.
    fn adapt(&mut self, milliseconds: u64) {
        if self.timeout.is_none() && self.limit == LONGEST {
            let asked = self.spec.condition.as_ref().and_then(|condition| condition.longest_time());
            let asked = Duration::from_secs_f64(asked.unwrap_or(0.0).clamp(0.0, 1e6));
            let patient = Duration::from_millis(milliseconds) * PATIENCE;
            self.limit = patient.max(asked) + LITTLE;
        }
    }
}

impl Judge for Pool {
    fn slots(&self) -> usize {
        self.workers.len()
    }

    fn start(&mut self, ticket: u64, candidate: &[u8]) -> Outcome<()> {
        let files = self.shape.files(candidate);
        let free = self.workers.iter().position(|worker| worker.task.is_none());
        let free = free.expect("no more tests are started than there are slots");
        self.give(free, Task { ticket, files, retries: 0 })
    }

    fn go_on(&self) -> Outcome<()> {
        if (self.interrupted)() { Err(Stopped::Interrupted) } else { Ok(()) }
    }

    fn finished(&mut self) -> Outcome<(u64, Judgement)> {
        loop {
            let index = self.ready()?;
            match self.answer(index) {
                Some(FromWorker::Done { ticket, seen }) => {
                    self.workers[index].task = None;
                    self.adapt(seen.milliseconds);
                    return Ok((ticket, self.judge(seen)));
                }
                Some(FromWorker::Broken(message)) => return Err(Stopped::Broken(message)),
                Some(FromWorker::Cancelled) => {}
                None => self.replace(index)?,
            }
        }
    }

    fn cancel_all(&mut self) -> Outcome<()> {
        let busy: Vec<usize> =
            (0..self.workers.len()).filter(|&i| self.workers[i].task.is_some()).collect();
        for &index in &busy {
            self.workers[index].task = None;
            let to = self.workers[index].process.stdin.as_mut().expect("piped");
            // One that is gone is noticed below.
            let _ = send(to, &ToWorker::Cancel);
        }
        for index in busy {
            loop {
                match self.answer(index) {
                    Some(FromWorker::Cancelled) => break,
                    Some(_) => {}
                    None => {
                        self.replace(index)?;
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            // A worker whose pool is gone ends its test and itself.
            drop(worker.process.stdin.take());
        }
        for worker in &mut self.workers {
            let _ = worker.process.wait();
        }
    }
}
