//! How much room a recording takes.

use std::fs;
use std::io;
use std::path::Path;

pub struct Sizes {
    /// What has to be written while the program runs.
    pub log: u64,
    /// What makes it faster to get into the middle; none if there are none.
    pub checkpoints: u64,
}

impl Sizes {
    pub fn of(recording: &Path) -> io::Result<Sizes> {
        let checkpoints = recording.join("checkpoints");
        Ok(Sizes {
            log: bytes_in(&recording.join("events"))?,
            checkpoints: if checkpoints.exists() { bytes_in(&checkpoints)? } else { 0 },
        })
    }
}

fn bytes_in(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { bytes_in(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}
