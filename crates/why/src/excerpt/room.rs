//! Where an excerpt is made, until it is whole: a directory that is locked as long as its maker lives.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// How the names begin of those in what is derived from a recording, and of those elsewhere.
const DERIVED: &str = "excerpt-";
const HIDDEN: &str = ".why-excerpt-";

pub struct Room {
    directory: TempDir,
    _lock: File,
}

impl Room {
    /// Among what is derived from a recording.
    pub fn derived(parent: &Path) -> io::Result<Room> {
        Room::within(parent, DERIVED)
    }

    /// Where the user has other things.
    pub fn hidden(parent: &Path) -> io::Result<Room> {
        Room::within(parent, HIDDEN)
    }

    /// In a directory from which everybody deletes what was left there by who was killed.
    fn within(parent: &Path, prefix: &str) -> io::Result<Room> {
        sweep(parent, prefix);
        loop {
            let directory = tempfile::Builder::new().prefix(prefix).tempdir_in(parent)?;
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

fn sweep(parent: &Path, prefix: &str) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_named = name.to_str().is_some_and(|name| name.starts_with(prefix));
        // Whatever else has such a name, as a pipe that nobody writes to, is not even opened.
        if is_named && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            delete_if_left(&entry.path());
        }
    }
}

/// It stays locked until it is deleted: else who has just made it might lock it meanwhile.
fn delete_if_left(room: &Path) {
    if let Ok(lock) = File::open(room)
        && lock.try_lock().is_ok()
    {
        let _ = std::fs::remove_dir_all(room);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_are_there_until_they_are_left() {
        for (make, left) in [
            (Room::derived as fn(&Path) -> io::Result<Room>, "excerpt-left"),
            (Room::hidden, ".why-excerpt-left"),
        ] {
            let parent = tempfile::tempdir().unwrap();
            let left = parent.path().join(left);
            std::fs::create_dir_all(left.join("recording/events")).unwrap();
            let rooms = [make(parent.path()).unwrap(), make(parent.path()).unwrap()];
            assert!(!left.exists());
            assert!(rooms.iter().all(|room| room.directory.path().exists()));
            drop(rooms);
            assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn what_is_no_room_stays() {
        let parent = tempfile::tempdir().unwrap();
        let others =
            [".why-excerpt", "excerpt-x", ".why-excerpt-file"].map(|n| parent.path().join(n));
        std::fs::create_dir(&others[0]).unwrap();
        std::fs::create_dir(&others[1]).unwrap();
        std::fs::write(&others[2], "").unwrap();
        drop(Room::hidden(parent.path()).unwrap());
        assert!(others.iter().all(|other| other.exists()));
    }
}
