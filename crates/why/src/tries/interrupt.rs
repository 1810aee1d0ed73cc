//! Ctrl-C ends the try that is being made, and with it all of them.

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::Pid;
use std::sync::atomic::{AtomicI32, Ordering};
use why_engine::EngineError;

static CAME: AtomicI32 = AtomicI32::new(0);
/// The process that makes the try.
static TRY: AtomicI32 = AtomicI32::new(0);

pub fn catch() -> Result<(), EngineError> {
    let action = SigAction::new(SigHandler::Handler(note), SaFlags::SA_RESTART, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handler makes one system call and uses atomics.
        let before = unsafe { sigaction(signal, &action) }
            .map_err(|error| EngineError::system("handling signals")(error.into()))?;
        if matches!(before.handler(), SigHandler::SigIgn) {
            // SAFETY: as it was, as with `nohup`.
            let _ = unsafe { sigaction(signal, &before) };
        }
    }
    Ok(())
}

/// The signal that came, if one did.
pub fn came() -> Option<i32> {
    Some(CAME.load(Ordering::SeqCst)).filter(|&signal| signal != 0)
}

/// From now on a signal ends this process, too.
pub fn ends(child: Pid) {
    TRY.store(child.as_raw(), Ordering::SeqCst);
    if came().is_some() {
        end_try();
    }
}

pub fn ends_nobody() {
    TRY.store(0, Ordering::SeqCst);
}

extern "C" fn note(signal: libc::c_int) {
    CAME.store(signal, Ordering::SeqCst);
    end_try();
}

fn end_try() {
    let child = TRY.load(Ordering::SeqCst);
    if child > 0 {
        // Its supervisor and the program end with it.
        // SAFETY: plain system call; the child has not been waited for.
        unsafe { libc::kill(child, libc::SIGKILL) };
    }
}
