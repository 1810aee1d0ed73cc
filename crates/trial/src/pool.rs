//! The workers, and what their answers mean.

use crate::files::Shape;
use crate::message::{FromWorker, Spec};
use crate::orphans::{children, end_others};
use crate::place::{Backend, Place};
use crate::process::{Process, State, Task};
use crate::seen::{Ended, Seen};
use crate::slurm::SlurmError;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::unistd::Pid;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::time::{Duration, Instant};
use why_reduce::oracle::{Outcome, Stopped, Verdict};
use why_reduce::tester::{Judge, Judgement};

/// Nobody waits longer for the original.
const LONGEST: Duration = Duration::from_secs(300);
/// A candidate may take this many times as long as the original, and a little more.
const PATIENCE: u32 = 10;
const LITTLE: Duration = Duration::from_secs(1);
/// So many workers may die of one test, or one after the other before they say that they are
/// there.
const MOST_DEATHS: u32 = 3;
/// How often somebody who interrupts us, or a worker that is silent, is looked for, in
/// milliseconds.
const MOMENT: u16 = 500;

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
    #[error(transparent)]
    NoPlace(#[from] SlurmError),
}

pub struct Pool {
    /// The command of a worker.
    worker: Vec<OsString>,
    spec: Spec,
    criterion: Criterion,
    shape: Shape,
    timeout: Option<Duration>,
    limit: Duration,
    /// The original crashes: it matters where.
    traced: bool,
    /// What was seen of the original before it was traced.
    untraced: Option<Seen>,
    workers: Vec<Process>,
    /// Tests that no worker makes yet.
    queue: VecDeque<Task>,
    interrupted: fn() -> bool,
    /// Given back when all workers are gone.
    place: Place,
    /// Children that this process had before: whoever became `why` started them.
    strangers: Vec<Pid>,
}

/// What all tests of a pool have in common.
pub struct Settings {
    pub worker: Vec<OsString>,
    pub backend: Backend,
    pub jobs: usize,
    pub timeout: Option<Duration>,
    pub interrupted: fn() -> bool,
    /// Who is told what takes long.
    pub tell: fn(&str),
}

impl Pool {
    pub fn new(
        spec: Spec,
        criterion: Criterion,
        shape: Shape,
        settings: Settings,
    ) -> Result<Pool, PoolError> {
        let Settings { worker, backend, jobs, timeout, interrupted, tell } = settings;
        let orphans_come_here = nix::sys::prctl::set_child_subreaper(true);
        orphans_come_here.map_err(|error| PoolError::NoWorker(error.into()))?;
        let mut pool = Pool {
            worker,
            spec,
            criterion,
            shape,
            timeout,
            limit: timeout.unwrap_or(LONGEST),
            traced: false,
            untraced: None,
            workers: Vec::new(),
            queue: VecDeque::new(),
            interrupted,
            strangers: children(),
            place: Place::find(backend, jobs, interrupted, tell)?,
        };
        for _ in 0..jobs.max(1) {
            let worker = pool.start_worker(0).map_err(PoolError::NoWorker)?;
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    fn start_worker(&self, stillborn: u32) -> io::Result<Process> {
        Process::start(self.place.command(&self.worker), &self.spec, stillborn)
    }

    /// Gives tests to those who have none.
    fn assign(&mut self) {
        let idle = self.workers.iter_mut().filter(|worker| matches!(worker.state, State::Idle));
        for worker in idle {
            let Some(task) = self.queue.pop_front() else { return };
            worker.give(task, self.limit, self.traced);
        }
    }

    /// A worker has died; whoever is free does what it had to do.
    fn replace(&mut self, index: usize) -> Outcome<()> {
        self.place.check()?;
        let mut old = self.workers.remove(index);
        let complaint = old.bury();
        let spared = self.workers.iter().map(Process::pid).chain(self.place.keeper());
        end_others(&spared.chain(self.strangers.iter().copied()).collect::<Vec<_>>());
        let mut stillborn = 0;
        match old.state {
            State::Busy { task, .. } if task.deaths == MOST_DEATHS => {
                let message = "the process that makes tests was killed again and again";
                return Err(Stopped::Broken(message.into()));
            }
            State::Busy { task, .. } => {
                self.queue.push_front(Task { deaths: task.deaths + 1, ..task });
            }
            State::Starting => stillborn = old.stillborn + 1,
            State::Idle | State::Cancelled { .. } => {}
        }
        if stillborn <= MOST_DEATHS {
            let new = self.start_worker(stillborn);
            let broken = |error| Stopped::Broken(PoolError::NoWorker(error).to_string());
            self.workers.push(new.map_err(broken)?);
        } else if self.workers.is_empty() {
            let message = format!("the process that makes tests ends at once: {complaint}");
            return Err(Stopped::Broken(message));
        }
        Ok(())
    }

    /// Waits until a worker answers or is gone.
    fn ready(&mut self) -> Outcome<usize> {
        loop {
            self.go_on()?;
            let now = Instant::now();
            let silent = |worker: &Process| worker.until().is_some_and(|until| until < now);
            if let Some(index) = self.workers.iter().position(silent) {
                self.replace(index)?;
            }
            let fds = self.workers.iter().map(Process::answers).chain(self.place.lifeline());
            let mut fds: Vec<PollFd> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
            match poll(&mut fds, MOMENT) {
                Err(Errno::EINTR) | Ok(0) => {}
                Err(error) => return Err(Stopped::Broken(format!("waiting for a test: {error}"))),
                Ok(_) => {
                    let at = fds.iter().position(|fd| fd.any() == Some(true));
                    match at.expect("poll says so") {
                        index if index < self.workers.len() => return Ok(index),
                        _ => self.place.check()?,
                    }
                }
            }
        }
    }

    /// Whether this is the original, which crashes. Only then is anything traced: some
    /// programs behave differently when they are.
    fn is_to_be_traced(&self, seen: &Seen) -> bool {
        let is_original = matches!(self.criterion, Criterion::Same(None));
        is_original && matches!(seen.ended, Ended::Signal(_)) && self.untraced.is_none()
    }

    /// What was seen of a traced test, unless tracing the original has told nothing.
    fn compared(&mut self, seen: Seen) -> Seen {
        match self.untraced.take() {
            Some(untraced) if seen.function.is_none() || seen.ended != untraced.ended => {
                self.traced = false;
                untraced
            }
            _ => seen,
        }
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
        self.queue.push_back(Task { ticket, files, deaths: 0 });
        self.assign();
        Ok(())
    }

    fn go_on(&self) -> Outcome<()> {
        if (self.interrupted)() { Err(Stopped::Interrupted) } else { Ok(()) }
    }

    fn finished(&mut self) -> Outcome<(u64, Judgement)> {
        loop {
            self.assign();
            let index = self.ready()?;
            let worker = &mut self.workers[index];
            match worker.answer() {
                Some(FromWorker::Done { ticket, seen }) => {
                    // Nobody waits for what came of a test that was to be ended.
                    let state = std::mem::replace(&mut worker.state, State::Idle);
                    match state {
                        State::Busy { task, .. } if self.is_to_be_traced(&seen) => {
                            self.untraced = Some(seen);
                            self.traced = true;
                            self.queue.push_front(task);
                        }
                        State::Busy { .. } => {
                            let seen = self.compared(seen);
                            self.adapt(seen.milliseconds);
                            return Ok((ticket, self.judge(seen)));
                        }
                        other => self.workers[index].state = other,
                    }
                }
                Some(FromWorker::Broken(message)) => return Err(Stopped::Broken(message)),
                Some(FromWorker::Ready | FromWorker::Cancelled) => {
                    worker.state = State::Idle;
                    worker.stillborn = 0;
                }
                None => self.replace(index)?,
            }
        }
    }

    fn cancel_all(&mut self) -> Outcome<()> {
        self.queue.clear();
        self.workers.iter_mut().for_each(Process::cancel);
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            match worker.state {
                // It may wait for room that will never be there.
                State::Starting if self.place.keeper().is_some() => drop(worker.bury()),
                _ => worker.leave(),
            }
        }
        self.workers.iter_mut().for_each(Process::end);
    }
}
