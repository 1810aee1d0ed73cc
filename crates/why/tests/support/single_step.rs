//! The independent oracle's feet: executes a single-threaded program one
//! instruction at a time and shows each step to a visitor; the simplest one counts.
//! It shares no code with the engine.
//!
//! Counted are instructions that were executed: one that faults is not, the
//! `syscall` that ends the process is, and a rep-prefixed string instruction is
//! one however often it repeats.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;

use libc::user_regs_struct;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::support::job::{Before, Job};
use crate::support::leftover::Mark;
use crate::support::run;
use crate::support::seccomp;

/// Sees every step of a program.
pub trait Visitor {
    /// Entries of the auxiliary vector that the engine hides from programs; turned
    /// into AT_IGNORE here too, because start-up code takes another path without them.
    fn hidden(&self) -> &[u64] {
        &[]
    }

    /// The program is about to execute its very first instruction.
    fn at_entry(&mut self, _: Pid) -> nix::Result<()> {
        Ok(())
    }

    /// The program is about to execute the instruction at `registers.rip`, or to
    /// go on with it.
    fn before(&mut self, pid: Pid, registers: &user_regs_struct) -> nix::Result<()>;

    /// What came of it, and the registers now.
    fn after(&mut self, step: Step, registers: &user_regs_struct);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The instruction was executed to its end.
    Executed,
    /// A part of it was: one iteration of a rep-prefixed string instruction, some
    /// elements of a gather.
    Halfway,
    /// A signal came instead, of the instruction's fault or from elsewhere, and its
    /// handler is entered or the program ends.
    Interrupted,
}

/// The number of instructions the job's program executes.
pub fn count(job: &Job) -> Result<u64, String> {
    let mut counter = Counter(0);
    visit(job, &mut counter)?;
    Ok(counter.0)
}

struct Counter(u64);

impl Visitor for Counter {
    fn before(&mut self, _: Pid, _: &user_regs_struct) -> nix::Result<()> {
        Ok(())
    }

    fn after(&mut self, step: Step, _: &user_regs_struct) {
        self.0 += u64::from(step == Step::Executed);
    }
}

/// Steps through the job's program from its first instruction to its end. The `rseq`
/// system call answers ENOSYS and the address space is not randomised, as under the
/// engine when exactness is asked for.
pub fn visit(job: &Job, visitor: &mut impl Visitor) -> Result<(), String> {
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
    let stepped = step_to_the_end(pid, visitor);
    if stepped.is_err() {
        mark.kill_all();
    }
    streams.collect();
    stepped.map_err(|error| format!("single-stepping {}: {error}", job.program.display()))
}

fn step_to_the_end(pid: Pid, visitor: &mut impl Visitor) -> nix::Result<()> {
    let at_entry = waitpid(pid, None)?;
    assert!(matches!(at_entry, WaitStatus::Stopped(_, Signal::SIGTRAP)), "{at_entry:?}");
    hide_auxiliary_entries(pid, visitor.hidden())?;
    visitor.at_entry(pid)?;
    let mut registers = ptrace::getregs(pid)?;
    let mut signal = None;
    // With a handler to enter, a step ends before the handler's first instruction
    // and executes nothing.
    let mut enters_handler = false;
    loop {
        if !enters_handler {
            visitor.before(pid, &registers)?;
        }
        ptrace::step(pid, signal.take())?;
        match waitpid(pid, None)? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => {
                let pc = registers.rip;
                registers = ptrace::getregs(pid)?;
                if !enters_handler {
                    let halfway = registers.rip == pc && can_stop_halfway(pid, pc)?;
                    let step = if halfway { Step::Halfway } else { Step::Executed };
                    visitor.after(step, &registers);
                }
                enters_handler = false;
            }
            WaitStatus::Stopped(_, other) => {
                signal = Some(other);
                enters_handler = is_caught(pid, other);
                registers = ptrace::getregs(pid)?;
                if enters_handler {
                    visitor.after(Step::Interrupted, &registers);
                }
            }
            WaitStatus::Exited(..) => {
                visitor.after(Step::Executed, &registers);
                return Ok(());
            }
            WaitStatus::Signaled(..) => {
                visitor.after(Step::Interrupted, &registers);
                return Ok(());
            }
            _ => {}
        }
    }
}

/// Is the instruction at `pc` one that can stop in the middle and go on from there:
/// a rep-prefixed string instruction, or a gather or scatter? The latter, where an
/// element faults after others were moved, may report the step before the fault.
fn can_stop_halfway(pid: Pid, pc: u64) -> nix::Result<bool> {
    let mut repeated = false;
    for at in pc..pc + 15 {
        match byte_at(pid, at)? {
            0xf2 | 0xf3 => repeated = true,
            0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0x40..=0x4f => {}
            // MOVS, CMPS, STOS, LODS, SCAS, INS and OUTS.
            0x6c..=0x6f | 0xa4..=0xa7 | 0xaa..=0xaf => return Ok(repeated),
            // VEX and EVEX, whose second map of opcodes holds gathers and scatters.
            0xc4 if byte_at(pid, at + 1)? & 0x1f == 2 => {
                return Ok(matches!(byte_at(pid, at + 3)?, 0x90..=0x93));
            }
            0x62 if byte_at(pid, at + 1)? & 7 == 2 => {
                return Ok(matches!(byte_at(pid, at + 4)?, 0x90..=0x93 | 0xa0..=0xa3));
            }
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
fn hide_auxiliary_entries(pid: Pid, hidden: &[u64]) -> nix::Result<()> {
    const AT_IGNORE: i64 = 1;
    if hidden.is_empty() {
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
        if hidden.contains(&key) {
            ptrace::write(pid, at as ptrace::AddressType, AT_IGNORE)?;
        }
        at += 16;
    }
}
