//! Code of the engine's own in the target: what the supervisor lets a thread do on its
//! behalf. Every arena begins with it.

use crate::memory::Address;
use std::ops::Range;

/// `syscall; int3`, then `mov al, [rax]; int3`, then `cpuid; int3`, then [`MAP`].
pub const GLUE: [u8; MAP + MAP_CODE.len()] = {
    let mut glue = [0; MAP + MAP_CODE.len()];
    let (start, _) = glue.split_at_mut(MAP);
    start.copy_from_slice(&[0x0f, 0x05, 0xcc, 0x8a, 0x00, 0xcc, 0x0f, 0xa2, 0xcc]);
    let (_, map) = glue.split_at_mut(MAP);
    map.copy_from_slice(&MAP_CODE);
    glue
};

const LOAD: usize = 3;
const CPUID: usize = 6;
const MAP: usize = 9;

/// Maps a file: opens it with the arguments of `openat` in place; maps it with those of
/// `mmap` in rbx, r13, r14, r15, the descriptor and rbp, as often as r12 says and each time
/// behind the last; and closes it. Whatever fails makes the rest fail. Leaves the
/// descriptor in r8 and the last mapping's address in r13.
const MAP_CODE: [u8; 49] = [
    0x0f, 0x05, // syscall
    0x49, 0x89, 0xc0, // mov r8, rax
    // again:
    0x48, 0x89, 0xdf, // mov rdi, rbx
    0x4c, 0x89, 0xee, // mov rsi, r13
    0x4c, 0x89, 0xf2, // mov rdx, r14
    0x4d, 0x89, 0xfa, // mov r10, r15
    0x49, 0x89, 0xe9, // mov r9, rbp
    0xb8, 0x09, 0x00, 0x00, 0x00, // mov eax, SYS_mmap
    0x0f, 0x05, // syscall
    0x4c, 0x01, 0xeb, // add rbx, r13
    0x49, 0xff, 0xcc, // dec r12
    0x75, 0xe2, // jnz again
    0x49, 0x89, 0xc5, // mov r13, rax
    0x4c, 0x89, 0xc7, // mov rdi, r8
    0xb8, 0x03, 0x00, 0x00, 0x00, // mov eax, SYS_close
    0x0f, 0x05, // syscall
    0xcc, // int3
];

/// Where the glue lies in a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glue(pub Address);

impl Glue {
    /// Where a thread makes a system call: `syscall; int3`.
    pub fn call(self) -> Address {
        self.0
    }

    /// Where `mov al, [rax]; int3` stands.
    pub fn load_from_rax(self) -> Address {
        self.0 + LOAD as u64
    }

    /// Where `cpuid; int3` stands.
    pub fn cpuid(self) -> Range<Address> {
        let start = self.0 + CPUID as u64;
        start..start + 3
    }

    /// Where a file is mapped.
    pub fn map(self) -> Address {
        self.0 + MAP as u64
    }

    /// Behind the trap that ends [`Glue::map`].
    pub fn mapped(self) -> Address {
        self.map() + MAP_CODE.len() as u64
    }
}
