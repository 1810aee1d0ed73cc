//! Reads the memory of a child in one call, as the engine reads a program's.

use std::io;

use super::child::{Said, attempt};
use super::finding::{Finding, Verdict};
use super::ptrace::sleeper;

pub fn probe() -> Finding {
    match attempt(read) {
        Ok(found) => {
            Finding::works("memory", found, "A program's memory can be read in large pieces.")
        }
        Err(error) => Finding::new(
            "memory",
            Verdict::Limited,
            error,
            "A program's memory must be read through /proc or word by word, which is slower.",
            "Allow process_vm_readv in the container's seccomp profile.",
        ),
    }
}

fn read() -> Said {
    // The child is a copy of this process: the same text lies at the same address.
    let original = *b"the memory of another process";
    let child = sleeper()?;
    let mut copy = original;
    copy.fill(0);
    let local = libc::iovec { iov_base: copy.as_mut_ptr().cast(), iov_len: copy.len() };
    let remote =
        libc::iovec { iov_base: original.as_ptr().cast_mut().cast(), iov_len: original.len() };
    // SAFETY: the kernel writes only into `copy`, of the length given.
    let count = unsafe { libc::process_vm_readv(child.as_raw(), &local, 1, &remote, 1, 0) };
    if count < 0 {
        return Err(format!("process_vm_readv of an own child: {}", io::Error::last_os_error()));
    }
    if std::hint::black_box(copy) != original {
        return Err("process_vm_readv of an own child read something else".to_owned());
    }
    Ok("read a child's memory with process_vm_readv".to_owned())
}
