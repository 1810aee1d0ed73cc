//! The process that makes tests: it reads what to do from standard input and answers on
//! standard output.

use crate::fault::Images;
use crate::message::{FromWorker, Spec, ToWorker, receive, send};
use crate::orphans::end_others;
use crate::room::Room;
use crate::run::{Happened, run};
use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, dup2_stdin, dup2_stdout, fork};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// Serves until the pool is gone, or somebody ends it. Another process waits for that, to end
/// what a killed worker leaves.
pub fn serve() -> io::Result<()> {
    nix::sys::prctl::set_child_subreaper(true)?;
    // SAFETY: there is but one thread.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => guard(child),
        ForkResult::Child => work(),
    }
}

fn guard(worker: Pid) -> io::Result<()> {
    // Whoever ends both lets the worker clean up.
    on_signals(ignore)?;
    // The pool is to notice when the worker is gone.
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;
    while let Err(Errno::EINTR) = waitpid(worker, None) {}
    end_others(&[]);
    Ok(())
}

fn work() -> io::Result<()> {
    nix::sys::prctl::set_child_subreaper(true)?;
    nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)?;
    // Whoever traces tests is told by a descriptor.
    SigSet::from(Signal::SIGCHLD).thread_block()?;
    // Read without a buffer: what comes next must stay visible to `poll`.
    let mut control = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut answers = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let _nothing = end_like_the_pool(&control)?;
    let Some(ToWorker::Setup(spec)) = receive(&mut control)? else { return Ok(()) };
    match Room::open(&spec.family) {
        Ok(room) => {
            send(&mut answers, &FromWorker::Ready)?;
            serve_tests(&spec, &room, &mut control, &mut answers)
        }
        Err(error) => {
            let what = format!("cannot make a directory for tests: {error}");
            let message = format!("{what}; TMPDIR says where else to make it");
            send(&mut answers, &FromWorker::Broken(message))
        }
    }
}

fn serve_tests(spec: &Spec, room: &Room, control: &mut File, answers: &mut File) -> io::Result<()> {
    let mut images = Images::default();
    while let Some(message) = receive(control)? {
        match message {
            ToWorker::Setup(_) => {}
            ToWorker::Cancel => send(answers, &FromWorker::Cancelled)?,
            ToWorker::Test { ticket, files, limit, traced } => {
                let limit = Duration::from_millis(limit);
                let images = traced.then_some(&mut images);
                match run(spec, &files, limit, room.path(), images, &*control) {
                    Ok(Happened::Seen(seen)) => send(answers, &FromWorker::Done { ticket, seen })?,
                    // The message that did so is answered next.
                    Ok(Happened::Interrupted) => {}
                    Err(error) => send(answers, &FromWorker::Broken(error.to_string()))?,
                }
            }
        }
    }
    Ok(())
}

static CONTROL: AtomicI32 = AtomicI32::new(-1);
static NOTHING: AtomicI32 = AtomicI32::new(-1);

/// Whoever ends a worker, such as Slurm when the time is over, makes it believe that the pool
/// is gone, so that it cleans up. What it returns has to stay open.
fn end_like_the_pool(control: &File) -> io::Result<File> {
    let nothing = File::open("/dev/null")?;
    CONTROL.store(control.as_raw_fd(), Ordering::Relaxed);
    NOTHING.store(nothing.as_raw_fd(), Ordering::Relaxed);
    on_signals(stop_listening)?;
    Ok(nothing)
}

/// Interrupted calls are made again, and then may find that nothing will come any more. What is
/// executed by a test knows nothing of handlers.
fn on_signals(handler: extern "C" fn(i32)) -> nix::Result<()> {
    let action = SigAction::new(SigHandler::Handler(handler), SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handlers make at most one call, which is safe in handlers.
        unsafe { sigaction(signal, &action) }?;
    }
    Ok(())
}

extern "C" fn ignore(_: i32) {}

extern "C" fn stop_listening(_: i32) {
    // SAFETY: both descriptors stay open as long as the worker lives.
    unsafe { libc::dup2(NOTHING.load(Ordering::Relaxed), CONTROL.load(Ordering::Relaxed)) };
}
