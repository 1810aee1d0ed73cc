//! Pins processes to cores and measures a ptrace stop on one core and between
//! two: the price of everything that the code cache cannot do by itself.

use std::io;
use std::time::Instant;

use nix::sys::ptrace;
use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

use super::child::{Said, attempt, die_with_parent};
use super::finding::{Finding, Verdict};

const STOPS: u32 = 2000;

pub fn probe() -> Finding {
    let cores = allowed();
    let Some(&first) = cores.first() else {
        return missing("the set of allowed cores cannot be read".to_owned());
    };
    let same = match attempt(|| cost(first, first)) {
        Ok(microseconds) => microseconds,
        Err(error) => return missing(error),
    };
    let Some(&second) = cores.get(1) else {
        return Finding::new(
            "pinning",
            Verdict::Limited,
            format!("one core; a ptrace stop takes {same} us"),
            "The trace tool has no second core to read the trace on, and takes longer.",
            "Give the container or the machine a second core.",
        );
    };
    let apart = match attempt(|| cost(first, second)) {
        Ok(microseconds) => microseconds,
        Err(error) => return missing(error),
    };
    Finding::works(
        "pinning",
        format!(
            "{} cores; a ptrace stop takes {same} us on one core, {apart} us across two",
            cores.len()
        ),
        "The engine pins a program and its supervisor to one core.",
    )
}

fn missing(error: String) -> Finding {
    Finding::new(
        "pinning",
        Verdict::Limited,
        error,
        "The engine leaves the placement to the kernel; every stop may cost ten times as much.",
        "Allow sched_setaffinity in the container's seccomp profile.",
    )
}

/// Cores that this process may use.
fn allowed() -> Vec<usize> {
    // SAFETY: a set of bits, for which zeroes are a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: points to a live set of the size given.
    if unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) } != 0 {
        return Vec::new();
    }
    // SAFETY: the range is the size of the set in bits.
    (0..libc::CPU_SETSIZE as usize).filter(|&core| unsafe { libc::CPU_ISSET(core, &set) }).collect()
}

fn pin(core: usize) -> Result<(), String> {
    // SAFETY: as above; `core` was found in such a set.
    let done = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set)
    };
    match done {
        0 => Ok(()),
        _ => Err(format!("sched_setaffinity: {}", io::Error::last_os_error())),
    }
}

/// Microseconds of one stop and continuation, tracer and tracee pinned.
fn cost(tracer: usize, tracee: usize) -> Said {
    pin(tracer)?;
    // SAFETY: the forked process of a probe has one thread.
    let child = match unsafe { fork() }.map_err(|error| format!("fork: {error}"))? {
        ForkResult::Child => trap_for_ever(tracee),
        ForkResult::Parent { child } => child,
    };
    stopped(child)?;
    let start = Instant::now();
    for _ in 0..STOPS {
        ptrace::cont(child, None).map_err(|error| format!("PTRACE_CONT: {error}"))?;
        stopped(child)?;
    }
    let each = start.elapsed().as_secs_f64() * 1e6 / f64::from(STOPS);
    Ok(format!("{each:.1}"))
}

fn stopped(child: Pid) -> Result<(), String> {
    match waitpid(child, Some(WaitPidFlag::__WALL)) {
        Ok(WaitStatus::Stopped(..)) => Ok(()),
        other => Err(format!("the traced child did not stop: {other:?}")),
    }
}

fn trap_for_ever(core: usize) -> ! {
    die_with_parent();
    if pin(core).is_ok() && ptrace::traceme().is_ok() {
        let _ = raise(Signal::SIGSTOP);
        loop {
            // SAFETY: a trap changes nothing; the tracer continues after it.
            unsafe { std::arch::asm!("int3") };
        }
    }
    // SAFETY: ends this process without running the exit handlers of `why`.
    unsafe { libc::_exit(1) }
}
