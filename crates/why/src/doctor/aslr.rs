//! Switches address space layout randomisation off for a child, executes a
//! program twice and compares where the stack is.

use std::ffi::CString;

use nix::sys::personality::{self, Persona};
use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, execve, fork};

use super::child::{Said, attempt, die_with_parent};
use super::finding::{Finding, Verdict};

pub fn probe() -> Finding {
    match attempt(compare) {
        Ok(found) => Finding::works(
            "aslr",
            found,
            "Where exactness needs it, a program gets the same addresses in every run.",
        ),
        Err(error) => Finding::new(
            "aslr",
            Verdict::Limited,
            error,
            "Programs run, with addresses that differ from run to run.",
            "Allow the system call personality in the container's seccomp profile.",
        ),
    }
}

fn compare() -> Said {
    let (first, second) = (stack(true)?, stack(true)?);
    if first != second {
        return Err(format!("switched off, yet the stack was at {first:#x}, then at {second:#x}"));
    }
    let usual = stack(false)? != stack(false)?;
    let usual = if usual { "on" } else { "off already" };
    Ok(format!("switched off in a child: two runs, one stack address; usually {usual}"))
}

/// The stack pointer of a fresh program at its first instruction.
fn stack(fixed: bool) -> Result<u64, String> {
    // SAFETY: the forked process of a probe has one thread.
    let child = match unsafe { fork() }.map_err(|error| format!("fork: {error}"))? {
        ForkResult::Child => execute(fixed),
        ForkResult::Parent { child } => child,
    };
    match waitpid(child, Some(WaitPidFlag::__WALL)) {
        Ok(WaitStatus::Stopped(..)) => {}
        Ok(WaitStatus::Exited(_, 1)) => {
            return Err("personality(ADDR_NO_RANDOMIZE) is refused".to_owned());
        }
        other => {
            return Err(format!("a traced child did not reach its program: {other:?}"));
        }
    }
    let registers =
        ptrace::getregs(child).map_err(|error| format!("reading registers: {error}"))?;
    let _ = ptrace::kill(child);
    let _ = waitpid(child, Some(WaitPidFlag::__WALL));
    Ok(registers.rsp)
}

/// Becomes this same program, which stops for its tracer before it does anything.
fn execute(fixed: bool) -> ! {
    die_with_parent();
    let refused = fixed
        && personality::get()
            .and_then(|persona| personality::set(persona | Persona::ADDR_NO_RANDOMIZE))
            .is_err();
    let mut status = 1;
    if !refused && ptrace::traceme().is_ok() {
        let none: [CString; 0] = [];
        let _ = execve(c"/proc/self/exe", &[c"why"], &none);
        status = 2;
    }
    // SAFETY: ends this process without running the exit handlers of `why`.
    unsafe { libc::_exit(status) }
}
