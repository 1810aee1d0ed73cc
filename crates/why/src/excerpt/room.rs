//! Where an excerpt is made that nobody keeps: a directory that is locked as long as its maker lives.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// How the names of all of these begin.
const PREFIX: &str = "excerpt-";

pub struct Room {
    directory: TempDir,
    _lock: File,
}

impl Room {
    /// In a directory from which everybody deletes what was left there by who was killed.
    pub fn beside(parent: &Path) -> io::Result<Room> {
        sweep(parent);
        loop {
            let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
            // Until it is locked, others may take it for one that was left, and delete it.
            let lock = match File::open(directory.path()) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                opened => opened?,
            };
            match lock.try_lock() {
                Err(TryLockError::WouldBlock) => continue,
                // There are file systems without locks.
                Err(TryLockError::Error(error)) if error.kind() != ErrorKind::Unsupported => {
                    return Err(error);
                }
                _ if directory.path().exists() => return Ok(Room { directory, _lock: lock }),
                _ => continue,
            }
        }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("recording")
    }
}

fn sweep(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_room = name.to_str().is_some_and(|name| name.starts_with(PREFIX));
        if is_room && File::open(entry.path()).is_ok_and(|room| room.try_lock().is_ok()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_are_there_until_they_are_left() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join("excerpt-left");
        std::fs::create_dir_all(left.join("recording/events")).unwrap();
        let rooms = [Room::beside(parent.path()).unwrap(), Room::beside(parent.path()).unwrap()];
        assert!(!left.exists());
        assert!(rooms.iter().all(|room| room.directory.path().exists()));
        drop(rooms);
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
