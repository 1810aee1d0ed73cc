//! Executes `rdgsbase`, which faults where the kernel has not enabled it.

use super::child::{Said, attempt};
use super::finding::{Finding, Verdict};

pub fn probe() -> Finding {
    match attempt(read) {
        Ok(found) => Finding::works(
            "fsgsbase",
            found,
            "Segment bases are set without a system call; programs that use these \
             instructions run.",
        ),
        Err(error) => Finding::new(
            "fsgsbase",
            Verdict::Limited,
            format!("rdgsbase in a child: {error}"),
            "Segment bases are set by system calls, which is slower.",
            "Nothing: the CPU lacks it or the kernel is older than 5.9.",
        ),
    }
}

fn read() -> Said {
    let base: u64;
    // SAFETY: reads a register; where that is an illegal instruction, only this
    // forked child dies.
    unsafe { std::arch::asm!("rdgsbase {}", out(reg) base) };
    Ok(format!("rdgsbase executed in a child (GS base {base:#x})"))
}
