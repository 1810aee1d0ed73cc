//! `why record --tries`: records with one seed after the other until the program fails.
//!
//! Each try is made by a process of its own, which ends with it: what a run does to the
//! process that waits for it (signals are blocked, standard streams closed) is gone then.
//! What the program writes is not shown; a replay of the kept run shows it.

mod interrupt;

use crate::record::{self, Args};
use crate::say::besides;
use nix::sys::signal::Signal;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, dup2_stderr, dup2_stdout, fork};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, PipeWriter, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::fd::AsFd;
use why_engine::{Ended, EngineError};
use why_record::RecordError;
use why_record::manifest::Stuck;
use why_record::store::Recording;

/// What a try tells of itself.
#[derive(Serialize, Deserialize)]
enum Told {
    Ran { ended: Ended, stuck: Option<Stuck> },
    Failed { status: u8, message: String },
}

/// How the kept run ended, if one failed.
pub fn record(args: &Args, seeds: Range<u64>) -> Result<Option<Ended>, EngineError> {
    interrupt::catch()?;
    let tries = seeds.end - seeds.start;
    let input = Input::new();
    for (number, seed) in (1u64..).zip(seeds) {
        progress(&format!("try {number} of {tries}"));
        input.rewind();
        let recording = args.create()?;
        let told = make(args, &recording, seed);
        progress("");
        if let Some(signal) = interrupt::came() {
            delete(&recording)?;
            besides!("interrupted in try {number} of {tries}; none before it failed");
            return Ok(Some(Ended::Signal(signal)));
        }
        match told? {
            Told::Failed { status, message } => {
                delete(&recording)?;
                return Err(EngineError::CannotStart { status, message });
            }
            Told::Ran { ended: Ended::Status(0), stuck: None } => delete(&recording)?,
            Told::Ran { ended, stuck } => {
                let how = match (stuck, ended) {
                    (Some(stuck), _) => record::how_stuck(stuck),
                    (None, Ended::Status(status)) => format!("status {status}"),
                    (None, Ended::Signal(signal)) => why_engine::signal_name(signal),
                };
                let path = recording.path.display();
                besides!("try {number} of {tries} failed, with seed {seed}: {how}");
                besides!("recorded to {path}");
                return Ok(Some(ended));
            }
        }
    }
    besides!("none of {tries} tries failed; nothing is kept");
    Ok(None)
}

fn delete(recording: &Recording) -> Result<(), EngineError> {
    let what = format!("cannot delete {}", recording.path.display());
    Ok(std::fs::remove_dir_all(&recording.path).map_err(RecordError::system(what))?)
}

/// Makes one try, in a process of its own.
fn make(args: &Args, recording: &Recording, seed: u64) -> Result<Told, EngineError> {
    let starting = |error: std::io::Error| EngineError::system("starting a try")(error);
    let (told, to_told) = std::io::pipe().map_err(starting)?;
    // SAFETY: this process has only one thread, so the child may do anything.
    match unsafe { fork() }.map_err(|error| starting(error.into()))? {
        ForkResult::Child => {
            drop(told);
            tell(to_told, &run(args, recording, seed));
            std::process::exit(0);
        }
        ForkResult::Parent { child } => {
            drop(to_told);
            interrupt::ends(child);
            let mut line = String::new();
            let read = BufReader::new(told).read_line(&mut line);
            interrupt::ends_nobody();
            let _ = waitpid(child, None);
            read.map_err(starting)?;
            serde_json::from_str(&line).map_err(|_| EngineError::CannotStart {
                status: crate::FAILED,
                message: format!("the try with seed {seed} was killed; try again"),
            })
        }
    }
}

fn tell(mut to: PipeWriter, told: &Told) {
    let mut line = serde_json::to_vec(told).expect("plain data");
    line.push(b'\n');
    // If nobody is there to be told, nobody wants to know.
    let _ = to.write_all(&line);
}

/// In the try's own process.
fn run(args: &Args, recording: &Recording, seed: u64) -> Told {
    // Whoever kills `why` ends the try.
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    let ran = silence().and_then(|()| record::run(args, &recording.path, Some(args.chaos(seed))));
    match ran {
        Ok(report) => {
            Told::Ran { ended: report.ended.expect("the program has ended"), stuck: report.stuck }
        }
        Err(error) => Told::Failed { status: error.status(), message: error.to_string() },
    }
}

fn silence() -> Result<(), EngineError> {
    let opening = EngineError::system("opening /dev/null");
    let null = File::options().write(true).open("/dev/null").map_err(opening)?;
    dup2_stdout(&null)
        .and_then(|()| dup2_stderr(&null))
        .map_err(|error| EngineError::system("redirecting the program's output")(error.into()))
}

/// Standard input, which every try reads from where the first did if it is a file.
struct Input(Option<(File, u64)>);

impl Input {
    fn new() -> Input {
        let copy = std::io::stdin().as_fd().try_clone_to_owned().ok().map(File::from);
        let at = copy.and_then(|mut file| file.stream_position().ok().map(|place| (file, place)));
        Input(at)
    }

    fn rewind(&self) {
        if let Some((file, place)) = &self.0 {
            // It could be told where it is, so it can be put there.
            let mut file = file;
            let _ = file.seek(SeekFrom::Start(*place));
        }
    }
}

/// One line that overwrites itself, only where someone watches.
fn progress(text: &str) {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        let _ = write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush());
    }
}
