//! `why print`: what was in variables, registers and memory at any point of a recording, and
//! who had called whom.

mod answer;
mod text;

use crate::criterion::{self, Code, Criterion, Place};
use crate::executions::{Counted, Counter, Execution};
use crate::images::Images;
use crate::recordings;
use crate::replay::{self, How};
use answer::{Answer, Asker, AtMoment, ValueSeen};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use why_engine::{Look, Observer};
use why_record::position::Moment;
use why_record::registers::NAMES;
use why_record::store::Recording;

/// Print variables, registers and the backtrace at any point of a recording
#[derive(clap::Args)]
pub struct Args {
    /// [REC] and [PROC/]PLACE[#N][:EXPR | :%REG | :ADDR+SIZE]; PLACE is start, end, crash,
    /// exit, FILE:LINE, FUNC or a position EVENT.TICKS[.PC]; #N is the N-th execution
    #[arg(value_names = ["REC", "CRITERION"], num_args = 1..=2, required = true)]
    words: Vec<String>,

    /// Print all registers as well
    #[arg(long)]
    regs: bool,

    /// Print who had called whom
    #[arg(long)]
    backtrace: bool,

    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
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
    let (name, text) = match args.words.as_slice() {
        [criterion] => (None, criterion),
        [name, criterion] => (Some(Path::new(name)), criterion),
        _ => unreachable!("one or two words"),
    };
    match print(args, name, text) {
        Ok(()) => ExitCode::SUCCESS,
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

fn print(args: &Args, name: Option<&Path>, text: &str) -> Result<(), Failure> {
    // What can be told without a recording is told first.
    let whole = criterion::parse(text);
    if let (Err(message), false) = (&whole, text.contains('/')) {
        return Err(Failure::Misused(message.clone()));
    }
    let recording = recordings::find(name).map_err(no_answer)?;
    let (process, rest) = replay::choose_process(&recording, text).map_err(no_answer)?;
    let criterion = criterion::parse(rest).map_err(Failure::Misused)?;
    let question = Question { recording, process, backtrace: args.backtrace || args.json };
    let (answer, replays) = question.ask(criterion)?;
    if let Some(Err(message)) = &answer.value {
        return Err(Failure::NoAnswer(message.clone()));
    }
    if args.json {
        println!("{}", as_json(&question.recording.path, text, &answer, replays));
    } else {
        let parts = text::Parts { registers: args.regs, backtrace: args.backtrace };
        print!("{}", text::text(&answer, &parts));
    }
    Ok(())
}

struct Question {
    recording: Recording,
    process: i32,
    /// All frames are told with their variables.
    backtrace: bool,
}

impl Question {
    /// The answer, and how many replays it took.
    fn ask(&self, Criterion { place, value }: Criterion) -> Result<(Answer, u32), Failure> {
        let has_value = value.is_some();
        let asker = Asker { value, all_variables: self.backtrace, answer: None };
        let (code, number) = match place {
            Place::Moment(moment) => {
                let observer = AtMoment { images: self.images(), asker };
                let told: Option<Answer> =
                    self.replay(replay::events_before(moment), moment, Box::new(observer))?;
                let answer =
                    told.ok_or_else(|| no_answer("the process never executed an instruction"))?;
                return Ok((answer, 1));
            }
            Place::Code(code, number) => (code, number),
        };
        let (number, replays) = match number {
            Some(number) => (number, 1),
            None => (self.last_execution(&code)?, 2),
        };
        // A line's value is the one that it leaves behind.
        let when_left = has_value && matches!(code, Code::Line { .. });
        let observer = Execution::new(code.clone(), number, when_left, self.images(), asker);
        let told: Option<ExecutionSeen> = self.replay(None, Moment::End, Box::new(observer))?;
        match told {
            Some(ExecutionSeen::Seen(answer)) => Ok((*answer, replays)),
            Some(ExecutionSeen::None(counted)) => Err(no_answer(counted.none(&code, Some(number)))),
            None => Err(no_answer("the process never executed an instruction")),
        }
    }

    fn last_execution(&self, code: &Code) -> Result<u64, Failure> {
        let counter = Counter::new(code.clone(), self.images());
        let counted: Option<Counted> = self.replay(None, Moment::End, Box::new(counter))?;
        let counted = counted.unwrap_or_default();
        match counted.times {
            0 => Err(no_answer(counted.none(code, None))),
            times => Ok(times),
        }
    }

    fn images(&self) -> Images {
        Images::new(self.recording.files())
    }

    /// What the observer answered, of a replay that may begin behind so many events.
    fn replay<T: serde::de::DeserializeOwned>(
        &self,
        from: Option<u64>,
        to: Moment,
        observer: Box<dyn Observer>,
    ) -> Result<Option<T>, Failure> {
        let look = Some(Look::new(self.process, to, true, observer));
        let how = How { from, look, ..How::default() };
        let report = replay::run(&self.recording, how).map_err(no_answer)?;
        Ok(report.answer.and_then(|answer| serde_json::from_value(answer).ok()))
    }
}

/// What an [`Execution`] answers.
#[derive(serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum ExecutionSeen {
    Seen(Box<Answer>),
    None(Counted),
}

fn as_json(
    recording: &PathBuf,
    criterion: &str,
    answer: &Answer,
    replays: u32,
) -> serde_json::Value {
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
        "stats": {"replays": replays},
    })
}
