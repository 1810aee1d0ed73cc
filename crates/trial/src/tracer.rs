//! Follows the threads of a process, so that it can be looked at just before a signal ends it.
//!
//! What it forks is not followed. Nothing but signals stops it, so it is hardly slower.

use crate::fault::Images;
use crate::seen::Ended;
use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

pub struct Tracer<'a> {
    leader: Pid,
    /// It executes the program.
    begun: bool,
    images: &'a mut Images,
    /// Where it was when a signal was about to end it.
    pub function: Option<String>,
    news: SignalFd,
}

impl<'a> Tracer<'a> {
    /// Of a process that has asked to be traced, and whose parent blocks SIGCHLD.
    pub fn new(leader: Pid, images: &'a mut Images) -> io::Result<Tracer<'a>> {
        let child = SigSet::from(Signal::SIGCHLD);
        let news = SignalFd::with_flags(&child, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Tracer { leader, begun: false, images, function: None, news })
    }

    /// Can be read from when there is something to see to.
    pub fn news(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }

    /// Sees to all that has happened. Returns how the process ended, once it has.
    pub fn attend(&mut self) -> io::Result<Option<Ended>> {
        while let Ok(Some(_)) = self.news.read_signal() {}
        loop {
            let flags = WaitPidFlag::WNOHANG | WaitPidFlag::__WALL;
            match waitpid(None, Some(flags)) {
                Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(None),
                Ok(WaitStatus::Exited(pid, status)) if pid == self.leader => {
                    return Ok(Some(Ended::Status(status)));
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == self.leader => {
                    return Ok(Some(Ended::Signal(signal as i32)));
                }
                Ok(WaitStatus::Stopped(thread, signal)) => self.stopped(thread, signal),
                Ok(WaitStatus::PtraceEvent(thread, ..)) => go_on(thread, None),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn stopped(&mut self, thread: Pid, signal: Signal) {
        if !self.begun {
            self.begun = true;
            let threads = Options::PTRACE_O_TRACECLONE;
            let options = threads | Options::PTRACE_O_TRACEEXEC | Options::PTRACE_O_EXITKILL;
            let _ = ptrace::setoptions(thread, options);
            return go_on(thread, None);
        }
        match signal {
            // A new thread begins with it; and whoever stops a test stops it in vain.
            Signal::SIGSTOP => return go_on(thread, None),
            signal if is_fatal(thread, signal) => {
                self.function = self.images.function(thread);
            }
            _ => {}
        }
        go_on(thread, Some(signal));
    }
}

/// One that is gone meanwhile needs nothing.
fn go_on(thread: Pid, signal: Option<Signal>) {
    let _ = ptrace::cont(thread, signal);
}

/// Whether a signal ends a program for a fault of its own.
fn is_fatal(thread: Pid, signal: Signal) -> bool {
    let of_faults = [
        Signal::SIGABRT,
        Signal::SIGBUS,
        Signal::SIGFPE,
        Signal::SIGILL,
        Signal::SIGSEGV,
        Signal::SIGSYS,
        Signal::SIGTRAP,
    ];
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let is_in = |name: &str| {
        let set = status.lines().find_map(|line| line.strip_prefix(name));
        let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0);
        set >> (signal as libc::c_int - 1) & 1 == 1
    };
    of_faults.contains(&signal) && !is_in("SigCgt:") && !is_in("SigIgn:")
}
