//! What a recording is of, in `manifest.json`.

use crate::cpu::Cpu;
use crate::event::Ended;
use crate::{RecordError, Result, VERSION};
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::Path;

const FILE: &str = "manifest.json";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    pub schema: String,
    pub version: u32,
    pub command: Vec<String>,
    pub directory: String,
    /// Seconds since 1970.
    pub recorded_at: u64,
    pub cpu: Cpu,
    /// Written at the end; without it, the recording was cut short.
    pub finished: Option<Finished>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finished {
    pub ended: Ended,
    /// The process that was started.
    pub process: i32,
    pub instructions: u64,
    pub events: u64,
    pub log_bytes: u64,
    pub seconds: f64,
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
            finished: None,
        }
    }

    /// Replaces the manifest as a whole.
    pub fn write(&self, recording: &Path) -> Result<()> {
        let temporary = recording.join("manifest.new");
        let mut text = serde_json::to_string_pretty(self).expect("plain data");
        text.push('\n');
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
        serde_json::from_slice(&text).map_err(damaged)
    }
}
