//! Of which recording a slice is that was kept. A recording may have been moved, packed or renamed
//! since, and a slice copied, so it is what was executed that tells.

use super::shown::Shown;
use crate::questions::{Failure, no_answer};
use why_record::store::Recording;
use why_record::stream::Reader;
use why_record::summary;

/// Refuses a slice of another recording.
pub fn check(slice: &Shown, recording: &Recording) -> Result<(), Failure> {
    let process = slice.process;
    let finished = recording.manifest().map_err(no_answer)?.finished;
    let processes = summary::processes(recording).map_err(no_answer)?;
    let own = processes.iter().find(|known| known.pid == process);
    if own.is_some() || finished.is_some_and(|finished| finished.process == process) {
        // It was recorded, so what is missing of it has been lost.
        Reader::open(&recording.stream(process, 1)).map_err(no_answer)?;
    }
    let ends = |(first, count): &(u64, u64)| first.checked_add(*count);
    let is_within = |run| ends(run).is_some_and(|end| end <= slice.traced);
    match own {
        Some(own) if own.instructions == slice.traced && slice.runs.iter().all(is_within) => Ok(()),
        Some(own) if own.is_cut_short() && own.instructions < slice.traced => {
            Err(no_answer(format!(
                "{} was cut short: it has {} instructions of process {process}, and the slice is \
                 of {}; record the program again",
                recording.path.display(),
                own.instructions,
                slice.traced
            )))
        }
        _ => Err(no_answer(format!(
            "the slice is not of {}, but of another recording; it was made of {}",
            recording.path.display(),
            slice.recording.display()
        ))),
    }
}
