//! Runs an attempt in a forked child: it may crash, hang or be killed, and only
//! the child suffers.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, pipe, setpgid};

const LIMIT: Duration = Duration::from_secs(5);

/// What a child may say: what worked, or what was tried and what happened.
pub type Said = Result<String, String>;

/// Runs the attempt; anything but its own word becomes an error in words.
pub fn attempt(work: impl FnOnce() -> Said) -> Said {
    let (read, write) = pipe().map_err(|error| format!("pipe: {error}"))?;
    // SAFETY: `why doctor` has one thread, so the child may do anything.
    match unsafe { fork() }.map_err(|error| format!("fork: {error}"))? {
        ForkResult::Child => {
            drop(read);
            in_child(write, work)
        }
        ForkResult::Parent { child } => {
            drop(write);
            // Both sides set it, so that it is set whoever comes first.
            let _ = setpgid(child, child);
            let said = listen(read);
            // The child is not reaped yet, so its number and group are still its own;
            // this also ends what the attempt has left running.
            let _ = kill(Pid::from_raw(-child.as_raw()), Signal::SIGKILL);
            let status = waitpid(child, None);
            conclude(said, status)
        }
    }
}

fn in_child(pipe: OwnedFd, work: impl FnOnce() -> Said) -> ! {
    let own = Pid::from_raw(0);
    let _ = setpgid(own, own);
    die_with_parent();
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let said = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err("panicked".to_owned()));
    let text = match said {
        Ok(text) => format!("+{text}"),
        Err(text) => format!("-{text}"),
    };
    // At once: the parent takes the first piece that it reads for the whole.
    let _ = File::from(pipe).write_all(text.as_bytes());
    // SAFETY: ends this process without running the parent's exit handlers.
    unsafe { libc::_exit(0) }
}

/// For every process that a probe starts, grandchildren too.
pub fn die_with_parent() {
    // SAFETY: a bare system call with integers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// Everything up to the end of the pipe; None at the time limit.
fn listen(pipe: OwnedFd) -> Option<Vec<u8>> {
    let deadline = Instant::now() + LIMIT;
    let mut pipe = File::from(pipe);
    let mut text = Vec::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).as_millis() as i32;
        let mut poll = libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: points to one initialised structure, as the count says.
        if unsafe { libc::poll(&mut poll, 1, left) } == 0 {
            return None;
        }
        let mut buffer = [0; 4096];
        match pipe.read(&mut buffer) {
            Ok(0) => return Some(text),
            Ok(count) => text.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return Some(text),
        }
        // The child writes once; a grandchild may hold the pipe open for longer.
        if !text.is_empty() {
            return Some(text);
        }
    }
}

fn conclude(said: Option<Vec<u8>>, status: nix::Result<WaitStatus>) -> Said {
    let Some(text) = said else {
        return Err(format!("gave no answer within {} s", LIMIT.as_secs()));
    };
    let text = String::from_utf8_lossy(&text).into_owned();
    match (text.strip_prefix('+'), text.strip_prefix('-'), status) {
        (Some(text), ..) => Ok(text.to_owned()),
        (_, Some(text), _) => Err(text.to_owned()),
        (.., Ok(WaitStatus::Signaled(_, signal, _))) => Err(format!("killed by {signal}")),
        _ => Err("ended without an answer".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::attempt;

    /// One after the other: a child of another test could hold a pipe open.
    #[test]
    fn a_crash_and_a_hang_are_told() {
        assert_eq!(attempt(|| Ok("yes".into())), Ok("yes".into()));
        assert_eq!(attempt(|| Err("no".into())), Err("no".into()));
        let crash = || {
            // SAFETY: raises a signal in the child; that it dies is the purpose.
            unsafe { libc::raise(libc::SIGILL) };
            Ok(String::new())
        };
        assert_eq!(attempt(crash), Err("killed by SIGILL".into()));
        let hang = || loop {
            std::thread::park();
        };
        assert_eq!(attempt(hang), Err("gave no answer within 5 s".into()));
    }
}
