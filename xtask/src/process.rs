//! Runs one command to its end, with a time limit, and tells what it cost.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

pub struct Finished {
    pub status: ExitStatus,
    pub timed_out: bool,
    /// User and system time of the command and of all its waited-for descendants.
    pub cpu: Duration,
    pub wall: Duration,
}

impl Finished {
    /// How it ended, in words.
    pub fn ended(&self) -> String {
        match (self.timed_out, self.status.code(), self.status.signal()) {
            (true, ..) => format!("timeout after {} s", self.wall.as_secs()),
            (_, Some(code), _) => format!("status {code}"),
            (_, _, Some(signal)) => match nix::sys::signal::Signal::try_from(signal) {
                Ok(name) => format!("signal {name}"),
                Err(_) => format!("signal {signal}"),
            },
            _ => "ended in an unknown way".to_owned(),
        }
    }
}

/// Runs the command in a process group of its own. It is killed when it exceeds
/// the limit, and when this program dies.
pub fn run(command: &mut Command, limit: Duration) -> io::Result<Finished> {
    command.process_group(0);
    // SAFETY: prctl is async-signal-safe, as code between fork and exec must be.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
    let start = Instant::now();
    let child = command.spawn().map_err(|error| {
        io::Error::new(error.kind(), format!("{}: {error}", command.get_program().display()))
    })?;
    let pid = child.id() as libc::pid_t;
    let timed_out = !ends_within(pid, limit)?;
    if timed_out {
        // SAFETY: plain system call; the group is ours and its leader is not reaped.
        unsafe { libc::kill(-pid, libc::SIGKILL) };
    }
    let (status, cpu) = reap(pid)?;
    Ok(Finished { status, timed_out, cpu, wall: start.elapsed() })
}

/// Waits without reaping, so that the costs can be read afterwards.
fn ends_within(pid: libc::pid_t, limit: Duration) -> io::Result<bool> {
    // SAFETY: plain system call with integers only.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and belongs to no one else.
    let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let milliseconds = i32::try_from(left.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: points to one initialised structure, as the count says.
        match unsafe { libc::poll(&mut poll, 1, milliseconds) } {
            0 => return Ok(false),
            1.. => return Ok(true),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
}

fn reap(pid: libc::pid_t) -> io::Result<(ExitStatus, Duration)> {
    let mut status = 0;
    // SAFETY: rusage is plain old data, for which zeroes are a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live variables of the right types.
    while unsafe { libc::wait4(pid, &mut status, 0, &mut usage) } < 0 {
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => {}
            error => return Err(error),
        }
    }
    let time = |t: libc::timeval| {
        Duration::from_secs(t.tv_sec as u64) + Duration::from_micros(t.tv_usec as u64)
    };
    Ok((ExitStatus::from_raw(status), time(usage.ru_utime) + time(usage.ru_stime)))
}
