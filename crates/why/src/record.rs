//! `why record`: runs a program and keeps what is needed to run it again, identically.

use crate::region::{self, Where};
use crate::run::end_like;
use crate::say::besides;
use crate::tries;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use why_engine::launch::{self, Chaos, Command, Course};
use why_engine::{Ended, EngineError, Report, Tool, Wanted, cpu};
use why_record::RecordError;
use why_record::cpu::Shown;
use why_record::event;
use why_record::manifest::{Finished, Manifest, Stuck};
use why_record::store::Recording;
use why_record::summary;

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

    /// Begin to record here: FUNC[#N], FILE:LINE[#N], or a number of instructions
    #[arg(long, value_name = "WHERE", conflicts_with_all = ["chaos", "seed", "tries"])]
    from: Option<Where>,

    /// Record no farther than here
    #[arg(long, value_name = "WHERE", conflicts_with_all = ["chaos", "seed", "tries"])]
    until: Option<Where>,

    /// The CPU that the program is shown
    #[arg(long, value_enum, default_value_t = ShownCpu::V3)]
    cpu: ShownCpu,

    /// Say on standard error where the recording is and what it holds
    #[arg(long)]
    stats: bool,

    /// Vary which thread runs when, at random or as this seed says
    #[arg(long, value_name = "SEED", num_args = 0..=1, conflicts_with = "seed")]
    chaos: Option<Option<u64>>,

    /// Vary it as it was varied with this seed before
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,

    /// Record with one seed after the other, N of them, until the program fails; keep that
    /// run only
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    tries: Option<u64>,

    /// End a run that takes longer; it has failed
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,

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

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.filter(|time| !time.is_zero()).ok_or_else(|| "it is a number of seconds".to_owned())
}

impl Args {
    /// The seeds to be tried, if the schedule is varied.
    fn seeds(&self) -> Option<std::ops::Range<u64>> {
        let first = match (self.seed, self.chaos) {
            (Some(seed), _) | (_, Some(Some(seed))) => Some(seed),
            (None, Some(None)) if self.tries.is_none() => Some(any_seed()),
            _ => self.tries.map(|_| 1),
        }?;
        Some(first..first.saturating_add(self.tries.unwrap_or(1)))
    }

    pub fn chaos(&self, seed: u64) -> Chaos {
        Chaos { seed, time_limit: self.timeout }
    }

    /// A new recording, where it is wanted.
    pub fn create(&self) -> Result<Recording, EngineError> {
        Ok(match &self.output {
            Some(path) => Recording::create(path)?,
            None => Recording::create_for(&self.command[0].to_string_lossy())?,
        })
    }
}

/// Short enough to be typed.
fn any_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_nanos() as u64) % 1_000_000_007
}

pub fn main(args: Args) -> ExitCode {
    match record(&args) {
        Ok(Some(ended)) => end_like(ended),
        Ok(None) => ExitCode::SUCCESS,
        Err(error) => {
            besides!("{error}");
            ExitCode::from(error.status())
        }
    }
}

/// How the kept run ended.
fn record(args: &Args) -> Result<Option<Ended>, EngineError> {
    let seeds = args.seeds();
    if args.timeout.is_some() && seeds.is_none() {
        return Err(EngineError::CannotStart {
            status: crate::FAILED,
            message: "only varied runs have a time limit: give --tries, --seed or --chaos, too"
                .to_owned(),
        });
    }
    if args.tries.is_some() {
        return tries::record(args, seeds.expect("tries have seeds"));
    }
    let chaos = seeds.map(|seeds| args.chaos(seeds.start));
    let (from, until) = (args.from.as_ref(), args.until.as_ref());
    region::check(from, until)
        .map_err(|message| EngineError::CannotStart { status: crate::FAILED, message })?;
    let recording = args.create()?;
    let report =
        run(args, &recording.path, chaos).map_err(|error| broken_off(error, &recording))?;
    if let (Some(from), Some(missed)) = (from, &report.region_missed) {
        let what = format!("cannot delete {}", recording.path.display());
        std::fs::remove_dir_all(&recording.path).map_err(RecordError::system(what))?;
        besides!("nothing was recorded: {}", region::why_missed(from, until, missed));
        return Ok(report.ended);
    }
    if let Some(stuck) = report.stuck {
        besides!("{}", how_stuck(stuck));
    }
    if report.region_late > 0 {
        besides!(
            "the region begins {} instructions late: the machine was too busy to stop the \
             program in time",
            report.region_late
        );
    }
    if args.stats {
        besides!("recorded to {}", recording.path.display());
        besides!(
            "{} instructions, {} events, {} bytes of log",
            instructions(&report, args),
            report.events,
            report.log_bytes
        );
        if let Some(chaos) = chaos {
            besides!("seed {}", chaos.seed);
        }
    }
    Ok(report.ended)
}

/// What ended the run, and what there is of it until then. A recording of nothing is not kept.
fn broken_off(error: EngineError, recording: &Recording) -> EngineError {
    let status = error.status();
    let path = recording.path.display();
    let executed = summary::processes(recording)
        .map(|processes| processes.iter().map(|process| process.instructions).sum::<u64>());
    let message = match executed {
        Ok(0) => {
            let _ = std::fs::remove_dir_all(&recording.path);
            // Of a program that could not be started nobody expects more.
            if [126, 127].contains(&status) {
                return error;
            }
            format!("{error}; nothing was recorded")
        }
        Ok(executed) => format!("{error}; {path} has the first {executed} instructions"),
        Err(unread) => format!("{error}; what {path} has until then cannot be read: {unread}"),
    };
    EngineError::CannotStart { status, message }
}

/// Those that were recorded.
fn instructions(report: &Report, args: &Args) -> u64 {
    match (&args.from, &args.until) {
        (None, None) => report.instructions,
        _ => report.instructions_recorded,
    }
}

pub fn how_stuck(stuck: Stuck) -> String {
    match stuck {
        Stuck::Deadlock { threads: 1 } => {
            "deadlock: the last thread waits for a lock that nobody is left to release; ended it"
                .to_owned()
        }
        Stuck::Deadlock { threads } => {
            format!("deadlock: all {threads} threads wait for each other; ended them")
        }
        Stuck::TimedOut => "the time limit was exceeded; ended it".to_owned(),
    }
}

/// Records one run.
pub fn run(args: &Args, path: &Path, chaos: Option<Chaos>) -> Result<Report, EngineError> {
    let began = Instant::now();
    let words = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (from, until) = (args.from.as_ref(), args.until.as_ref());
    let directory = std::env::current_dir().unwrap_or_default().display().to_string();
    let shown = match args.cpu {
        ShownCpu::V3 => Shown::V3,
        ShownCpu::Native => Shown::Native,
    };
    let mut manifest = Manifest::new(words, directory, cpu::manifest_entry(shown));
    manifest.seed = chaos.map(|chaos| chaos.seed);
    manifest.region = region::manifest_entry(from, until);
    manifest.write(path)?;
    let tool = if chaos.is_some() { Tool::Exact } else { Tool::Count };
    let command = Command {
        words: args.command.clone(),
        tool,
        inspect: false,
        readers: None,
        course: Course::Record(Wanted {
            recording: path.to_owned(),
            checkpoints: args.checkpoints.0,
            hashes: args.hash,
            cpu: shown,
            chaos,
            region: region::region(from, until),
        }),
    };
    let report = launch::run(&command)?;
    if report.region_missed.is_some() {
        return Ok(report);
    }
    let ended = match report.ended.expect("the program has ended") {
        Ended::Status(status) => event::Ended::Status(status),
        Ended::Signal(signal) => event::Ended::Signal(signal),
    };
    let finished = Finished {
        ended,
        stuck: report.stuck,
        process: report.first,
        instructions: instructions(&report, args),
        events: report.events,
        log_bytes: report.log_bytes,
        seconds: began.elapsed().as_secs_f64(),
    };
    // What the program used of the CPU has been added to it meanwhile.
    Manifest::change(path, |manifest| {
        manifest.finished = Some(finished);
        if let Some(region) = &mut manifest.region {
            region.left = report.region_left;
        }
    })?;
    Ok(report)
}
