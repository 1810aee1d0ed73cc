//! What `why run --tool trace` says.

use std::fs;
use std::path::Path;

use crate::access::{self, Access};
use crate::support::job::{Before, Job};
use crate::support::run;
use crate::support::why::{self, Tool};

pub fn list(job: &Job) -> Result<Vec<Access>, String> {
    let job = job.clone().before(Before::NoRandomLayout);
    let mut under = why::under(&job, Tool::Trace, Path::new(why::WHY))?;
    let file = under.with_accesses();
    let (outcome, report) = under.run()?;
    report.check(Tool::Trace, outcome.ended)?;
    let text = fs::read_to_string(&file).map_err(|error| format!("no accesses: {error}"))?;
    text.lines().map(access::parse).collect()
}

pub fn output(job: &Job) -> Result<Vec<u8>, String> {
    let under = why::under(job, Tool::Trace, Path::new(why::WHY))?;
    Ok(run::run(&under.job)?.stdout)
}
