//! Real programs doing whole jobs: natively and under `why` with the same result; and
//! recorded, and replayed: with memory compared, traced, and from checkpoints.

#[path = "../support/mod.rs"]
mod support;

mod build;
mod compress;
mod data;
mod database;
mod language;
mod server;
mod shell;

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tempfile::TempDir;

use support::compare;
use support::job::Job;
use support::mask::{self, Mask};
use support::outcome::Outcome;
use support::recording;
use support::retraced;
use support::run;
use support::why::{self, Tool};

/// One program with one job for it.
pub struct Program {
    pub name: &'static str,
    /// Prepares the job; Err says what is missing to do so.
    pub job: fn() -> Result<Job, String>,
    pub masks: &'static [Mask],
    /// Long jobs do not run under every tool.
    pub tools: &'static [Tool],
    /// Does the job have a server, which listens on `$PORT`?
    pub serves: bool,
    /// Why it is not recorded and replayed here.
    pub not_replayed: Option<&'static str>,
}

impl Program {
    pub const fn new(name: &'static str, job: fn() -> Result<Job, String>) -> Program {
        Program { name, job, masks: &[], tools: &Tool::ALL, serves: false, not_replayed: None }
    }

    pub const fn masks(self, masks: &'static [Mask]) -> Program {
        Program { masks, ..self }
    }

    pub const fn tools(self, tools: &'static [Tool]) -> Program {
        Program { tools, ..self }
    }

    pub const fn serves(self) -> Program {
        Program { serves: true, ..self }
    }

    pub const fn not_replayed(self, reason: &'static str) -> Program {
        Program { not_replayed: Some(reason), ..self }
    }
}

fn main() {
    let families = [
        shell::PROGRAMS,
        compress::PROGRAMS,
        database::PROGRAMS,
        build::PROGRAMS,
        language::PROGRAMS,
        server::PROGRAMS,
    ];
    let trials = families.into_iter().flatten().flat_map(trials_of).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Under what a program does its job.
#[derive(Clone, Copy)]
enum Under {
    Run(Tool),
    Record,
}

fn trials_of(program: &'static Program) -> impl Iterator<Item = Trial> {
    let native: Arc<OnceLock<Result<(Job, Outcome), String>>> = Arc::default();
    let all = program.tools.iter().map(|&tool| Under::Run(tool)).chain([Under::Record]);
    all.map(move |under| {
        let native = native.clone();
        let name = match under {
            Under::Run(tool) => tool.name(),
            Under::Record => "recorded",
        };
        Trial::ignorable_test(format!("{} {name}", program.name), move || {
            if let (Under::Record, Some(reason)) = (under, program.not_replayed) {
                return Ok(Completion::ignored_with(reason));
            }
            let native = native.get_or_init(|| run_natively(program));
            let (job, expected) = native.as_ref().map_err(Failed::from)?;
            match under {
                Under::Run(tool) => test(program, tool, job, expected),
                Under::Record => test_recorded(program, job, expected),
            }
            .map(|()| Completion::Completed)
        })
    })
}

fn run_natively(program: &Program) -> Result<(Job, Outcome), String> {
    let job = (program.job)()?;
    let port = Port::free()?;
    let outcome = run::run(&port.given_to(&job))
        .map_err(|error| format!("the native run: {error}"))
        .map(|outcome| masked(program, port, outcome))?;
    // A job that fails natively would prove little by failing in the same way.
    if outcome.ended != support::outcome::Ended::Status(0) {
        let (out, err) = (&outcome.stdout, &outcome.stderr);
        return Err(format!(
            "the native run ended with {}\n{}\n{}",
            outcome.ended,
            String::from_utf8_lossy(out),
            String::from_utf8_lossy(err)
        ));
    }
    Ok((job, outcome))
}

fn test(program: &Program, tool: Tool, job: &Job, native: &Outcome) -> Result<(), Failed> {
    let port = Port::free()?;
    let (outcome, report) = why::under(&port.given_to(job), tool, Path::new(why::WHY))?.run()?;
    report.check(tool, outcome.ended)?;
    compare::same(native, &masked(program, port, outcome))?;
    Ok(())
}

/// Large programs have much memory, so it is not told too often.
const OPTIONS: &[&str] = &["--hash=2000", "--checkpoints=0"];

/// The recording is replayed from another directory than it was made in, when the job's own
/// one is gone.
fn test_recorded(program: &Program, job: &Job, native: &Outcome) -> Result<(), Failed> {
    let port = Port::free()?;
    let directory = TempDir::new()?;
    let (made, moved) = (directory.path().join("made"), directory.path().join("moved"));
    let recorder = recording::recorder(&port.given_to(job), &made, OPTIONS);
    let (recorded, its_directory) = run::run_to_the_letter(&recorder)?;
    let shown = run::without_directory(recorded.clone(), &its_directory);
    compare::same(native, &masked(program, port, shown))
        .map_err(|error| format!("recorded: {error}"))?;
    fs::rename(made, &moved)?;
    recording::replays_with_memory_compared(&moved, &recorded)?;
    Ok(retraced::replays(&moved, &recorded)?)
}

fn masked(program: &Program, port: Port, outcome: Outcome) -> Outcome {
    outcome.map(|text| {
        let text = mask::apply(program.masks, text);
        if program.serves { port.masked(text) } else { text }
    })
}

/// A port for the server of a job, another one in each run: tests run in parallel.
#[derive(Clone, Copy)]
struct Port(u16);

impl Port {
    fn free() -> Result<Port, String> {
        TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .map(|address| Port(address.port()))
            .map_err(|error| format!("no free port on loopback: {error}"))
    }

    fn given_to(self, job: &Job) -> Job {
        job.clone().env("PORT", self.0.to_string())
    }

    fn masked(self, text: Vec<u8>) -> Vec<u8> {
        let pattern = regex::bytes::Regex::new(&format!(r"\b{}\b", self.0));
        let pattern = pattern.expect("a number is a pattern");
        pattern.replace_all(&text, &b"{port}"[..]).into_owned()
    }
}
