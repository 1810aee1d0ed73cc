//! What a recording is of, in `manifest.json`.

use crate::cpu::Cpu;
use crate::event::Ended;
use crate::{RecordError, Result, VERSION};
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

const FILE: &str = "manifest.json";
const NO_CHECKSUM: &str = "0000000000000000";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    pub schema: String,
    pub version: u32,
    pub command: Vec<String>,
    pub directory: String,
    /// Seconds since 1970.
    pub recorded_at: u64,
    pub cpu: Cpu,
    /// What the schedule followed from, if it was varied.
    #[serde(default)]
    pub seed: Option<u64>,
    /// If only a part of the run was to be recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<Region>,
    /// If it was made of another recording, and holds a slice of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<Excerpt>,
    /// What the recording could not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Written at the end; without it, the recording was cut short.
    pub finished: Option<Finished>,
    /// Of all that is written here, with zeroes in its own place.
    checksum: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stuck {
    /// So many threads waited for each other, and nobody else was left.
    Deadlock { threads: u64 },
    /// Its time was over.
    TimedOut,
}

/// What of a run an excerpt executes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Excerpt {
    /// The recording that it was made from, and what the slice is of.
    pub of: String,
    pub criterion: String,
    /// How many instructions the process executed there, and how many of them are in the slice.
    pub instructions: u64,
    pub in_slice: u64,
    /// How many are executed besides, because nobody knows what they write.
    pub besides: u64,
    /// In how many stretches all of these are executed.
    pub stretches: u64,
    /// How many bytes of memory are told instead of being computed.
    pub told_bytes: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finished {
    pub ended: Ended,
    /// Why it was ended, if it would not have ended of itself.
    #[serde(default)]
    pub stuck: Option<Stuck>,
    /// The process that was started.
    pub process: i32,
    pub instructions: u64,
    pub events: u64,
    pub log_bytes: u64,
    pub seconds: f64,
}

/// The part of a run that was recorded, as it was asked for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Region {
    /// Where it begins, if not with the program.
    pub from: Option<String>,
    /// Where it ends, if not with the program.
    pub until: Option<String>,
    /// The processes that there were when it began, so far as something of them was recorded.
    pub processes: Vec<i32>,
    /// It ended before the program did.
    pub left: bool,
}

impl Manifest {
    pub fn new(command: Vec<String>, directory: String, cpu: Cpu) -> Manifest {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Manifest {
            schema: format!("why.recording/{VERSION}"),
            version: VERSION,
            command,
            directory,
            recorded_at: now.map_or(0, |now| now.as_secs()),
            cpu,
            seed: None,
            region: None,
            excerpt: None,
            notes: Vec::new(),
            finished: None,
            checksum: NO_CHECKSUM.to_owned(),
        }
    }

    /// Replaces the manifest as a whole.
    pub fn write(&self, recording: &Path) -> Result<()> {
        let temporary = recording.join("manifest.new");
        let unsummed = Manifest { checksum: NO_CHECKSUM.to_owned(), ..self.clone() };
        let mut text = serde_json::to_string_pretty(&unsummed).expect("plain data");
        text.push('\n');
        let place = checksum_place(&text).expect("it was just written");
        let checksum = format!("{:016x}", xxh3_64(text.as_bytes()));
        text.replace_range(place, &checksum);
        std::fs::write(&temporary, text)
            .and_then(|()| std::fs::rename(&temporary, recording.join(FILE)))
            .map_err(RecordError::system(format!("cannot write {}", temporary.display())))
    }

    /// Changes what is there, which others may do as well.
    pub fn change(recording: &Path, change: impl FnOnce(&mut Manifest)) -> Result<()> {
        let what = format!("cannot lock {}", recording.display());
        let locked = File::open(recording).and_then(|directory| {
            Flock::lock(directory, FlockArg::LockExclusive).map_err(|(_, error)| error.into())
        });
        let _locked = locked.map_err(RecordError::system(what))?;
        let mut manifest = Manifest::read(recording)?;
        change(&mut manifest);
        manifest.write(recording)
    }

    pub fn read(recording: &Path) -> Result<Manifest> {
        let path = recording.join(FILE);
        let text = std::fs::read(&path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => RecordError::NotFound(format!(
                "{} is not a recording: it has no {FILE}; `why ls` lists those there are",
                recording.display()
            )),
            _ => RecordError::system(format!("cannot read {}", path.display()))(source),
        })?;
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let damaged = |error: serde_json::Error| RecordError::damaged(path.display(), error);
        let Versioned { version } = serde_json::from_slice(&text).map_err(damaged)?;
        if version != VERSION {
            let what = recording.display().to_string();
            return Err(RecordError::OtherVersion { what, version });
        }
        let manifest: Manifest = serde_json::from_slice(&text).map_err(damaged)?;
        if !is_unchanged(text, &manifest.checksum) {
            return Err(RecordError::damaged(path.display(), "it was changed"));
        }
        Ok(manifest)
    }
}

fn is_unchanged(text: Vec<u8>, checksum: &str) -> bool {
    let Some((mut text, place)) = String::from_utf8(text)
        .ok()
        .and_then(|text| checksum_place(&text).map(|place| (text, place)))
    else {
        return false;
    };
    text.replace_range(place, NO_CHECKSUM);
    checksum == format!("{:016x}", xxh3_64(text.as_bytes()))
}

/// Where the checksum is: no value holds a quotation mark that is not escaped.
fn checksum_place(text: &str) -> Option<Range<usize>> {
    let before = "\"checksum\": \"";
    let at = text.rfind(before)? + before.len();
    let place = at..at + NO_CHECKSUM.len();
    text.get(place.clone()).map(|_| place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Shown;

    #[test]
    fn every_change_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let command = vec!["a \"checksum\": \"0123456789abcdef\" b".to_owned()];
        let cpu = Cpu { shown: Shown::V3, vendor: "none".to_owned(), features: Vec::new() };
        Manifest::new(command.clone(), "/".to_owned(), cpu).write(directory.path()).unwrap();
        assert_eq!(Manifest::read(directory.path()).unwrap().command, command);
        let path = directory.path().join(FILE);
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                std::fs::write(&path, bad).unwrap();
                assert!(Manifest::read(directory.path()).is_err(), "byte {at}, bit {bit}");
            }
            std::fs::write(&path, &good[..at]).unwrap();
            assert!(Manifest::read(directory.path()).is_err(), "cut off at {at}");
        }
    }
}
