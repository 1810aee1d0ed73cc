//! What a recording holds, process by process.

use crate::event::{Cause, Ended, Event, Thread};
use crate::store::Recording;
use crate::stream::Reader;
use crate::{RecordError, Result};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default)]
pub struct Process {
    pub pid: Thread,
    pub parent: Option<Thread>,
    /// It began as a program, and not as a copy of another process.
    pub began_as_program: bool,
    /// What it executed, one after the other; none if it was only forked.
    pub commands: Vec<Vec<String>>,
    pub threads: usize,
    pub instructions: u64,
    pub events: u64,
    pub bytes: u64,
    /// It went on when all was recorded that was wanted.
    pub left: bool,
    /// None if it went on, or if the recording was cut short.
    pub ended: Option<Ended>,
}

impl Process {
    /// How it ended was not recorded.
    pub fn is_cut_short(&self) -> bool {
        self.ended.is_none() && !self.left
    }
}

/// All processes, in the order of their numbers.
pub fn processes(recording: &Recording) -> Result<Vec<Process>> {
    let mut found: BTreeMap<Thread, Process> = BTreeMap::new();
    for (pid, program) in streams(recording)? {
        let path = recording.stream(pid, program);
        let process = found.entry(pid).or_insert_with(|| Process { pid, ..Process::default() });
        process.bytes += path.metadata().map_or(0, |metadata| metadata.len());
        let mut stream = Reader::open(&path)?;
        let mut threads = BTreeSet::new();
        let mut children = Vec::new();
        while let Some(event) = stream.next_event()? {
            process.events += 1;
            if (program, process.events) == (1, 1) {
                process.began_as_program = matches!(event, Event::Executed { .. });
            }
            match event {
                Event::Executed { arguments, .. } => process.commands.push(arguments),
                Event::Stopped { instructions, cause, .. } => {
                    // The one whose result is told is executed, too.
                    let told = u64::from(cause == Cause::Instruction);
                    let executed = instructions.saturating_add(told);
                    process.instructions = process.instructions.saturating_add(executed);
                }
                Event::Resumed { thread, .. } => drop(threads.insert(thread)),
                Event::Forked { child } => children.push(child),
                Event::Left => process.left = true,
                Event::Ended(ended) => process.ended = Some(ended),
                _ => {}
            }
        }
        process.threads = process.threads.max(threads.len());
        for child in children {
            let child =
                found.entry(child).or_insert_with(|| Process { pid: child, ..Process::default() });
            child.parent = Some(pid);
        }
    }
    Ok(found.into_values().collect())
}

/// The streams that there are: process and number of its program.
fn streams(recording: &Recording) -> Result<Vec<(Thread, u32)>> {
    let directory = recording.path.join("events");
    let what = format!("cannot read {}", directory.display());
    let entries = std::fs::read_dir(&directory).map_err(RecordError::system(what))?;
    let mut streams: Vec<(Thread, u32)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let (pid, program) = name.to_str()?.split_once('.')?;
            Some((pid.parse().ok()?, program.parse().ok()?))
        })
        .collect();
    streams.sort_unstable();
    Ok(streams)
}
