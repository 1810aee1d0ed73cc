//! The independent oracle for `count`: executes a single-threaded program one
//! instruction at a time and counts. It shares no code with the engine.
//!
//! Counted are instructions that were executed: one that faults is not, the
//! `syscall` that ends the process is, and a rep-prefixed string instruction is
//! one however often it repeats.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;

use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::support::job::{Before, Job};
use crate::support::leftover::Mark;
use crate::support::run;
use crate::support::seccomp;

/// Entries of the auxiliary vector that the engine hides from programs; turned
/// into AT_IGNORE here too, because start-up code takes another path without them.
const HIDDEN: &[u64] = &[];

/// The number of instructions the job's program executes. The `rseq` system call
/// answers ENOSYS and the address space is not randomised, as under the engine
/// when exactness is asked for.
pub fn count(job: &Job) -> Result<u64, String> {
    let job = job.clone().before(Before::NoRandomLayout);
    let dir = run::fresh_dir(&job)?;
    let mark = Mark::new();
    let mut command = run::command(&job, dir.path(), &mark);
    let prepare = || {
        seccomp::without_rseq()?;
        ptrace::traceme().map_err(io::Error::from)
    };
    // SAFETY: between fork and exec the closure makes system calls only.
    unsafe { command.pre_exec(prepare) };
    // Its end is waited for below, by the one who traces it.
    let (child, streams) = run::start(&mut command, &job)?;
    let pid = Pid::from_raw(child.id().cast_signed());
    let counted = step_to_the_end(pid);
    if counted.is_err() {
        mark.kill_all();
    }
    streams.collect();
    counted.map_err(|error| format!("single-stepping {}: {error}", job.program.display()))
}

fn step_to_the_end(pid: Pid) -> nix::Result<u64> {
    let at_entry = waitpid(pid, None)?;
    assert!(matches!(at_entry, WaitStatus::Stopped(_, Signal::SIGTRAP)), "{at_entry:?}");
    hide_auxiliary_entries(pid)?;
    let mut count = 0;
    let mut pc = program_counter(pid)?;
    let mut signal = None;
    loop {
        // With a handler to enter, a step ends before the handler's first
        // instruction and executes nothing.
        let enters_handler = signal.is_some_and(|signal| is_caught(pid, signal));
        ptrace::step(pid, signal.take())?;
        match waitpid(pid, None)? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => {
                let next = program_counter(pid)?;
                let repeats = next == pc && is_repeated_string(pid, pc)?;
                if !repeats && !enters_handler {
                    count += 1;
                }
                pc = next;
            }
            WaitStatus::Stopped(_, other) => signal = Some(other),
            WaitStatus::Exited(..) => return Ok(count + 1),
            WaitStatus::Signaled(..) => return Ok(count),
            _ => {}
        }
    }
}

fn program_counter(pid: Pid) -> nix::Result<u64> {
    let offset = std::mem::offset_of!(libc::user_regs_struct, rip);
    ptrace::read_user(pid, offset as ptrace::AddressType).map(i64::cast_unsigned)
}

/// Is there a rep-prefixed string instruction at `pc`: prefixes in any order, one
/// of them F2 or F3, then MOVS, CMPS, STOS, LODS, SCAS, INS or OUTS?
fn is_repeated_string(pid: Pid, pc: u64) -> nix::Result<bool> {
    let mut repeated = false;
    for offset in 0..15 {
        match byte_at(pid, pc + offset)? {
            0xf2 | 0xf3 => repeated = true,
            0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0x40..=0x4f => {}
            0x6c..=0x6f | 0xa4..=0xa7 | 0xaa..=0xaf => return Ok(repeated),
            _ => return Ok(false),
        }
    }
    Ok(false)
}

fn byte_at(pid: Pid, address: u64) -> nix::Result<u8> {
    let word = ptrace::read(pid, (address & !7) as ptrace::AddressType)?;
    Ok(word.to_le_bytes()[(address & 7) as usize])
}

fn is_caught(pid: Pid, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal as u32 - 1) & 1 == 1)
}

/// The stack at entry: argc, argv, 0, envp, 0, then pairs of key and value.
fn hide_auxiliary_entries(pid: Pid) -> nix::Result<()> {
    const AT_IGNORE: i64 = 1;
    if HIDDEN.is_empty() {
        return Ok(());
    }
    let read = |address: u64| ptrace::read(pid, address as ptrace::AddressType);
    let stack = ptrace::getregs(pid)?.rsp;
    let arguments = read(stack)?.cast_unsigned();
    let mut at = stack + 8 * (arguments + 2);
    while read(at)? != 0 {
        at += 8;
    }
    at += 8;
    loop {
        let key = read(at)?.cast_unsigned();
        if key == libc::AT_NULL {
            return Ok(());
        }
        if HIDDEN.contains(&key) {
            ptrace::write(pid, at as ptrace::AddressType, AT_IGNORE)?;
        }
        at += 16;
    }
}
