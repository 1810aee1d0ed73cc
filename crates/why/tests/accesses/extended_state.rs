//! Vector, mask and MMX registers of a stopped thread: the XSAVE area that the
//! kernel hands out, in its standard format.

use std::arch::x86_64::__cpuid_count;

use iced_x86::Register;
use nix::errno::Errno;
use nix::unistd::Pid;

const NT_X86_XSTATE: usize = 0x202;

/// More than any processor's area without tiles; with them it is cut off behind
/// what is needed here.
const ROOM: usize = 4096;

/// Where the legacy region, which is the same everywhere, holds things.
const STATUS_WORD: usize = 2;
const X87_REGISTERS: usize = 32;
const XMM_REGISTERS: usize = 160;

/// State components.
const UPPER_YMM: u32 = 2;
const MASKS: u32 = 5;
const UPPER_ZMM: u32 = 6;
const HIGH_ZMM: u32 = 7;

#[derive(Clone, Debug)]
pub struct ExtendedState(Vec<u8>);

impl ExtendedState {
    pub fn of(pid: Pid) -> nix::Result<ExtendedState> {
        let mut area = vec![0u8; ROOM];
        let mut buffer = libc::iovec { iov_base: area.as_mut_ptr().cast(), iov_len: ROOM };
        // SAFETY: the kernel writes at most `iov_len` bytes to the area, and the
        // length it wrote to the buffer's description; both outlive the call.
        let answer = unsafe {
            libc::ptrace(libc::PTRACE_GETREGSET, pid.as_raw(), NT_X86_XSTATE, &mut buffer)
        };
        Errno::result(answer)?;
        Ok(ExtendedState(area))
    }

    /// A mask register.
    pub fn mask(&self, register: Register) -> u64 {
        let at = component(MASKS) + 8 * register.number();
        u64::from_le_bytes(self.bytes(at, 8).try_into().expect("eight bytes are eight bytes"))
    }

    /// An MMX or vector register.
    pub fn vector(&self, register: Register) -> Vec<u8> {
        let number = register.number();
        if register.is_mm() {
            // MMX registers are physical ones; the area has them relative to the top
            // of the x87 stack.
            let top = usize::from(self.0[STATUS_WORD + 1] >> 3 & 7);
            let in_stack = (number + 8 - top) % 8;
            return self.bytes(X87_REGISTERS + 16 * in_stack, 8).to_vec();
        }
        let mut bytes = if number < 16 {
            let mut bytes = self.bytes(XMM_REGISTERS + 16 * number, 16).to_vec();
            if register.size() > 16 {
                bytes.extend(self.bytes(component(UPPER_YMM) + 16 * number, 16));
            }
            if register.size() > 32 {
                bytes.extend(self.bytes(component(UPPER_ZMM) + 32 * number, 32));
            }
            bytes
        } else {
            self.bytes(component(HIGH_ZMM) + 64 * (number - 16), 64).to_vec()
        };
        bytes.truncate(register.size());
        bytes
    }

    fn bytes(&self, at: usize, length: usize) -> &[u8] {
        &self.0[at..at + length]
    }
}

/// Where a state component lies in the standard format.
fn component(number: u32) -> usize {
    const STATE_LEAF: u32 = 0xd;
    // Later compilers know it to be safe.
    #[allow(unused_unsafe)]
    // SAFETY: every x86-64 processor has the instruction.
    let leaf = unsafe { __cpuid_count(STATE_LEAF, number) };
    leaf.ebx as usize
}
