//! The kernel: tries the youngest call that the engine has a use for.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;

use super::child::{Said, attempt};
use super::finding::{Finding, Verdict};

pub fn probe() -> Finding {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    match attempt(read_without_waiting) {
        Ok(found) => Finding::works(
            "kernel",
            format!("Linux {release}; {found}"),
            "Reads that would block are told from those that would not, without a stop.",
        ),
        Err(error) => Finding::new(
            "kernel",
            Verdict::Limited,
            format!("Linux {release}; {error}"),
            "In programs with several threads, every read goes through the supervisor.",
            "Use a kernel of 4.14 or later, or allow preadv2 in the seccomp profile.",
        ),
    }
}

/// From an empty pipe, it must say that it would have to wait.
fn read_without_waiting() -> Said {
    let (read, _write) = nix::unistd::pipe().map_err(|error| format!("pipe: {error}"))?;
    let mut byte = 0u8;
    let buffer = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: one buffer of one byte, alive during the call.
    let got = unsafe { libc::preadv2(read.as_raw_fd(), &buffer, 1, -1, libc::RWF_NOWAIT) };
    match (got, io::Error::last_os_error()) {
        (-1, error) if error.kind() == io::ErrorKind::WouldBlock => {
            Ok("preadv2 reads without waiting".to_owned())
        }
        (-1, error) => Err(format!("preadv2 without waiting: {error}")),
        (count, _) => Err(format!("preadv2 read {count} bytes from an empty pipe")),
    }
}
