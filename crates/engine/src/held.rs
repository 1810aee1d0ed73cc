//! Signals that arrived when they could not be delivered: in a call of the engine's own, say.

use crate::error::Halt;
use crate::ptrace::{self, Registers, Stop};
use crate::signals::bit;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{State, Tid};

/// The codes of a trap by `int3` and of a single step.
const SI_KERNEL: i32 = 0x80;
const TRAP_TRACE: i32 = 2;

impl Supervisor {
    /// Whether a signal has arrived that can be delivered now.
    pub(crate) fn can_deliver(&mut self, tid: Tid) -> Outcome<bool> {
        // What reaches a process that is replayed is the engine's own business.
        if self.tasks[&tid].pending.is_empty() || self.replays() {
            return Ok(false);
        }
        let blocked = ptrace::signal_mask(tid)? | self.tasks[&tid].hidden_mask;
        Ok(self.tasks[&tid].pending.iter().any(|info| blocked & bit(info.si_signo) == 0))
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
        let blocked = ptrace::signal_mask(tid)?;
        self.give_to_kernel(tid, blocked)?;
        let blocked = blocked | self.task(tid).hidden_mask;
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

    /// What the application blocks waits in the kernel: a call that replaces the mask as long
    /// as it lasts, or that waits for signals itself, asks there. The thread's registers must be
    /// set again afterwards.
    fn give_to_kernel(&mut self, tid: Tid, blocked: u64) -> Outcome<()> {
        let is_blocked = |signal: i32| blocked & bit(signal) != 0;
        while let Some(index) =
            self.tasks[&tid].pending.iter().position(|info| is_blocked(info.si_signo))
        {
            let info = self.task(tid).pending.remove(index).expect("just found");
            self.force_signal_stop(tid)?;
            ptrace::set_signal_info(tid, &info)?;
            // Injected while it is blocked, it is queued.
            self.trap_with(tid, info.si_signo)?;
        }
        Ok(())
    }

    /// Only from a stop for a signal can another one be injected.
    fn force_signal_stop(&mut self, tid: Tid) -> Outcome<()> {
        // SIGTRAP is also how ptrace announces that a handler was called.
        let genuine = |info: libc::siginfo_t| {
            info.si_signo == libc::SIGTRAP && matches!(info.si_code, SI_KERNEL | TRAP_TRACE)
        };
        if ptrace::signal_info(tid).is_ok_and(genuine) {
            return Ok(());
        }
        self.trap_with(tid, 0)
    }

    /// Resumes the thread with a signal, up to a trap.
    fn trap_with(&mut self, tid: Tid, mut signal: i32) -> Outcome<()> {
        let base = ptrace::registers(tid)?;
        let trap = self.space_of(tid).glue.call() + 2;
        ptrace::set_registers(tid, &Registers { rip: trap, orig_rax: u64::MAX, ..base })?;
        loop {
            ptrace::resume(tid, std::mem::take(&mut signal))?;
            match self.wait_for(tid)? {
                Stop::Signal(libc::SIGTRAP) if ptrace::rip(tid)? == trap + 1 => return Ok(()),
                Stop::Signal(_) => {
                    let info = ptrace::signal_info(tid).map_err(|_| Halt::Gone)?;
                    self.task(tid).hold_back(info);
                }
                _ => {}
            }
        }
    }
}
