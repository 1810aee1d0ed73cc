//! Starting a program and the supervisor that runs it.
//!
//! `why` itself stays a bystander: it forks the supervisor, waits for what that
//! reports, stops and continues with the program, and ends as it did. The supervisor
//! goes on as long as the program has descendants.

use crate::cpu::View;
use crate::error::{EngineError, Halt, Result};
use crate::inherited;
use crate::messages::{Message, Messages, send};
use crate::processor;
use crate::ptrace::{self, Stop};
use crate::recording::{Recorder, Wanted};
use crate::relay::{Relay, Witness};
use crate::replaying::{Look, Outputs, Replayer, Session};
use crate::report::Report;
use crate::signals::{self, Action, Actions};
use crate::space::SpaceId;
use crate::stub::Stub;
use crate::supervisor::{Options, Supervisor};
use crate::task::{State, Tid};
use crate::tracing::Readers;
use crate::{program, timer};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::WaitStatus;
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid};
use std::cell::RefCell;
use std::ffi::{CString, OsString, c_char, c_int, c_void};
use std::io::{PipeReader, Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::panic::PanicHookInfo;
use std::path::PathBuf;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};
use why_record::manifest::Manifest;
use why_record::remedy::address_space;
use why_translate::Tool;

/// How a supervisor ends that has no memory left even to say so.
pub const NO_MEMORY: c_int = 124;

static SUPERVISES: AtomicBool = AtomicBool::new(false);

/// Whether this process is a supervisor, whose end `why` waits for.
pub fn supervises() -> bool {
    SUPERVISES.load(Ordering::Relaxed)
}

pub struct Command {
    pub words: Vec<OsString>,
    pub tool: Tool,
    /// Look for executable memory outside the cache, from time to time and at the end.
    pub inspect: bool,
    /// Who reads the traces of processes.
    pub readers: Option<Readers>,
    pub course: Course,
}

impl Command {
    fn chaos(&self) -> Option<Chaos> {
        match self.course {
            Course::Record(Wanted { chaos, .. }) => chaos,
            _ => None,
        }
    }
}

/// What comes of a run.
pub enum Course {
    Run,
    Record(Wanted),
    Replay(Again),
}

/// What is to run again.
#[derive(Clone)]
pub struct Again {
    /// The recording's directory.
    pub recording: PathBuf,
    /// A process that began as a program.
    pub process: i32,
    /// Begin with the last checkpoint that is not behind so many events, if there is one, of
    /// the process that is looked at: then only that one runs.
    pub from: Option<u64>,
    /// Other processes that were there when the recording began.
    pub beside: Vec<i32>,
    /// Compare memory wherever the recording tells what it held.
    pub verify: bool,
    /// Go on only up to where this process, or one that descends from it, has been looked at.
    pub look: Option<Rc<Look>>,
}

/// A schedule that is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chaos {
    pub seed: u64,
    /// The program is ended when it takes longer.
    pub time_limit: Option<Duration>,
}

/// The supervisor's ways to `why`.
struct ToFront {
    why: Pid,
    messages: UnixStream,
    /// Signals for the program come from here.
    relay: UnixStream,
}

fn pair() -> Result<(UnixStream, UnixStream)> {
    UnixStream::pair().map_err(EngineError::system("creating a socket"))
}

/// Runs a program to its end.
pub fn run(command: &Command) -> Result<Report> {
    let name = command.words.first().ok_or_else(|| EngineError::CannotStart {
        status: 125,
        message: "no program was named; give it after --".to_owned(),
    })?;
    let stub = matches!(command.course, Course::Replay(..)).then(Stub::new).transpose()?;
    let path = match &stub {
        Some(stub) => stub.path(),
        None => program::find(name)?,
    };
    let (messages, to_messages) = pair()?;
    let (relay, from_relay) = pair()?;
    let why = nix::unistd::getpid();
    // From now on a signal for the program waits until there is one.
    let mask = inherited::block_signals()?;
    // SAFETY: this process has only one thread, so the child may do anything.
    match unsafe { fork() }.map_err(|e| EngineError::system("starting the supervisor")(e.into()))? {
        ForkResult::Child => {
            drop((messages, relay));
            let front = ToFront { why, messages: to_messages, relay: from_relay };
            let status = supervise(command, &path, &mask, front);
            std::process::exit(status);
        }
        ForkResult::Parent { child } => {
            drop((to_messages, from_relay));
            match command.course {
                // Signals are not meant for a program that ran long ago: they end `why`, and with
                // it all that it has started.
                Course::Replay(..) => drop(mask.thread_set_mask()),
                // Standard error stays for what `why` itself may have to say.
                _ => inherited::release_descriptors(libc::STDERR_FILENO),
            }
            let relay = Relay::new(relay, child.as_raw())?;
            let result = follow(Messages::new(messages), relay, child);
            if result.as_ref().is_ok_and(|report| report.descendants_alive == 0) {
                // Its resource usage becomes ours.
                let _ = nix::sys::wait::waitpid(child, None);
            }
            result
        }
    }
}

/// Waits for what the supervisor reports, and passes signals on.
fn follow(mut messages: Messages, mut relay: Relay, supervisor: Pid) -> Result<Report> {
    loop {
        let (reported, signalled) = match messages.has_more() {
            true => (true, false),
            false => wait_for_either(messages.as_fd(), relay.as_fd())?,
        };
        if signalled {
            relay.pass_on();
        }
        if !reported {
            continue;
        }
        match messages.receive() {
            Some(Message::Ended(report)) => return Ok(*report),
            Some(Message::Failed { status, message }) => {
                return Err(EngineError::CannotStart { status, message });
            }
            Some(Message::Stopped(signal)) => stop_with_program(signal),
            None => return Err(how_killed(supervisor)),
        }
    }
}

/// Why the supervisor has ended and said nothing.
fn how_killed(supervisor: Pid) -> EngineError {
    match nix::sys::wait::waitpid(supervisor, None) {
        Ok(WaitStatus::Exited(_, NO_MEMORY)) => EngineError::NoMemory,
        _ => EngineError::CannotStart {
            status: 125,
            message: "the supervisor was killed, and with it the program; nothing is known of \
                      how far it came"
                .to_owned(),
        },
    }
}

fn wait_for_either(first: BorrowedFd<'_>, second: BorrowedFd<'_>) -> Result<(bool, bool)> {
    let mut both = [first, second].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
    loop {
        match poll(&mut both, PollTimeout::NONE) {
            Ok(_) => break,
            Err(nix::Error::EINTR) => {}
            Err(error) => return Err(EngineError::system("waiting for the program")(error.into())),
        }
    }
    let ready = both.map(|fd| fd.any().unwrap_or(true));
    Ok((ready[0], ready[1]))
}

/// Lets the signal take effect that the supervisor has sent before it said so, unless
/// `why` has been continued since. The shell sees a stopped job, as it would natively.
fn stop_with_program(signal: i32) {
    let Ok(signal) = Signal::try_from(signal) else {
        return;
    };
    let mut only = SigSet::empty();
    only.add(signal);
    let _ = only.thread_unblock();
    let _ = only.thread_block();
}

/// The supervisor's life; its exit status matters to nobody, but where memory has run out.
fn supervise(command: &Command, path: &std::path::Path, mask: &SigSet, front: ToFront) -> i32 {
    SUPERVISES.store(true, Ordering::Relaxed);
    // Whoever kills `why` kills what it runs.
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    if getppid() != front.why {
        return 125;
    }
    // `killall why` means the one that the user started.
    let _ = nix::sys::prctl::set_name(c"supervisor");
    report_panics(&front.messages);
    let Ok(to) = front.messages.try_clone() else {
        return 125;
    };
    match try_supervise(command, path, mask, front) {
        Ok(()) => 0,
        Err(error) => {
            let failed = Message::Failed { status: error.status(), message: error.to_string() };
            send(&to, &failed);
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
        let message = match is_for_want_of_memory(panic) {
            true => EngineError::NoMemory.to_string(),
            false => format!("the engine has a defect, please report it: {text}"),
        };
        send(&to, &Message::Failed { status: 125, message });
        std::process::exit(125);
    }));
}

/// Whether somebody has panicked because there was no address space left for a thread's stack.
pub fn is_for_want_of_memory(panic: &PanicHookInfo) -> bool {
    address_space().is_some() && panic.to_string().contains("failed to spawn thread")
}

fn try_supervise(
    command: &Command,
    path: &std::path::Path,
    mask: &SigSet,
    front: ToFront,
) -> Result<()> {
    let affinity = processor::affinity();
    // A target on another processor only costs time.
    let processor = processor::pin_here().ok();
    let tid = start(command, path, mask)?;
    if !matches!(command.course, Course::Replay(..)) {
        inherited::release_descriptors(libc::STDERR_FILENO + 1);
    }
    let mut witness = Witness::new(front.relay, tid)?;
    timer::prepare();
    let why = front.why;
    let copy = || front.messages.try_clone().map_err(EngineError::system("copying a descriptor"));
    let (ended, stopped) = (copy()?, copy()?);
    let chaos = command.chaos();
    let options = Options {
        tool: command.tool,
        seed: chaos.map(|chaos| chaos.seed),
        deadline: chaos.and_then(|chaos| Some(Instant::now() + chaos.time_limit?)),
        inspect: command.inspect,
        readers: command.readers.clone(),
        allowed: affinity.clone(),
        affinity,
        processor,
        on_stop: Box::new(move |signal| {
            // Pending before it is told of, so that a continuation cannot get between.
            let _ = kill(why, Signal::try_from(signal).ok());
            send(&stopped, &Message::Stopped(signal));
        }),
        on_interrupt: Box::new(move || witness.attend()),
        on_continue: Box::new(move || {
            let _ = kill(why, Signal::SIGCONT);
        }),
        on_end: Box::new(move |report| {
            if report.descendants_alive > 0 {
                // From now on the supervisor lives for them alone.
                let _ = nix::sys::prctl::set_pdeathsig(None);
            }
            send(&ended, &Message::Ended(Box::new(report.clone())));
        }),
    };
    let mut supervisor = Supervisor::new(options, tid);
    if chaos.is_some() {
        // It often waits for moments.
        let _ = nix::sys::prctl::set_timerslack(1);
    }
    match &command.course {
        Course::Run => {}
        Course::Record(wanted) => {
            supervisor.view = View::recording(wanted.cpu);
            supervisor.recorder = Some(Recorder::new(wanted));
        }
        Course::Replay(again) => {
            supervisor.view = View::replaying(&Manifest::read(&again.recording)?.cpu);
            let outputs = Rc::new(RefCell::new(outputs(again)));
            supervisor.session = Session::new(again, &outputs);
            // The first space that there will be.
            let replayer = Replayer::begin(again, again.from, &outputs)?;
            supervisor.replayers.insert(SpaceId(0), replayer);
        }
    }
    supervisor.idle_timer();
    supervisor.begin_with(tid)?;
    let result = match supervisor.run() {
        Ok(()) if supervisor.replays() => supervisor.finish_replay(),
        result => result,
    };
    if result.is_err() {
        supervisor.finish_traces();
        supervisor.kill_all();
        if let Some(recorder) = &mut supervisor.recorder {
            recorder.break_off();
        }
    }
    result.map_err(|error| supervisor.view.explain(error))
}

/// Where what the program writes goes.
fn outputs(again: &Again) -> Outputs {
    match &again.look {
        Some(look) if look.silent => {
            Outputs::new(Box::new(std::io::sink()), Box::new(std::io::sink()))
        }
        _ => Outputs::new(Box::new(std::io::stdout()), Box::new(std::io::stderr())),
    }
}

/// What the process needs that is to become the program.
struct Beginning<'a> {
    supervisor: Pid,
    waiting: PipeReader,
    mask: &'a SigSet,
    /// Addresses are the same each time.
    fixed_layout: bool,
    program: CString,
    /// Ends with a null.
    arguments: Vec<*const c_char>,
    error: AtomicI32,
}

/// Starts the target and stops it in its `execve`.
fn start(command: &Command, path: &std::path::Path, mask: &SigSet) -> Result<Tid> {
    let (waiting, mut go) = std::io::pipe().map_err(EngineError::system("creating a pipe"))?;
    let words = command.words.iter().map(|word| CString::new(word.as_bytes()));
    let words: std::result::Result<Vec<CString>, _> = words.collect();
    let (Ok(program), Ok(words)) = (CString::new(path.as_os_str().as_bytes()), words) else {
        return Err(EngineError::CannotStart {
            status: 126,
            message: format!("cannot run {}: a word has a zero byte in it", path.display()),
        });
    };
    let arguments = words.iter().map(|word| word.as_ptr()).chain([ptr::null()]).collect();
    let fixed_layout = command.chaos().is_some();
    let error = AtomicI32::new(0);
    let supervisor = getpid();
    let beginning =
        Beginning { supervisor, waiting, mask, fixed_layout, program, arguments, error };
    let mut stack = vec![0u128; 4096];
    // SAFETY: until it executes the program, the process shares this one's memory, so that
    // none has to be copied. It only makes system calls meanwhile, on a stack of its own
    // that lives, like `beginning`, until this function returns, which is when the memory
    // is no longer shared. The two share `errno` as well: what is asked for below fails
    // only when tracing cannot be had at all, and then the other waits in a call.
    let tid = unsafe {
        let top = stack.as_mut_ptr_range().end;
        let data = (&raw const beginning).cast_mut();
        libc::clone(become_program, top.cast(), libc::CLONE_VM | libc::SIGCHLD, data.cast())
    };
    if tid == -1 {
        return Err(EngineError::system("starting the program")(std::io::Error::last_os_error()));
    }
    if let Err(error) = ptrace::seize(tid) {
        // SAFETY: plain system calls on a child that is not reaped yet.
        unsafe {
            libc::kill(tid, libc::SIGKILL);
            libc::waitpid(tid, ptr::null_mut(), 0);
        }
        return Err(EngineError::system("tracing the program")(error));
    }
    let _ = go.write_all(&[1]);
    loop {
        match ptrace::wait(tid).map_err(EngineError::system("waiting for the program"))? {
            (_, Stop::Exec) => return Ok(tid),
            (_, Stop::Exited(_) | Stop::Killed(_)) => {
                let error = beginning.error.load(Ordering::Relaxed);
                let error = std::io::Error::from_raw_os_error(error);
                let message = format!("cannot run {}: {error}", path.display());
                return Err(EngineError::CannotStart { status: 126, message });
            }
            (_, Stop::Signal(signal)) => drop(ptrace::resume(tid, signal)),
            _ => drop(ptrace::resume(tid, 0)),
        }
    }
}

/// In the new process, which shares its parent's memory and so must not change any.
extern "C" fn become_program(beginning: *mut c_void) -> c_int {
    // SAFETY: it is the one in `start`, which waits for this to be over.
    let beginning: &Beginning = unsafe { &*beginning.cast() };
    // Until it is traced, nobody else would end it with the supervisor.
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    // It may have been killed before that. Then nobody would write.
    if getppid() != beginning.supervisor {
        // SAFETY: ends this process and runs nothing of the parent's.
        unsafe { libc::_exit(127) }
    }
    let _ = (&beginning.waiting).read(&mut [0]);
    let _ = nix::sys::prctl::set_pdeathsig(None);
    inherited::restore(beginning.mask);
    if beginning.fixed_layout {
        // Where it is refused, a seed repeats a schedule a little less often: what a program
        // executes depends on its addresses now and then.
        // SAFETY: plain system calls.
        unsafe {
            let persona = libc::personality(0xffff_ffff);
            libc::personality((persona | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong);
        }
    }
    // SAFETY: strings, list and environment stay what they are.
    unsafe { libc::execve(beginning.program.as_ptr(), beginning.arguments.as_ptr(), environ) };
    beginning.error.store(nix::Error::last_raw(), Ordering::Relaxed);
    // SAFETY: ends this process and runs nothing of the parent's.
    unsafe { libc::_exit(127) }
}

unsafe extern "C" {
    /// The environment, as the C library has it.
    safe static environ: *const *const c_char;
}

impl Supervisor {
    /// Takes over the first process, which has just executed its program.
    fn begin_with(&mut self, tid: Tid) -> Result<()> {
        let actions = Rc::new(RefCell::new(inherited_actions()));
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
    pub(crate) fn kill_all(&mut self) {
        for task in self.tasks.values() {
            // SAFETY: plain system call; these are our own tracees.
            unsafe { libc::kill(task.pid, libc::SIGKILL) };
        }
        while ptrace::wait(-1).is_ok() {}
        self.tasks.clear();
    }
}

/// The actions of a program that was started with what `why` was started with.
fn inherited_actions() -> Actions {
    let mut actions = Actions::default();
    for signal in (1..=64).filter(|&s| inherited::ignored() & signals::bit(s) != 0) {
        actions.set(signal, Action::IGNORE);
    }
    actions
}
