//! `why record`: runs a program and keeps what is needed to run it again, identically.

use crate::run::end_like;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use why_engine::launch::{self, Command, Course};
use why_engine::{Ended, EngineError, Report, Wanted, cpu};
use why_record::cpu::Shown;
use why_record::event;
use why_record::manifest::{Finished, Manifest};
use why_record::store::Recording;

/// Record a program's run, to be replayed exactly
#[derive(clap::Args)]
pub struct Args {
    /// Where the recording goes [default: a new one in WHY_DIR, or your own directory]
    #[arg(short, long, value_name = "REC")]
    output: Option<PathBuf>,

    /// The seconds between checkpoints, from which a replay can begin, or none
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = checkpoints)]
    checkpoints: Checkpoints,

    /// After every so many events, write down what memory holds, for `replay --verify`
    #[arg(long, value_name = "EVENTS", num_args = 0..=1, default_missing_value = "100",
          value_parser = clap::value_parser!(u64).range(1..))]
    hash: Option<u64>,

    /// The CPU that the program is shown
    #[arg(long, value_enum, default_value_t = ShownCpu::V3)]
    cpu: ShownCpu,

    /// Say on standard error where the recording is and what it holds
    #[arg(long)]
    stats: bool,

    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROG ARG")]
    command: Vec<OsString>,
}

/// The time between checkpoints, if there are to be any.
#[derive(Clone, Copy)]
struct Checkpoints(Option<Duration>);

/// For clap.
fn checkpoints(text: &str) -> Result<Checkpoints, String> {
    if text == "none" {
        return Ok(Checkpoints(None));
    }
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match seconds {
        Some(interval) => Ok(Checkpoints(Some(interval))),
        None => Err(format!("{text} is no time: give seconds, as 0.5, or none")),
    }
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ShownCpu {
    /// One of the level x86-64-v3: the recording can be replayed on other machines
    V3,
    /// This machine's
    Native,
}

pub fn main(args: Args) -> ExitCode {
    match record(&args) {
        Ok(report) => end_like(report.ended.expect("the program has ended")),
        Err(error) => {
            eprintln!("why: {error}");
            ExitCode::from(error.status())
        }
    }
}

fn record(args: &Args) -> Result<Report, EngineError> {
    let began = Instant::now();
    let words: Vec<String> =
        args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let recording = match &args.output {
        Some(path) => Recording::create(path)?,
        None => Recording::create_for(&words[0])?,
    };
    let directory = std::env::current_dir().unwrap_or_default().display().to_string();
    let shown = match args.cpu {
        ShownCpu::V3 => Shown::V3,
        ShownCpu::Native => Shown::Native,
    };
    Manifest::new(words, directory, cpu::manifest_entry(shown)).write(&recording.path)?;
    let command = Command {
        words: args.command.clone(),
        tool: why_engine::Tool::Exact,
        inspect: false,
        accesses: None,
        course: Course::Record(Wanted {
            recording: recording.path.clone(),
            checkpoints: args.checkpoints.0,
            hashes: args.hash,
            cpu: shown,
        }),
    };
    let report = launch::run(&command)?;
    let ended = match report.ended.expect("the program has ended") {
        Ended::Status(status) => event::Ended::Status(status),
        Ended::Signal(signal) => event::Ended::Signal(signal),
    };
    let finished = Finished {
        ended,
        process: report.first,
        instructions: report.instructions,
        events: report.events,
        log_bytes: report.log_bytes,
        seconds: began.elapsed().as_secs_f64(),
    };
    // What the program used of the CPU has been added to it meanwhile.
    Manifest::change(&recording.path, |manifest| manifest.finished = Some(finished))?;
    if args.stats {
        eprintln!("why: recorded to {}", recording.path.display());
        eprintln!(
            "why: {} instructions, {} events, {} bytes of log",
            report.instructions, report.events, report.log_bytes
        );
    }
    Ok(report)
}
