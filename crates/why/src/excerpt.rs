//! An excerpt: a recording that executes only what is in a slice of another one. What the rest
//! did is told.

mod maker;
mod room;
mod script;
pub mod spans;

use crate::reduce::output::directory_of;
use crate::replay::{self, How};
use crate::say::besides;
use crate::slice::shown::Shown;
use crate::slice::traced;
use maker::{Made, Maker};
use room::Room;
use script::Script;
use serde::Serialize;
use std::fmt;
use std::io;
use std::path::Path;
use std::time::Instant;
use why_engine::{EngineError, Look};
use why_record::manifest::{Excerpt as Entry, Finished};
use why_record::position::Moment;
use why_record::store::Recording;
use why_record::summary;
use why_slice::excerpt::Excerpt;

/// An excerpt that is deleted unless it is kept.
pub struct Unkept {
    recording: Recording,
    room: Room,
}

impl Unkept {
    /// Where nobody else makes one: on the file system of the path, if it is to be there.
    fn at(path: Option<&Path>, recording: &Recording) -> Result<Unkept, EngineError> {
        let room = match path {
            Some(path) => {
                let parent = directory_of(path);
                let made = std::fs::create_dir_all(parent).and_then(|()| Room::hidden(parent));
                made.map_err(EngineError::system(cannot_create(path)))?
            }
            None => {
                let derived = traced::derived(recording);
                let what = format!("cannot make an excerpt in {}", derived.display());
                Room::derived(&derived).map_err(EngineError::system(what))?
            }
        };
        let recording = Recording::create(&room.path())?;
        Ok(Unkept { recording, room })
    }

    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// It is whole.
    pub fn keep(self, path: &Path) -> Result<(), EngineError> {
        refuse_taken(path)?;
        let renamed = std::fs::rename(self.room.path(), path);
        renamed.map_err(EngineError::system(cannot_create(path)))
    }
}

fn cannot_create(path: &Path) -> String {
    format!("cannot create the recording {}", path.display())
}

/// Nothing is replaced by an excerpt.
pub fn refuse_taken(path: &Path) -> Result<(), EngineError> {
    let errno = match path.file_name() {
        _ if path.symlink_metadata().is_ok() => libc::EEXIST,
        None => libc::ENOENT,
        Some(_) => return Ok(()),
    };
    let error = io::Error::from_raw_os_error(errno);
    Err(EngineError::system(cannot_create(path))(error))
}

fn failed(message: impl Into<String>) -> EngineError {
    EngineError::CannotStart { status: crate::FAILED, message: message.into() }
}

/// Makes an excerpt of a recording: to be kept at a path, or with what else was derived from it.
pub fn make(
    recording: &Recording,
    slice: &Shown,
    path: Option<&Path>,
) -> Result<(Unkept, Figures), EngineError> {
    let begun = Instant::now();
    let manifest = recording.manifest()?;
    let process = slice.process;
    let finished = manifest.finished.clone().ok_or_else(|| {
        failed(format!("{} was cut short, so there is no excerpt", recording.path.display()))
    })?;
    let region = traced::of_process(recording, process)?.region;
    let length = region.length;
    let ends = |(first, count): &(u64, u64)| first.checked_add(*count);
    if slice.traced != length
        || slice.runs.iter().any(|run| ends(run).is_none_or(|end| end > length))
    {
        // Another build may have traced the same differently.
        return Err(failed("the slice does not fit the trace of its recording; make it again"));
    }
    warn_of_many(slice.runs.len());
    let wanted: Vec<u64> =
        slice.runs.iter().flat_map(|(first, count)| *first..first + count).collect();
    let excerpt = Excerpt::new(region, wanted);
    let script = Script::new(recording, process, excerpt).map_err(failed)?;
    let unkept = Unkept::at(path, recording)?;
    let to = unkept.recording();
    let made = replay_into(recording, process, script, to, length)?;
    let entry = Entry {
        of: recording.path.canonicalize().unwrap_or(recording.path.clone()).display().to_string(),
        criterion: slice.criterion.clone(),
        instructions: length,
        in_slice: slice.in_slice,
        besides: made.besides,
        stretches: made.stretches,
        told_bytes: made.told_bytes,
    };
    let mut of_excerpt = manifest;
    of_excerpt.excerpt = Some(entry.clone());
    if let Some(region) = &mut of_excerpt.region {
        region.processes = vec![process];
    }
    let own = summary::processes(recording)?.into_iter().find(|known| known.pid == process);
    of_excerpt.finished = Some(Finished {
        process,
        ended: own.and_then(|own| own.ended).unwrap_or(finished.ended),
        instructions: made.instructions,
        events: made.events,
        log_bytes: made.log_bytes,
        seconds: begun.elapsed().as_secs_f64(),
        ..finished
    });
    of_excerpt.write(&to.path)?;
    let begun = Instant::now();
    let look = Some(Look::silently(process, Moment::End, Box::new(())));
    replay::run(recording, How { look, ..How::default() })?;
    let whole_seconds = begun.elapsed().as_secs_f64();
    Ok((unkept, Figures { excerpt: entry, seconds: 0.0, whole_seconds }))
}

/// It takes as long to make it as to execute it then, and nothing else says so without a terminal.
fn warn_of_many(stretches: usize) {
    /// Some seconds.
    const MANY: usize = 100_000;
    if stretches > MANY {
        besides!(
            "the slice is in {stretches} stretches, and each costs about as much as tens of \
             thousands of instructions"
        );
    }
}

/// How much of the run an excerpt is.
#[derive(Serialize)]
pub struct Figures {
    #[serde(flatten)]
    pub excerpt: Entry,
    /// How long the excerpt took, and the whole recording.
    pub seconds: f64,
    pub whole_seconds: f64,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { excerpt, seconds, whole_seconds } = self;
        write!(f, "{}; {seconds:.3} s, and {whole_seconds:.3} s for all", in_words(excerpt))
    }
}

/// What an excerpt executes.
pub fn in_words(excerpt: &Entry) -> String {
    let Entry { instructions, in_slice, besides, stretches, told_bytes, .. } = excerpt;
    let share = 100.0 * *in_slice as f64 / (*instructions).max(1) as f64;
    let besides = match besides {
        0 => String::new(),
        besides => format!(" and {besides} besides"),
    };
    format!(
        "{in_slice} of {instructions} instructions ({share:.2}%){besides}, in {stretches} \
         stretches; {told_bytes} bytes that the others wrote were told"
    )
}

fn replay_into(
    recording: &Recording,
    process: i32,
    script: Script,
    to: &Recording,
    length: u64,
) -> Result<Made, EngineError> {
    let mut maker = Maker::new(script, recording, process, to, length).map_err(failed)?;
    let Some(first) = maker.go_on().map_err(failed)? else {
        return Ok(maker.made());
    };
    let look = Some(Look::silently(process, Moment::At(first), Box::new(maker)));
    let report = replay::run(recording, How { look, ..How::default() })?;
    let answer = report.answer.and_then(|answer| serde_json::from_value(answer).ok());
    let made: Result<Made, String> =
        answer.ok_or_else(|| failed("the replay was ended, and the excerpt is not whole"))?;
    made.map_err(failed)
}

/// What makes no sense of an excerpt.
pub fn refuse(recording: &Recording, what: &str) -> Result<(), EngineError> {
    match recording.manifest()?.excerpt {
        None => Ok(()),
        Some(excerpt) => Err(failed(format!(
            "{} is an excerpt, which {what}; ask the recording that it was made from, {}, where \
             positions are the same",
            recording.path.display(),
            excerpt.of
        ))),
    }
}
