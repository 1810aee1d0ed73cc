//! What `why` itself was started with, so that the program starts with the same.
//!
//! Before `main`, Rust's runtime ignores SIGPIPE and opens the standard streams that
//! are closed; so this has to look even earlier.

use crate::error::{EngineError, Result};
use crate::signals;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static IGNORED: AtomicU64 = AtomicU64::new(0);
static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

#[used]
// SAFETY: the section is a list of functions, which the C library calls before `main`.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = look;

extern "C" fn look() {
    for signal in 1..=64 {
        // SAFETY: plain system call; an all-zero sigaction is a valid place for an answer.
        let ignored = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut action);
            action.sa_sigaction == libc::SIG_IGN
        };
        if ignored {
            IGNORED.fetch_or(signals::bit(signal), Ordering::Relaxed);
        }
    }
    for (stream, closed) in (0..).zip(&CLOSED) {
        // SAFETY: plain system call.
        closed.store(unsafe { libc::fcntl(stream, libc::F_GETFD) } == -1, Ordering::Relaxed);
    }
}

/// Blocks all signals, and gives back which were blocked before.
pub fn block_signals() -> Result<SigSet> {
    let mut before = SigSet::empty();
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))
        .map_err(|error| EngineError::system("blocking signals")(error.into()))?;
    Ok(before)
}

/// Signals that `why` was told to ignore, as by `nohup`.
pub fn ignored() -> u64 {
    IGNORED.load(Ordering::Relaxed)
}

/// In the process that is about to become the program.
pub fn restore(mask: &SigSet) {
    if ignored() & signals::bit(libc::SIGPIPE) == 0 {
        // SAFETY: the default action runs no code here.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    }
    for (stream, closed) in (0..).zip(&CLOSED) {
        if closed.load(Ordering::Relaxed) {
            // SAFETY: what is open there is the runtime's, for want of anything else.
            unsafe { libc::close(stream) };
        }
    }
    let _ = mask.thread_set_mask();
}

/// Lets go of the program's descriptors, of the streams from `0` up to `streams`: a
/// pipe must close when the program closes it.
pub fn release_descriptors(streams: RawFd) {
    if let Ok(null) = fs::File::options().read(true).write(true).open("/dev/null") {
        for stream in 0..streams {
            // SAFETY: both descriptors are open, and nothing here uses the stream.
            unsafe { libc::dup2(null.as_raw_fd(), stream) };
        }
    }
    let Ok(open) = fs::read_dir("/proc/self/fd") else {
        return;
    };
    let open = open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    for descriptor in open.filter(|&descriptor: &RawFd| descriptor > libc::STDERR_FILENO) {
        if is_inherited(descriptor) {
            // SAFETY: it is nobody's here.
            unsafe { libc::close(descriptor) };
        }
    }
}

/// What came over an exec is not closed by the next one; all of our own is.
fn is_inherited(descriptor: RawFd) -> bool {
    // SAFETY: it is borrowed only for the question.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    fcntl(borrowed, FcntlArg::F_GETFD)
        .is_ok_and(|flags| !FdFlag::from_bits_retain(flags).contains(FdFlag::FD_CLOEXEC))
}
