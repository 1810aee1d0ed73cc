//! Going on journeys through recordings, and comparing what was seen there.

use std::path::Path;

use why_record::store::Recording;

use crate::support::job::Job;
use crate::support::outcome::{Ended, Outcome};
use crate::support::run;
use crate::visitor::{self, Journey, Report, Sight};

/// The processes of a recording, the first one first.
pub fn processes(path: &Path) -> Result<Vec<i32>, String> {
    let manifest = Recording::open(path).manifest().map_err(|error| error.to_string())?;
    let first = manifest.finished.ok_or("the recording is not finished")?.process;
    let entries = path.join("events").read_dir().map_err(|error| error.to_string())?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut found: Vec<i32> =
        names.filter_map(|name| name.split_once('.')?.0.parse().ok()).collect();
    found.sort_unstable_by_key(|process| (*process != first, *process));
    found.dedup();
    Ok(found)
}

pub fn job(journey: &Journey) -> Job {
    let program = std::env::current_exe().expect("this program");
    let journey = serde_json::to_string(journey).expect("plain data");
    Job::new(program).args([visitor::WORD, &journey]).limit(300)
}

/// Goes on a journey in a process of its own; err if any process is left.
pub fn visit(journey: &Journey) -> Result<Report, String> {
    let Outcome { ended, stdout, stderr, .. } = run::run(&job(journey))?;
    let said = String::from_utf8_lossy(&stderr);
    if ended != Ended::Status(0) {
        return Err(format!("the journey to {:?} ended with {ended}: {said}", journey.moments));
    }
    serde_json::from_slice(&stdout).map_err(|error| format!("{error}: {said}"))
}

pub fn same(expected: &Sight, seen: &Sight) -> Result<(), String> {
    for (index, name) in why_record::registers::NAMES.iter().enumerate() {
        let (expected, seen) = (expected.registers[index], seen.registers[index]);
        if expected != seen {
            return Err(format!("{name} is {seen:#x} and not {expected:#x}"));
        }
    }
    if let Some(part) = expected.memory.iter().find(|part| !seen.memory.contains(part)) {
        let overlaps = |other: &&(u64, u64, u64)| other.0 < part.1 && part.0 < other.1;
        let there: Vec<_> = seen.memory.iter().filter(overlaps).collect();
        return Err(format!("memory is {there:x?} and not {part:x?}"));
    }
    let place = |sight: &Sight| format!("thread {} at {}", sight.thread, sight.position);
    if place(expected) != place(seen) {
        return Err(format!("{} and not {}", place(seen), place(expected)));
    }
    match expected.vectors.iter().zip(&seen.vectors).position(|(one, other)| one != other) {
        Some(byte) => Err(format!("xmm{} differs", byte / 16)),
        None if expected == seen => Ok(()),
        None => Err("there is other memory".to_owned()),
    }
}
