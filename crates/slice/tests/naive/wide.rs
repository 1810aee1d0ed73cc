//! The vector and mask registers of a thread.

use iced_x86::Register;
use nix::unistd::Pid;
use std::arch::x86_64::__cpuid_count;

/// They take no more.
const MOST: usize = 16 << 10;

/// The CPU's extended state, as `xsave` lays it out.
pub struct Wide(Vec<u8>);

/// Whether there are registers of 512 bits and masks.
pub fn is_there() -> bool {
    std::arch::is_x86_feature_detected!("avx512vbmi2")
}

impl Wide {
    pub fn of(pid: Pid) -> Wide {
        const NT_X86_XSTATE: usize = 0x202;
        let mut bytes = vec![0u8; MOST];
        let mut vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let request = libc::PTRACE_GETREGSET;
        // SAFETY: the vector describes `bytes`, which live until the call is over.
        let done = unsafe { libc::ptrace(request, pid.as_raw(), NT_X86_XSTATE, &raw mut vector) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
        Wide(bytes)
    }

    /// The bytes of a register.
    pub fn bytes(&self, register: Register) -> Vec<u8> {
        let (number, size) = (register.number(), register.size());
        let component = |number: u32| __cpuid_count(0xd, number).ebx as usize;
        let parts = if register.is_mm() {
            vec![(32 + 16 * number, 8)]
        } else if register.is_k() {
            vec![(component(5) + 8 * number, 8)]
        } else if number >= 16 {
            vec![(component(7) + 64 * (number - 16), 64)]
        } else {
            let upper = (component(2) + 16 * number, 16);
            vec![(160 + 16 * number, 16), upper, (component(6) + 32 * number, 32)]
        };
        let all = parts.into_iter().flat_map(|(at, size)| self.0[at..at + size].to_vec());
        all.take(size).collect()
    }
}
