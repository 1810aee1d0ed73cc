//! Every fixture, in every variant: recorded, it does what it does natively; replayed, in
//! an empty directory and with an empty environment, it writes and ends the same again.
//! One recording serves several replays: plain, with memory compared, traced, and from
//! checkpoints.

mod support;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tempfile::TempDir;

use support::compare;
use support::directives::Replay;
use support::fixture::{self, Fixture};
use support::job::Job;
use support::native::native;
use support::needs;
use support::outcome::Outcome;
use support::recording;
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
    let recorded = run::run(&recording::recorder(job, &path, OPTIONS))?;
    compare::same(native, &recorded).map_err(|error| format!("recorded: {error}"))?;
    recording::replays(&path, &recorded)?;
    Ok(retraced::replays(&path, &recorded)?)
}
