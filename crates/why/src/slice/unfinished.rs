//! Files that are being made, and take their place when they are whole.

use crate::say::besides;
use std::ffi::OsStr;
use std::fs::{File, Metadata, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How the names of all of these end.
pub const TRACE: &str = "unfinished";
pub const DECODED: &str = "decoded";
pub const LEARNING: &str = "learning";
const EXTENSIONS: [&str; 3] = [TRACE, DECODED, LEARNING];

/// A file that this process makes, and no other one meanwhile. Unless it takes a place, it is deleted.
pub struct Unfinished {
    pub file: File,
    path: PathBuf,
    has_place: bool,
}

impl Unfinished {
    /// None if another process makes it. What one has left that was killed is overwritten.
    pub fn at(path: PathBuf) -> io::Result<Option<Unfinished>> {
        let file = Unfinished::open(&path)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Unfinished::begun(path, file, Err(error)),
            Ok(()) => Unfinished::begun(path, file, Ok(())),
        }
    }

    /// Waits for another process that makes it, and says so; none if that may have finished it.
    pub fn in_turn(path: PathBuf) -> io::Result<Option<Unfinished>> {
        let file = Unfinished::open(&path)?;
        let locked = match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                besides!("another process is making {}: waiting for it", path.display());
                file.lock()
            }
            Err(TryLockError::Error(error)) => Err(error),
            Ok(()) => Ok(()),
        };
        Unfinished::begun(path, file, locked)
    }

    /// Deletes what a process has left that was killed.
    pub fn clear(path: PathBuf) {
        if path.exists() {
            // What cannot be deleted is in nobody's way.
            let _ = Unfinished::at(path);
        }
    }

    /// Deletes what processes have left in a directory that were killed, where locks tell that.
    pub fn sweep(directory: &Path) {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()).filter(|path| is_unfinished(path)) {
            let Ok(file) = File::options().write(true).open(&path) else { continue };
            // Meanwhile it may have taken its place, and another one be there.
            let is_there = || FileId::at(&path).ok() == file.metadata().ok().map(FileId::from);
            if file.try_lock().is_ok() && is_there() {
                drop(Unfinished { file, path, has_place: false });
            }
        }
    }

    fn open(path: &Path) -> io::Result<File> {
        File::options().read(true).write(true).create(true).truncate(false).open(path)
    }

    fn begun(path: PathBuf, file: File, locked: io::Result<()>) -> io::Result<Option<Unfinished>> {
        // There are file systems without locks.
        locked.or_else(|error| match error.kind() {
            ErrorKind::Unsupported => Ok(()),
            _ => Err(error),
        })?;
        // Meanwhile it may have taken its place.
        if FileId::at(&path).ok() != Some(FileId::from(file.metadata()?)) {
            return Ok(None);
        }
        file.set_len(0)?;
        Ok(Some(Unfinished { file, path, has_place: false }))
    }

    /// It is whole.
    pub fn take_place(mut self, path: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, path)?;
        self.has_place = true;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.has_place {
            // What cannot be deleted is overwritten by whoever comes next.
            let _ = std::fs::remove_file(&self.path);
        }
        // Others may have the same file open.
        let _ = self.file.unlock();
    }
}

fn is_unfinished(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str);
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
}

/// What tells a file from one that takes its place.
#[derive(PartialEq, Eq)]
pub struct FileId(u64, u64);

impl FileId {
    pub fn at(path: &Path) -> io::Result<FileId> {
        Ok(FileId::from(std::fs::metadata(path)?))
    }
}

impl From<Metadata> for FileId {
    fn from(metadata: Metadata) -> FileId {
        FileId(metadata.dev(), metadata.ino())
    }
}
