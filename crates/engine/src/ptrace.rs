//! The ptrace requests the engine uses, on a thread known to be stopped.
//!
//! A tracee may be killed at any moment, stopped or not; a request then fails with
//! ESRCH. That is not an error here: the thread's end is reported by `waitpid`.

use libc::{c_long, c_void, pid_t, siginfo_t, user_regs_struct};
use std::io;
use std::mem::MaybeUninit;

pub type Registers = user_regs_struct;

/// The thread has been killed meanwhile; its end is still to be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

pub type Result<T> = std::result::Result<T, Gone>;

fn request(kind: u32, tid: pid_t, addr: usize, data: usize) -> io::Result<c_long> {
    // SAFETY: every caller below passes addresses of live, large enough objects for
    // the requests that write through them.
    let result = unsafe { libc::ptrace(kind, tid, addr as *mut c_void, data as *mut c_void) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Anything but the tracee's death is a defect of the engine.
fn expect_alive<T>(what: &str, tid: pid_t, result: io::Result<T>) -> Result<T> {
    result.map_err(|error| {
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH), "ptrace {what} of {tid}: {error}");
        Gone
    })
}

pub const OPTIONS: i32 = libc::PTRACE_O_EXITKILL
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEVFORK;

pub fn seize(tid: pid_t) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, tid, 0, OPTIONS as usize).map(drop)
}

pub fn interrupt(tid: pid_t) -> Result<()> {
    expect_alive("interrupt", tid, request(libc::PTRACE_INTERRUPT, tid, 0, 0)).map(drop)
}

pub fn resume(tid: pid_t, signal: i32) -> Result<()> {
    expect_alive("cont", tid, request(libc::PTRACE_CONT, tid, 0, signal as usize)).map(drop)
}

pub fn step(tid: pid_t, signal: i32) -> Result<()> {
    expect_alive("step", tid, request(libc::PTRACE_SINGLESTEP, tid, 0, signal as usize)).map(drop)
}

pub fn resume_to_syscall(tid: pid_t) -> Result<()> {
    expect_alive("syscall", tid, request(libc::PTRACE_SYSCALL, tid, 0, 0)).map(drop)
}

/// Leaves the thread in its group stop until something happens to it.
pub fn listen(tid: pid_t) -> Result<()> {
    expect_alive("listen", tid, request(libc::PTRACE_LISTEN, tid, 0, 0)).map(drop)
}

pub fn registers(tid: pid_t) -> Result<Registers> {
    let mut registers = MaybeUninit::<Registers>::uninit();
    let got = request(libc::PTRACE_GETREGS, tid, 0, registers.as_mut_ptr() as usize);
    expect_alive("getregs", tid, got)?;
    // SAFETY: the kernel filled the whole structure.
    Ok(unsafe { registers.assume_init() })
}

pub fn set_registers(tid: pid_t, registers: &Registers) -> Result<()> {
    let data = std::ptr::from_ref(registers) as usize;
    expect_alive("setregs", tid, request(libc::PTRACE_SETREGS, tid, 0, data)).map(drop)
}

/// The instruction pointer alone, which is cheaper than all registers.
pub fn rip(tid: pid_t) -> Result<u64> {
    let mut value: u64 = 0;
    // The raw call returns the word through the data pointer; libc's wrapper hides
    // it behind errno.
    // SAFETY: __errno_location is always valid, and PEEKUSER reads an offset within
    // the user area.
    unsafe {
        *libc::__errno_location() = 0;
        let offset = std::mem::offset_of!(libc::user_regs_struct, rip);
        let word = libc::ptrace(libc::PTRACE_PEEKUSER, tid, offset, 0);
        if word == -1 && *libc::__errno_location() != 0 {
            let error = io::Error::last_os_error();
            expect_alive::<()>("peekuser", tid, Err(error))?;
        }
        value |= word as u64;
    }
    Ok(value)
}

pub fn signal_info(tid: pid_t) -> io::Result<siginfo_t> {
    let mut info = MaybeUninit::<siginfo_t>::uninit();
    request(libc::PTRACE_GETSIGINFO, tid, 0, info.as_mut_ptr() as usize)?;
    // SAFETY: the kernel filled the whole structure.
    Ok(unsafe { info.assume_init() })
}

/// The signals that wait in the thread's own queue.
pub fn queued_signals(tid: pid_t) -> Result<Vec<siginfo_t>> {
    peek_signals(tid, 0)
}

/// The same of signals sent to the whole process.
pub fn queued_for_process(tid: pid_t) -> Result<Vec<siginfo_t>> {
    const PTRACE_PEEKSIGINFO_SHARED: u32 = 1;
    peek_signals(tid, PTRACE_PEEKSIGINFO_SHARED)
}

fn peek_signals(tid: pid_t, flags: u32) -> Result<Vec<siginfo_t>> {
    const AT_ONCE: usize = 8;
    #[repr(C)]
    struct Peek {
        offset: u64,
        flags: u32,
        count: i32,
    }
    let mut queue = Vec::new();
    loop {
        let peek = Peek { offset: queue.len() as u64, flags, count: AT_ONCE as i32 };
        // SAFETY: an all-zero siginfo_t is valid.
        let mut part: [siginfo_t; AT_ONCE] = unsafe { std::mem::zeroed() };
        let (at, to) = (std::ptr::from_ref(&peek) as usize, part.as_mut_ptr() as usize);
        let got = request(libc::PTRACE_PEEKSIGINFO, tid, at, to);
        let count = expect_alive("peeksiginfo", tid, got)? as usize;
        queue.extend_from_slice(&part[..count]);
        if count < AT_ONCE {
            return Ok(queue);
        }
    }
}

pub fn set_signal_info(tid: pid_t, info: &siginfo_t) -> Result<()> {
    let data = std::ptr::from_ref(info) as usize;
    expect_alive("setsiginfo", tid, request(libc::PTRACE_SETSIGINFO, tid, 0, data)).map(drop)
}

pub fn event_message(tid: pid_t) -> Result<u64> {
    let mut message: u64 = 0;
    let data = std::ptr::from_mut(&mut message) as usize;
    expect_alive("geteventmsg", tid, request(libc::PTRACE_GETEVENTMSG, tid, 0, data))?;
    Ok(message)
}

pub fn signal_mask(tid: pid_t) -> Result<u64> {
    let mut mask: u64 = 0;
    let data = std::ptr::from_mut(&mut mask) as usize;
    expect_alive("getsigmask", tid, request(libc::PTRACE_GETSIGMASK, tid, 8, data))?;
    Ok(mask)
}

pub fn set_signal_mask(tid: pid_t, mask: u64) -> Result<()> {
    let data = std::ptr::from_ref(&mask) as usize;
    expect_alive("setsigmask", tid, request(libc::PTRACE_SETSIGMASK, tid, 8, data)).map(drop)
}

/// The vector and floating point registers, as XSAVE lays them out.
pub fn vectors(tid: pid_t) -> Result<Vec<u8>> {
    let mut bytes = vec![0; MOST_VECTOR_BYTES];
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let data = std::ptr::from_mut(&mut part) as usize;
    let got = request(libc::PTRACE_GETREGSET, tid, NT_X86_XSTATE, data);
    expect_alive("getregset", tid, got)?;
    bytes.truncate(part.iov_len);
    Ok(bytes)
}

/// False if they are such as the CPU cannot have.
pub fn set_vectors(tid: pid_t, bytes: &[u8]) -> Result<bool> {
    let part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let data = std::ptr::from_ref(&part) as usize;
    let set = request(libc::PTRACE_SETREGSET, tid, NT_X86_XSTATE, data);
    match set {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EFAULT)) => {
            Ok(false)
        }
        set => expect_alive("setregset", tid, set).map(|_| true),
    }
}

const NT_X86_XSTATE: usize = 0x202;
/// More than any CPU has, tiles included.
const MOST_VECTOR_BYTES: usize = 16 << 10;

/// What `waitpid` reported of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Exited(i32),
    Killed(i32),
    /// About to receive this signal.
    Signal(i32),
    /// Entering or leaving a system call.
    Syscall,
    Clone,
    Fork,
    Vfork,
    Exec,
    /// Stopped by `PTRACE_INTERRUPT`, by being created, or by the end of a group stop.
    Interrupted,
    /// The whole process is stopped by this signal.
    WholeProcess(i32),
}

impl Stop {
    fn from_status(status: i32) -> Stop {
        if libc::WIFEXITED(status) {
            return Stop::Exited(libc::WEXITSTATUS(status));
        }
        if libc::WIFSIGNALED(status) {
            return Stop::Killed(libc::WTERMSIG(status));
        }
        let signal = libc::WSTOPSIG(status);
        match status >> 16 {
            0 if signal == libc::SIGTRAP | 0x80 => Stop::Syscall,
            0 => Stop::Signal(signal),
            libc::PTRACE_EVENT_CLONE => Stop::Clone,
            libc::PTRACE_EVENT_FORK => Stop::Fork,
            libc::PTRACE_EVENT_VFORK => Stop::Vfork,
            libc::PTRACE_EVENT_EXEC => Stop::Exec,
            libc::PTRACE_EVENT_STOP if signal == libc::SIGTRAP => Stop::Interrupted,
            libc::PTRACE_EVENT_STOP => Stop::WholeProcess(signal),
            event => panic!("ptrace event {event} was not asked for"),
        }
    }
}

/// Waits for any traced thread (`tid` -1) or for one. None when a timer went off
/// first or, for -1, when none is left (see `errno` ECHILD).
pub fn wait(tid: pid_t) -> io::Result<(pid_t, Stop)> {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    let got = unsafe { libc::waitpid(tid, &mut status, libc::__WALL) };
    if got == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok((got, Stop::from_status(status)))
}

/// What is to be reported of a thread, if anything is.
pub fn has_stopped(tid: pid_t) -> Result<Option<Stop>> {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    match unsafe { libc::waitpid(tid, &mut status, libc::__WALL | libc::WNOHANG) } {
        -1 => Err(Gone),
        0 => Ok(None),
        _ => Ok(Some(Stop::from_status(status))),
    }
}
