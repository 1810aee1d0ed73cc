//! What system calls write to memory.

use super::stepped::Step;
use iced_x86::{Mnemonic, Register};
use std::ops::Range;

/// What a call has written, by the registers before it and what it returned.
pub fn wrote(
    before: &libc::user_regs_struct,
    returned: u64,
    word: impl Fn(u64) -> u64,
) -> Vec<Range<u64>> {
    let (result, r) = (returned as i64, before);
    if result < 0 {
        return Vec::new();
    }
    let (at, size) = match r.rax as i64 {
        libc::SYS_read => (r.rsi, returned),
        libc::SYS_getrandom => (r.rdi, returned),
        libc::SYS_fstat => (r.rsi, size_of::<libc::stat>() as u64),
        libc::SYS_newfstatat => (r.rdx, size_of::<libc::stat>() as u64),
        libc::SYS_pipe | libc::SYS_pipe2 => (r.rdi, 8),
        libc::SYS_clock_gettime => (r.rsi, 16),
        // The kernel's own `struct termios`.
        libc::SYS_ioctl if r.rsi == libc::TCGETS => (r.rdx, 36),
        libc::SYS_rt_sigaction if r.rdx != 0 => (r.rdx, 32),
        libc::SYS_rt_sigprocmask if r.rdx != 0 => (r.rdx, r.r10),
        // Where the caller is told the number of the new thread.
        libc::SYS_clone3 => (word(r.rdi + 24), 4),
        libc::SYS_write
        | libc::SYS_close
        | libc::SYS_brk
        | libc::SYS_mmap
        | libc::SYS_munmap
        | libc::SYS_mremap
        | libc::SYS_mprotect
        | libc::SYS_madvise
        | libc::SYS_futex
        | libc::SYS_getpid
        | libc::SYS_gettid
        | libc::SYS_tgkill
        | libc::SYS_sched_yield
        | libc::SYS_set_robust_list
        | libc::SYS_rseq
        | libc::SYS_exit
        | libc::SYS_rt_sigaction
        | libc::SYS_rt_sigprocmask => return Vec::new(),
        call => panic!("what does call {call} write?"),
    };
    (size > 0).then_some(at..at.wrapping_add(size)).into_iter().collect()
}

/// From where a step has moved memory, and to where.
pub fn moved(step: &Step) -> Option<(Range<u64>, Range<u64>)> {
    let (before, to) = (&step.before, step.after.value(Register::RAX));
    let is_move = step.insn.mnemonic() == Mnemonic::Syscall
        && before.value(Register::RAX) == libc::SYS_mremap as u64
        && (to as i64) > 0;
    let from = before.value(Register::RDI);
    let sizes = [Register::RSI, Register::RDX].map(|size| before.value(size));
    is_move.then(|| (from..from + sizes[0], to..to + sizes[1]))
}

/// Which registers a call is given, besides its number: those of its first arguments.
pub fn given(call: u64) -> &'static [Register] {
    use Register::{R8, R9, R10, RDI, RDX, RSI};
    match call as i64 {
        libc::SYS_sched_yield | libc::SYS_getpid | libc::SYS_gettid => &[],
        libc::SYS_close
        | libc::SYS_brk
        | libc::SYS_exit
        | libc::SYS_exit_group
        | libc::SYS_pipe => &[RDI],
        libc::SYS_munmap
        | libc::SYS_fstat
        | libc::SYS_clock_gettime
        | libc::SYS_set_robust_list
        | libc::SYS_pipe2 => &[RDI, RSI],
        libc::SYS_read
        | libc::SYS_write
        | libc::SYS_ioctl
        | libc::SYS_mprotect
        | libc::SYS_madvise
        | libc::SYS_getrandom
        | libc::SYS_tgkill => &[RDI, RSI, RDX],
        libc::SYS_rt_sigaction
        | libc::SYS_rt_sigprocmask
        | libc::SYS_newfstatat
        | libc::SYS_rseq => &[RDI, RSI, RDX, R10],
        // The trace tells it as the older `clone`.
        libc::SYS_clone3 | libc::SYS_mremap => &[RDI, RSI, RDX, R10, R8],
        libc::SYS_mmap | libc::SYS_futex => &[RDI, RSI, RDX, R10, R8, R9],
        call => panic!("what is call {call} given?"),
    }
}

/// Where the kernel writes when the thread ends that a call is about to begin.
pub fn cleared_at_end(before: &libc::user_regs_struct, word: impl Fn(u64) -> u64) -> Option<u64> {
    assert_eq!(before.rax as i64, libc::SYS_clone3, "how threads are begun");
    Some(word(before.rdi + 16)).filter(|at| *at != 0)
}
