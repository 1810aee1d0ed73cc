//! Futexes that are words the kernel itself writes to: locks that it hands on to whoever waits
//! with the highest priority. What it writes is told before anybody else runs who might look.

use crate::chaos::is_asleep;
use crate::ptrace::Registers;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{State, Task, Tid};
use std::time::Duration;

const LOCK: [i32; 2] = [libc::FUTEX_LOCK_PI, libc::FUTEX_LOCK_PI2];

/// Those that never wait.
const AT_ONCE: [i32; 4] = [
    libc::FUTEX_WAKE_OP,
    libc::FUTEX_UNLOCK_PI,
    libc::FUTEX_TRYLOCK_PI,
    libc::FUTEX_CMP_REQUEUE_PI,
];

/// Long enough to get into line.
const MOMENT: Duration = Duration::from_micros(5);

fn operation(registers: &Registers) -> i32 {
    registers.rsi as i32 & libc::FUTEX_CMD_MASK
}

/// Whether a call of `futex` is over at once and may have written.
pub(crate) fn changes_lock(registers: &Registers) -> bool {
    AT_ONCE.contains(&operation(registers))
}

/// Whether a call of `futex` waits for a lock, and says so in its word.
pub(crate) fn takes_lock(registers: &Registers) -> bool {
    LOCK.contains(&operation(registers))
}

impl Supervisor {
    /// Others run only when the thread has the lock or waits in line for it.
    pub(crate) fn take_lock(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        self.hold_into(tid, registers)?;
        let in_call = |task: &Task| matches!(task.state, State::InCall(_));
        while self.tasks.get(&tid).is_some_and(in_call) {
            if let Some(stop) = self.has_reported(tid)? {
                self.report.stops += 1;
                self.handle(tid, stop)?;
            } else if is_asleep(tid) {
                self.record_memory(tid, registers.rdi..registers.rdi + 4)?;
                return self.release(tid);
            } else {
                std::thread::sleep(MOMENT);
            }
        }
        Ok(())
    }
}
