//! What the application wants done with signals. Pure bookkeeping: delivery is the
//! supervisor's.

use libc::{c_int, siginfo_t};
use std::cell::RefCell;
use std::rc::Rc;

pub type ActionsRef = Rc<RefCell<Actions>>;

/// The handlers of a process; threads share them.
#[derive(Clone)]
pub struct Actions([Action; 65]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    pub handler: u64,
    pub flags: u64,
    pub restorer: u64,
    pub mask: u64,
}

impl Action {
    /// As the kernel lays it out for rt_sigaction.
    pub const BYTES: usize = 32;

    pub const IGNORE: Action = Action { handler: libc::SIG_IGN as u64, ..DEFAULT };

    pub fn from_bytes(bytes: &[u8; Action::BYTES]) -> Action {
        let word =
            |i: usize| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().expect("eight"));
        Action { handler: word(0), flags: word(1), restorer: word(2), mask: word(3) }
    }

    pub fn to_bytes(self) -> [u8; Action::BYTES] {
        let mut bytes = [0; Action::BYTES];
        let words = [self.handler, self.flags, self.restorer, self.mask];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    Handler,
    Ignore,
    Stop,
    Terminate,
}

const DEFAULT: Action = Action { handler: libc::SIG_DFL as u64, flags: 0, restorer: 0, mask: 0 };

impl Default for Actions {
    fn default() -> Self {
        Actions([DEFAULT; 65])
    }
}

impl Actions {
    pub fn get(&self, signal: c_int) -> Action {
        self.0[signal as usize]
    }

    pub fn set(&mut self, signal: c_int, action: Action) {
        self.0[signal as usize] = action;
    }

    pub fn reset(&mut self, signal: c_int) {
        self.set(signal, DEFAULT);
    }

    /// What exec does: handlers become the default, ignored signals stay ignored.
    pub fn after_exec(&self) -> Actions {
        let mut actions = self.clone();
        for action in &mut actions.0 {
            let ignored = action.handler == libc::SIG_IGN as u64;
            *action = if ignored { Action::IGNORE } else { DEFAULT };
        }
        actions
    }

    pub fn disposition(&self, signal: c_int) -> Disposition {
        match self.get(signal).handler {
            h if h == libc::SIG_IGN as u64 => Disposition::Ignore,
            h if h == libc::SIG_DFL as u64 => default_disposition(signal),
            _ => Disposition::Handler,
        }
    }
}

fn default_disposition(signal: c_int) -> Disposition {
    match signal {
        libc::SIGCHLD | libc::SIGURG | libc::SIGWINCH | libc::SIGCONT => Disposition::Ignore,
        libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU => Disposition::Stop,
        _ => Disposition::Terminate,
    }
}

/// The bit of a signal in a mask.
pub const fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

/// The engine's own stops are these two, so the target must never really block them.
pub const NEVER_BLOCKED: u64 = bit(libc::SIGTRAP) | bit(libc::SIGSEGV);

/// What else instructions raise: where these are blocked, the kernel forgets their handlers.
pub const FAULTS: u64 =
    bit(libc::SIGBUS) | bit(libc::SIGFPE) | bit(libc::SIGILL) | bit(libc::SIGSYS);

/// Whether the signal was raised by the instruction at hand and not sent by someone.
pub fn is_synchronous(info: &siginfo_t) -> bool {
    matches!(
        info.si_signo,
        libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP
    ) && info.si_code > 0
}

/// Whether the supervisor itself has sent it.
pub fn is_our_own(info: &siginfo_t) -> bool {
    // SAFETY: what `tgkill` sends has a sender.
    info.si_code == libc::SI_TKILL && unsafe { info.si_pid() } as u32 == std::process::id()
}

/// Whether a timer has expired, rather than that somebody sent the signal.
pub fn is_from_timer(info: &siginfo_t) -> bool {
    const BY_KERNEL: c_int = 0x80;
    let of_interval = matches!(info.si_signo, libc::SIGALRM | libc::SIGVTALRM | libc::SIGPROF);
    info.si_code == libc::SI_TIMER || of_interval && info.si_code == BY_KERNEL
}

/// Signal names for messages and reports.
pub fn name(signal: c_int) -> String {
    match nix::sys::signal::Signal::try_from(signal) {
        Ok(signal) => signal.as_str().to_owned(),
        Err(_) => format!("SIG{signal}"),
    }
}
