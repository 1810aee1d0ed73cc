//! Copies of a replayed process: forks that stay stopped. To go back to one, it is forked
//! again, and the fork goes on in the place of the process that was there.
//!
//! A fork has all memory that is private. What is shared with it has to be given to it anew:
//! the log of calls, and the application's own shared memory. The code cache stays shared, as
//! between all processes that are forked from each other.

use super::Replayer;
use super::objects::{self, Inodes};
use crate::error::{EngineError, Halt};
use crate::ptrace::{self, Registers, Stop};
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{State, Tid};
use std::rc::Rc;
use why_translate::context::{CALLS_IN_PROCESS, LOG_NEXT};

/// A stopped process, and what was known of it when it was forked.
pub(crate) struct Copy {
    tid: Tid,
    replayer: Replayer,
    /// With which its thread was about to go on.
    registers: Registers,
    /// The shared memory that it still has mapped; the replayer has a copy of its contents.
    inodes: Inodes,
}

impl Supervisor {
    /// Copies a process whose thread is about to go on with these registers. None if that
    /// cannot be had, or would take too long.
    pub(super) fn copy_process(
        &mut self,
        tid: Tid,
        registers: &Registers,
    ) -> Outcome<Option<Copy>> {
        let replayer = self.replayer(tid);
        // What is mapped privately and not written to yet cannot be told from what is.
        if replayer.has_private_views || objects::are_too_large(&replayer.objects) {
            return Ok(None);
        }
        let Some(copy) = self.fork_stopped(tid)? else {
            return Ok(None);
        };
        let mut replayer = self.replayer(tid).clone();
        let (objects, inodes) = objects::copy(&replayer.objects)?;
        replayer.objects = objects;
        Ok(Some(Copy { tid: copy, replayer, registers: *registers, inodes }))
    }

    /// A process in the state of the copy, which is to go on when it is woken.
    pub(super) fn revive(&mut self, copy: &Copy) -> Outcome<Tid> {
        let tid = self.fork_living(copy.tid)?;
        let mut replayer = copy.replayer.clone();
        let (objects, _) = objects::copy(&replayer.objects)?;
        replayer.objects = objects;
        let log = Rc::clone(&replayer.log);
        let modules = replayer.modules.list().to_vec();
        let space = self.tasks[&tid].space;
        self.replayers.insert(space, replayer);
        let next_call = self.space_of(tid).read_slot(LOG_NEXT);
        self.own_log_of_fork(tid)?;
        self.fill_log(tid, &log);
        self.space_of(tid).write_slot(LOG_NEXT, next_call);
        self.space_of(tid).write_slot(CALLS_IN_PROCESS, 0);
        self.map_own_objects(tid, &copy.inodes)?;
        for module in modules {
            self.watch_module(tid, &module);
        }
        self.task(tid).state = State::Ready(copy.registers);
        Ok(tid)
    }

    /// A fork of a stopped process that is to run.
    pub(super) fn fork_living(&mut self, from: Tid) -> Outcome<Tid> {
        let forked = self.fork_stopped(from)?;
        let none = || std::io::Error::from(std::io::ErrorKind::OutOfMemory);
        let tid = forked.ok_or_else(|| EngineError::system("copying a process")(none()))?;
        self.space_of(tid).current = Some(tid);
        self.space_of(tid).ran_last = Some(tid);
        self.task(tid).state = State::Running;
        Ok(tid)
    }

    /// A fork of a stopped process, which stays stopped. None if the system refuses. The
    /// registers of the forked one must be set again.
    pub(super) fn fork_stopped(&mut self, from: Tid) -> Outcome<Option<Tid>> {
        let forked = self.call(from, libc::SYS_fork, [0; 6])?;
        if forked < 0 {
            return Ok(None);
        }
        let tid = forked as Tid;
        while self.wait_for(tid)? != Stop::Interrupted {
            ptrace::resume(tid, 0)?;
        }
        let parent = self.tasks[&from].space;
        let id = self.fork_space(parent, tid)?;
        let (counted, starts) = (self.spaces[&parent].counted, self.spaces[&parent].slot_starts);
        let space = self.spaces.get_mut(&id).expect("just added");
        // The slots are a copy, too.
        space.counted = counted;
        space.slot_starts = starts;
        space.reported = space.count();
        let actions = self.tasks[&from].actions.clone();
        self.expect(Supervisor::new_task(tid, tid, id, actions, State::Kept))?;
        Ok(Some(tid))
    }

    /// Ends a copy.
    pub(super) fn drop_copy(&mut self, copy: &Copy) {
        self.end_process(copy.tid);
    }

    /// Ends a process of a replay; what it has executed is counted.
    pub(super) fn end_process(&mut self, tid: Tid) {
        if let State::Dying = self.task(tid).state {
            return;
        }
        if !self.is_copy(tid) {
            self.sample(tid);
        }
        let space = self.tasks[&tid].space;
        self.replayers.remove(&space);
        self.woken.retain(|woken| *woken != tid);
        self.task(tid).state = State::Dying;
        // SAFETY: plain system call; it is our own tracee.
        unsafe { libc::kill(tid, libc::SIGKILL) };
    }

    /// Ends all processes of a replay but for one; copies stay.
    pub(super) fn end_others(&mut self, but: Tid) {
        let is_other = |tid: &Tid| *tid != but && !self.is_copy(*tid);
        let others: Vec<Tid> = self.tasks.keys().copied().filter(is_other).collect();
        for tid in others {
            self.end_process(tid);
        }
    }

    pub(super) fn is_copy(&self, tid: Tid) -> bool {
        matches!(self.tasks[&tid].state, State::Kept)
    }

    /// Whether there is anybody but copies.
    pub(crate) fn anybody_lives(&self) -> bool {
        self.tasks.values().any(|task| !matches!(task.state, State::Kept))
    }

    /// Nobody will go back to them.
    pub(crate) fn end_copies(&mut self) {
        if !self.tasks.is_empty() {
            self.kill_all();
        }
    }
}

/// The process that was looked at is gone; another one goes on in its place.
pub(super) const REPLACED: Halt = Halt::Gone;
