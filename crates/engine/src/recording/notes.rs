//! What a recording cannot hold is at least named: in the manifest, for `why info` to tell.

use super::Recorder;
use crate::error::EngineError;
use crate::supervisor::{Outcome, Supervisor};
use rustc_hash::FxHashMap;
use std::os::unix::fs::MetadataExt;
use why_record::manifest::Manifest;

/// Files that were mapped privately, by name: what they are, and in which state they were.
pub(super) type MappedFiles = FxHashMap<String, ((u64, u64), State)>;

/// Size and time of the last change.
type State = (u64, i64, i64);

fn state(name: &str) -> Option<((u64, u64), State)> {
    let metadata = std::fs::metadata(name).ok()?;
    let state = (metadata.size(), metadata.mtime(), metadata.mtime_nsec());
    Some(((metadata.dev(), metadata.ino()), state))
}

impl Recorder {
    /// Adds a line to the manifest.
    pub(super) fn note(&self, note: String) -> Outcome<()> {
        let changed = Manifest::change(self.path(), |manifest| manifest.notes.push(note));
        Ok(changed.map_err(EngineError::Recording)?)
    }

    /// A file has been mapped privately, and what it holds is kept.
    pub(super) fn mapped_privately(&mut self, name: &str) {
        if !self.mapped_files.contains_key(name)
            && let Some(state) = state(name)
        {
            self.mapped_files.insert(name.to_owned(), state);
        }
    }

    /// Names the files that have been written to since they were mapped privately.
    pub(super) fn note_changed_files(&mut self) -> Outcome<()> {
        let has_changed = |(name, (file, before)): (&String, &((u64, u64), State))| {
            let now = state(name).filter(|(now, _)| now == file);
            now.is_some_and(|(_, now)| now != *before).then(|| name.clone())
        };
        let changed: Vec<String> = self.mapped_files.iter().filter_map(has_changed).collect();
        for name in changed {
            self.mapped_files.remove(&name);
            self.note(format!(
                "{name} was written to after it had been mapped privately: if the program saw \
                 that there, it is missing"
            ))?;
        }
        Ok(())
    }
}

impl Supervisor {
    /// A program has set the trap flag.
    pub(crate) fn note_stepping(&mut self) -> Outcome<()> {
        let Some(recorder) = self.recorder.as_mut().filter(|recorder| !recorder.steps_noted) else {
            return Ok(());
        };
        recorder.steps_noted = true;
        recorder.note("the program steps itself: not every step may have been seen".to_owned())
    }
}
