//! Processes: their relations, and what they take from whoever starts them.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A command that Ctrl-C ends, also where whoever runs the tests ignores it.
pub fn interruptible(command: &mut Command) -> &mut Command {
    let as_usual = || {
        // SAFETY: plain system call, made in the child alone.
        unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
        Ok(())
    };
    // SAFETY: what is called is safe between fork and exec.
    unsafe { command.pre_exec(as_usual) }
}

/// The first child of a process.
pub fn child_of(pid: i32) -> Option<i32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}
