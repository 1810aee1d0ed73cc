//! A thread of the target.

use crate::memory::Address;
use crate::ptrace::Registers;
use crate::space::SpaceId;
use libc::siginfo_t;
use std::collections::VecDeque;

pub type Tid = i32;

pub struct Task {
    pub tid: Tid,
    /// The process it belongs to.
    pub pid: Tid,
    pub space: SpaceId,
    pub actions: crate::signals::ActionsRef,
    pub state: State,
    /// Signals that arrived and wait for a moment at which they can be delivered.
    pub pending: VecDeque<siginfo_t>,
    /// Of the signals that the engine itself needs, those the application believes
    /// to be blocked.
    pub hidden_mask: u64,
    /// The GS base the application believes it has, while the thread does not run.
    pub app_gs: u64,
    /// The call, by the address behind it, that has failed and is made once more.
    pub faulted_call: Option<Address>,
    /// What its count is wrong by, found while another thread was executing.
    pub recount: i64,
    /// No page is to be watched when it goes on.
    pub unwatch_at_turn: bool,
    /// The application had set the trap flag when last seen.
    pub steps_itself: bool,
    /// The processors the application asked for.
    pub affinity: Option<Vec<u8>>,
}

/// Signals from this number on are queued, each with its value.
const FIRST_QUEUED: i32 = 32;

impl Task {
    /// Keeps a signal for later. Of a standard signal there is never more than one.
    pub fn hold_back(&mut self, info: siginfo_t) {
        let merges = info.si_signo < FIRST_QUEUED
            && !crate::signals::is_synchronous(&info)
            && self.pending.iter().any(|held| held.si_signo == info.si_signo);
        if !merges {
            self.pending.push_back(info);
        }
    }
}

pub enum State {
    /// Created, not seen stopped yet.
    New(Registers),
    /// Executes in the cache; it is its space's current thread.
    Running,
    /// Stopped, with the application's registers.
    Ready(Registers),
    /// In a system call that the supervisor began; others may run.
    InCall(Call),
    /// Sent a stop signal, or stopped by one; the application's registers.
    Stopping(Registers),
    /// Sent a fatal signal.
    Dying,
}

/// A system call in progress at the gadget.
#[derive(Clone)]
pub struct Call {
    pub number: u32,
    /// The application's registers at its `syscall`, with rip behind it.
    pub registers: Registers,
}

impl Call {
    pub fn next(&self) -> Address {
        self.registers.rip
    }

    /// The application's registers once the call has returned `result`.
    pub fn returned(&self, result: u64) -> Registers {
        returned(&self.registers, result)
    }
}

/// What the hardware leaves behind after `syscall`: rcx and r11 are overwritten.
pub fn returned(at_call: &Registers, result: u64) -> Registers {
    Registers { rax: result, rcx: at_call.rip, r11: at_call.eflags, orig_rax: u64::MAX, ..*at_call }
}
