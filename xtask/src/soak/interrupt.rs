//! Ctrl-C ends the soak after the current run; a second one ends it at once.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

static WANTED: AtomicBool = AtomicBool::new(false);

pub fn wanted() -> bool {
    WANTED.load(Ordering::Relaxed)
}

pub fn catch() -> io::Result<()> {
    let flags = SaFlags::SA_RESTART | SaFlags::SA_RESETHAND;
    let action = SigAction::new(SigHandler::Handler(note), flags, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: the handler only stores to an atomic, which is async-signal-safe.
        unsafe { sigaction(signal, &action) }?;
    }
    Ok(())
}

extern "C" fn note(_: libc::c_int) {
    WANTED.store(true, Ordering::Relaxed);
}
