//! `why replay`: runs a recording again.

use crate::accesses;
use crate::criterion::split_process;
use crate::excerpt;
use crate::recordings;
use crate::reports::{self, JsonEnded, ReportFile};
use crate::say::besides;
use crate::slice::shown::Shown;
use clap::ValueEnum;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;
use why_engine::launch::{self, Again, Command, Course};
use why_engine::{Ended, EngineError, Look, Readers, Report, cpu};
use why_record::event::Event;
use why_record::position::{Moment, NoMoment};
use why_record::store::Recording;
use why_record::stream::Reader;
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

    /// What is woven into the program's code, besides what the replay needs
    #[arg(long, value_enum)]
    tool: Option<Tool>,

    /// Write every memory access that the trace tells of to FILE (with --tool trace)
    #[arg(long, value_name = "FILE", require_equals = true)]
    accesses: Option<PathBuf>,

    /// Execute only what is in a slice that `why slice --save` has kept, by its name or file;
    /// what the rest did is told
    #[arg(long, value_name = "SLICE",
          conflicts_with_all = ["from", "to", "verify", "tool", "accesses"])]
    slice: Option<String>,

    /// Keep that as a recording of its own
    #[arg(short, long, value_name = "NEW", requires = "slice")]
    output: Option<PathBuf>,

    /// Print statistics at the end, on standard error
    #[arg(long)]
    stats: bool,

    /// Write a report as JSON to FILE
    #[arg(long, value_name = "FILE", require_equals = true)]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Tool {
    /// Writes down every block and address, and reads them on another core
    Trace,
}

pub fn main(args: Args) -> ExitCode {
    match replay(&args) {
        Ok(Report { ended: Some(Ended::Status(status)), .. }) => ExitCode::from(status as u8),
        Ok(Report { ended: Some(Ended::Signal(signal)), .. }) => ExitCode::from(128 + signal as u8),
        // It was to go no farther.
        Ok(Report { ended: None, .. }) => ExitCode::SUCCESS,
        Err(error) => {
            besides!("{error}");
            ExitCode::from(error.status())
        }
    }
}

fn replay(args: &Args) -> Result<Report, EngineError> {
    let recording = recordings::find(args.recording.as_deref())?;
    if let Some(slice) = &args.slice {
        return replay_slice(args, &recording, slice);
    }
    let look = match args.to {
        Some(to) => Some(Look::once(first_process(&recording)?, to, Box::new(()))),
        None => None,
    };
    let from = args.from.and_then(events_before);
    let traced = args.tool == Some(Tool::Trace);
    // First of all: a program must not be replayed for an hour and its report be lost.
    let json = args.json.as_ref().map(ReportFile::create).transpose()?;
    let readers = accesses::readers(args.accesses.as_ref(), traced)?;
    let how = How { from, look, verify: args.verify, traced, readers };
    let report = run(&recording, how)?;
    if args.stats {
        print_statistics(&report, traced);
    }
    reports::has_all_accesses(args.accesses.as_ref(), &report)?;
    if let Some(file) = json {
        file.write_json(&as_json(&recording, &report, traced))?;
    }
    Ok(report)
}

fn replay_slice(args: &Args, recording: &Recording, slice: &str) -> Result<Report, EngineError> {
    excerpt::refuse(recording, "has only one slice")?;
    if let Some(path) = &args.output {
        excerpt::refuse_taken(path)?;
    }
    let json = args.json.as_ref().map(ReportFile::create).transpose()?;
    let slice = Shown::load(recording, slice).map_err(|failure| EngineError::CannotStart {
        status: crate::FAILED,
        message: failure.into_message(),
    })?;
    let (excerpt, figures) = excerpt::make(recording, &slice, args.output.as_deref())?;
    let begun = Instant::now();
    let report = run(excerpt.recording(), How::default())?;
    let figures = excerpt::Figures { seconds: begun.elapsed().as_secs_f64(), ..figures };
    besides!("{figures}");
    if args.stats {
        print_statistics(&report, false);
    }
    if let Some(file) = json {
        let mut told = as_json(recording, &report, false);
        told["answer"]["excerpt"] = json!(figures);
        file.write_json(&told)?;
    }
    if let Some(path) = &args.output {
        excerpt.keep(path)?;
    }
    Ok(report)
}

fn print_statistics(report: &Report, traced: bool) {
    besides!("{} instructions, {} events", report.instructions, report.events);
    if traced {
        besides!(
            "{} instructions in the trace, {} records, {} register values",
            report.trace_instructions,
            report.trace_records,
            report.trace_slots
        );
    }
    if report.region_left {
        besides!("the program went on; no more of it was recorded");
    }
}

fn as_json(recording: &Recording, report: &Report, traced: bool) -> serde_json::Value {
    let processes: Vec<_> = report
        .replayed
        .iter()
        .map(|replayed| {
            json!({
                "pid": replayed.process,
                "instructions": replayed.instructions,
                "trace_instructions": replayed.trace_instructions,
            })
        })
        .collect();
    json!({
        "schema": "why.replay/1",
        "recording": recording.path,
        "answer": {
            "ended": report.ended.map(JsonEnded::from),
            "instructions": report.instructions,
            "trace_instructions": traced.then_some(report.trace_instructions),
            "events": report.events,
            "processes": processes,
        },
        "stats": { "gait_changes": report.gait_changes },
    })
}

/// How a recording is to be replayed.
#[derive(Default)]
pub struct How {
    /// Begin with a checkpoint behind at most so many events.
    pub from: Option<u64>,
    /// Compare memory, too.
    pub verify: bool,
    /// Only up to where a process has been looked at.
    pub look: Option<Look>,
    /// Trace what is executed.
    pub traced: bool,
    /// Who reads the traces of processes.
    pub readers: Option<Readers>,
}

pub fn run(recording: &Recording, how: How) -> Result<Report, EngineError> {
    let manifest = recording.manifest()?;
    let lacking = cpu::lacking(&manifest.cpu);
    if !lacking.is_empty() {
        return Err(EngineError::CpuLacks { features: lacking.join(", ") });
    }
    let wanted = match &how.look {
        Some(look) => look.process,
        None => first_process(recording)?,
    };
    let process = with_a_program(recording, wanted)?;
    let begun_with = manifest.region.map(|region| region.processes).unwrap_or_default();
    let beside = match begun_with.contains(&process) && process == first_process(recording)? {
        true => begun_with.into_iter().filter(|other| *other != process).collect(),
        false => Vec::new(),
    };
    launch::run(&Command {
        words: manifest.command.iter().map(Into::into).collect(),
        tool: match how.traced {
            true => why_engine::Tool::ExactTrace,
            false => why_engine::Tool::Exact,
        },
        inspect: false,
        readers: how.readers,
        course: Course::Replay(Again {
            recording: recording.path.clone(),
            process,
            from: how.from,
            beside,
            verify: how.verify,
            look: how.look.map(Rc::new),
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

/// The process that was started. Of a recording that was cut short, others may have no known
/// parent either: what the parent's stream said of them may not have been written.
fn first_process(recording: &Recording) -> Result<i32, EngineError> {
    let manifest = recording.manifest()?;
    if let Some(finished) = manifest.finished {
        return Ok(finished.process);
    }
    if let Some(first) = manifest.region.as_ref().and_then(|region| region.processes.first()) {
        return Ok(*first);
    }
    let processes = summary::processes(recording)?;
    let first = processes.iter().find(|p| p.parent.is_none() && p.began_as_program);
    first.map(|process| process.pid).ok_or_else(|| EngineError::CannotStart {
        status: crate::FAILED,
        message: format!("{} holds no event: it was cut short at once", recording.path.display()),
    })
}

/// The process itself, or the nearest of those that it descends from which began as a program
/// and not as a copy of another process.
fn with_a_program(recording: &Recording, process: i32) -> Result<i32, EngineError> {
    let begins = |process| {
        let first = Reader::open(&recording.stream(process, 1))?.next_event()?;
        Ok::<bool, EngineError>(matches!(first, Some(Event::Executed { .. })))
    };
    if begins(process)? {
        return Ok(process);
    }
    let processes = summary::processes(recording)?;
    let parent = |pid| processes.iter().find(|process| process.pid == pid)?.parent;
    let mut at = process;
    while let Some(next) = parent(at) {
        at = next;
        if begins(at)? {
            break;
        }
    }
    Ok(at)
}

/// The process that a criterion begins with, by number or by program, and the rest of the
/// criterion; else the first.
pub fn choose_process<'a>(
    recording: &Recording,
    text: &'a str,
) -> Result<(i32, &'a str), EngineError> {
    if !text.contains('/') {
        return Ok((first_process(recording)?, text));
    }
    let processes = summary::processes(recording)?;
    let runs = |process: &summary::Process, name: &str| {
        let programs = process.commands.iter().filter_map(|words| words.first());
        programs.filter_map(|program| program.rsplit('/').next()).any(|program| program == name)
    };
    let is_program = |name: &str| processes.iter().any(|process| runs(process, name));
    let (Some(name), rest) = split_process(text, is_program) else {
        return Ok((first_process(recording)?, text));
    };
    let meant: Vec<i32> = processes
        .iter()
        .filter(|process| name.parse() == Ok(process.pid) || runs(process, name))
        .map(|process| process.pid)
        .collect();
    let no_answer = |message: String| EngineError::CannotStart { status: crate::FAILED, message };
    match meant.as_slice() {
        [process] => Ok((*process, rest)),
        [] => Err(no_answer(format!(
            "process {name} was not recorded; `why info` lists those that were"
        ))),
        several => {
            let numbers: Vec<String> = several.iter().map(ToString::to_string).collect();
            let numbers = numbers.join(", ");
            Err(no_answer(format!("several processes ran {name}: name one of {numbers}")))
        }
    }
}

/// For clap.
pub fn moment(text: &str) -> Result<Moment, String> {
    text.parse().map_err(|NoMoment(text)| {
        format!("{text} is no position: give start, end or EVENT.TICKS, as `why print` tells them")
    })
}
