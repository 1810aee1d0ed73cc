//! The event loop: one stop of one thread at a time.

use crate::archive::{Archive, Key};
use crate::cpu::View;
use crate::error::{EngineError, Halt};
use crate::ptrace::{self, Stop};
use crate::recording::Recorder;
use crate::replaying::{Replayer, Session};
use crate::report::Report;
use crate::schedule::Schedule;
use crate::space::{Space, SpaceId};
use crate::task::{State, Task, Tid};
use crate::tracing::Readers;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;
use why_translate::Tool;

pub type Outcome<T> = std::result::Result<T, Halt>;

pub struct Options {
    pub tool: Tool,
    /// Varies the schedule.
    pub seed: Option<u64>,
    /// When the target is ended.
    pub deadline: Option<Instant>,
    /// Look for executable memory outside the cache.
    pub inspect: bool,
    /// Who reads the traces of processes.
    pub readers: Option<Readers>,
    /// The processors the target is told it runs on.
    pub affinity: Vec<u8>,
    /// The processors it may ask for.
    pub allowed: Vec<u8>,
    /// The one where the engine and the target really run, if they could be kept there.
    pub processor: Option<usize>,
    /// Called when the first process ends, and how many others are still there.
    pub on_end: Box<dyn FnMut(&Report)>,
    /// Called when the first process is stopped as a whole, with the signal.
    pub on_stop: Box<dyn FnMut(i32)>,
    /// Called when it goes on.
    pub on_continue: Box<dyn FnMut()>,
    /// Called when a signal has ended a wait for the target.
    pub on_interrupt: Box<dyn FnMut()>,
}

pub struct Supervisor {
    pub(crate) options: Options,
    pub(crate) tasks: FxHashMap<Tid, Task>,
    pub(crate) spaces: FxHashMap<SpaceId, Space>,
    next_space: u32,
    /// Stops of threads whose creation has not been reported yet.
    pub(crate) early: FxHashMap<Tid, Stop>,
    /// Stops seen while waiting for another one.
    pub(crate) deferred: VecDeque<(Tid, Stop)>,
    pub(crate) first: Tid,
    first_is_stopped: bool,
    pub(crate) report: Report,
    pub(crate) timer_running: bool,
    /// Some process has asked for signals at a time to come.
    pub(crate) alarms: bool,
    /// Translations from earlier runs that have been opened and checked.
    pub(crate) archives: FxHashMap<Key, Rc<Archive>>,
    /// The CPU that programs are shown.
    pub(crate) view: View,
    pub(crate) recorder: Option<Recorder>,
    /// All are to stop: nobody has a turn.
    pub(crate) stops_all: bool,
    /// Threads of replayed processes whose turn has come.
    pub(crate) woken: VecDeque<Tid>,
    /// Of each process that is replayed.
    pub(crate) replayers: FxHashMap<SpaceId, Replayer>,
    /// The event with which the recording of a replayed process ends, if it was cut short.
    pub(crate) cut_short: Option<u64>,
    /// Of a replay in which somebody goes to and fro.
    pub(crate) session: Option<Session>,
}

impl Supervisor {
    pub fn new(options: Options, first: Tid) -> Supervisor {
        Supervisor {
            options,
            tasks: FxHashMap::default(),
            spaces: FxHashMap::default(),
            next_space: 0,
            early: FxHashMap::default(),
            deferred: VecDeque::new(),
            first,
            first_is_stopped: false,
            report: Report::default(),
            timer_running: false,
            alarms: false,
            archives: FxHashMap::default(),
            view: View::native(),
            recorder: None,
            stops_all: false,
            woken: VecDeque::new(),
            replayers: FxHashMap::default(),
            cut_short: None,
            session: None,
        }
    }

    /// Runs until no thread of the target is left.
    pub fn run(&mut self) -> Result<(), EngineError> {
        while self.anybody_lives() {
            let (tid, stop) = match self.deferred.pop_front() {
                Some(event) => event,
                None => match ptrace::wait(-1) {
                    Ok(event) => event,
                    Err(error) if error.raw_os_error() == Some(libc::EINTR) => {
                        (self.options.on_interrupt)();
                        self.quantum_over();
                        self.look_at_deadline();
                        continue;
                    }
                    Err(error) => return Err(EngineError::system("waiting for the target")(error)),
                },
            };
            self.report.stops += 1;
            for result in [self.handle(tid, stop), self.hand_over(), self.replay_woken()] {
                match result {
                    Ok(()) | Err(Halt::Gone) => {}
                    Err(Halt::Engine(error)) => return Err(error),
                }
            }
        }
        self.end_copies();
        Ok(())
    }

    pub(crate) fn add_space(&mut self, mut space: Space) -> SpaceId {
        let id = SpaceId(self.next_space);
        let seed = self.options.seed;
        space.schedule = seed.map(|seed| Schedule::new(seed, u64::from(id.0)));
        self.next_space += 1;
        self.spaces.insert(id, space);
        id
    }

    pub(crate) fn task(&mut self, tid: Tid) -> &mut Task {
        self.tasks.get_mut(&tid).expect("a known thread")
    }

    pub(crate) fn space_of(&mut self, tid: Tid) -> &mut Space {
        let id = self.tasks[&tid].space;
        self.spaces.get_mut(&id).expect("a thread has a space")
    }

    /// Waits for one thread; its end is left to the event loop, as is what happens to
    /// others meanwhile. To wait for it alone would be wrong: the end of a process is
    /// not told before all its other threads have been waited for.
    pub(crate) fn wait_for(&mut self, tid: Tid) -> Outcome<Stop> {
        if let Some(index) = self.deferred.iter().position(|(other, _)| *other == tid) {
            let (_, stop) = self.deferred[index];
            if let Stop::Exited(_) | Stop::Killed(_) = stop {
                return Err(Halt::Gone);
            }
            self.deferred.remove(index);
            return Ok(stop);
        }
        loop {
            match ptrace::wait(-1) {
                Ok((other, stop)) if other != tid => self.deferred.push_back((other, stop)),
                Ok((_, stop @ (Stop::Exited(_) | Stop::Killed(_)))) => {
                    self.deferred.push_back((tid, stop));
                    return Err(Halt::Gone);
                }
                Ok((_, stop)) => {
                    self.report.stops += 1;
                    return Ok(stop);
                }
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(_) => return Err(Halt::Gone),
            }
        }
    }

    pub(crate) fn handle(&mut self, tid: Tid, stop: Stop) -> Outcome<()> {
        if let Stop::Exited(_) | Stop::Killed(_) = stop {
            return self.ended(tid, stop);
        }
        if stop == Stop::Exec {
            // Whatever the thread did that had this id before: it is gone.
            return self.executed(tid);
        }
        let Some(task) = self.tasks.get(&tid) else {
            self.early.insert(tid, stop);
            return Ok(());
        };
        if task.pid == self.first {
            self.tell_if_stopped(stop);
        }
        match (&self.tasks[&tid].state, stop) {
            (State::New(_), _) => self.begin(tid),
            (State::Kept, _) => Ok(()),
            (State::Running, Stop::Signal(libc::SIGTRAP)) => self.trapped(tid),
            (State::Running, Stop::Signal(_)) => self.signalled(tid),
            (State::Running, Stop::Interrupted) => self.preempted(tid),
            (State::InCall(_), Stop::Signal(_)) => self.stopped_in_call(tid),
            (State::InCall(_), Stop::Clone | Stop::Fork | Stop::Vfork) => self.forked(tid),
            (State::Stopping(registers), Stop::Interrupted) => {
                let registers = *registers;
                self.task(tid).state = State::Ready(registers);
                self.becomes_ready(tid)
            }
            (_, Stop::WholeProcess(_)) => Ok(ptrace::listen(tid)?),
            (_, Stop::Signal(signal)) => Ok(ptrace::resume(tid, signal)?),
            (State::InCall(_), Stop::Interrupted) => self.disturbed_in_call(tid),
            (_, Stop::Interrupted | Stop::Syscall) => Ok(ptrace::resume(tid, 0)?),
            (_, stop) => panic!("thread {tid} reported {stop:?} out of turn"),
        }
    }

    /// Of the first process: whether it is stopped as a whole, which each of its threads
    /// reports and `why` is told once.
    fn tell_if_stopped(&mut self, stop: Stop) {
        match stop {
            Stop::WholeProcess(signal) if !self.first_is_stopped => {
                self.first_is_stopped = true;
                (self.options.on_stop)(signal);
            }
            Stop::Interrupted if self.first_is_stopped => {
                self.first_is_stopped = false;
                (self.options.on_continue)();
            }
            _ => {}
        }
    }
}
