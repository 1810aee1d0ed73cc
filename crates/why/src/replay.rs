//! `why replay`: runs a recording again.

use std::path::PathBuf;
use std::process::ExitCode;
use why_engine::launch::{self, Command, Course};
use why_engine::{Ended, EngineError, Report};
use why_record::store::{self, Recording};
use why_record::summary;

/// Run a recording again, exactly as it was
#[derive(clap::Args)]
pub struct Args {
    /// The recording [default: the newest finished one]
    #[arg(value_name = "REC")]
    recording: Option<PathBuf>,

    /// Print statistics at the end, on standard error
    #[arg(long)]
    stats: bool,
}

pub fn main(args: Args) -> ExitCode {
    match replay(&args) {
        Ok(report) => match report.ended.expect("the program has ended") {
            Ended::Status(status) => ExitCode::from(status as u8),
            Ended::Signal(signal) => ExitCode::from(128 + signal as u8),
        },
        Err(error) => {
            eprintln!("why: {error}");
            ExitCode::from(error.status())
        }
    }
}

/// The process that was started, of a recording that was cut short.
fn first_process(recording: &Recording) -> Result<i32, EngineError> {
    let processes = summary::processes(recording)?;
    let first = processes.iter().find(|process| process.parent.is_none());
    first.map(|process| process.pid).ok_or_else(|| EngineError::CannotStart {
        status: crate::FAILED,
        message: format!("{} holds no event: it was cut short at once", recording.path.display()),
    })
}

fn replay(args: &Args) -> Result<Report, EngineError> {
    let recording = store::find(args.recording.as_deref())?;
    let manifest = recording.manifest()?;
    let process = match &manifest.finished {
        Some(finished) => finished.process,
        None => first_process(&recording)?,
    };
    let command = Command {
        words: manifest.command.iter().map(Into::into).collect(),
        tool: why_engine::Tool::Exact,
        inspect: false,
        accesses: None,
        course: Course::Replay(recording.path.clone(), process),
    };
    let report = launch::run(&command)?;
    if args.stats {
        eprintln!("why: {} instructions, {} events", report.instructions, report.events);
    }
    Ok(report)
}
