//! Signals for `why`, which are meant for its program.
//!
//! A terminal, and `kill` of a whole job, send a signal to every process of a group:
//! the program then has its own copy. The supervisor, which is in the same group as
//! `why`, is the witness of that; what it has not got as well was sent to `why` alone,
//! and is passed on. Not passed on are stop signals: SIGSTOP reaches nobody but its
//! receiver, and the others wait until the program has stopped.

use crate::error::{EngineError, Result};
use crate::signals;
use crate::task::Tid;
use libc::{c_int, signalfd_siginfo};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Signals that are not taken from the kernel's hands: SIGCHLD is about `why`'s own
/// child, SIGALRM is the supervisor's clock, and a stop signal is to stay pending.
const NOT_TAKEN: [Signal; 5] =
    [Signal::SIGCHLD, Signal::SIGALRM, Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU];

const RECORD_BYTES: usize = size_of::<signalfd_siginfo>();

/// The signals that come to this process, all of which are blocked.
fn arriving() -> Result<SignalFd> {
    let mut taken = SigSet::all();
    for signal in NOT_TAKEN {
        taken.remove(signal);
    }
    SignalFd::with_flags(&taken, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(|error| EngineError::system("receiving signals")(error.into()))
}

/// `why`'s end.
pub struct Relay {
    arriving: SignalFd,
    witness: UnixStream,
    supervisor: Tid,
}

impl Relay {
    pub fn new(witness: UnixStream, supervisor: Tid) -> Result<Relay> {
        Ok(Relay { arriving: arriving()?, witness, supervisor })
    }

    /// Readable when a signal has arrived.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.arriving.as_fd()
    }

    pub fn pass_on(&mut self) {
        while let Ok(Some(signal)) = self.arriving.read_signal() {
            // The supervisor continues `why` together with the program.
            if signal.ssi_pid == self.supervisor as u32 {
                continue;
            }
            // SAFETY: the structure is plain data without padding of its own.
            let bytes: [u8; RECORD_BYTES] = unsafe { std::mem::transmute(signal) };
            // If the witness is gone, so is the program.
            if self.witness.write_all(&bytes).is_ok() {
                self.knock();
            }
        }
    }

    /// Makes the supervisor look for what was sent. It may be about something else, or
    /// just going to wait; so it is told until it answers.
    fn knock(&mut self) {
        const PATIENCE: u8 = 10;
        loop {
            // SAFETY: plain system call; the supervisor is our child and not reaped yet.
            unsafe { libc::kill(self.supervisor, libc::SIGALRM) };
            let mut answer = [PollFd::new(self.witness.as_fd(), PollFlags::POLLIN)];
            if poll(&mut answer, PollTimeout::from(PATIENCE)) == Ok(1) {
                let _ = self.witness.read(&mut [0]);
                return;
            }
        }
    }
}

/// The supervisor's end: passes on what it has not received itself.
pub struct Witness {
    relay: UnixStream,
    arriving: SignalFd,
    received: u64,
    program: Tid,
}

impl Witness {
    pub fn new(relay: UnixStream, program: Tid) -> Result<Witness> {
        relay.set_nonblocking(true).map_err(EngineError::system("preparing a socket"))?;
        Ok(Witness { relay, arriving: arriving()?, received: 0, program })
    }

    /// Sees to what `why` has sent, if anything.
    pub fn attend(&mut self) {
        let mut bytes = [0; RECORD_BYTES];
        while self.relay.read_exact(&mut bytes).is_ok() {
            // SAFETY: `why` sent the bytes of such a structure, all at once.
            let signal: signalfd_siginfo = unsafe { std::mem::transmute(bytes) };
            // The kernel signals the younger processes of a group first, so the
            // supervisor's copy is here if there is one.
            while let Ok(Some(own)) = self.arriving.read_signal() {
                self.received |= signals::bit(own.ssi_signo as c_int);
            }
            let bit = signals::bit(signal.ssi_signo as c_int);
            if self.received & bit == 0 {
                send(self.program, &signal);
            }
            self.received &= !bit;
            let _ = self.relay.write_all(&[1]);
        }
    }
}

/// Sends the signal with its sender's identity and value.
fn send(program: Tid, signal: &signalfd_siginfo) {
    /// The kernel's siginfo of a signal with a sender.
    #[repr(C)]
    struct Info {
        signal: c_int,
        error: c_int,
        code: c_int,
        padding: c_int,
        pid: u32,
        uid: u32,
        value: u64,
        rest: [u8; 96],
    }
    let info = Info {
        signal: signal.ssi_signo as c_int,
        error: 0,
        // Nobody may pretend to be `kill` in another's name.
        code: if signal.ssi_code < 0 { signal.ssi_code } else { libc::SI_QUEUE },
        padding: 0,
        pid: signal.ssi_pid,
        uid: signal.ssi_uid,
        value: signal.ssi_ptr,
        rest: [0; 96],
    };
    const _: () = assert!(size_of::<Info>() == size_of::<libc::siginfo_t>());
    // SAFETY: `info` is a whole siginfo and outlives the call.
    unsafe { libc::syscall(libc::SYS_rt_sigqueueinfo, program, info.signal, &raw const info) };
}
