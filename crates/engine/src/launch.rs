//! Starting a program and the supervisor that runs it.
//!
//! `why` itself stays a bystander: it forks the supervisor, waits for what that
//! reports, and ends as the program did. The supervisor goes on as long as the
//! program has descendants.

use crate::error::{EngineError, Halt, Result};
use crate::messages::{self, Message};
use crate::processor;
use crate::ptrace::{self, Stop};
use crate::report::Report;
use crate::signals::{self, Action, Actions};
use crate::space::SpaceId;
use crate::supervisor::{Options, Supervisor};
use crate::task::{State, Tid};
use crate::{program, timer};
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::{ForkResult, fork};
use std::cell::RefCell;
use std::ffi::{CString, OsString};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use why_translate::Tool;

pub struct Command {
    pub words: Vec<OsString>,
    pub tool: Tool,
}

/// Signals that a terminal sends to everybody in the foreground: they are meant for
/// the program.
const FROM_TERMINAL: [Signal; 4] =
    [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTSTP, Signal::SIGHUP];

/// Runs a program to its end.
pub fn run(command: &Command) -> Result<Report> {
    let name = command.words.first().ok_or_else(|| EngineError::CannotStart {
        status: 125,
        message: "no program was named; give it after --".to_owned(),
    })?;
    let path = program::find(name)?;
    let (ours, theirs) = UnixStream::pair().map_err(EngineError::system("creating a socket"))?;
    // SAFETY: this process has only one thread, so the child may do anything.
    match unsafe { fork() }.map_err(|e| EngineError::system("starting the supervisor")(e.into()))? {
        ForkResult::Child => {
            drop(ours);
            let status = supervise(command, &path, theirs);
            std::process::exit(status);
        }
        ForkResult::Parent { child } => {
            drop(theirs);
            for signal in FROM_TERMINAL {
                ignore(signal);
            }
            let result = follow(ours);
            if result.as_ref().is_ok_and(|report| report.descendants_alive == 0) {
                // Its resource usage becomes ours.
                let _ = nix::sys::wait::waitpid(child, None);
            }
            result
        }
    }
}

fn ignore(which: Signal) {
    // SAFETY: ignoring runs no code.
    let _ = unsafe { signal(which, SigHandler::SigIgn) };
}

/// Waits for what the supervisor reports.
fn follow(from: UnixStream) -> Result<Report> {
    for message in messages::receive(from) {
        match message {
            Message::Ended(report) => return Ok(report),
            Message::Failed { status, message } => {
                return Err(EngineError::CannotStart { status, message });
            }
            // So that the shell sees a stopped job, as it would natively.
            Message::Stopped => drop(nix::sys::signal::raise(Signal::SIGSTOP)),
        }
    }
    Err(EngineError::CannotStart {
        status: 125,
        message: "the supervisor ended without a word; it was probably killed".to_owned(),
    })
}

/// The supervisor's life; its exit status matters to nobody.
fn supervise(command: &Command, path: &std::path::Path, to: UnixStream) -> i32 {
    // Whoever kills `why` kills what it runs.
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    report_panics(&to);
    match try_supervise(command, path, &to) {
        Ok(()) => 0,
        Err(error) => {
            let failed = Message::Failed { status: error.status(), message: error.to_string() };
            messages::send(&to, &failed);
            125
        }
    }
}

/// A defect of the engine is told like any other failure, and ends the targets: the
/// kernel kills them when their tracer ends.
fn report_panics(to: &UnixStream) {
    let Ok(to) = to.try_clone() else { return };
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.to_string().replace('\n', " ");
        let message = format!("the engine has a defect, please report it: {text}");
        messages::send(&to, &Message::Failed { status: 125, message });
        std::process::exit(125);
    }));
}

fn try_supervise(command: &Command, path: &std::path::Path, to: &UnixStream) -> Result<()> {
    let affinity = processor::affinity();
    // A target on another processor only costs time.
    let _ = processor::pin_here();
    let tid = start(command, path)?;
    for signal in FROM_TERMINAL {
        ignore(signal);
    }
    for signal in [Signal::SIGTTIN, Signal::SIGTTOU, Signal::SIGPIPE, Signal::SIGTERM] {
        ignore(signal);
    }
    release_streams();
    timer::prepare();
    let (ended, stopped) = (to.try_clone(), to.try_clone());
    let (ended, stopped) = match (ended, stopped) {
        (Ok(ended), Ok(stopped)) => (ended, stopped),
        (Err(error), _) | (_, Err(error)) => {
            return Err(EngineError::system("copying a descriptor")(error));
        }
    };
    let options = Options {
        tool: command.tool,
        allowed: affinity.clone(),
        affinity,
        on_stop: Box::new(move || messages::send(&stopped, &Message::Stopped)),
        on_end: Box::new(move |report| {
            if report.descendants_alive > 0 {
                // From now on the supervisor lives for them alone.
                let _ = nix::sys::prctl::set_pdeathsig(None);
            }
            messages::send(&ended, &Message::Ended(report.clone()));
        }),
    };
    let mut supervisor = Supervisor::new(options, tid);
    supervisor.begin_with(tid)?;
    let result = supervisor.run();
    if result.is_err() {
        supervisor.kill_all();
    }
    result
}

/// The target's streams are the target's: a pipe must close when the target closes it.
fn release_streams() {
    if let Ok(null) = std::fs::File::options().read(true).write(true).open("/dev/null") {
        for stream in 0..3 {
            // SAFETY: both descriptors are open, and nothing here uses the streams.
            unsafe { libc::dup2(null.as_raw_fd(), stream) };
        }
    }
}

/// Forks the target and stops it at its first instruction.
fn start(command: &Command, path: &std::path::Path) -> Result<Tid> {
    let pair = || UnixStream::pair().map_err(EngineError::system("creating a socket"));
    let (mut go, mut waiting) = pair()?;
    let (mut failure, mut failing) = pair()?;
    // SAFETY: this process has only one thread, so the child may do anything.
    let forked = unsafe { fork() };
    match forked.map_err(|e| EngineError::system("starting the program")(e.into()))? {
        ForkResult::Child => {
            drop(go);
            let _ = waiting.read_exact(&mut [0]);
            restore_sigpipe();
            let error = exec(path, &command.words);
            let _ = failing.write_all(&error.to_le_bytes());
            std::process::exit(127);
        }
        ForkResult::Parent { child } => {
            drop((waiting, failing));
            let tid = child.as_raw();
            ptrace::seize(tid).map_err(EngineError::system("tracing the program"))?;
            let _ = go.write_all(&[1]);
            loop {
                match ptrace::wait(tid).map_err(EngineError::system("waiting for the program"))? {
                    (_, Stop::Exec) => return Ok(tid),
                    (_, Stop::Exited(_) | Stop::Killed(_)) => {
                        let mut errno = [0; 4];
                        let _ = failure.read_exact(&mut errno);
                        let error = std::io::Error::from_raw_os_error(i32::from_le_bytes(errno));
                        let message = format!("cannot run {}: {error}", path.display());
                        return Err(EngineError::CannotStart { status: 126, message });
                    }
                    (_, Stop::Signal(signal)) => drop(ptrace::resume(tid, signal)),
                    _ => drop(ptrace::resume(tid, 0)),
                }
            }
        }
    }
}

/// Replaces this process; returns the error number if that fails.
fn exec(path: &std::path::Path, words: &[OsString]) -> i32 {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return libc::EINVAL };
    let words: Vec<CString> =
        words.iter().filter_map(|word| CString::new(word.as_bytes()).ok()).collect();
    match nix::unistd::execv(&path, &words) {
        Ok(never) => match never {},
        Err(errno) => errno as i32,
    }
}

/// Rust programs start with SIGPIPE ignored; the target must not.
fn restore_sigpipe() {
    // SAFETY: the default action runs no code here.
    let _ = unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl) };
}

impl Supervisor {
    /// Takes over the first process, which has just executed its program.
    fn begin_with(&mut self, tid: Tid) -> Result<()> {
        let actions = Rc::new(RefCell::new(inherited_actions(tid)));
        let none = SpaceId(u32::MAX);
        // SAFETY: an all-zero register set is a valid value; it is never used.
        let registers = unsafe { std::mem::zeroed() };
        let task = Supervisor::new_task(tid, tid, none, actions, State::New(registers));
        self.tasks.insert(tid, task);
        self.report.threads += 1;
        match self.attach(tid) {
            Ok(()) | Err(Halt::Gone) => Ok(()),
            Err(Halt::Engine(error)) => {
                self.kill_all();
                Err(error)
            }
        }
    }

    /// Ends all that is left of the target.
    fn kill_all(&mut self) {
        for task in self.tasks.values() {
            // SAFETY: plain system call; these are our own tracees.
            unsafe { libc::kill(task.pid, libc::SIGKILL) };
        }
        while ptrace::wait(-1).is_ok() {}
    }
}

/// Signals that the program ignores from the start, as after `nohup`.
fn inherited_actions(tid: Tid) -> Actions {
    let mut actions = Actions::default();
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    for signal in (1..=64).filter(|&s| mask & signals::bit(s) != 0) {
        actions.set(signal, Action::IGNORE);
    }
    actions
}
