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
    /// The signal mask, while no more are to arrive.
    pub deaf: Option<u64>,
    /// Of the signals that the engine itself needs, those the application believes
    /// to be blocked.
    pub hidden_mask: u64,
    /// The GS base the application believes it has, while the thread does not run.
    pub app_gs: u64,
    /// The call, by the address behind it, that has failed and is made once more.
    pub faulted_call: Option<Address>,
    /// What its count is wrong by, found while another thread was executing.
    pub recount: i64,
    /// The call that the thread was recorded to make; what it wrote is still to be
    /// recorded.
    pub recorded_call: Option<Registers>,
    /// The vector registers with which it began the call that it is in, while recording.
    pub vectors_at_call: Option<Vec<u8>>,
    /// The frame of a handler, likewise, or what else was written to memory.
    pub frame: Option<std::ops::Range<Address>>,
    /// What the kernel will have written when the thread has ended.
    pub words_at_end: Vec<Address>,
    /// The word that the kernel clears when the thread ends.
    pub cleared_at_end: Address,
    /// The list of locks that others are told of when the thread ends, of recorded ones.
    pub robust_list: Address,
    /// A string instruction is being executed in part: its address, and how often it has
    /// still to repeat itself.
    pub in_part: Option<(Address, u64)>,
    /// The count of instructions at which it is to stop.
    pub stops_at: Option<u64>,
    /// The count when it was last looked at on the way there.
    pub looked_at: Option<u64>,
    /// The watched address at which it has been seen, and its stack pointer there, until it
    /// has executed that instruction.
    pub passing: Option<(Address, Address)>,
    /// Where its last handler returned to, and how many handlers of timers have been called
    /// in a row without anything executed between them.
    pub returned_to: Address,
    pub only_handled: u32,
    /// Signals of timers that came too early after that, and whether they have been sent
    /// again.
    pub early: Vec<(siginfo_t, bool)>,
    /// No page is to be watched when it goes on.
    pub unwatch_at_turn: bool,
    /// The application had set the trap flag when last seen.
    pub steps_itself: bool,
    /// The processors the application asked for.
    pub affinity: Option<Vec<u8>>,
}

/// Signals from this number on are queued, each with its value.
const FIRST_QUEUED: i32 = 32;

/// A timer may strike more often than its handler can be called here. After so many in a
/// row the next has to wait, or the thread would never do anything else.
const MOST_IN_A_ROW: u32 = 10;

impl Task {
    /// Keeps a signal for later. Of a standard signal there is never more than one.
    pub fn hold_back(&mut self, mut info: siginfo_t) {
        if crate::signals::is_our_own(&info) {
            let Some(said) = self.said_before(info) else {
                return;
            };
            info = said;
        }
        let merges = info.si_signo < FIRST_QUEUED
            && !crate::signals::is_synchronous(&info)
            && self.pending.iter().any(|held| held.si_signo == info.si_signo);
        if !merges {
            self.pending.push_back(info);
        }
    }

    /// A signal is about to be delivered to the thread at this address.
    pub fn note_delivery(&mut self, info: &siginfo_t, at: Address) {
        let in_a_row = crate::signals::is_from_timer(info) && at == self.returned_to;
        self.only_handled = if in_a_row { self.only_handled + 1 } else { 0 };
    }

    /// Whether the signal has to wait, although the application does not block it.
    pub fn is_too_early(&self, info: &siginfo_t) -> bool {
        crate::signals::is_from_timer(info) && self.only_handled >= MOST_IN_A_ROW
    }

    /// The place of the first signal that has arrived and has to wait.
    pub fn too_early(&self) -> Option<usize> {
        self.pending.iter().position(|info| self.is_too_early(info))
    }

    /// A signal has come: what it says, if it has come before. None if it only was to remind
    /// of one that has come by itself meanwhile.
    pub fn said_before(&mut self, info: siginfo_t) -> Option<siginfo_t> {
        let known = self.early.iter().position(|(early, _)| early.si_signo == info.si_signo);
        match known {
            Some(index) => Some(self.early.remove(index).0),
            None => (!crate::signals::is_our_own(&info)).then_some(info),
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
    /// A copy of a replayed process: it stays stopped until it is forked.
    Kept,
}

impl State {
    /// Whether the thread will execute anything.
    pub fn is_of_use(&self) -> bool {
        !matches!(self, State::Dying | State::Kept)
    }
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
