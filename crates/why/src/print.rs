//! `why print`: what was in variables, registers and memory at any point of a recording, and
//! who had called whom.

mod answer;
mod text;
mod visits;

use crate::criterion::{self, Criterion};
use crate::images::Images;
use crate::recordings;
use crate::replay::{self, How};
use answer::{Answer, ValueSeen};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use visits::{Told, Visits};
use why_engine::{Look, Report};
use why_record::registers::NAMES;
use why_record::store::{self, Recording};

/// Print variables, registers and the backtrace at any points of a recording
#[derive(clap::Args)]
pub struct Args {
    /// [REC] and [PROC/]PLACE[#N][:EXPR | :%REG | :ADDR+SIZE]...; PLACE is start, end, crash,
    /// exit, FILE:LINE, FUNC or a position EVENT.TICKS[.PC]; #N is the N-th execution
    #[arg(value_names = ["REC", "CRITERION"], num_args = 1.., required = true)]
    words: Vec<String>,

    /// Print all registers as well
    #[arg(long)]
    regs: bool,

    /// Print who had called whom
    #[arg(long)]
    backtrace: bool,

    /// Print the answers as JSON, one in a line
    #[arg(long)]
    json: bool,

    /// Print statistics at the end, on standard error
    #[arg(long)]
    stats: bool,
}

/// Why there is no answer.
enum Failure {
    Misused(String),
    NoAnswer(String),
}

fn no_answer(error: impl ToString) -> Failure {
    Failure::NoAnswer(error.to_string())
}

pub fn main(args: &Args) -> ExitCode {
    match print(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(Failure::NoAnswer(message)) => {
            eprintln!("why: {message}");
            ExitCode::FAILURE
        }
        Err(Failure::Misused(message)) => {
            eprintln!("why: {message}");
            ExitCode::from(crate::MISUSED)
        }
    }
}

/// Whether everything was answered.
fn print(args: &Args) -> Result<bool, Failure> {
    let (name, texts) = split_words(&args.words);
    // What can be told without a recording is told first.
    for text in texts {
        if let (Err(message), false) = (criterion::parse(text), text.contains('/')) {
            return Err(Failure::Misused(message));
        }
    }
    let recording = recordings::find(name).map_err(no_answer)?;
    let mut questions = Vec::new();
    for text in texts {
        let (process, rest) = replay::choose_process(&recording, text).map_err(no_answer)?;
        let criterion = criterion::parse(rest).map_err(Failure::Misused)?;
        questions.push(Question { text, process, criterion, told: None });
    }
    let mut stats = Stats::default();
    ask(&recording, &mut questions, args.backtrace || args.json, &mut stats)?;
    let mut all = true;
    for (number, question) in questions.iter().enumerate() {
        match question.answer() {
            Ok(answer) if args.json => {
                println!("{}", as_json(&recording.path, question.text, answer, &stats));
            }
            Ok(answer) => {
                let parts = text::Parts { registers: args.regs, backtrace: args.backtrace };
                let space = if number > 0 { "\n" } else { "" };
                print!("{space}{}", text::text(answer, &parts));
            }
            Err(message) => {
                all = false;
                eprintln!("why: {message}");
            }
        }
    }
    if args.stats {
        let Stats { replays, instructions, rewinds, copies } = stats;
        eprintln!(
            "why: {instructions} instructions in {replays} replays, {rewinds} ways back, \
             {copies} copies"
        );
    }
    Ok(all)
}

/// The recording's name, if the first of several words can be nothing else, and the criteria.
fn split_words(words: &[String]) -> (Option<&Path>, &[String]) {
    match words {
        [first, rest @ ..] if !rest.is_empty() && names_recording(first) => {
            (Some(Path::new(first)), rest)
        }
        _ => (None, words),
    }
}

/// There is a recording of this name, or it looks like the name of one that has gone.
fn names_recording(word: &str) -> bool {
    let numbered = word.rsplit_once('-').is_some_and(|(_, number)| {
        !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    });
    store::exists(Path::new(word)) || numbered || criterion::parse(word).is_err()
}

struct Question<'a> {
    /// As it was asked.
    text: &'a str,
    process: i32,
    criterion: Criterion,
    told: Option<Told>,
}

impl Question<'_> {
    fn answer(&self) -> Result<&Answer, &str> {
        match &self.told {
            Some(Ok(answer)) => match &answer.value {
                Some(Err(message)) => Err(message),
                _ => Ok(answer),
            },
            Some(Err(message)) => Err(message),
            None => Err("the process never executed an instruction"),
        }
    }
}

/// What the answers cost together.
#[derive(Default)]
struct Stats {
    replays: u64,
    instructions: u64,
    /// How often the replay went back to a copy, and how many were made.
    rewinds: u64,
    copies: u64,
}

impl Stats {
    fn add(&mut self, report: &Report) {
        self.replays += 1 + report.beginnings;
        self.instructions += report.instructions;
        self.rewinds += report.rewinds;
        self.copies += report.copies;
    }
}

/// Finds the answers, with one session for each process.
fn ask(
    recording: &Recording,
    questions: &mut [Question],
    all_variables: bool,
    stats: &mut Stats,
) -> Result<(), Failure> {
    let mut processes: Vec<i32> = questions.iter().map(|question| question.process).collect();
    processes.sort_unstable();
    processes.dedup();
    for process in processes {
        let own = questions.iter_mut().filter(|question| question.process == process);
        let mut own: Vec<&mut Question> = own.collect();
        let criteria = own.iter().map(|question| question.criterion.clone()).collect();
        let visits = Visits::new(criteria, all_variables, Images::new(recording.files()));
        let (to, all_before) = visits.first();
        let from = if all_before { None } else { replay::events_before(to) };
        let look = Some(Look::session(process, to, Box::new(visits)));
        let how = How { from, look, ..How::default() };
        let report = replay::run(recording, how).map_err(no_answer)?;
        stats.add(&report);
        let told: Option<Vec<Option<Told>>> =
            report.answer.and_then(|answer| serde_json::from_value(answer).ok());
        for (question, told) in own.iter_mut().zip(told.into_iter().flatten()) {
            question.told = told;
        }
    }
    Ok(())
}

fn as_json(recording: &Path, criterion: &str, answer: &Answer, stats: &Stats) -> serde_json::Value {
    let registers: serde_json::Map<String, serde_json::Value> = NAMES
        .iter()
        .zip(&answer.registers)
        .map(|(name, value)| ((*name).into(), json!(value)))
        .collect();
    let value =
        answer.value.as_ref().and_then(|value| value.as_ref().ok()).map(|value| match value {
            ValueSeen::Register { name, value } => json!({"register": name, "value": value}),
            ValueSeen::Memory { address, bytes } => json!({"address": address, "bytes": bytes}),
            ValueSeen::Expression { expression, type_, value } => {
                json!({"expression": expression, "type": type_, "value": value})
            }
        });
    json!({
        "schema": "why.print/1",
        "recording": recording,
        "criterion": criterion,
        "answer": {
            "process": answer.process,
            "thread": answer.thread,
            "position": answer.position,
            "registers": registers,
            "frames": answer.frames,
            "frame": answer.frame,
            "value": value,
        },
        "left_out": answer.frames_left_out.iter().map(|why| json!({"frames": why})).collect::<Vec<_>>(),
        "stats": {
            "replays": stats.replays,
            "instructions": stats.instructions,
            "rewinds": stats.rewinds,
            "copies": stats.copies,
        },
    })
}
