//! Of which recording a slice is that was kept. A recording may have been moved, packed or renamed
//! since, and a slice copied, so it is what was executed that tells.

use super::shown::Shown;
use crate::questions::{Failure, no_answer};
use serde::{Deserialize, Serialize};
use why_record::store::Recording;
use why_record::stream::Reader;
use why_record::summary;

/// A slice as it is kept.
#[derive(Serialize)]
pub struct Kept<'a> {
    #[serde(flatten)]
    slice: &'a Shown,
    /// How many instructions the recording has of the process.
    recorded: u64,
}

impl Kept<'_> {
    pub fn of<'a>(slice: &'a Shown, recording: &Recording) -> Result<Kept<'a>, Failure> {
        let processes = summary::processes(recording).map_err(no_answer)?;
        let own = processes.iter().find(|known| known.pid == slice.process);
        Ok(Kept { slice, recorded: own.map_or(0, |own| own.instructions) })
    }
}

/// What tells whose it is.
#[derive(Deserialize)]
struct Whose {
    recorded: Option<u64>,
}

/// What was kept, unless it is of another recording; none if it is damaged.
pub fn read(text: &[u8], recording: &Recording) -> Result<Option<Shown>, Failure> {
    let read = serde_json::from_slice(text).and_then(|slice: Shown| {
        let Whose { recorded } = serde_json::from_slice(text)?;
        // Where it is not told, there are mostly as many in the trace.
        Ok((recorded.unwrap_or(slice.traced), slice))
    });
    let Ok((recorded, slice)) = read else { return Ok(None) };
    check(&slice, recorded, recording)?;
    Ok(Some(slice))
}

fn check(slice: &Shown, recorded: u64, recording: &Recording) -> Result<(), Failure> {
    let process = slice.process;
    let finished = recording.manifest().map_err(no_answer)?.finished;
    let processes = summary::processes(recording).map_err(no_answer)?;
    let own = processes.iter().find(|known| known.pid == process);
    if own.is_some() || finished.is_some_and(|finished| finished.process == process) {
        // It was recorded, so what is missing of it has been lost.
        Reader::open(&recording.stream(process, 1)).map_err(no_answer)?;
    }
    match own {
        Some(own) if own.instructions == recorded => Ok(()),
        Some(own) if own.is_cut_short() && own.instructions < recorded => Err(no_answer(format!(
            "{} was cut short: it has {} instructions of process {process}, and the slice is \
                 of {recorded}; record the program again",
            recording.path.display(),
            own.instructions
        ))),
        _ => Err(no_answer(format!(
            "the slice is not of {}, but of another recording; it was made of {}",
            recording.path.display(),
            slice.recording.display()
        ))),
    }
}
