//! The CPU: executes one instruction in a state of our choice, in a child that is stepped.

use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use std::arch::x86_64::__cpuid_count;

/// Memory that instructions may access.
pub const DATA: u64 = 0x1000_0000;
pub const DATA_SIZE: usize = 0x8000;
const CODE: u64 = 0x2000_0000;

/// All that an instruction can change or depend on.
#[derive(Clone)]
pub struct State {
    pub registers: libc::user_regs_struct,
    pub extended: Vec<u8>,
    pub memory: Vec<u8>,
}

pub struct Machine {
    child: Pid,
    pub layout: Layout,
    /// A state in which the child can be.
    pub start: State,
}

/// Where the parts of vector registers are in the extended state.
#[derive(Clone, Copy)]
pub struct Layout {
    ymm_upper: usize,
    zmm_upper: usize,
    zmm_high: usize,
    masks: usize,
    /// There are 512 bits and masks.
    pub wide: bool,
}

impl Layout {
    fn of_cpu() -> Layout {
        let component = |number| __cpuid_count(0xd, number);
        let wide = component(0).eax >> 5 & 7 == 7;
        let offset = |number| component(number).ebx as usize;
        Layout {
            ymm_upper: offset(2),
            zmm_upper: offset(6),
            zmm_high: offset(7),
            masks: offset(5),
            wide,
        }
    }

    /// Where byte `byte` of a vector register is; none if there is none.
    pub fn vector(&self, number: usize, byte: usize) -> Option<usize> {
        Some(match (number, byte) {
            (16.., _) if self.wide => self.zmm_high + 64 * (number - 16) + byte,
            (16.., _) => return None,
            (_, 0..16) => 160 + 16 * number + byte,
            (_, 16..32) => self.ymm_upper + 16 * number + byte - 16,
            _ if self.wide => self.zmm_upper + 32 * number + byte - 32,
            _ => return None,
        })
    }

    pub fn mask(&self, number: usize, byte: usize) -> Option<usize> {
        self.wide.then(|| self.masks + 8 * number + byte)
    }
}

impl Machine {
    pub fn start() -> Machine {
        map(DATA, DATA_SIZE, libc::PROT_READ | libc::PROT_WRITE);
        map(CODE, 0x1000, libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC);
        // SAFETY: the child makes only system calls, and never returns.
        let child = match unsafe { fork() }.expect("forking") {
            ForkResult::Parent { child } => child,
            ForkResult::Child => {
                ptrace::traceme().expect("being traced");
                // SAFETY: both calls have no conditions; this process is to end like that.
                unsafe {
                    libc::raise(libc::SIGSTOP);
                    libc::_exit(0)
                }
            }
        };
        waitpid(child, None).expect("waiting for the child");
        ptrace::setoptions(child, ptrace::Options::PTRACE_O_EXITKILL).expect("tracing");
        let registers = ptrace::getregs(child).expect("reading registers");
        let start = State { registers, extended: extended(child), memory: vec![0; DATA_SIZE] };
        Machine { child, layout: Layout::of_cpu(), start }
    }

    /// Executes an instruction, as a whole or one of its repetitions; none if it faults or traps.
    pub fn execute(&self, code: &[u8], whole: bool, before: &State) -> Option<State> {
        write(CODE, code);
        write(DATA, &before.memory);
        let registers =
            libc::user_regs_struct { rip: CODE, orig_rax: u64::MAX, ..before.registers };
        ptrace::setregs(self.child, registers).expect("writing registers");
        register_set(self.child, libc::PTRACE_SETREGSET, &mut before.extended.clone());
        let mut registers = self.step()?;
        // A gather that had to wait for memory may stop with only some of its lanes done.
        while whole && registers.rip == CODE {
            registers = self.step()?;
        }
        Some(State { registers, extended: extended(self.child), memory: read(DATA, DATA_SIZE) })
    }
}

impl Machine {
    fn step(&self) -> Option<libc::user_regs_struct> {
        ptrace::step(self.child, None).expect("stepping");
        let stopped = waitpid(self.child, None).expect("waiting for the child");
        (stopped == WaitStatus::Stopped(self.child, Signal::SIGTRAP))
            .then(|| ptrace::getregs(self.child).expect("reading registers"))
    }
}

fn extended(child: Pid) -> Vec<u8> {
    let mut bytes = vec![0; 1 << 16];
    let length = register_set(child, libc::PTRACE_GETREGSET, &mut bytes);
    bytes.truncate(length);
    bytes
}

fn register_set(child: Pid, request: libc::c_uint, bytes: &mut [u8]) -> usize {
    const NT_X86_XSTATE: usize = 0x202;
    let mut vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: the vector describes `bytes`, which live until the call is over.
    let done = unsafe { libc::ptrace(request, child.as_raw(), NT_X86_XSTATE, &raw mut vector) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    vector.iov_len
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = ptrace::kill(self.child);
        let _ = waitpid(self.child, None);
    }
}

fn map(at: u64, size: usize, protection: i32) {
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: nothing else is mapped there, or the call fails.
    let got = unsafe { libc::mmap(at as *mut _, size, protection, flags, -1, 0) };
    assert_eq!(got as u64, at, "{}", std::io::Error::last_os_error());
}

fn write(at: u64, bytes: &[u8]) {
    // SAFETY: `map` has mapped as much there, which nobody else in this process refers to;
    // the child is stopped.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) }
}

fn read(at: u64, size: usize) -> Vec<u8> {
    // SAFETY: as for `write`.
    unsafe { std::slice::from_raw_parts(at as *const u8, size) }.to_vec()
}
