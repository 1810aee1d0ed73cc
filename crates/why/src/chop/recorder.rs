//! Records a run that another one was made of, apart from the terminal.

use crate::questions::{Failure, no_answer};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use why_record::event;
use why_record::store::{self, Recording};
use why_trial::{Call, Condition, Ended, Facts, Files, Spec};

/// A run that was recorded.
pub struct Recorded {
    pub path: PathBuf,
    pub ended: Ended,
    output: Output,
    time: Duration,
}

/// A failure that is to come again.
pub struct Wanted<'a> {
    pub failure: &'a str,
    pub condition: Option<Condition>,
}

/// Where things lie in memory differs from run to run, and with it what a wrong pointer points to:
/// so many runs are recorded until one fails as it is to.
const TRIES: usize = 5;

/// Records a command on a candidate, in a directory of its own, until it fails as it is to.
pub fn record_failing(
    spec: &Spec,
    files: &Files,
    wanted: &Wanted,
) -> Result<(Recorded, TempDir), Failure> {
    for number in 1.. {
        let directory = tempfile::tempdir().map_err(no_answer)?;
        let call = spec.prepare(files, directory.path()).map_err(no_answer)?;
        let input = match &call.input {
            Some(path) => File::open(path).map_err(no_answer)?.into(),
            None => Stdio::null(),
        };
        let recorded = record(&call, directory.path(), input)?;
        if recorded.fails(wanted, directory.path()) {
            return Ok((recorded, directory));
        }
        if number == TRIES {
            return Err(no_answer(format!(
                "the failure does not come again while it is recorded: it was {}, and is {} in {}",
                wanted.failure,
                recorded.ended,
                recorded.path.display()
            )));
        }
        std::fs::remove_dir_all(&recorded.path).map_err(no_answer)?;
    }
    unreachable!("there is a last try")
}

/// Records a command in a directory; its recording is one of the user's.
pub fn record(call: &Call, directory: &Path, input: Stdio) -> Result<Recorded, Failure> {
    let path = store::unused(&call.words[0].to_string_lossy()).map_err(no_answer)?;
    // It is recorded elsewhere.
    let path = std::path::absolute(path).map_err(no_answer)?;
    let begun = Instant::now();
    let mut command = Command::new("/proc/self/exe");
    command.arg("record").arg("-o").arg(&path).arg("--").args(&call.words);
    command.envs(call.variable.iter().map(|(name, value)| (name, value)));
    command.current_dir(directory).stdin(input);
    let output = command.output();
    let output =
        output.map_err(|error| no_answer(format!("cannot start `why record`: {error}")))?;
    let time = begun.elapsed();
    let manifest = Recording::open(&path).manifest();
    match manifest.ok().and_then(|manifest| manifest.finished) {
        Some(finished) => Ok(Recorded { path, ended: how(finished.ended), output, time }),
        None => {
            // What kept it from recording is the last that it said.
            let said = String::from_utf8_lossy(&output.stderr);
            let own = said.lines().rev().find_map(|line| line.strip_prefix("why: "));
            let own = own.unwrap_or("the recording was cut short");
            Err(no_answer(format!("cannot record the run: {own}")))
        }
    }
}

/// How a recorded run ended, as tests tell it.
pub fn how(ended: event::Ended) -> Ended {
    match ended {
        event::Ended::Status(status) => Ended::Status(status),
        event::Ended::Signal(signal) => Ended::Signal(signal),
    }
}

impl Recorded {
    /// Whether it fails as tests do without being recorded.
    fn fails(&self, wanted: &Wanted, directory: &Path) -> bool {
        match &wanted.condition {
            Some(condition) => condition.holds(&Facts {
                ended: self.ended,
                stdout: &self.output.stdout,
                stderr: &self.output.stderr,
                seconds: self.time.as_secs_f64(),
                directory,
            }),
            None => wanted.failure.starts_with(&self.ended.to_string()),
        }
    }
}
