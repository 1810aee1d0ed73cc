//! An end for processes that nobody waits for any more.
//!
//! A worker is the reaper of what its tests start; what it leaves when it is killed comes to the
//! process that guards it, and what that leaves, on the same machine, to the pool.

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::time::Duration;

/// Ends the process, its group, and whatever else it has started: all that is left of them
/// has become a child of this process, which is their reaper.
pub fn end_all(group: Pid) {
    let _ = killpg(group, Signal::SIGKILL);
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG | WaitPidFlag::__WALL)) {
            Err(Errno::ECHILD) => return,
            Ok(WaitStatus::StillAlive) => {
                for child in children() {
                    let _ = kill(child, Signal::SIGKILL);
                }
                std::thread::sleep(Duration::from_micros(200));
            }
            _ => {}
        }
    }
}

/// Ends every child of this process but these, and all that those have started.
pub fn end_others(spared: &[Pid]) {
    loop {
        let mut others = children();
        others.retain(|child| !spared.contains(child));
        if others.is_empty() {
            return;
        }
        for child in others {
            let _ = kill(child, Signal::SIGKILL);
            let _ = waitpid(child, None);
        }
    }
}

/// The children of this process, by what each process says of its parent.
pub fn children() -> Vec<Pid> {
    let own = std::process::id().to_string();
    let is_child = |pid: &i32| {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name, in parentheses, may hold anything.
        let behind_name = stat.iter().rposition(|&byte| byte == b')').map_or(0, |at| at + 1);
        let mut fields = stat[behind_name..].split(|&byte| byte == b' ').skip(2);
        fields.next() == Some(own.as_bytes())
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(is_child).map(Pid::from_raw).collect()
}
