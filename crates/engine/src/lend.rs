//! The engine's memory for a target of other credentials.
//!
//! A target opens the engine's memory through `/proc/PID/fd`, which the kernel allows
//! among processes of the same user only. For a target that has become somebody else
//! (a server that gave up its privileges and executes another program), a helper
//! becomes the same and holds the file open meanwhile.

use crate::task::Tid;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{ForkResult, Gid, Pid, Uid, fork, pause, setgroups, setresgid, setresuid};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// A process from which the target can open the engine's memory, while it lives.
pub struct Lender(Pid);

impl Lender {
    /// None if no such process can be made.
    pub fn new(target: Tid) -> Option<Lender> {
        let (uid, gid) = credentials(target)?;
        let (mut waiting, mut ready) = UnixStream::pair().ok()?;
        // SAFETY: the child makes system calls only, until it is killed.
        match unsafe { fork() }.ok()? {
            ForkResult::Child => {
                if become_like(uid, gid).is_some() {
                    let _ = ready.write_all(&[1]);
                    pause();
                }
                // SAFETY: ends the process without running anything of the parent's.
                unsafe { libc::_exit(1) }
            }
            ForkResult::Parent { child } => {
                drop(ready);
                let lender = Lender(child);
                waiting.read_exact(&mut [0]).ok().map(|()| lender)
            }
        }
    }

    /// Whose descriptors the target can open.
    pub fn pid(&self) -> u32 {
        self.0.as_raw() as u32
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        let _ = kill(self.0, Signal::SIGKILL);
        let _ = nix::sys::wait::waitpid(self.0, None);
    }
}

fn become_like(uid: Uid, gid: Gid) -> Option<()> {
    prctl::set_pdeathsig(Signal::SIGKILL).ok()?;
    setgroups(&[]).ok()?;
    setresgid(gid, gid, gid).ok()?;
    setresuid(uid, uid, uid).ok()?;
    // Changing credentials hides a process from others.
    prctl::set_dumpable(true).ok()
}

/// The user and group by whom the kernel judges what the target may open.
fn credentials(target: Tid) -> Option<(Uid, Gid)> {
    let status = std::fs::read_to_string(format!("/proc/{target}/status")).ok()?;
    let of_files = |name: &str| -> Option<u32> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().nth(3)?.parse().ok()
    };
    Some((Uid::from_raw(of_files("Uid:")?), Gid::from_raw(of_files("Gid:")?)))
}
