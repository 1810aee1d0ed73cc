//! `why replay`: runs a recording again.

use std::path::PathBuf;
use std::process::ExitCode;
use why_engine::launch::{self, Again, Command, Course};
use why_engine::{Ended, EngineError, Look, Report, cpu};
use why_record::position::{Moment, NoMoment};
use why_record::store::{self, Recording};
use why_record::summary;

/// Run a recording again, exactly as it was
#[derive(clap::Args)]
pub struct Args {
    /// The recording [default: the newest finished one]
    #[arg(value_name = "REC")]
    recording: Option<PathBuf>,

    /// Begin with the last checkpoint before this position, not with the whole program
    #[arg(long, value_name = "POSITION", value_parser = moment)]
    from: Option<Moment>,

    /// Stop at this position: start, end or EVENT.TICKS[.PC]
    #[arg(long, value_name = "POSITION", value_parser = moment)]
    to: Option<Moment>,

    /// Compare memory with what `record --hash` wrote down; registers always are
    #[arg(long)]
    verify: bool,

    /// Print statistics at the end, on standard error
    #[arg(long)]
    stats: bool,
}

pub fn main(args: Args) -> ExitCode {
    match replay(&args) {
        Ok(Report { ended: Some(Ended::Status(status)), .. }) => ExitCode::from(status as u8),
        Ok(Report { ended: Some(Ended::Signal(signal)), .. }) => ExitCode::from(128 + signal as u8),
        // It was to go no farther.
        Ok(Report { ended: None, .. }) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("why: {error}");
            ExitCode::from(error.status())
        }
    }
}

fn replay(args: &Args) -> Result<Report, EngineError> {
    let recording = store::find(args.recording.as_deref())?;
    let look = args.to.map(|at| Look { at, memory: Vec::new(), silent: false });
    let from = args.from.and_then(events_before);
    let report = run(&recording, How { from, look, verify: args.verify, ..How::default() })?;
    if args.stats {
        eprintln!("why: {} instructions, {} events", report.instructions, report.events);
    }
    Ok(report)
}

/// How a recording is to be replayed.
#[derive(Default)]
pub struct How {
    /// The first one, unless it is named.
    pub process: Option<i32>,
    /// Begin with a checkpoint behind at most so many events.
    pub from: Option<u64>,
    /// Compare memory, too.
    pub verify: bool,
    /// Only up to where it is to be looked at.
    pub look: Option<Look>,
}

pub fn run(recording: &Recording, how: How) -> Result<Report, EngineError> {
    let manifest = recording.manifest()?;
    let lacking = cpu::lacking(&manifest.cpu);
    if !lacking.is_empty() {
        return Err(EngineError::CpuLacks { features: lacking.join(", ") });
    }
    let process = match (how.process, &manifest.finished) {
        (Some(process), _) => process,
        (None, Some(finished)) => finished.process,
        (None, None) => first_process(recording)?,
    };
    launch::run(&Command {
        words: manifest.command.iter().map(Into::into).collect(),
        tool: why_engine::Tool::Exact,
        inspect: false,
        accesses: None,
        course: Course::Replay(Again {
            recording: recording.path.clone(),
            process,
            from: how.from,
            verify: how.verify,
            look: how.look,
        }),
    })
}

/// How many events are certainly in front of a moment.
pub fn events_before(moment: Moment) -> Option<u64> {
    match moment {
        Moment::Start => None,
        Moment::At(position) => position.event.checked_sub(1),
        Moment::End => Some(u64::MAX),
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

/// For clap.
pub fn moment(text: &str) -> Result<Moment, String> {
    text.parse().map_err(|NoMoment(text)| {
        format!("{text} is no position: give start, end or EVENT.TICKS, as `why print` tells them")
    })
}
