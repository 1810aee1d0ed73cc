//! What a replay under trace says.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::access::{self, Access};
use crate::support::job::{Before, Job};
use crate::support::outcome::Outcome;
use crate::support::{recording, retraced, run};

pub fn list(job: &Job) -> Result<Vec<Access>, String> {
    let directory = TempDir::new().map_err(|error| error.to_string())?;
    let path = directory.path().join("recording");
    let recorded = record(&job.clone().before(Before::NoRandomLayout), &path)?;
    let file = directory.path().join("accesses");
    let option = format!("--accesses={}", file.display());
    let (replayed, answer) = retraced::retrace(&path, &[&option])?;
    recording::same(&recorded, &replayed)?;
    answer.check(&recording::executed(&path)?)?;
    let text = fs::read_to_string(&file).map_err(|error| format!("no accesses: {error}"))?;
    text.lines().map(access::parse).collect()
}

pub fn output(job: &Job) -> Result<Vec<u8>, String> {
    let directory = TempDir::new().map_err(|error| error.to_string())?;
    Ok(record(job, &directory.path().join("recording"))?.stdout)
}

/// The CPU is the one that the oracle sees.
pub fn record(job: &Job, path: &Path) -> Result<Outcome, String> {
    run::run(&recording::recorder(job, path, &["--cpu=native"]))
}
