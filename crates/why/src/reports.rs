//! What the commands that run a program write besides: reports, each to a file that the user
//! names.

use serde::Serialize;
use std::fs::File;
use std::io::{Error, Write};
use std::path::{Path, PathBuf};
use why_engine::{Ended, EngineError, Report};

/// A file that a report goes to, and its name for messages.
pub struct ReportFile {
    path: PathBuf,
    pub file: File,
}

impl ReportFile {
    pub fn create(path: &PathBuf) -> Result<ReportFile, EngineError> {
        let file = File::create(path).map_err(|error| EngineError::CannotStart {
            status: crate::FAILED,
            message: format!(
                "cannot write a report to {}: {error}; name a file that can be written",
                path.display()
            ),
        })?;
        Ok(ReportFile { path: path.clone(), file })
    }

    pub fn write(mut self, text: &str) -> Result<(), EngineError> {
        self.file.write_all(text.as_bytes()).map_err(|source| not_written(&self.path, source))
    }

    pub fn write_json(self, report: &impl Serialize) -> Result<(), EngineError> {
        let mut text = serde_json::to_string_pretty(report).expect("plain data");
        text.push('\n');
        self.write(&text)
    }
}

fn not_written(path: &Path, source: Error) -> EngineError {
    let what = format!("the program ran, but writing the report to {}", path.display());
    EngineError::System { what, source }
}

/// Err if the accesses could not all be written.
pub fn has_all_accesses(path: Option<&PathBuf>, report: &Report) -> Result<(), EngineError> {
    match (path, report.trace_lost) {
        (Some(path), Some(error)) => Err(not_written(path, Error::from_raw_os_error(error))),
        _ => Ok(()),
    }
}

/// How a program ended, in a report.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JsonEnded {
    Status(i32),
    Signal(String),
}

impl From<Ended> for JsonEnded {
    fn from(ended: Ended) -> JsonEnded {
        match ended {
            Ended::Status(status) => JsonEnded::Status(status),
            Ended::Signal(signal) => JsonEnded::Signal(why_engine::signal_name(signal)),
        }
    }
}
