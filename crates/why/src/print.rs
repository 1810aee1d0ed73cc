//! `why print`: registers and memory at any position of a recording.

use crate::replay::{self, How};
use serde_json::json;
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use why_engine::{EngineError, Look, Seen};
use why_record::position::{Moment, Position};
use why_record::registers::{NAMES, RIP};
use why_record::store;

/// Print registers and memory at any position of a recording
#[derive(clap::Args)]
pub struct Args {
    /// [REC] and [PROC/]POSITION[:%REG | :ADDR+SIZE]; POSITION is start, end, crash, exit or
    /// EVENT.TICKS[.PC]
    #[arg(value_names = ["REC", "CRITERION"], num_args = 1..=2, required = true)]
    words: Vec<String>,

    /// Print all registers as well
    #[arg(long)]
    regs: bool,

    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

/// What is asked for, and where.
#[derive(Debug, PartialEq, Eq)]
struct Criterion {
    process: Option<i32>,
    at: Moment,
    value: Option<Value>,
}

#[derive(Debug, PartialEq, Eq)]
enum Value {
    /// By its place in the list of names.
    Register(usize),
    Memory(Range<u64>),
}

pub fn main(args: &Args) -> ExitCode {
    let (name, criterion) = match args.words.as_slice() {
        [criterion] => (None, criterion),
        [name, criterion] => (Some(PathBuf::from(name)), criterion),
        _ => unreachable!("one or two words"),
    };
    let criterion = match parse(criterion) {
        Ok(criterion) => criterion,
        Err(message) => {
            eprintln!("why: {message}");
            return ExitCode::from(crate::MISUSED);
        }
    };
    match print(args, name, &criterion) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("why: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print(args: &Args, name: Option<PathBuf>, criterion: &Criterion) -> Result<(), EngineError> {
    let recording = store::find(name.as_deref())?;
    let memory = match &criterion.value {
        Some(Value::Memory(range)) => vec![range.clone()],
        _ => Vec::new(),
    };
    let look = Look { at: criterion.at, memory, silent: true };
    let from = replay::events_before(criterion.at);
    let process = criterion.process;
    let how = How { process, from, look: Some(look), ..How::default() };
    let report = replay::run(&recording, how)?;
    let Some(seen) = report.seen else {
        return Err(EngineError::CannotStart {
            status: 1,
            message: "the process never executed an instruction".to_owned(),
        });
    };
    if args.json {
        println!("{}", as_json(&seen, criterion));
    } else {
        print_text(args, &seen, criterion);
    }
    Ok(())
}

fn position(seen: &Seen) -> Position {
    Position { event: seen.event, ticks: seen.ticks, pc: Some(seen.registers[RIP]) }
}

fn print_text(args: &Args, seen: &Seen, criterion: &Criterion) {
    println!("{}/{}  thread {}", seen.process, position(seen), seen.thread);
    match &criterion.value {
        Some(Value::Register(index)) => {
            println!("{:<8} {:#018x}", NAMES[*index], seen.registers[*index]);
        }
        Some(Value::Memory(_)) => seen.memory.iter().for_each(|(at, bytes)| dump(*at, bytes)),
        None => {}
    }
    if args.regs || criterion.value.is_none() {
        for (name, value) in NAMES.iter().zip(&seen.registers) {
            println!("{name:<8} {value:#018x}");
        }
    }
}

/// Sixteen bytes a line, as numbers and as text.
fn dump(at: u64, bytes: &[u8]) {
    for (line, part) in bytes.chunks(16).enumerate() {
        let numbers: Vec<String> = part.iter().map(|byte| format!("{byte:02x}")).collect();
        let visible = |&byte: &u8| if (0x20..0x7f).contains(&byte) { byte as char } else { '.' };
        let text: String = part.iter().map(visible).collect();
        println!("{:#014x}  {:<47}  {text}", at + 16 * line as u64, numbers.join(" "));
    }
    if bytes.is_empty() {
        println!("{at:#014x}  no memory is mapped there");
    }
}

fn as_json(seen: &Seen, criterion: &Criterion) -> serde_json::Value {
    let registers: serde_json::Map<String, serde_json::Value> = NAMES
        .iter()
        .zip(&seen.registers)
        .map(|(name, value)| ((*name).into(), json!(value)))
        .collect();
    let memory: Vec<_> =
        seen.memory.iter().map(|(at, bytes)| json!({"address": at, "bytes": bytes})).collect();
    json!({
        "schema": "why.print/1",
        "criterion": format!("{criterion:?}"),
        "answer": {
            "process": seen.process,
            "thread": seen.thread,
            "position": position(seen).to_string(),
            "registers": registers,
            "memory": memory,
        },
    })
}

/// `[PROC/]POSITION[:%REG|:ADDR+SIZE]`
fn parse(text: &str) -> Result<Criterion, String> {
    let (process, rest) = match text.split_once('/') {
        Some((process, rest)) => {
            let process = process.parse().map_err(|_| format!("{process} is no process number"))?;
            (Some(process), rest)
        }
        None => (None, text),
    };
    let (at, value) = match rest.split_once(':') {
        Some((at, value)) => (at, Some(parse_value(value)?)),
        None => (rest, None),
    };
    Ok(Criterion { process, at: replay::moment(at)?, value })
}

fn parse_value(text: &str) -> Result<Value, String> {
    if let Some(name) = text.strip_prefix('%') {
        let index = NAMES.iter().position(|known| *known == name);
        return index
            .map(Value::Register)
            .ok_or_else(|| format!("there is no register {name}; there are {}", NAMES.join(", ")));
    }
    /// More than a screen is not for reading.
    const MOST: u64 = 1 << 20;
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let parts = text.split_once('+').and_then(|(at, size)| Some((number(at)?, number(size)?)));
    match parts {
        Some((at, size)) if (1..=MOST).contains(&size) && at.checked_add(size).is_some() => {
            Ok(Value::Memory(at..at + size))
        }
        _ => Err(format!("{text} is neither %REG nor ADDR+SIZE with at most {MOST} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn criteria_are_understood() {
        let whole = parse("12/3.4:0x1000+16").unwrap();
        assert_eq!((whole.process, whole.value), (Some(12), Some(Value::Memory(0x1000..0x1010))));
        assert_eq!(parse("end:%rip").unwrap().value, Some(Value::Register(RIP)));
        for wrong in ["", "x/end", "end:%zax", "end:12", "end:0x10+0", "end:1+0x10000000", "main"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
