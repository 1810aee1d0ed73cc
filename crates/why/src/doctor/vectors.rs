//! Which vector registers a program can use: what CPUID tells, and whether an
//! instruction of each kind really executes.

use std::arch::asm;

use super::child::{Said, attempt};
use super::finding::{Finding, Verdict};

pub fn probe() -> Finding {
    let sets = [
        ("XSAVE", is_x86_feature_detected!("xsave"), attempt(xgetbv)),
        ("AVX2", is_x86_feature_detected!("avx2"), attempt(avx2)),
        ("AVX-512", is_x86_feature_detected!("avx512f"), attempt(avx512)),
    ];
    let mut found = Vec::new();
    let mut verdict = Verdict::Works;
    for (name, told, executed) in &sets {
        found.push(match (told, executed) {
            (true, Ok(detail)) => format!("{name} works{detail}"),
            (false, Ok(_)) => format!("{name} works though CPUID denies it"),
            (false, Err(_)) => format!("{name} absent"),
            (true, Err(error)) => {
                verdict = Verdict::Limited;
                format!("{name} in CPUID, but {error}")
            }
        });
    }
    Finding::new(
        "vectors",
        verdict,
        found.join(", "),
        "Programs see the CPU as it is and may use what works here.",
        "Ask whoever runs the virtual machine why CPUID promises what does not work.",
    )
}

/// Reads which register sets the kernel saves.
fn xgetbv() -> Said {
    let (low, high): (u32, u32);
    // SAFETY: reads a register; where that is illegal only this forked child dies.
    unsafe { asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high) };
    Ok(format!(" (XCR0 {:#x})", u64::from(high) << 32 | u64::from(low)))
}

fn avx2() -> Said {
    // SAFETY: clears a register that the compiler is told about; where that is
    // illegal only this forked child dies.
    unsafe { asm!("vpxor ymm0, ymm0, ymm0", "vpaddd ymm0, ymm0, ymm0", out("xmm0") _) };
    Ok(String::new())
}

fn avx512() -> Said {
    // SAFETY: as above.
    unsafe { asm!("vpxord zmm0, zmm0, zmm0", out("xmm0") _) };
    Ok(String::new())
}
