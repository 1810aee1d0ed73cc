//! `why run`: runs a program under the engine.

use crate::accesses;
use crate::reports::{self, JsonEnded, ReportFile};
use crate::say::{aside, besides};
use clap::ValueEnum;
use serde::Serialize;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use why_engine::launch::{self, Command};
use why_engine::{Ended, EngineError, Report};

/// Run a program under the engine, unchanged
#[derive(clap::Args)]
pub struct Args {
    /// What is woven into the program's code
    #[arg(long, value_enum, default_value_t = Tool::None)]
    tool: Tool,

    /// Print statistics at the end, on standard error or to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    stats: Option<Option<PathBuf>>,

    /// Write a report as JSON to FILE
    #[arg(long, value_name = "FILE", require_equals = true)]
    json: Option<PathBuf>,

    /// Write every memory access that the trace tells of to FILE (with --tool trace)
    #[arg(long, value_name = "FILE", require_equals = true)]
    accesses: Option<PathBuf>,

    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROG ARG")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Tool {
    /// Nothing
    None,
    /// Counts every instruction
    Count,
    /// Writes down every block and address, and reads them on another core
    Trace,
}

impl Tool {
    fn for_engine(self) -> why_engine::Tool {
        match self {
            Tool::None => why_engine::Tool::None,
            Tool::Count => why_engine::Tool::Count,
            Tool::Trace => why_engine::Tool::Trace,
        }
    }
}

pub fn main(args: Args) -> ExitCode {
    match run(&args) {
        Ok(report) => end_like(report.ended.expect("the program has ended")),
        Err(error) => {
            besides!("{error}");
            ExitCode::from(error.status())
        }
    }
}

fn run(args: &Args) -> Result<Report, EngineError> {
    // First of all: a program must not run for an hour and its report be lost.
    let files = ReportFiles::create(args)?;
    let readers = accesses::readers(args.accesses.as_ref(), args.tool == Tool::Trace)?;
    let command = Command {
        words: args.command.clone(),
        tool: args.tool.for_engine(),
        inspect: args.json.is_some(),
        readers,
        course: why_engine::launch::Course::Run,
    };
    let report = launch::run(&command)?;
    write_reports(args, files, &report)?;
    Ok(report)
}

struct ReportFiles {
    stats: Option<ReportFile>,
    json: Option<ReportFile>,
}

impl ReportFiles {
    fn create(args: &Args) -> Result<ReportFiles, EngineError> {
        let stats = args.stats.iter().flatten().next();
        Ok(ReportFiles {
            stats: stats.map(ReportFile::create).transpose()?,
            json: args.json.as_ref().map(ReportFile::create).transpose()?,
        })
    }
}

/// Ends this process as the program ended: with its status, or by its signal.
pub fn end_like(ended: Ended) -> ExitCode {
    match ended {
        Ended::Status(status) => std::process::exit(status),
        Ended::Signal(signal) => {
            // The program's own core file, if any, is the one that tells something.
            let _ = nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 0, 0);
            // SAFETY: the default action runs no code; raise is a plain call.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                let mut set: libc::sigset_t = std::mem::zeroed();
                libc::sigemptyset(&mut set);
                libc::sigaddset(&mut set, signal);
                libc::sigprocmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
                libc::raise(signal);
            }
            // Not reached, unless the signal does not end a process after all.
            ExitCode::from(128 + signal as u8)
        }
    }
}

fn write_reports(args: &Args, files: ReportFiles, report: &Report) -> Result<(), EngineError> {
    match files.stats {
        Some(file) => file.write(&statistics(args, report))?,
        None if args.stats.is_some() => aside(format_args!("{}", statistics(args, report))),
        None => {}
    }
    reports::has_all_accesses(args.accesses.as_ref(), report)?;
    if let Some(file) = files.json {
        file.write_json(&json(args, report))?;
    }
    if report.descendants_alive > 0 && std::io::IsTerminal::is_terminal(&std::io::stderr()) {
        let (n, them) = match report.descendants_alive {
            1 => ("one process".to_owned(), "it"),
            n => (format!("{n} processes"), "them"),
        };
        let _ = writeln!(
            std::io::stderr(),
            "why: {n} started by the program lives on; the engine stays with {them}",
        );
    }
    Ok(())
}

fn statistics(args: &Args, report: &Report) -> String {
    let ended = match report.ended {
        Some(Ended::Status(status)) => format!("status {status}"),
        Some(Ended::Signal(signal)) => format!("signal {}", why_engine::signal_name(signal)),
        None => "unknown".to_owned(),
    };
    let mut rows: Vec<(&str, String)> = vec![("ended with", ended)];
    if args.tool != Tool::None {
        rows.push(("instructions executed", grouped(report.instructions)));
    }
    if args.tool == Tool::Trace {
        rows.push(("instructions in the trace", grouped(report.trace_instructions)));
        rows.push(("trace records", grouped(report.trace_records)));
        rows.push(("trace register values", grouped(report.trace_slots)));
    }
    rows.extend([
        ("processes", grouped(report.processes)),
        ("threads", grouped(report.threads)),
        ("blocks translated", grouped(report.units)),
        ("blocks of earlier runs", grouped(report.reused)),
        ("code cache, bytes", grouped(report.cache_bytes)),
        ("time in translation, ms", format!("{:.1}", report.translation_ns as f64 / 1e6)),
        ("system calls in the process", grouped(report.calls_in_process)),
        ("system calls supervised", grouped(report.calls_supervised)),
        ("stops", grouped(report.stops)),
        ("descendants alive", grouped(report.descendants_alive)),
    ]);
    rows.iter().map(|(name, value)| format!("why: {name:<28} {value:>15}\n")).collect()
}

/// 1234567 as 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[derive(Serialize)]
struct JsonCalls {
    in_process: u64,
    supervised: u64,
}

#[derive(Serialize)]
struct JsonAnswer {
    ended: Option<JsonEnded>,
    instructions: Option<u64>,
    trace_instructions: Option<u64>,
    blocks_translated: u64,
    blocks_reused: u64,
    cache_bytes: u64,
    syscalls: JsonCalls,
    stops: u64,
    translation_ns: u64,
    executable_outside_cache: u64,
    descendants_alive: u64,
}

#[derive(Serialize)]
struct JsonStats {
    processes: u64,
    threads: u64,
    flushes: u64,
}

#[derive(Serialize)]
struct Json {
    schema: &'static str,
    command: Vec<String>,
    answer: JsonAnswer,
    stats: JsonStats,
}

fn json(args: &Args, report: &Report) -> Json {
    let counts = args.tool != Tool::None;
    Json {
        schema: "why.run/1",
        command: args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        answer: JsonAnswer {
            ended: report.ended.map(JsonEnded::from),
            instructions: counts.then_some(report.instructions),
            trace_instructions: (args.tool == Tool::Trace).then_some(report.trace_instructions),
            blocks_translated: report.units,
            blocks_reused: report.reused,
            cache_bytes: report.cache_bytes,
            syscalls: JsonCalls {
                in_process: report.calls_in_process,
                supervised: report.calls_supervised,
            },
            stops: report.stops,
            translation_ns: report.translation_ns,
            executable_outside_cache: report.executable_outside_cache,
            descendants_alive: report.descendants_alive,
        },
        stats: JsonStats {
            processes: report.processes,
            threads: report.threads,
            flushes: report.flushes,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn digits_are_grouped() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1234), "1,234");
        assert_eq!(grouped(123456), "123,456");
        assert_eq!(grouped(1234567), "1,234,567");
    }
}
