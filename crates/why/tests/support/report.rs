//! The layout of the JSON report `why.run/1`; nothing else in the tests knows it.

use serde::Deserialize;

use crate::support::outcome::Ended;
use crate::support::why::Tool;

const SCHEMA: &str = "why.run/1";

#[derive(Debug, Deserialize)]
pub struct Report {
    schema: String,
    pub command: Vec<String>,
    pub answer: Answer,
}

#[derive(Debug, Deserialize)]
pub struct Answer {
    ended: EndedAs,
    pub instructions: Option<u64>,
    pub trace_instructions: Option<u64>,
    pub blocks_translated: u64,
    pub blocks_reused: u64,
    pub cache_bytes: u64,
    pub syscalls: Syscalls,
    pub stops: u64,
    pub translation_ns: u64,
    /// Mappings other than the code cache that were found executable in the
    /// target, at any check.
    pub executable_outside_cache: u64,
    /// Descendants of the first process that lived on when `why` returned.
    pub descendants_alive: u64,
}

#[derive(Debug, Deserialize)]
pub struct Syscalls {
    pub in_process: u64,
    pub supervised: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum EndedAs {
    Status(i32),
    Signal(String),
}

impl Report {
    pub fn parse(text: &str) -> Result<Report, String> {
        let report: Report =
            serde_json::from_str(text).map_err(|error| format!("the JSON report: {error}"))?;
        if report.schema != SCHEMA {
            return Err(format!("the JSON report has schema {}, not {SCHEMA}", report.schema));
        }
        Ok(report)
    }

    /// What must hold of the report of every run.
    pub fn check(&self, tool: Tool, ended: Ended) -> Result<(), String> {
        let answer = &self.answer;
        let told = match &answer.ended {
            EndedAs::Status(code) => Some(Ended::Status(*code)),
            EndedAs::Signal(name) => match name.parse() {
                Ok(signal) => Some(Ended::Signal(signal)),
                Err(_) => name.parse().ok().map(Ended::RealTime),
            },
        };
        if told != Some(ended) {
            return Err(format!("it ended with {ended}, but the report says {:?}", answer.ended));
        }
        if answer.executable_outside_cache != 0 {
            return Err(format!(
                "{} mappings besides the code cache were executable",
                answer.executable_outside_cache
            ));
        }
        if answer.blocks_translated + answer.blocks_reused == 0 || answer.cache_bytes == 0 {
            return Err("the report says that nothing was translated".into());
        }
        match (tool, answer.instructions, answer.trace_instructions) {
            (Tool::None, ..) => Ok(()),
            (_, None | Some(0), _) => Err("the report has no instruction count".into()),
            (Tool::Trace, counted, traced) if counted != traced => Err(format!(
                "the trace holds {traced:?} instructions, but {counted:?} were executed"
            )),
            _ => Ok(()),
        }
    }
}
