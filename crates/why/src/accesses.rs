//! `--accesses=FILE`: every memory access that a trace tells of, one in a line.

use crate::reports::ReportFile;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use why_engine::{EngineError, Readers, TraceReader};
use why_trace::access::Access;
use why_trace::follow::Follower;
use why_trace::shape::{Kind, Shape};

/// Who writes the accesses down, which only a trace has.
pub fn readers(path: Option<&PathBuf>, traces: bool) -> Result<Option<Readers>, EngineError> {
    if path.is_some() && !traces {
        return Err(EngineError::CannotStart {
            status: crate::FAILED,
            message: "only a trace tells of accesses: give --tool trace, too".to_owned(),
        });
    }
    let file = path.map(ReportFile::create).transpose()?.map(|report| report.file);
    let readers = |file| -> Readers {
        let file = Arc::new(Mutex::new(file));
        Arc::new(move |_| Some(Box::new(Logger::new(Arc::clone(&file)))))
    };
    Ok(file.map(readers))
}

/// Writes down what the trace of a process says was accessed.
struct Logger {
    follower: Follower,
    /// That of all processes.
    log: Arc<Mutex<File>>,
    /// Whole lines.
    text: String,
    /// The error that ended it.
    lost: Option<i32>,
}

impl Logger {
    fn new(log: Arc<Mutex<File>>) -> Logger {
        Logger { follower: Follower::default(), log, text: String::new(), lost: None }
    }

    /// A full disk ends the log, and neither the program nor what else is found out.
    fn write(&mut self) {
        if self.lost.is_none() {
            let written = self.log.lock().expect("no panic").write_all(self.text.as_bytes());
            self.lost = written.err().map(|error| error.raw_os_error().unwrap_or(libc::EIO));
        }
        self.text.clear();
    }
}

impl TraceReader for Logger {
    fn learn(&mut self, shapes: &[Arc<Shape>], kinds: &[Kind]) {
        self.follower.learn(shapes, kinds);
    }

    fn read(&mut self, records: &[u8]) {
        let (follower, text) = (&mut self.follower, &mut self.text);
        let read = follower.read(records, &mut |access| add_line(text, access));
        read.expect("the trace is well formed");
        self.write();
    }

    fn finish(&mut self) -> Option<i32> {
        let text = &mut self.text;
        self.follower.finish(&mut |access| add_line(text, access));
        self.write();
        self.lost
    }
}

fn add_line(text: &mut String, access: &Access) {
    let _ = writeln!(text, "{access}");
}
