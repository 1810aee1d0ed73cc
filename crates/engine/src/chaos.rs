//! Recording with a varied schedule: carries out what a [`Schedule`] decides.
//!
//! A thread runs for an exact number of instructions, and whoever runs next is chosen only
//! when it is known of every thread whether it can run. So nothing depends on time, and the
//! same seed gives the same run to a program that does not ask for the time itself.
//!
//! [`Schedule`]: crate::schedule::Schedule

use crate::error::Halt;
use crate::ptrace::{self, Registers, Stop};
use crate::space::SpaceId;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{State, Tid};
use std::time::{Duration, Instant};
use why_record::event::Cause;

/// How long a call may take before the others go on without it. What waits for another
/// thread is not meant: that is seen.
const PATIENCE: Duration = Duration::from_millis(200);

/// Long enough for a call that does not wait to be made.
const MOMENT: Duration = Duration::from_micros(5);

impl Supervisor {
    /// A thread can go on: it keeps its turn, unless it has just created another one, or waits
    /// for the next decision.
    pub(crate) fn ready_in_chaos(&mut self, tid: Tid) -> Outcome<()> {
        let id = self.tasks[&tid].space;
        let space = self.space_of(tid);
        let schedule = space.schedule.as_mut().expect("a varied schedule");
        if space.current == Some(tid) {
            space.stirred = true;
            if !schedule.someone_begins() {
                return self.turn(tid);
            }
            schedule.calls(tid, false);
        }
        space.ready.push_back(tid);
        if space.current == Some(tid) { self.release(tid) } else { self.choose(id) }
    }

    /// Decides which thread of a space has its turn, if nobody has.
    pub(crate) fn choose(&mut self, id: SpaceId) -> Outcome<()> {
        let Some(space) = self.spaces.get_mut(&id) else {
            return Ok(());
        };
        if space.current.is_some() || space.choosing {
            return Ok(());
        }
        space.choosing = true;
        let seen = if std::mem::take(&mut space.stirred) { self.see_calls(id) } else { Ok(()) };
        let Some(space) = self.spaces.get_mut(&id) else {
            return seen;
        };
        space.choosing = false;
        seen?;
        if space.current.is_some() {
            // A signal's handler is entered at once.
            return Ok(());
        }
        let alone = space.ready.len() == 1;
        let executed = space.count();
        let schedule = space.schedule.as_mut().expect("a varied schedule");
        let Some(next) = schedule.next(space.ready.iter().copied()) else {
            return self.look_for_deadlock();
        };
        let stops_at = match space.users {
            1 => None,
            _ => Some(executed + schedule.stretch(next, alone, executed)),
        };
        space.ready.retain(|&ready| ready != next);
        if stops_at.is_none() {
            space.stop_nowhere();
        }
        let task = self.task(next);
        task.stops_at = stops_at;
        task.looked_at = None;
        self.turn(next)
    }

    /// The current thread goes on, up to where its time is over.
    pub(crate) fn run_stretch(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        let count = self.space_of(tid).count();
        match self.task(tid).stops_at {
            None => self.enter(tid, registers),
            Some(at) if count < at => {
                self.record_resume(tid, &registers)?;
                self.approach(tid, registers, count, at)
            }
            Some(_) => self.stretch_over(tid, registers),
        }
    }

    /// The current thread has executed what it was given: another one may have its turn.
    fn stretch_over(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        self.record_stop(tid, &registers, Cause::Preempted)?;
        self.task(tid).state = State::Ready(registers);
        let space = self.space_of(tid);
        space.schedule.as_mut().expect("a varied schedule").preempted(tid);
        space.ready.push_back(tid);
        self.release(tid)
    }

    /// The current thread makes a call while others may run.
    pub(crate) fn calls_in_chaos(&mut self, tid: Tid) {
        let State::InCall(call) = &self.tasks[&tid].state else {
            return;
        };
        let number = i64::from(call.number);
        self.alarms |=
            [libc::SYS_alarm, libc::SYS_setitimer, libc::SYS_timer_create].contains(&number);
        let space = self.space_of(tid);
        space.stirred = true;
        if let Some(schedule) = &mut space.schedule {
            schedule.calls(tid, number == libc::SYS_sched_yield);
        }
    }

    /// Waits until every thread of a space that is in a call has come back, or waits there.
    fn see_calls(&mut self, id: SpaceId) -> Outcome<()> {
        let schedule = self.spaces[&id].schedule.as_ref().expect("a varied schedule");
        let threads: Vec<Tid> = schedule.threads().collect();
        for tid in threads {
            let waits = self.see_call(id, tid)?;
            let Some(space) = self.spaces.get_mut(&id) else {
                return Ok(());
            };
            if waits && let Some(schedule) = &mut space.schedule {
                schedule.waits(tid);
            }
        }
        Ok(())
    }

    /// Whether the thread waits in its call.
    fn see_call(&mut self, id: SpaceId, tid: Tid) -> Outcome<bool> {
        let began = Instant::now();
        loop {
            let Some(task) = self.tasks.get(&tid).filter(|task| task.space == id) else {
                return Ok(false);
            };
            match &task.state {
                // Of a single thread only its waiting for others matters.
                State::InCall(call) if self.spaces[&id].users == 1 && !call.can_deadlock() => {
                    return Ok(false);
                }
                State::InCall(_) | State::New(_) => {}
                _ => return Ok(false),
            }
            if let Some(stop) = self.has_reported(tid)? {
                self.report.stops += 1;
                match self.handle(tid, stop) {
                    Ok(()) | Err(Halt::Gone) => continue,
                    error => error?,
                }
            }
            if is_asleep(tid) {
                return Ok(true);
            }
            if began.elapsed() > PATIENCE {
                return Ok(false);
            }
            // To yield would let any other process of the machine go first for a whole slice.
            std::thread::sleep(MOMENT);
        }
    }

    /// What is known to have happened to a thread, without waiting for it.
    pub(crate) fn has_reported(&mut self, tid: Tid) -> Outcome<Option<Stop>> {
        if let Some(index) = self.deferred.iter().position(|(other, _)| *other == tid) {
            return Ok(self.deferred.remove(index).map(|(_, stop)| stop));
        }
        Ok(ptrace::has_stopped(tid)?)
    }
}

/// Whether a thread sleeps in the kernel until something happens.
pub(crate) fn is_asleep(tid: Tid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
    // The state is behind the name, which may hold anything.
    let state = status.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_none_or(|state| matches!(state, 'S' | 'Z' | 'X' | 'T'))
}
