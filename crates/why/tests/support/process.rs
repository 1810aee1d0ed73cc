//! Processes: their relations, and what they take from whoever starts them.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A command that Ctrl-C ends, also where whoever runs the tests ignores it.
pub fn interruptible(command: &mut Command) -> &mut Command {
    // SAFETY: what is called is safe between fork and exec.
    unsafe { command.pre_exec(heed_keyboard) }
}

/// Lets the keyboard's signals have their usual effect on this process.
pub fn heed_keyboard() -> io::Result<()> {
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: plain system call; no handler is involved.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    Ok(())
}

/// The first child of a process.
pub fn child_of(pid: i32) -> Option<i32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}
