//! With which units a process is replayed: a timer of its own CPU time tells when it comes near
//! a place that only the count tells. (When it is traced, all units look.)

use super::diverged;
use crate::error::Halt;
use crate::gait::{FASTEST, WORTH_IT};
use crate::ptrace;
use crate::space::SCRATCH;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use std::time::Duration;
use why_translate::Tool;

/// What the timer sends. No other signal reaches a process that is replayed: those that were
/// recorded are told as what they did.
pub(crate) const TIMER_SIGNAL: i32 = libc::SIGPROF;

/// How many ticks late the timer may be: the kernel adds one to what is asked for, looks with
/// each, and one may be missed.
const LATE: u64 = 3;

impl Supervisor {
    /// A thread goes on to where it stops by itself.
    pub(super) fn run_unlooked(&mut self, tid: Tid) -> Outcome<()> {
        if self.options.tool.traces() {
            return Ok(());
        }
        let count = self.space_of(tid).count();
        let replayer = self.replayer(tid);
        let stop = replayer.next.as_ref().map_or(count, |stop| stop.at);
        if stop.wrapping_sub(replayer.looked) >= WORTH_IT {
            self.use_tool(tid, Tool::Count)?;
        }
        Ok(())
    }

    /// A thread goes on to where only the count, which is this now, tells that it stops, after so
    /// many instructions.
    pub(super) fn choose_gait(&mut self, tid: Tid, count: u64, left: u64) -> Outcome<()> {
        if left > u64::MAX / 2 {
            let how = "the process ran past the place where it was to stop".to_owned();
            return Err(diverged(self.replayer(tid).events, how));
        }
        if self.options.tool.traces() {
            return Ok(());
        }
        let tick = FASTEST * tick().as_micros() as u64;
        let near = LATE * tick;
        let worth_it = if self.goes_unlooked(tid) { near + tick } else { near + WORTH_IT };
        if left >= worth_it {
            self.use_tool(tid, Tool::Count)?;
            return self.set_timer(tid, Duration::from_micros((left - near) / FASTEST));
        }
        if self.goes_unlooked(tid) {
            self.set_timer(tid, Duration::ZERO)?;
            self.use_tool(tid, Tool::Exact)?;
        }
        self.replayer(tid).looked = count.wrapping_add(left);
        Ok(())
    }

    /// Lets the process be stopped after so much CPU time, and again soon if that was at a
    /// moment when nobody could see to it; zero: not any more.
    fn set_timer(&mut self, tid: Tid, after: Duration) -> Outcome<()> {
        let again = if after.is_zero() { Duration::ZERO } else { tick() };
        let mut bytes = Vec::with_capacity(32);
        for time in [again, after] {
            bytes.extend(time.as_secs().to_le_bytes());
            bytes.extend(u64::from(time.subsec_micros()).to_le_bytes());
        }
        ptrace::set_signal_mask(tid, 0)?;
        let space = self.space_of(tid);
        let at = space.context + SCRATCH;
        space.memory.write(at, &bytes).map_err(|_| Halt::Gone)?;
        let arguments = [libc::ITIMER_PROF as u64, at, 0, 0, 0, 0];
        self.must(tid, "setting a timer", libc::SYS_setitimer, arguments).map(drop)
    }

    /// The timer has stopped a thread anywhere.
    pub(crate) fn time_is_up(&mut self, tid: Tid) -> Outcome<()> {
        let Some(at) = self.task(tid).stops_at.filter(|_| self.goes_unlooked(tid)) else {
            // It was no longer meant.
            return Ok(ptrace::resume(tid, 0)?);
        };
        match self.settle(tid)? {
            Some(registers) => self.run_up_to(tid, registers, at),
            None => Ok(()),
        }
    }
}

/// The time between two ticks of the kernel's clock.
fn tick() -> Duration {
    /// Kernels with longer ones are not made.
    const LONGEST: Duration = Duration::from_millis(10);
    let clock = nix::time::ClockId::CLOCK_MONOTONIC_COARSE;
    nix::time::clock_getres(clock).map_or(LONGEST, Duration::from)
}
