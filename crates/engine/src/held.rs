//! Signals that arrive when they cannot be delivered: in a call of the engine's own, say.
//!
//! Such a one is held until the thread goes on, and then delivered before anything else happens.
//! Meanwhile no other one is taken from the kernel: it knows best which of them comes next, and
//! which call of the application waits for it.

use crate::error::Halt;
use crate::ptrace::{self, Registers, Stop};
use crate::signals::{FAULTS, NEVER_BLOCKED, bit};
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{State, Tid};
use libc::siginfo_t;

/// The codes of a trap by `int3` and of a single step.
const SI_KERNEL: i32 = 0x80;
const TRAP_TRACE: i32 = 2;

impl Supervisor {
    /// Holds the signal with which a thread has stopped on its way for the engine. It goes on
    /// deaf, until it [hears again](Supervisor::hear).
    pub(crate) fn hold(&mut self, tid: Tid, info: siginfo_t) -> Outcome<()> {
        self.task(tid).hold_back(info);
        self.deafen(tid)
    }

    /// From now on only faults of its own reach the thread.
    pub(crate) fn deafen(&mut self, tid: Tid) -> Outcome<()> {
        if self.task(tid).deaf.is_none() {
            let mask = ptrace::signal_mask(tid)?;
            ptrace::set_signal_mask(tid, mask | !(NEVER_BLOCKED | FAULTS))?;
            self.task(tid).deaf = Some(mask);
        }
        Ok(())
    }

    /// Where a thread is back from its way for the engine.
    pub(crate) fn hear(&mut self, tid: Tid) -> Outcome<()> {
        match self.tasks.get_mut(&tid).and_then(|task| task.deaf.take()) {
            Some(mask) => Ok(ptrace::set_signal_mask(tid, mask)?),
            None => Ok(()),
        }
    }

    /// Whether a signal has arrived that can be delivered now.
    pub(crate) fn can_deliver(&mut self, tid: Tid) -> Outcome<bool> {
        // What reaches a process that is replayed is the engine's own business.
        if self.tasks[&tid].pending.is_empty() || self.replays() {
            return Ok(false);
        }
        let blocked = ptrace::signal_mask(tid)? | self.tasks[&tid].hidden_mask;
        Ok(self.tasks[&tid].pending.iter().any(|info| blocked & bit(info.si_signo) == 0))
    }

    /// Resumes a thread that executes in the cache.
    pub(crate) fn run_on(&mut self, tid: Tid) -> Outcome<()> {
        if self.can_deliver(tid)? {
            // It came while the way here was prepared, and nothing would tell of it again.
            ptrace::interrupt(tid)?;
        }
        Ok(ptrace::resume(tid, 0)?)
    }

    /// Brings a thread to an instruction boundary, and delivers there what has arrived.
    pub(crate) fn settle_and_deliver(&mut self, tid: Tid) -> Outcome<()> {
        let Some(registers) = self.settle(tid)? else {
            return Ok(());
        };
        self.task(tid).state = State::Ready(registers);
        if self.deliver_pending(tid)? { Ok(()) } else { self.enter(tid, registers) }
    }

    /// Delivers the first signal that is waiting and not blocked; false if there is
    /// none. The thread is ready, and its space's current one.
    pub(crate) fn deliver_pending(&mut self, tid: Tid) -> Outcome<bool> {
        if self.task(tid).pending.is_empty() {
            return Ok(false);
        }
        while let Some(index) = self.tasks[&tid].too_early() {
            let info = self.task(tid).pending.remove(index).expect("just found");
            self.send_again_later(tid, info);
        }
        let blocked = ptrace::signal_mask(tid)? | self.task(tid).hidden_mask;
        let task = self.task(tid);
        let index = task.pending.iter().position(|i| blocked & bit(i.si_signo) == 0);
        let Some(info) = index.and_then(|index| task.pending.remove(index)) else {
            return Ok(false);
        };
        let State::Ready(registers) = task.state else {
            return Ok(false);
        };
        self.force_signal_stop(tid)?;
        self.deliver(tid, registers, info)?;
        Ok(true)
    }

    /// Only from a stop for a signal can another one be injected.
    fn force_signal_stop(&mut self, tid: Tid) -> Outcome<()> {
        // SIGTRAP is also how ptrace announces that a handler was called.
        let genuine = |info: siginfo_t| {
            info.si_signo == libc::SIGTRAP && matches!(info.si_code, SI_KERNEL | TRAP_TRACE)
        };
        if ptrace::signal_info(tid).is_ok_and(genuine) {
            return Ok(());
        }
        // What else waits comes in its turn.
        self.deafen(tid)?;
        let base = ptrace::registers(tid)?;
        let trap = self.space_of(tid).glue.call() + 2;
        ptrace::set_registers(tid, &Registers { rip: trap, orig_rax: u64::MAX, ..base })?;
        loop {
            ptrace::resume(tid, 0)?;
            match self.wait_for(tid)? {
                Stop::Signal(libc::SIGTRAP) if ptrace::rip(tid)? == trap + 1 => {
                    return self.hear(tid);
                }
                Stop::Signal(_) => {
                    let info = ptrace::signal_info(tid).map_err(|_| Halt::Gone)?;
                    self.hold(tid, info)?;
                }
                _ => {}
            }
        }
    }
}
