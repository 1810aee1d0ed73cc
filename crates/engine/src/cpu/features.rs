//! CPU features by name: which a program may use, and which this machine has.

use iced_x86::CpuidFeature as F;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::sync::OnceLock;
use why_translate::Features;

/// A feature that some x86-64 CPUs lack, and where `cpuid` tells of it.
pub struct Feature {
    pub name: &'static str,
    /// What the decoder calls it; none if no instruction needs it.
    decoded: Option<F>,
    level: Level,
    leaf: (u32, u32),
    register: Register,
    bit: u32,
    /// The registers it works on, as bits of XCR0: the kernel must have enabled them.
    state: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    /// Part of x86-64-v3.
    V3,
    /// Not part of it, but all CPUs of that level have it.
    Shown,
    Beyond,
}

#[derive(Clone, Copy)]
enum Register {
    Eax,
    Ebx,
    Ecx,
    Edx,
}

const AVX: u64 = 0x6;
const AVX512: u64 = 0xe6;
const TILES: u64 = 0x6_0000;

/// Features that a CPU may lack, and whose instructions then fault. Those that a CPU takes
/// for others or for nothing when it lacks them (`prefetchw`, `rdssp`, `bnd`) are not here:
/// nor are those of which a replay executes nothing, because their results are recorded.
static FEATURES: &[Feature] = {
    use Level::{Beyond, Shown, V3};
    use Register::{Eax, Ebx, Ecx, Edx};
    const fn row(
        name: &'static str,
        decoded: F,
        level: Level,
        leaf: (u32, u32),
        register: Register,
        bit: u32,
        state: u64,
    ) -> Feature {
        Feature { name, decoded: Some(decoded), level, leaf, register, bit, state }
    }
    const EXTENDED: (u32, u32) = (0x8000_0001, 0);
    &[
        row("sse3", F::SSE3, V3, (1, 0), Ecx, 0, 0),
        row("ssse3", F::SSSE3, V3, (1, 0), Ecx, 9, 0),
        row("fma", F::FMA, V3, (1, 0), Ecx, 12, AVX),
        row("cmpxchg16b", F::CMPXCHG16B, V3, (1, 0), Ecx, 13, 0),
        row("sse4.1", F::SSE4_1, V3, (1, 0), Ecx, 19, 0),
        row("sse4.2", F::SSE4_2, V3, (1, 0), Ecx, 20, 0),
        row("movbe", F::MOVBE, V3, (1, 0), Ecx, 22, 0),
        row("popcnt", F::POPCNT, V3, (1, 0), Ecx, 23, 0),
        row("xsave", F::XSAVE, V3, (1, 0), Ecx, 27, 0),
        row("avx", F::AVX, V3, (1, 0), Ecx, 28, AVX),
        row("f16c", F::F16C, V3, (1, 0), Ecx, 29, AVX),
        row("bmi1", F::BMI1, V3, (7, 0), Ebx, 3, 0),
        row("avx2", F::AVX2, V3, (7, 0), Ebx, 5, AVX),
        row("bmi2", F::BMI2, V3, (7, 0), Ebx, 8, 0),
        row("lzcnt", F::LZCNT, V3, EXTENDED, Ecx, 5, 0),
        Feature {
            name: "lahf",
            decoded: None,
            level: V3,
            leaf: EXTENDED,
            register: Ecx,
            bit: 0,
            state: 0,
        },
        row("pclmulqdq", F::PCLMULQDQ, Shown, (1, 0), Ecx, 1, 0),
        row("aes", F::AES, Shown, (1, 0), Ecx, 25, 0),
        row("fsgsbase", F::FSGSBASE, Shown, (7, 0), Ebx, 0, 0),
        row("adx", F::ADX, Beyond, (7, 0), Ebx, 19, 0),
        row("sha", F::SHA, Beyond, (7, 0), Ebx, 29, 0),
        row("clflushopt", F::CLFLUSHOPT, Beyond, (7, 0), Ebx, 23, 0),
        row("clwb", F::CLWB, Beyond, (7, 0), Ebx, 24, 0),
        row("rtm", F::RTM, Beyond, (7, 0), Ebx, 11, 0),
        row("rtm", F::HLE_or_RTM, Beyond, (7, 0), Ebx, 11, 0),
        row("avx512f", F::AVX512F, Beyond, (7, 0), Ebx, 16, AVX512),
        row("avx512dq", F::AVX512DQ, Beyond, (7, 0), Ebx, 17, AVX512),
        row("avx512ifma", F::AVX512_IFMA, Beyond, (7, 0), Ebx, 21, AVX512),
        row("avx512pf", F::AVX512PF, Beyond, (7, 0), Ebx, 26, AVX512),
        row("avx512er", F::AVX512ER, Beyond, (7, 0), Ebx, 27, AVX512),
        row("avx512cd", F::AVX512CD, Beyond, (7, 0), Ebx, 28, AVX512),
        row("avx512bw", F::AVX512BW, Beyond, (7, 0), Ebx, 30, AVX512),
        row("avx512vl", F::AVX512VL, Beyond, (7, 0), Ebx, 31, AVX512),
        row("avx512vbmi", F::AVX512_VBMI, Beyond, (7, 0), Ecx, 1, AVX512),
        row("pku", F::PKU, Beyond, (7, 0), Ecx, 4, 0),
        row("waitpkg", F::WAITPKG, Beyond, (7, 0), Ecx, 5, 0),
        row("avx512vbmi2", F::AVX512_VBMI2, Beyond, (7, 0), Ecx, 6, AVX512),
        row("gfni", F::GFNI, Beyond, (7, 0), Ecx, 8, 0),
        row("vaes", F::VAES, Beyond, (7, 0), Ecx, 9, AVX),
        row("vpclmulqdq", F::VPCLMULQDQ, Beyond, (7, 0), Ecx, 10, AVX),
        row("avx512vnni", F::AVX512_VNNI, Beyond, (7, 0), Ecx, 11, AVX512),
        row("avx512bitalg", F::AVX512_BITALG, Beyond, (7, 0), Ecx, 12, AVX512),
        row("avx512vpopcntdq", F::AVX512_VPOPCNTDQ, Beyond, (7, 0), Ecx, 14, AVX512),
        row("keylocker", F::KL, Beyond, (0x19, 0), Ebx, 0, 0),
        row("keylocker", F::AESKLE, Beyond, (0x19, 0), Ebx, 0, 0),
        row("widekeylocker", F::WIDE_KL, Beyond, (0x19, 0), Ebx, 2, 0),
        row("movdiri", F::MOVDIRI, Beyond, (7, 0), Ecx, 27, 0),
        row("movdir64b", F::MOVDIR64B, Beyond, (7, 0), Ecx, 28, 0),
        row("enqcmd", F::ENQCMD, Beyond, (7, 0), Ecx, 29, 0),
        row("avx5124vnniw", F::AVX512_4VNNIW, Beyond, (7, 0), Edx, 2, AVX512),
        row("avx5124fmaps", F::AVX512_4FMAPS, Beyond, (7, 0), Edx, 3, AVX512),
        row("uintr", F::UINTR, Beyond, (7, 0), Edx, 5, 0),
        row("avx512vp2intersect", F::AVX512_VP2INTERSECT, Beyond, (7, 0), Edx, 8, AVX512),
        row("serialize", F::SERIALIZE, Beyond, (7, 0), Edx, 14, 0),
        row("tsxldtrk", F::TSXLDTRK, Beyond, (7, 0), Edx, 16, 0),
        row("amxbf16", F::AMX_BF16, Beyond, (7, 0), Edx, 22, TILES),
        row("avx512fp16", F::AVX512_FP16, Beyond, (7, 0), Edx, 23, AVX512),
        row("amxtile", F::AMX_TILE, Beyond, (7, 0), Edx, 24, TILES),
        row("amxint8", F::AMX_INT8, Beyond, (7, 0), Edx, 25, TILES),
        row("sha512", F::SHA512, Beyond, (7, 1), Eax, 0, AVX),
        row("sm3", F::SM3, Beyond, (7, 1), Eax, 1, AVX),
        row("sm4", F::SM4, Beyond, (7, 1), Eax, 2, AVX),
        row("raoint", F::RAO_INT, Beyond, (7, 1), Eax, 3, 0),
        row("avxvnni", F::AVX_VNNI, Beyond, (7, 1), Eax, 4, AVX),
        row("avx512bf16", F::AVX512_BF16, Beyond, (7, 1), Eax, 5, AVX512),
        row("cmpccxadd", F::CMPCCXADD, Beyond, (7, 1), Eax, 7, 0),
        row("amxfp16", F::AMX_FP16, Beyond, (7, 1), Eax, 21, TILES),
        row("avxifma", F::AVX_IFMA, Beyond, (7, 1), Eax, 23, AVX),
        row("avxvnniint8", F::AVX_VNNI_INT8, Beyond, (7, 1), Edx, 4, AVX),
        row("avxneconvert", F::AVX_NE_CONVERT, Beyond, (7, 1), Edx, 5, AVX),
        row("amxcomplex", F::AMX_COMPLEX, Beyond, (7, 1), Edx, 8, TILES),
        row("avxvnniint16", F::AVX_VNNI_INT16, Beyond, (7, 1), Edx, 10, AVX),
        row("xsaveopt", F::XSAVEOPT, Beyond, (0xd, 1), Eax, 0, 0),
        row("xsavec", F::XSAVEC, Beyond, (0xd, 1), Eax, 1, 0),
        row("ptwrite", F::PTWRITE, Beyond, (0x14, 0), Ebx, 4, 0),
        row("sse4a", F::SSE4A, Beyond, EXTENDED, Ecx, 6, 0),
        row("xop", F::XOP, Beyond, EXTENDED, Ecx, 11, AVX),
        row("lwp", F::LWP, Beyond, EXTENDED, Ecx, 15, 0),
        row("fma4", F::FMA4, Beyond, EXTENDED, Ecx, 16, AVX),
        row("tbm", F::TBM, Beyond, EXTENDED, Ecx, 21, 0),
        row("monitorx", F::MONITORX, Beyond, EXTENDED, Ecx, 29, 0),
        row("3dnowext", F::D3NOWEXT, Beyond, EXTENDED, Edx, 30, 0),
        row("3dnow", F::D3NOW, Beyond, EXTENDED, Edx, 31, 0),
        row("clzero", F::CLZERO, Beyond, (0x8000_0008, 0), Ebx, 0, 0),
        row("mcommit", F::MCOMMIT, Beyond, (0x8000_0008, 0), Ebx, 8, 0),
    ]
};

impl Feature {
    fn is_here(&self) -> bool {
        // The kernel must allow it, too, and only it knows.
        if self.decoded == Some(F::FSGSBASE) && !crate::processor::gs_base_writable() {
            return false;
        }
        let (leaf, subleaf) = self.leaf;
        if __cpuid(leaf & 0x8000_0000).eax < leaf {
            return false;
        }
        if leaf == 7 && __cpuid_count(7, 0).eax < subleaf {
            return false;
        }
        let answer = __cpuid_count(leaf, subleaf);
        let register = match self.register {
            Register::Eax => answer.eax,
            Register::Ebx => answer.ebx,
            Register::Ecx => answer.ecx,
            Register::Edx => answer.edx,
        };
        register >> self.bit & 1 == 1 && super::enabled_state() & self.state == self.state
    }
}

/// The names of the features that this machine has.
pub fn here() -> &'static [&'static str] {
    static HERE: OnceLock<Vec<&'static str>> = OnceLock::new();
    HERE.get_or_init(|| names(|feature| feature.is_here()))
}

/// Those of them that are part of x86-64-v3.
pub fn v3_here() -> Vec<&'static str> {
    names(|feature| feature.level == Level::V3 && feature.is_here())
}

pub fn is_v3(name: &str) -> bool {
    FEATURES.iter().any(|feature| feature.level == Level::V3 && feature.name == name)
}

fn names(wanted: impl Fn(&Feature) -> bool) -> Vec<&'static str> {
    let mut names: Vec<_> = FEATURES.iter().filter(|f| wanted(f)).map(|f| f.name).collect();
    names.dedup();
    names
}

/// What every CPU of the level x86-64-v3 can execute: programs may do so without anybody
/// taking notice.
pub fn v3() -> Features {
    let mut features = Features::ALL;
    for feature in FEATURES.iter().filter(|feature| feature.level != Level::V3) {
        feature.decoded.iter().for_each(|&decoded| features.remove(decoded));
    }
    features
}

/// Which features an instruction needs beyond x86-64-v3. None if this machine lacks one of
/// them, so that it cannot be executed here either.
pub fn needed_beyond(decoded: &[F]) -> Option<Vec<&'static Feature>> {
    let known = |decoded: F| FEATURES.iter().find(|feature| feature.decoded == Some(decoded));
    let needed: Vec<_> = decoded.iter().filter_map(|&decoded| known(decoded)).collect();
    needed
        .iter()
        .all(|feature| here().contains(&feature.name))
        .then(|| needed.into_iter().filter(|feature| feature.level != Level::V3).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Basic, or taken for something else or nothing by CPUs without; or not for programs.
    #[rustfmt::skip]
    const NOT_LISTED: &[F] = &[
        F::INTEL8086, F::INTEL8086_ONLY, F::INTEL186, F::INTEL286, F::INTEL286_ONLY, F::INTEL386,
        F::INTEL386_ONLY, F::INTEL386_A0_ONLY, F::INTEL486, F::INTEL486_A_ONLY, F::UMOV, F::IA64,
        F::X64, F::CLFSH, F::CMOV, F::CPUID, F::CX8, F::FPU, F::FPU287, F::FPU287XL_ONLY,
        F::FPU387, F::FPU387SL_ONLY, F::FXSR, F::MMX, F::MSR, F::MULTIBYTENOP, F::PAUSE, F::SEP,
        F::SSE, F::SSE2, F::SYSCALL,
        // Nothing happens without them.
        F::CET_IBT, F::CET_SS, F::CLDEMOTE, F::HLE, F::MPX, F::PREFETCHW, F::PREFETCHWT1,
        F::PREFETCHITI,
        // Their results are recorded.
        F::RDPID, F::RDPMC, F::RDPRU, F::RDRAND, F::RDSEED, F::RDTSCP, F::TSC,
        // For kernels.
        F::FRED, F::HRESET, F::INVEPT, F::INVLPGB, F::INVPCID, F::INVVPID, F::LKGS, F::MONITOR,
        F::MOV_TR, F::MSRLIST, F::PCONFIG, F::RMPQUERY, F::SEV_ES, F::SEV_SNP, F::SGX1, F::SKINIT,
        F::SKINIT_or_SVM, F::SMAP, F::SMM, F::SMX, F::SVM, F::TDX, F::TSE, F::UDBG, F::VMX,
        F::WBNOINVD, F::WRMSRNS, F::XSAVES,
        // Of CPUs that run no 64-bit Linux of today, or that were never sold.
        F::CENTAUR_AIS, F::CL1INVMB, F::CYRIX_D3NOW, F::CYRIX_DDI, F::CYRIX_DMI, F::CYRIX_EMMI,
        F::CYRIX_FPU, F::CYRIX_SHR, F::CYRIX_SMINT, F::CYRIX_SMINT_0F7E, F::CYRIX_SMM, F::KNC,
        F::OSS, F::PADLOCK_ACE, F::PADLOCK_GMI, F::PADLOCK_PHE, F::PADLOCK_PMM, F::PADLOCK_RNG,
        F::PADLOCK_UNDOC, F::PCOMMIT,
    ];

    #[test]
    fn every_feature_of_the_decoder_is_listed_or_need_not_be() {
        for decoded in F::values() {
            let listed = FEATURES.iter().filter(|f| f.decoded == Some(decoded)).count();
            let expected = usize::from(!NOT_LISTED.contains(&decoded));
            assert_eq!(listed, expected, "{decoded:?}");
        }
    }

    #[test]
    fn this_machine_has_what_the_kernel_says() {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags")).unwrap();
        let flags: Vec<&str> = flags.split_whitespace().collect();
        // Where the kernel uses the same name.
        for name in ["ssse3", "fma", "avx", "avx2", "bmi1", "bmi2", "f16c", "movbe", "popcnt"]
            .iter()
            .chain(&["aes", "adx", "pclmulqdq", "fsgsbase", "avx512f", "avx512vl", "avx512bw"])
            .chain(&["gfni", "vaes", "xsavec", "clwb", "clzero", "sse4a", "rtm", "xop", "tbm"])
        {
            assert_eq!(here().contains(name), flags.contains(name), "{name}");
        }
    }
}
