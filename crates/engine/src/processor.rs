//! Supervisor and target share one processor: a stop between two costs ten times as
//! much as one between two threads on the same.

use std::io;

/// Bytes of the affinity masks that are handed to the target.
const MASK_BYTES: usize = 128;

/// The processors this process may use, as the kernel gives them.
pub fn affinity() -> Vec<u8> {
    let mut mask = vec![0; MASK_BYTES];
    // SAFETY: the buffer has the given length.
    let length = unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, 0, mask.len(), mask.as_mut_ptr())
    };
    mask.truncate(length.max(0) as usize);
    mask
}

/// Stays on the processor it runs on; threads started from now on do, too.
pub fn pin_here() -> io::Result<()> {
    // SAFETY: takes no argument.
    let here = unsafe { libc::sched_getcpu() };
    pin(&[usize::try_from(here).map_err(|_| io::Error::last_os_error())?])
}

/// Takes the calling thread to the other processors of `allowed`, if there are any.
pub fn go_elsewhere(allowed: &[u8]) {
    let own = affinity();
    let others: Vec<usize> = (0..allowed.len() * 8)
        .filter(|cpu| allowed[cpu / 8] & 1 << (cpu % 8) != 0)
        .filter(|cpu| own.get(cpu / 8).is_none_or(|byte| byte & 1 << (cpu % 8) == 0))
        .collect();
    if !others.is_empty() {
        // The trace is only read more slowly if this fails.
        let _ = pin(&others);
    }
}

/// Lets a thread of the target run where it wants to: with the supervisor if that is
/// one of the processors it names, else there, however slow that is.
pub fn place(thread: i32, wanted: &[u8]) {
    let mut mask = wanted.to_vec();
    // SAFETY: takes no argument.
    let here = unsafe { libc::sched_getcpu() };
    if let Ok(here) = usize::try_from(here)
        && mask.get(here / 8).is_some_and(|byte| byte & 1 << (here % 8) != 0)
    {
        mask.fill(0);
        mask[here / 8] |= 1 << (here % 8);
    }
    // It stays where it is if this fails.
    // SAFETY: the buffer has the given length.
    unsafe { libc::syscall(libc::SYS_sched_setaffinity, thread, mask.len(), mask.as_ptr()) };
}

fn pin(processors: &[usize]) -> io::Result<()> {
    let mut mask = [0u8; MASK_BYTES];
    for &cpu in processors {
        mask[cpu / 8] |= 1 << (cpu % 8);
    }
    // SAFETY: the buffer has the given length.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_setaffinity, 0, mask.len(), mask.as_ptr())
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether the kernel lets programs use `wrgsbase`.
pub fn gs_base_writable() -> bool {
    const HWCAP2_FSGSBASE: u64 = 1 << 1;
    // SAFETY: a plain lookup.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & HWCAP2_FSGSBASE != 0 }
}
