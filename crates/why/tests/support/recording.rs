//! The command lines of `why record` and `why replay`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;
use why_record::event::{Event, Stream};
use why_record::store::Recording;
use why_record::stream::Reader;
use why_record::summary;

use crate::support::job::Job;
use crate::support::outcome::{Ended, Outcome};
use crate::support::why::WHY;

/// The same job under `why record`.
pub fn recorder(job: &Job, recording: &Path, options: &[&str]) -> Job {
    let mut args = vec!["record".into(), "-o".into(), recording.into()];
    args.extend(options.iter().map(Into::into));
    args.push("--".into());
    args.push(job.program.clone().into());
    args.extend(job.args.iter().cloned());
    Job { program: WHY.into(), args, limit: job.limit * 5, ..job.clone() }
}

/// What `why replay` wrote and how it ended, in an empty directory and with an empty
/// environment.
pub fn replay<S: AsRef<OsStr>>(recording: &Path, options: &[S]) -> Result<Output, String> {
    replay_with(Path::new(WHY), recording, options)
}

pub fn replay_with<S: AsRef<OsStr>>(
    why: &Path,
    recording: &Path,
    options: &[S],
) -> Result<Output, String> {
    let empty = TempDir::new().map_err(|error| format!("an empty directory: {error}"))?;
    Command::new("timeout")
        .args(["-s", "KILL", "240"])
        .arg(why)
        .arg("replay")
        .args(options)
        .arg(recording)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir(empty.path())
        .output()
        .map_err(|error| format!("why replay: {error}"))
}

/// Err if the replay does not end as the recorded run did, or writes something else.
pub fn same(recorded: &Outcome, replayed: &Output) -> Result<(), String> {
    same_end(recorded, replayed)?;
    if replayed.stdout != recorded.stdout || replayed.stderr != recorded.stderr {
        let told = |stdout: &[u8], stderr: &[u8]| {
            let [stdout, stderr] = [stdout, stderr].map(String::from_utf8_lossy);
            format!("{stdout:?} and {stderr:?}")
        };
        return Err(format!(
            "it wrote {}, and not {}",
            told(&replayed.stdout, &replayed.stderr),
            told(&recorded.stdout, &recorded.stderr)
        ));
    }
    Ok(())
}

pub fn same_end(recorded: &Outcome, replayed: &Output) -> Result<(), String> {
    let expected = status(recorded.ended)?;
    if replayed.status.code() == Some(expected) {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&replayed.stderr);
    Err(format!("{}, not status {expected}: {said}", replayed.status))
}

/// The status with which the replay ends.
pub fn status(recorded: Ended) -> Result<i32, String> {
    match recorded {
        Ended::Status(status) => Ok(status),
        Ended::Signal(signal) => Ok(128 + signal as i32),
        Ended::RealTime(signal) => Ok(128 + signal),
        Ended::TimedOut => Err("the recorded run did not end".into()),
    }
}

/// Replays a recording in all ways: plainly, with memory compared, and from checkpoints.
pub fn replays(path: &Path, recorded: &Outcome) -> Result<(), String> {
    whole(path, recorded, &[]).map_err(|error| format!("replayed: {error}"))?;
    replays_with_memory_compared(path, recorded)
}

/// The same of a long run: what fails plainly also fails while memory is compared.
pub fn replays_with_memory_compared(path: &Path, recorded: &Outcome) -> Result<(), String> {
    whole(path, recorded, &["--verify"])
        .map_err(|error| format!("replayed with memory compared: {error}"))?;
    from_checkpoints(path, recorded)
}

fn whole(path: &Path, recorded: &Outcome, options: &[&str]) -> Result<(), String> {
    same(recorded, &replay(path, options)?)
}

/// From an early and from a late checkpoint on.
fn from_checkpoints(path: &Path, recorded: &Outcome) -> Result<(), String> {
    for checkpoint in checkpoints(path).map_err(|error| format!("checkpoints: {error}"))? {
        let from = format!("--from={}.0", checkpoint.events + 1);
        let replayed = replay(path, &[&from])?;
        same_end(recorded, &replayed)
            .and_then(|()| is_rest(&checkpoint, recorded, &replayed))
            .map_err(|error| format!("replayed with {from}: {error}"))?;
    }
    Ok(())
}

/// Whether the replay wrote what was written behind the checkpoint.
fn is_rest(from: &FromCheckpoint, recorded: &Outcome, replayed: &Output) -> Result<(), String> {
    let streams = [
        ("output", &recorded.stdout, &replayed.stdout, from.stdout),
        ("error", &recorded.stderr, &replayed.stderr, from.stderr),
    ];
    for (name, recorded, replayed, size) in streams {
        let text = String::from_utf8_lossy(replayed);
        if replayed.len() as u64 != size {
            return Err(format!("not {size} bytes to standard {name}: {text:?}"));
        }
        if !is_within(replayed, recorded) {
            return Err(format!("it wrote something else to standard {name}: {text:?}"));
        }
    }
    Ok(())
}

/// Whether all these lines are at the end of some others, in this order. Between them there
/// may be those of other processes, which are not replayed.
fn is_within(lines: &[u8], others: &[u8]) -> bool {
    let split = |text: &'_ [u8]| {
        text.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).rev().collect::<Vec<_>>()
    };
    let mut others = split(others).into_iter();
    split(lines).iter().all(|line| others.any(|other| other.ends_with(line)))
}

/// A checkpoint of the first process, and what it wrote from there on: how many bytes to
/// standard output and standard error.
struct FromCheckpoint {
    events: u64,
    stdout: u64,
    stderr: u64,
}

/// The first and the last checkpoint of a recording's first process; none only if it takes
/// turns with others that it shares memory with.
fn checkpoints(path: &Path) -> Result<Vec<FromCheckpoint>, String> {
    let recording = Recording::open(path);
    let manifest = recording.manifest().map_err(|error| error.to_string())?;
    let process = manifest.finished.ok_or("the recording is not finished")?.process;
    let mut found: Vec<u64> = std::fs::read_dir(path.join("checkpoints"))
        .map_err(|error| format!("the checkpoints: {error}"))?
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (of, rest) = name.split_once('.')?;
            (of == process.to_string()).then(|| rest.split_once('.')?.1.parse().ok())?
        })
        .collect();
    found.sort_unstable();
    let ends = [found.first(), found.last()];
    let mut found: Vec<u64> = ends.into_iter().flatten().copied().collect();
    found.dedup();
    let events = numbered_events(&recording, process)?;
    let shares = events.iter().any(|(_, event)| matches!(event, Event::Turn { .. }));
    if found.is_empty() && !shares {
        return Err("there is none, and the process shares no memory with others".into());
    }
    let sum = |stream: Stream, from: u64| -> u64 {
        let behind = events.iter().filter(|(number, _)| *number > from);
        behind
            .map(|(_, event)| match event {
                Event::Output { stream: to, size, .. } if *to == stream => *size,
                _ => 0,
            })
            .sum()
    };
    let from = |events| FromCheckpoint {
        events,
        stdout: sum(Stream::Output, events),
        stderr: sum(Stream::Error, events),
    };
    Ok(found.into_iter().map(from).collect())
}

/// How many instructions each process executed.
pub fn executed(path: &Path) -> Result<BTreeMap<i32, u64>, String> {
    let recording = Recording::open(path);
    let processes = summary::processes(&recording).map_err(|error| error.to_string())?;
    Ok(processes.iter().map(|process| (process.pid, process.instructions)).collect())
}

/// The events with which a thread of the first process goes on, and how many instructions it
/// executes from there on.
pub fn stretches(path: &Path) -> Result<Vec<(u64, u64)>, String> {
    let recording = Recording::open(path);
    let manifest = recording.manifest().map_err(|error| error.to_string())?;
    let process = manifest.finished.ok_or("the recording is not finished")?.process;
    let mut stretches = Vec::new();
    for (number, event) in numbered_events(&recording, process)? {
        match event {
            Event::Resumed { .. } => stretches.push((number, 0)),
            Event::Stopped { instructions, .. } => {
                stretches.last_mut().ok_or("nobody runs")?.1 = instructions;
            }
            _ => {}
        }
    }
    Ok(stretches)
}

/// The events of a process, which are counted from one on.
pub fn numbered_events(recording: &Recording, process: i32) -> Result<Vec<(u64, Event)>, String> {
    let mut events = Vec::new();
    for program in 1.. {
        let path = recording.stream(process, program);
        if !path.exists() {
            break;
        }
        let mut reader = Reader::open(&path).map_err(|error| error.to_string())?;
        while let Some(event) = reader.next_event().map_err(|error| error.to_string())? {
            events.push((events.len() as u64 + 1, event));
        }
    }
    Ok(events)
}
