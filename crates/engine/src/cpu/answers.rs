//! What `cpuid` and `xgetbv` answer to a program that is shown a CPU of the level
//! x86-64-v3.
//!
//! Whatever says what the CPU can do is limited to that level; what it is (its maker, its
//! model, its caches and cores) is told as it is. What is not known here is not told.

use super::{AVX_STATE, enabled_state};
use std::arch::x86_64::{__cpuid, CpuidResult};

/// sse3, pclmulqdq, ssse3, fma, cmpxchg16b, sse4.1, sse4.2, movbe, popcnt, aes, xsave,
/// osxsave, avx, f16c, and whether a hypervisor is there.
const LEAF_1_ECX: u32 = bits(&[0, 1, 9, 12, 13, 19, 20, 22, 23, 25, 26, 27, 28, 29, 31]);
/// What every x86-64 CPU has, self-snoop, and whether cores are told of.
pub const LEAF_1_EDX: u32 =
    bits(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 19, 23, 24, 25, 26, 27, 28]);
/// fsgsbase, bmi1, avx2, bmi2, and that long string instructions are fast.
const LEAF_7_EBX: u32 = bits(&[0, 3, 5, 8, 9]);
/// That short string instructions are fast.
const LEAF_7_EDX: u32 = bits(&[4]);
/// lahf, lzcnt; and for cores and caches: the old way to tell of them, and the new one.
const EXTENDED_ECX: u32 = bits(&[0, 1, 5, 22]);
/// What AMD repeats of leaf 1; syscall, nx, large pages, rdtscp and 64 bits.
const EXTENDED_EDX: u32 =
    bits(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 20, 23, 24, 26, 27, 29]);
/// That the time stamp counter always runs at the same speed.
const POWER_EDX: u32 = bits(&[8]);

/// The areas of `fxsave`, of the header of `xsave`, and of the upper halves of AVX registers.
const SSE_AREA: u32 = 512 + 64;
const AVX_AREA: u32 = 256;

const NOTHING: CpuidResult = CpuidResult { eax: 0, ebx: 0, ecx: 0, edx: 0 };

const fn bits(numbers: &[u32]) -> u32 {
    let mut bits = 0;
    let mut index = 0;
    while index < numbers.len() {
        bits |= 1 << numbers[index];
        index += 1;
    }
    bits
}

/// What a program is told that asks for this leaf, where the CPU would answer so.
pub fn shown(leaf: u32, subleaf: u32, native: CpuidResult) -> CpuidResult {
    // Some CPUs answer for leaves that they do not have what they answer for others.
    let hypervisor = (0x4000_0000..0x4000_0100).contains(&leaf);
    if !hypervisor && leaf > __cpuid(leaf & 0x8000_0000).eax {
        return NOTHING;
    }
    let CpuidResult { eax, ebx, ecx, edx } = native;
    match leaf {
        // Its maker; caches; frequencies; cores.
        0 | 2 | 4 | 0xb | 0x15 | 0x16 | 0x18 | 0x1a | 0x1f => native,
        _ if hypervisor => native,
        // Its name; caches; cores.
        0x8000_0000
        | 0x8000_0002..=0x8000_0006
        | 0x8000_0019
        | 0x8000_001d
        | 0x8000_001e
        | 0x8000_0026 => native,
        1 => CpuidResult { ecx: ecx & LEAF_1_ECX, edx: edx & LEAF_1_EDX, ..native },
        7 if subleaf == 0 => {
            CpuidResult { ebx: ebx & LEAF_7_EBX, edx: edx & LEAF_7_EDX, ..NOTHING }
        }
        0xd => saved_state(subleaf, native),
        0x8000_0001 => CpuidResult { ecx: ecx & EXTENDED_ECX, edx: edx & EXTENDED_EDX, ..native },
        0x8000_0007 => CpuidResult { edx: edx & POWER_EDX, ..NOTHING },
        // Sizes of addresses, number of cores.
        0x8000_0008 => CpuidResult { eax, ecx, ..NOTHING },
        _ => NOTHING,
    }
}

/// How much room the registers take that `xsave` saves.
fn saved_state(subleaf: u32, native: CpuidResult) -> CpuidResult {
    let state = enabled_state() & AVX_STATE;
    let has_avx = state >> 2 & 1 == 1;
    match subleaf {
        0 => {
            let size = SSE_AREA + if has_avx { AVX_AREA } else { 0 };
            CpuidResult { eax: state as u32, ebx: size, ecx: size, edx: 0 }
        }
        2 if has_avx => native,
        _ => NOTHING,
    }
}
