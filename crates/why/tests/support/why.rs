//! The command line of `why run`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::support::job::Job;
use crate::support::outcome::Outcome;
use crate::support::report::Report;
use crate::support::run;

/// The program under test.
pub const WHY: &str = env!("CARGO_BIN_EXE_why");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    None,
    Count,
    Trace,
}

impl Tool {
    pub const ALL: [Tool; 3] = [Tool::None, Tool::Count, Tool::Trace];

    pub fn name(self) -> &'static str {
        match self {
            Tool::None => "none",
            Tool::Count => "count",
            Tool::Trace => "trace",
        }
    }
}

/// A translated program may be several times slower, on a busy machine too.
const PATIENCE: u32 = 5;

/// The same job under `why`, and where its reports go.
pub struct UnderWhy {
    pub job: Job,
    reports: TempDir,
}

/// Reports lie outside the working directory, whose files are compared.
pub fn under(job: &Job, tool: Tool, why: &Path) -> Result<UnderWhy, String> {
    let reports = run::fresh_dir(&Job::new(why))?;
    let mut args: Vec<OsString> = vec!["run".into(), "--tool".into(), tool.name().into()];
    args.push(option("--stats=", &reports.path().join("stats")));
    args.push(option("--json=", &reports.path().join("json")));
    args.push("--".into());
    args.push(job.program.clone().into());
    args.extend(job.args.iter().cloned());
    let job = Job { program: why.into(), args, limit: job.limit * PATIENCE, ..job.clone() };
    Ok(UnderWhy { job, reports })
}

impl UnderWhy {
    /// Asks for every memory access of the run too; the answer is the file.
    pub fn with_accesses(&mut self) -> PathBuf {
        let file = self.reports.path().join("accesses");
        let behind_the_subcommand = 1;
        self.job.args.insert(behind_the_subcommand, option("--accesses=", &file));
        file
    }

    /// Err also when a report is missing or is not what it should be.
    pub fn run(&self) -> Result<(Outcome, Report), String> {
        let outcome = run::run(&self.job)?;
        let with_streams = |error: String| {
            let said = String::from_utf8_lossy(&outcome.stderr);
            format!("{error}\nit ended with {}, standard error: {said:?}", outcome.ended)
        };
        let report = self.report().map_err(with_streams)?;
        Ok((outcome, report))
    }

    fn report(&self) -> Result<Report, String> {
        let stats = read(&self.reports.path().join("stats"))?;
        if stats.trim().is_empty() {
            return Err("the file of --stats is empty".into());
        }
        Report::parse(&read(&self.reports.path().join("json"))?)
    }
}

fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(path);
    option
}

fn read(path: &PathBuf) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("no report {}: {error}", path.display()))
}
