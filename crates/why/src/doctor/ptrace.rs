//! Seizes a child, interrupts it and reads its registers: how the engine controls
//! a program.

use std::fs;

use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

use super::child::{Said, attempt, die_with_parent};
use super::finding::{Finding, Verdict};

pub fn probe() -> Finding {
    match attempt(control) {
        Ok(found) => Finding::works("ptrace", found, "The engine can control programs."),
        Err(error) => Finding::new(
            "ptrace",
            Verdict::Missing,
            error,
            "No program can run under the engine.",
            remedy(),
        ),
    }
}

fn control() -> Said {
    let tracee = sleeper()?;
    ptrace::seize(tracee, Options::PTRACE_O_TRACESYSGOOD)
        .map_err(|error| format!("PTRACE_SEIZE of an own child: {error}"))?;
    ptrace::interrupt(tracee).map_err(|error| format!("PTRACE_INTERRUPT: {error}"))?;
    match waitpid(tracee, Some(WaitPidFlag::__WALL)) {
        Ok(WaitStatus::PtraceEvent(..)) => {}
        other => {
            return Err(format!("PTRACE_INTERRUPT did not stop the child: {other:?}"));
        }
    }
    let registers =
        ptrace::getregs(tracee).map_err(|error| format!("reading registers: {error}"))?;
    if registers.rip == 0 || registers.rsp == 0 {
        return Err("the registers of a stopped child read as zero".to_owned());
    }
    let _ = kill(tracee, Signal::SIGKILL);
    Ok("seized a child, stopped it, read its registers".to_owned())
}

/// A child that does nothing until it is killed.
pub fn sleeper() -> Result<Pid, String> {
    // SAFETY: the forked process of a probe has one thread; its child only sleeps.
    match unsafe { fork() }.map_err(|error| format!("fork: {error}"))? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            die_with_parent();
            loop {
                nix::unistd::pause();
            }
        }
    }
}

fn remedy() -> String {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "2" => {
            "kernel.yama.ptrace_scope is 2: only CAP_SYS_PTRACE may trace. As root: \
                sysctl kernel.yama.ptrace_scope=1"
        }
        "3" => {
            "kernel.yama.ptrace_scope is 3: nobody may trace until a reboot with a lower \
                setting."
        }
        _ => {
            "Something refuses ptrace: in a container, allow the system call in its seccomp \
              profile (docker run --cap-add SYS_PTRACE); else look for a sandbox around this shell."
        }
    }
    .to_owned()
}
