//! Sees that no thread of the target can ever go on.
//!
//! That is certain when all wait for each other in futexes without a time limit, or for
//! child processes that do: nobody is left to wake them. Memory that is shared with others
//! outside, and timers that send signals, leave it open.

use crate::chaos::is_asleep;
use crate::maps;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{Call, State, Task};
use why_record::manifest::Stuck;

impl Call {
    /// Whether it may wait for other threads or processes of the target, for ever.
    pub fn can_deadlock(&self) -> bool {
        self.waits_for_thread() || self.waits_for_child()
    }

    fn waits_for_thread(&self) -> bool {
        /// Without the flags for private memory and for the clock.
        const OPERATION: u64 = 0x7f;
        const WAITING: [i32; 4] =
            [libc::FUTEX_WAIT, libc::FUTEX_WAIT_BITSET, libc::FUTEX_LOCK_PI, libc::FUTEX_LOCK_PI2];
        let operation = (self.registers.rsi & OPERATION) as i32;
        let time_limit = self.registers.r10;
        i64::from(self.number) == libc::SYS_futex && WAITING.contains(&operation) && time_limit == 0
    }

    fn waits_for_child(&self) -> bool {
        let options = match i64::from(self.number) {
            libc::SYS_wait4 => self.registers.rdx,
            libc::SYS_waitid => self.registers.r10,
            _ => return false,
        };
        options as i32 & libc::WNOHANG == 0
    }
}

impl Supervisor {
    /// Ends the target if none of its threads can ever go on.
    pub(crate) fn look_for_deadlock(&mut self) -> Outcome<()> {
        let mut waiting = 0;
        if self.alarms || !self.deferred.is_empty() || self.report.stuck.is_some() {
            return Ok(());
        }
        for task in self.tasks.values() {
            let State::InCall(call) = &task.state else {
                return Ok(());
            };
            waiting += u64::from(call.waits_for_thread());
            let for_ever = call.waits_for_child()
                || call.waits_for_thread() && is_own(task, call.registers.rdi);
            if !for_ever || !is_asleep(task.tid) {
                return Ok(());
            }
        }
        if waiting > 0 {
            self.end_stuck(Stuck::Deadlock { threads: waiting });
        }
        Ok(())
    }

    /// The target will not end of itself.
    pub(crate) fn end_stuck(&mut self, how: Stuck) {
        self.report.stuck = Some(how);
        for task in self.tasks.values() {
            // SAFETY: plain system call; these are our own tracees.
            unsafe { libc::kill(task.pid, libc::SIGKILL) };
        }
    }
}

/// Whether nobody but the target can change this memory.
fn is_own(task: &Task, at: u64) -> bool {
    let maps = maps::read(task.tid).unwrap_or_default();
    maps.iter().any(|mapping| mapping.range.contains(&at) && !mapping.shared)
}
