//! `why replay --tool trace` and its JSON report `why.replay/1`; nothing else in the tests
//! knows its layout.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Output;

use serde::Deserialize;
use tempfile::NamedTempFile;

use crate::support::outcome::Outcome;
use crate::support::recording;

const SCHEMA: &str = "why.replay/1";

#[derive(Debug, Deserialize)]
struct Report {
    schema: String,
    answer: Answer,
}

#[derive(Debug, Deserialize)]
pub struct Answer {
    pub instructions: u64,
    pub trace_instructions: Option<u64>,
    processes: Vec<Process>,
}

#[derive(Debug, Deserialize)]
struct Process {
    pid: i32,
    instructions: u64,
    trace_instructions: Option<u64>,
}

/// Replays a recording and traces it: the trace of each process holds as many instructions as
/// the recording tells.
pub fn replays(path: &Path, recorded: &Outcome) -> Result<(), String> {
    let traced = || {
        let (replayed, answer) = retrace(path, &[])?;
        recording::same(recorded, &replayed)?;
        answer.check(&recording::executed(path)?)
    };
    traced().map_err(|error: String| format!("replayed under trace: {error}"))
}

/// Replays and traces; err also if the report is missing or is not what it should be.
pub fn retrace(path: &Path, options: &[&str]) -> Result<(Output, Answer), String> {
    let file = NamedTempFile::new().map_err(|error| format!("a file for the report: {error}"))?;
    let json = format!("--json={}", file.path().display());
    let output = recording::replay(path, &[options, &["--tool=trace", &json]].concat())?;
    let said = String::from_utf8_lossy(&output.stderr);
    let text = fs::read_to_string(file.path()).map_err(|error| format!("no report: {error}"))?;
    let report: Report = serde_json::from_str(&text)
        .map_err(|error| format!("the JSON report: {error}; it said {said:?}"))?;
    match report.schema == SCHEMA {
        true => Ok((output, report.answer)),
        false => Err(format!("the JSON report has schema {}, not {SCHEMA}", report.schema)),
    }
}

impl Answer {
    /// Err unless each of these processes, and no other, has executed so many instructions,
    /// and its trace holds as many.
    pub fn check(&self, executed: &BTreeMap<i32, u64>) -> Result<(), String> {
        let of = |number: fn(&Process) -> Option<u64>| -> BTreeMap<i32, u64> {
            let numbers = self.processes.iter().map(|process| (process.pid, number(process)));
            numbers.filter_map(|(pid, number)| Some((pid, number?))).collect()
        };
        let counted = of(|process| Some(process.instructions));
        let traced = of(|process| process.trace_instructions);
        if &counted != executed || &traced != executed {
            return Err(format!("recorded {executed:?}, counted {counted:?}, traced {traced:?}"));
        }
        let sum = executed.values().sum();
        match (self.instructions, self.trace_instructions) == (sum, Some(sum)) {
            true => Ok(()),
            false => Err(format!("all together are {sum}, and not {self:?}")),
        }
    }
}
