//! `why print`: what was in variables, registers and memory at any point of a recording, and
//! who had called whom.

mod text;

use crate::questions::answer::{Answer, ValueSeen};
use crate::questions::{self, Failure, Stats, elsewhere};
use crate::say::{self, besides, say};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use why_record::registers::NAMES;

/// Print variables, registers and the backtrace at any points of a recording
#[derive(clap::Args)]
pub struct Args {
    /// [REC] and [PROC/]PLACE[#N][:EXPR | :%REG | :ADDR+SIZE]...; PLACE is start, end, crash,
    /// exit, FILE:LINE, FUNC, stdout:BYTE, stderr:BYTE (from 0 on) or a position
    /// EVENT.TICKS[.PC]; #N is the N-th execution
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

pub fn main(args: &Args) -> ExitCode {
    match print(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => failure.tell(),
    }
}

/// Whether everything was answered.
fn print(args: &Args) -> Result<bool, Failure> {
    let (recording, mut questions) = questions::understand(&args.words)?;
    let mut stats = Stats::default();
    questions::ask(&recording, &mut questions, args.backtrace || args.json, &mut stats)?;
    let mut all = true;
    for (number, question) in questions.iter().enumerate() {
        match question.answer() {
            Ok(answer) if args.json => {
                say::data(as_json(&recording.path, question.text, answer, &stats));
            }
            Ok(answer) => {
                let parts = text::Parts { registers: args.regs, backtrace: args.backtrace };
                let space = if number > 0 { "\n" } else { "" };
                say!("{space}{}", text::text(answer, &parts));
            }
            Err(absent) => {
                all = false;
                let elsewhere = elsewhere::told(&recording, question.process, &absent, &mut stats);
                besides!("{absent}{}", elsewhere.unwrap_or_default());
            }
        }
    }
    if args.stats {
        let Stats { replays, instructions, rewinds, copies } = stats;
        besides!(
            "{instructions} instructions in {replays} replays, {rewinds} ways back, \
             {copies} copies"
        );
    }
    Ok(all)
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
            "moment": answer.moment,
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
