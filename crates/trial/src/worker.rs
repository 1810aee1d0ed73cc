//! The process that makes tests: it reads what to do from standard input and answers on
//! standard output.

use crate::files::Files;
use crate::message::{FromWorker, Spec, ToWorker, receive, send};
use crate::run::{Happened, run};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// Serves until the pool is gone.
pub fn serve() -> io::Result<()> {
    nix::sys::prctl::set_child_subreaper(true)?;
    // Read without a buffer: what comes next must stay visible to `poll`.
    let mut control = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut answers = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let Some(ToWorker::Setup(spec)) = receive(&mut control)? else { return Ok(()) };
    serve_tests(&spec, &mut control, &mut answers)?;
    // The pool deletes the directory; if it was killed, that is for us to do.
    let _ = std::fs::remove_dir_all(&spec.directory);
    Ok(())
}

fn serve_tests(spec: &Spec, control: &mut File, answers: &mut File) -> io::Result<()> {
    while let Some(message) = receive(control)? {
        match message {
            ToWorker::Setup(_) => {}
            ToWorker::Cancel => send(answers, &FromWorker::Cancelled)?,
            ToWorker::Test { ticket, files, limit } => {
                let limit = Duration::from_millis(limit);
                if let Some(answer) = test(spec, &files, limit, ticket, control) {
                    send(answers, &answer)?;
                }
            }
        }
    }
    Ok(())
}

/// Nothing, if it was interrupted: the message that did so is answered next.
fn test(
    spec: &Spec,
    files: &Files,
    limit: Duration,
    ticket: u64,
    control: &File,
) -> Option<FromWorker> {
    match run(spec, files, limit, control) {
        Ok(Happened::Seen(seen)) => Some(FromWorker::Done { ticket, seen }),
        Ok(Happened::Interrupted) => None,
        Err(error) => Some(FromWorker::Broken(error.to_string())),
    }
}
