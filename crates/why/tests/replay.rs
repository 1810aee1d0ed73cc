//! Every fixture, in every variant: recorded, it does what it does natively; replayed, in
//! an empty directory and with an empty environment, it writes and ends the same again.

mod support;

use std::path::Path;
use std::process::Command;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tempfile::TempDir;

use support::compare;
use support::directives::Replay;
use support::fixture::{self, Fixture};
use support::job::Job;
use support::native::native;
use support::needs;
use support::outcome::{Ended, Outcome};
use support::run;
use support::why::WHY;

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
    let recording = directory.path().join("recording");
    let recorded = run::run(&recorder(job, &recording))?;
    compare::same(native, &recorded).map_err(|error| format!("recorded: {error}"))?;
    replays(&recording, &recorded)
}

/// The same job under `why record`.
fn recorder(job: &Job, recording: &Path) -> Job {
    let mut args = vec!["record".into(), "-o".into(), recording.into(), "--".into()];
    args.push(job.program.clone().into());
    args.extend(job.args.iter().cloned());
    Job { program: WHY.into(), args, limit: job.limit * 5, ..job.clone() }
}

fn replays(recording: &Path, recorded: &Outcome) -> Result<(), Failed> {
    let empty = TempDir::new()?;
    let replayed = Command::new("timeout")
        .args(["-s", "KILL", "120", WHY, "replay"])
        .arg(recording)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir(empty.path())
        .output()?;
    let expected = match recorded.ended {
        Ended::Status(status) => status,
        Ended::Signal(signal) => 128 + signal as i32,
        Ended::RealTime(signal) => 128 + signal,
        Ended::TimedOut => return Err("the recorded run did not end".into()),
    };
    let said = String::from_utf8_lossy(&replayed.stderr).into_owned();
    if replayed.status.code() != Some(expected) {
        return Err(format!("replayed: {}, not status {expected}: {said}", replayed.status).into());
    }
    if replayed.stdout != recorded.stdout || replayed.stderr != recorded.stderr {
        let wrote = String::from_utf8_lossy(&replayed.stdout).into_owned();
        return Err(format!("replayed, it wrote {wrote:?} and {said:?}").into());
    }
    Ok(())
}
