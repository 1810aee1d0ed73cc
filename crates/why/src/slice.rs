//! `why slice`: which statements made a value.

mod lines;
mod text;
mod traced;
mod values;
mod ways;

use crate::images::Images;
use crate::questions::answer::{Answer, ValueSeen};
use crate::questions::{self, Failure, Stats, no_answer};
use lines::{Line, Lines, Sources};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use traced::Traced;
use values::{Asked, Seen};
use why_record::position::{Moment, Position};
use why_record::store::Recording;
use why_slice::backward::Area;
use why_slice::reasons::Via;
use why_slice::region::{Criterion, Options, Slice};

/// Say which statements made a value
#[derive(clap::Args)]
pub struct Args {
    /// [REC] and [PROC/]PLACE[#N][:EXPR | :%REG | :ADDR+SIZE], as for `why print`; without a
    /// value, why the thread came there with what it was about to use
    #[arg(value_names = ["REC", "CRITERION"], num_args = 1..=2, required = true)]
    words: Vec<String>,

    /// Leave out what only decided that something was executed
    #[arg(long)]
    data: bool,

    /// Leave out that, and what only selected where a value is
    #[arg(long)]
    thin: bool,

    /// Do not look into these functions or files: they made what they made
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    prune: Vec<String>,

    /// Go no farther back than over so many lines
    #[arg(long, value_name = "N")]
    depth: Option<usize>,

    /// Show at most so many lines, those that are easiest to follow
    #[arg(long, value_name = "N", default_value_t = 24)]
    lines: usize,

    /// Show every line, and every instruction that was executed
    #[arg(long)]
    all: bool,

    /// Print the answer as JSON
    #[arg(long)]
    json: bool,

    /// Print statistics at the end, on standard error
    #[arg(long)]
    stats: bool,
}

pub fn main(args: &Args) -> ExitCode {
    match slice(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

fn slice(args: &Args) -> Result<(), Failure> {
    let (recording, mut questions) = questions::understand(&args.words)?;
    let [question] = questions.as_slice() else {
        let two = "a slice is of one value: give one criterion, behind the recording's name";
        return Err(Failure::Misused(two.to_owned()));
    };
    let process = question.process;
    let mut stats = Stats::default();
    questions::ask(&recording, &mut questions, false, &mut stats)?;
    let answer = questions[0].answer().map_err(no_answer)?;
    let place = placed(answer)?;
    let begun = Instant::now();
    let traced = traced::of_process(&recording, process).map_err(no_answer)?;
    let tracing = begun.elapsed();
    let manifest = recording.manifest().map_err(no_answer)?;
    let program = program(&traced, manifest.command.first().map_or("", String::as_str));
    let mut images = Images::new(recording.files());
    let sources = Sources::new(&traced.modules, &mut images, Path::new(&program));
    let criterion = criterion(args, answer, place, &traced, &sources)?;
    let options = Options { thin: args.thin, data: args.data, reasons: true };
    let begun = Instant::now();
    let slice = traced.region.slice(&criterion, options).map_err(no_answer)?;
    let slicing = begun.elapsed();
    let lines = sources.fold(&slice.reasons);
    let shown = how_many(args, &lines);
    let seen = seen(&recording, process, &traced, &slice, &lines.all[..shown], &mut stats)?;
    let told =
        Told { args, recording: &recording, question: questions[0].text, answer, traced: &traced };
    match args.json {
        true => println!("{}", told.json(&slice, &lines, shown, &seen, &stats)),
        false => print!("{}", told.text(&slice, &lines, shown, &seen)),
    }
    if args.stats {
        let new = if traced.is_new { "made" } else { "opened" };
        eprintln!(
            "why: {} instructions in the trace, {new} in {:.3} s; {} in the slice, found in \
             {:.3} s; {} replays besides",
            traced.region.length,
            tracing.as_secs_f64(),
            slice.instructions.len(),
            slicing.as_secs_f64(),
            stats.replays
        );
    }
    Ok(())
}

/// The moment of an answer.
fn placed(answer: &Answer) -> Result<Position, Failure> {
    match answer.position.parse() {
        Ok(Moment::At(position)) => Ok(position),
        _ => Err(Failure::NoAnswer(format!("{} is no moment of a process", answer.position))),
    }
}

/// The path of the program itself: its file was mapped first.
fn program(traced: &Traced, command: &str) -> String {
    let name = Path::new(command).file_name();
    let is_it = |module: &&why_engine::Module| Path::new(&module.name).file_name() == name;
    traced.modules.iter().find(is_it).map_or(command.to_owned(), |module| module.name.clone())
}

fn criterion(
    args: &Args,
    answer: &Answer,
    place: Position,
    traced: &Traced,
    sources: &Sources,
) -> Result<Criterion, Failure> {
    let position = traced.region.position(place.event, place.ticks).ok_or_else(|| {
        Failure::NoAnswer(format!("{} is not in the trace of the process", answer.position))
    })?;
    let origins = &answer.origins;
    if answer.value.is_some() && origins.is_empty() {
        return Err(Failure::NoAnswer(
            "the compiler knew this value when it made the program: nothing that was executed \
             made it"
                .to_owned(),
        ));
    }
    let mut pruned = sources.loader();
    for name in &args.prune {
        let found = sources.code_named(name);
        if found.is_empty() {
            return Err(Failure::NoAnswer(format!(
                "there is no function or file {name} in what was mapped, so it cannot be pruned"
            )));
        }
        pruned.extend(found);
    }
    Ok(Criterion {
        position,
        thread: answer.thread as u64,
        cells: origins.cells.clone(),
        memory: origins.memory.clone(),
        // Why it came there, if no value is asked for.
        address: place.pc.filter(|_| answer.value.is_none()),
        from: 0,
        pruned,
    })
}

/// How many of the lines are shown: with each all that depends on it.
fn how_many(args: &Args, lines: &Lines) -> usize {
    let all = lines.all.len();
    let most = if args.all { all } else { args.lines.min(all) };
    let Some(depth) = args.depth else {
        return most;
    };
    let mut depths: Vec<usize> = Vec::new();
    for line in &lines.all[..most] {
        depths.push(line.parent.map_or(1, |parent| depths[parent] + 1));
    }
    // They are in the order of their distance, but detours count more than lines.
    depths.iter().position(|own| *own > depth).unwrap_or(most)
}

/// What the shown lines had made.
fn seen(
    recording: &Recording,
    process: i32,
    traced: &Traced,
    slice: &Slice,
    lines: &[Line],
    stats: &mut Stats,
) -> Result<Vec<Option<Seen>>, Failure> {
    let asked = |line: &Line| {
        let reason = &slice.reasons[line.made];
        let area = match &reason.via {
            Via::Made(area) => area.clone(),
            Via::Wrote(at) => Area::Memory(*at..*at + 1),
            Via::Decided => return None,
        };
        let (event, ticks) = traced.region.moment(reason.position + 1)?;
        let moment = Position { event, ticks, pc: None };
        Some(Asked { moment, thread: reason.thread, area })
    };
    let mut numbers = Vec::new();
    let mut all = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        if let Some(asked) = asked(line) {
            numbers.push(number);
            all.push(asked);
        }
    }
    let (answers, report) = values::ask(recording, process, all).map_err(no_answer)?;
    report.iter().for_each(|report| stats.add(report));
    let mut seen = vec![None; lines.len()];
    for (number, answer) in numbers.into_iter().zip(answers) {
        seen[number] = answer;
    }
    Ok(seen)
}

/// All that an answer consists of.
struct Told<'a> {
    args: &'a Args,
    recording: &'a Recording,
    question: &'a str,
    answer: &'a Answer,
    traced: &'a Traced,
}

impl Told<'_> {
    fn text(&self, slice: &Slice, lines: &Lines, shown: usize, seen: &[Option<Seen>]) -> String {
        let mut out = match &self.answer.value {
            Some(Ok(ValueSeen::Expression { expression, value, .. })) => {
                format!("{}: {expression} = {value}\n", self.question)
            }
            Some(Ok(ValueSeen::Register { name, value })) => {
                format!("{}: {name} = {value:#x}\n", self.question)
            }
            _ => format!("{}: {}\n", self.question, self.answer.position),
        };
        out += &text::Tree::new(lines, shown, seen).text();
        out += &self
            .left_out(slice, lines, shown)
            .into_iter()
            .fold(String::new(), |all, line| all + &format!("({line})\n"));
        out
    }

    /// What was left out, and why.
    fn left_out(&self, slice: &Slice, lines: &Lines, shown: usize) -> Vec<String> {
        let mut left_out = Vec::new();
        let rest = lines.all.len() - shown;
        if rest > 0 {
            left_out.push(format!("{rest} more lines: --lines={} or --all", lines.all.len()));
        }
        let instances = slice.instructions.len();
        let of = self.traced.region.length;
        left_out.push(format!("{instances} of {of} instructions that were executed belong to it"));
        if let Some((name, _)) = lines.without_source.first() {
            let count = lines.without_source.len();
            let instructions: u64 = lines.without_source.iter().map(|(_, count)| count).sum();
            let others = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
            left_out.push(format!(
                "{instructions} of them have no source and no call that has: {name}{others}"
            ));
        }
        if slice.pruned > 0 {
            left_out.push(format!(
                "{} of the linker's own, or pruned, were not looked into",
                slice.pruned
            ));
        }
        if !slice.passed_over.is_empty() {
            let at: Vec<String> =
                slice.passed_over.iter().take(3).map(|at| format!("{at:#x}")).collect();
            left_out.push(format!(
                "what {} instructions did is not known, such as {}: some may be missing",
                slice.passed_over.len(),
                at.join(", ")
            ));
        }
        left_out
    }

    fn json(
        &self,
        slice: &Slice,
        lines: &Lines,
        shown: usize,
        seen: &[Option<Seen>],
        stats: &Stats,
    ) -> serde_json::Value {
        let line = |(line, seen): (&Line, &Option<Seen>)| {
            let reason = &slice.reasons[line.reason];
            let moment = self.traced.region.moment(reason.position);
            json!({
                "file": line.place.source.as_ref().map(|(file, _)| file),
                "line": line.place.source.as_ref().map(|(_, line)| line),
                "function": line.place.function,
                "module": line.place.module,
                "times": line.times,
                "parent": line.parent,
                "because": line.kind,
                "stands_for_calls": line.calls,
                "thread": reason.thread,
                "position": moment.map(|(event, ticks)| format!("{event}.{ticks}")),
                "variable": seen.as_ref().map(|seen| &seen.name),
                "value": seen.as_ref().map(|seen| &seen.value),
            })
        };
        let shown_lines: Vec<_> = lines.all[..shown].iter().zip(seen).map(line).collect();
        let instances: Option<Vec<_>> = self.args.all.then(|| {
            slice
                .instructions
                .iter()
                .map(|(position, address)| json!([position, address]))
                .collect()
        });
        json!({
            "schema": "why.slice/1",
            "recording": self.recording.path,
            "criterion": self.question,
            "answer": {
                "process": self.answer.process,
                "thread": self.answer.thread,
                "position": self.answer.position,
                "lines": shown_lines,
                "instances": instances,
            },
            "left_out": self.left_out(slice, lines, shown),
            "stats": {
                "traced": self.traced.region.length,
                "in_slice": slice.instructions.len(),
                "replays": stats.replays,
            },
        })
    }
}
