//! Whose turn it is: of the threads of an address space one runs at a time.

use crate::ptrace::{self};
use crate::recording::Recorder;
use crate::signals::{self};
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{State, Tid};
use std::time::{Duration, Instant};
use why_record::event::Cause;
use why_record::manifest::Stuck;
use why_translate::context::{APP_GS, OTHERS_READY};

/// How long a thread may run while others wait.
const QUANTUM: Duration = Duration::from_millis(4);

/// What the timer takes.
const LONGEST: Duration = Duration::from_millis(500);

/// Sooner than that nobody has to be looked at.
const SOON: Duration = Duration::from_millis(1);

impl Supervisor {
    /// A thread can go on: at once if nobody else runs in its space.
    pub(crate) fn becomes_ready(&mut self, tid: Tid) -> Outcome<()> {
        let space = self.space_of(tid);
        if space.schedule.is_some() {
            return self.ready_in_chaos(tid);
        }
        match space.current {
            None => self.turn(tid),
            Some(current) if current == tid => self.turn(tid),
            Some(current) => {
                space.ready.push_back(tid);
                if !space.others_ready {
                    space.others_ready = true;
                    space.write_slot(OTHERS_READY, 1);
                }
                // It may be waiting in a call that it makes without the supervisor.
                ptrace::interrupt(current)?;
                self.start_timer();
                Ok(())
            }
        }
    }

    /// Puts a thread into the cache.
    pub(crate) fn turn(&mut self, tid: Tid) -> Outcome<()> {
        if self.stops_all {
            let space = self.space_of(tid);
            space.current = None;
            space.ready.push_front(tid);
            return Ok(());
        }
        if self.waits_for_others(tid) {
            return Ok(());
        }
        let app_gs = self.task(tid).app_gs;
        let space = self.space_of(tid);
        space.current = Some(tid);
        space.since = Instant::now();
        let varied = space.schedule.is_some();
        // Where the schedule is varied, only the supervisor lets another one go on.
        let others =
            space.careful || if varied { space.users > 1 } else { !space.ready.is_empty() };
        if others != space.others_ready {
            space.others_ready = others;
            space.write_slot(OTHERS_READY, u64::from(others));
        }
        let changed = space.ran_last.replace(tid) != Some(tid);
        if changed {
            space.write_slot(APP_GS, app_gs);
        }
        if others && !varied {
            self.start_timer();
        }
        let recount = std::mem::take(&mut self.task(tid).recount);
        self.adjust_count(tid, recount);
        if std::mem::take(&mut self.task(tid).unwatch_at_turn) {
            self.unwatch_all(tid)?;
        }
        if self.deliver_pending(tid)? {
            return Ok(());
        }
        let State::Ready(registers) = self.task(tid).state else {
            panic!("thread {tid} has its turn and is not ready");
        };
        if varied { self.run_stretch(tid, registers) } else { self.enter(tid, registers) }
    }

    /// The current thread stops running: the next one has its turn.
    pub(crate) fn release(&mut self, tid: Tid) -> Outcome<()> {
        let space = self.space_of(tid);
        if space.current != Some(tid) {
            return Ok(());
        }
        space.current = None;
        let gs = space.read_slot(APP_GS);
        self.task(tid).app_gs = gs;
        let id = self.tasks[&tid].space;
        if self.space_of(tid).schedule.is_some() {
            self.calls_in_chaos(tid);
        }
        if self.gives_way(id) {
            return Ok(());
        }
        if self.space_of(tid).schedule.is_some() {
            return self.choose(id);
        }
        match self.space_of(tid).ready.pop_front() {
            Some(next) => self.turn(next),
            None => Ok(()),
        }
    }

    pub(crate) fn start_timer(&mut self) {
        if !self.timer_running {
            self.timer_running = true;
            crate::timer::every(Some(QUANTUM));
        }
    }

    /// Without anybody waiting, only checkpoints, borders and time limits have to be thought of.
    pub(crate) fn idle_timer(&self) {
        let interval = self.recorder.as_ref().and_then(Recorder::checkpoint_interval);
        let limit = self.options.deadline.map(|_| LONGEST / 5);
        let often = interval.map(|interval| (interval / 2).clamp(QUANTUM, LONGEST));
        let look = self.next_look().map(|look| look.clamp(SOON, LONGEST));
        crate::timer::every([often, limit, look].into_iter().flatten().min());
    }

    /// Interrupts the threads whose time is over while others wait.
    pub(crate) fn quantum_over(&mut self) {
        let mut waiting = self.send_again();
        for (id, space) in &self.spaces {
            if let Some(current) = space.current
                && (space.schedule.is_none() && !space.ready.is_empty() || self.others_wait(*id))
            {
                waiting = true;
                if space.since.elapsed() >= QUANTUM {
                    // Its end, if it is gone, is reported separately.
                    let _ = ptrace::interrupt(current);
                }
            }
        }
        let interrupts = self.recorder.as_ref().and_then(Recorder::checkpoint_interval).is_some();
        let due: Vec<Tid> = self
            .spaces
            .iter()
            // Nothing of a varied schedule depends on time, and it stops often enough.
            .filter(|(_, space)| space.schedule.is_none())
            .filter(|(id, _)| interrupts && self.checkpoint_due(**id) || self.look_due(**id))
            .filter_map(|(_, space)| space.current)
            // One that waits in a call would be given a part of what it asked for.
            .filter(|current| is_running(*current))
            .collect();
        for current in due {
            let _ = ptrace::interrupt(current);
        }
        if !waiting {
            self.timer_running = false;
            self.idle_timer();
        }
    }

    /// Ends a target whose time is over.
    pub(crate) fn look_at_deadline(&mut self) {
        let over = self.options.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if over && self.report.stuck.is_none() {
            self.end_stuck(Stuck::TimedOut);
        }
    }

    /// Stopped by `PTRACE_INTERRUPT`, by a group stop that ended, or by mistake.
    pub(crate) fn preempted(&mut self, tid: Tid) -> Outcome<()> {
        let space = self.tasks[&tid].space;
        let must = std::mem::take(&mut self.space_of(tid).must_stop);
        let due = [self.checkpoint_due(space), self.border_due(space), self.look_due(space), must];
        let due = due.contains(&true);
        if ptrace::queued_signals(tid)?.iter().any(signals::is_synchronous) {
            // It has just faulted or trapped, which must be seen to where it happened.
            return Ok(ptrace::resume(tid, 0)?);
        }
        if self.space_of(tid).ready.is_empty() && !due && !self.others_wait(space) {
            return self.keep_turn(tid);
        }
        let registers = ptrace::registers(tid)?;
        if let Some(call) = self.waits_in_cache(tid, &registers) {
            return self.convert_to_call(tid, registers, call);
        }
        // Where the schedule is varied, only other processes can be waiting for it to stop.
        let varied = self.space_of(tid).schedule.is_some() && !self.others_wait(space);
        if (varied || self.space_of(tid).since.elapsed() < QUANTUM) && !due {
            return self.keep_turn(tid);
        }
        let Some(registers) = self.settle(tid)? else {
            return Ok(());
        };
        self.record_stop(tid, &registers, Cause::Preempted)?;
        self.task(tid).state = State::Ready(registers);
        if varied && !must {
            // It was only to be looked at.
            return self.turn(tid);
        }
        let space = self.space_of(tid);
        space.ready.push_back(tid);
        self.release(tid)
    }

    /// A stopped thread goes on, unless it was stopped for a signal that it was to have.
    fn keep_turn(&mut self, tid: Tid) -> Outcome<()> {
        if self.can_deliver(tid)? {
            return self.settle_and_deliver(tid);
        }
        Ok(ptrace::resume(tid, 0)?)
    }
}

/// Whether a thread executes or could.
fn is_running(tid: Tid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
    // The name in front of it may hold anything.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'))
}
