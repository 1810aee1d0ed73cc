//! Every fixture, in every variant: recorded, it does what it does natively; replayed, in
//! an empty directory and with an empty environment, it writes and ends the same again.
//! One recording serves several replays: plain, with memory compared, traced, and from
//! checkpoints.

mod support;

use std::path::Path;
use std::process::Output;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tempfile::TempDir;

use support::compare;
use support::directives::Replay;
use support::fixture::{self, Fixture};
use support::job::Job;
use support::native::native;
use support::needs;
use support::outcome::Outcome;
use support::recording::{self, FromCheckpoint};
use support::retraced;
use support::run;

/// Memory is told often enough that every fixture has some to compare.
const OPTIONS: &[&str] = &["--hash=20", "--checkpoints=0"];

fn main() {
    let mut trials = Vec::new();
    for found in fixture::all() {
        match found {
            Ok(fixture) => {
                trials.push(Trial::ignorable_test(fixture.title(), move || test(&fixture)))
            }
            Err((name, error)) => trials.push(Trial::test(name, || Err(error.into()))),
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn test(fixture: &Fixture) -> Result<Completion, Failed> {
    if let Some(reason) = needs::unmet(&fixture.directives.needs) {
        return Ok(Completion::ignored_with(reason));
    }
    if let Replay::NotYet(reason) = &fixture.directives.replay {
        return Ok(Completion::ignored_with(reason));
    }
    let (job, native) = native(fixture)?;
    records_and_replays(&job, &native).map(|()| Completion::Completed)
}

fn records_and_replays(job: &Job, native: &Outcome) -> Result<(), Failed> {
    let directory = TempDir::new()?;
    let path = directory.path().join("recording");
    // Calls that are bound late save all registers with `xsavec` to memory that nobody reads,
    // and which of them the CPU leaves out depends on when the kernel last restored them.
    let job = job.clone().env("LD_BIND_NOW", "1");
    let recorded = run::run(&recording::recorder(&job, &path, OPTIONS))?;
    compare::same(native, &recorded).map_err(|error| format!("recorded: {error}"))?;
    let replay = |how: &str, options: &[&str]| {
        let replayed = recording::replay(&path, options)?;
        recording::same(&recorded, &replayed).map_err(|error| format!("{how}: {error}"))
    };
    replay("replayed", &[])?;
    replay("replayed with memory compared", &["--verify"])?;
    traced(&path, &recorded).map_err(|error| format!("replayed under trace: {error}"))?;
    from_checkpoints(&path, &recorded)
}

/// The trace of each process holds as many instructions as the recording tells.
fn traced(path: &Path, recorded: &Outcome) -> Result<(), String> {
    let (replayed, answer) = retraced::retrace(path, &[])?;
    recording::same(recorded, &replayed)?;
    answer.check(&recording::executed(path)?)
}

/// From an early and from a late checkpoint on.
fn from_checkpoints(path: &Path, recorded: &Outcome) -> Result<(), Failed> {
    for checkpoint in
        recording::checkpoints(path).map_err(|error| format!("checkpoints: {error}"))?
    {
        let from = format!("--from={}.0", checkpoint.events + 1);
        let replayed = recording::replay(path, &[&from])?;
        recording::same_end(recorded, &replayed)
            .and_then(|()| is_rest(&checkpoint, recorded, &replayed))
            .map_err(|error| format!("replayed with {from}: {error}"))?;
    }
    Ok(())
}

/// Whether the replay wrote what was written behind the checkpoint.
fn is_rest(from: &FromCheckpoint, recorded: &Outcome, replayed: &Output) -> Result<(), String> {
    let streams = [
        ("output", &recorded.stdout, &replayed.stdout, from.stdout),
        ("error", &recorded.stderr, &replayed.stderr, from.stderr),
    ];
    for (name, recorded, replayed, size) in streams {
        let text = String::from_utf8_lossy(replayed);
        if replayed.len() as u64 != size {
            return Err(format!("not {size} bytes to standard {name}: {text:?}"));
        }
        if !is_within(replayed, recorded) {
            return Err(format!("it wrote something else to standard {name}: {text:?}"));
        }
    }
    Ok(())
}

/// Whether all these lines are at the end of some others, in this order. Between them there
/// may be those of other processes, which are not replayed.
fn is_within(lines: &[u8], others: &[u8]) -> bool {
    let split = |text: &'_ [u8]| {
        text.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).rev().collect::<Vec<_>>()
    };
    let mut others = split(others).into_iter();
    split(lines).iter().all(|line| others.any(|other| other.ends_with(line)))
}
