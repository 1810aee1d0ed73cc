//! Counts instructions with a hardware counter, which `why` does not need and
//! others do.

use std::io;

use super::child::{Said, attempt};
use super::finding::{Finding, Verdict};

pub fn probe() -> Finding {
    match attempt(count) {
        Ok(found) => Finding::works(
            "perf",
            found,
            "rr would probably work here too. why does not use hardware counters.",
        ),
        Err(error) => Finding::new(
            "perf",
            Verdict::Missing,
            error,
            "rr would not work here. why does not need hardware counters.",
            "Nothing, for why.",
        ),
    }
}

/// The beginning of the kernel's perf_event_attr, in its first published size.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample: [u64; 3],
    flags: u64,
    rest: [u64; 2],
}

const EXCLUDE_KERNEL_AND_HYPERVISOR: u64 = 1 << 5 | 1 << 6;

fn count() -> Said {
    let attributes = Attributes {
        kind: 0,   // PERF_TYPE_HARDWARE
        config: 1, // PERF_COUNT_HW_INSTRUCTIONS
        size: size_of::<Attributes>() as u32,
        flags: EXCLUDE_KERNEL_AND_HYPERVISOR,
        ..Attributes::default()
    };
    // SAFETY: the structure is as long as it says; the rest are integers: this
    // process, any core, no group, no flags.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &attributes, 0, -1, -1, 0) };
    if fd < 0 {
        return Err(format!("perf_event_open of instructions: {}", io::Error::last_os_error()));
    }
    for i in 0..100_000 {
        std::hint::black_box(i);
    }
    let mut instructions = 0u64;
    // SAFETY: a counter reads as one word, into a live variable of that size.
    let got = unsafe { libc::read(fd as i32, (&raw mut instructions).cast(), 8) };
    match (got, instructions) {
        (8, 100_000..) => Ok(format!("a hardware counter counted {instructions} instructions")),
        _ => Err(format!("a hardware counter was opened but counted {instructions} instructions")),
    }
}
