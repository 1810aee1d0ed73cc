//! The files of a recording, by what is in them.
//!
//! Every recording has its own, so that it can be moved, packed and deleted without a look at
//! any other. Where the file system can, a kept file shares its blocks with the one it was
//! made from, and so with that file in other recordings; else it is a copy. It is never a
//! link: files get rewritten in place.

use crate::sums::Sums;
use crate::{RecordError, Result};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use xxhash_rust::xxh3::Xxh3;

/// Of a file's bytes. It tells what has changed by accident; whoever makes a recording
/// chooses both the files and their hashes, so it need not withstand more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hash(pub u128);

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[derive(Clone)]
pub struct Files {
    directory: PathBuf,
    /// Those that have been found to be what they were: one is mapped many times.
    verified: Rc<RefCell<HashSet<Hash>>>,
    /// Of those that were kept by this process.
    sums: Rc<RefCell<HashMap<Hash, Rc<Sums>>>>,
}

impl Files {
    pub fn in_directory(directory: &Path) -> Files {
        Files { directory: directory.to_owned(), verified: Rc::default(), sums: Rc::default() }
    }

    pub fn path(&self, hash: Hash) -> PathBuf {
        self.directory.join(hash.to_string())
    }

    /// Keeps a copy of a file as it is now.
    pub fn keep(&self, file: &mut File, name: &str) -> Result<Hash> {
        let what = || format!("cannot keep a copy of {name} in {}", self.directory.display());
        self.copy(file).map_err(RecordError::system(what()))
    }

    fn copy(&self, file: &mut File) -> io::Result<Hash> {
        let mut new = New::in_directory(&self.directory)?;
        let mut sums = Sums::default();
        let hash = match clone_file(file, &new.file) {
            true => hash_while(&mut new.file, |bytes| {
                sums.add(bytes);
                Ok(())
            })?,
            false => hash_while(file, |bytes| {
                sums.add(bytes);
                new.file.write_all(bytes)
            })?,
        };
        sums.end();
        new.call(&self.path(hash))?;
        self.sums.borrow_mut().insert(hash, Rc::new(sums));
        Ok(hash)
    }

    /// The sums of a file that was kept by this process.
    pub fn sums(&self, hash: Hash) -> Option<Rc<Sums>> {
        self.sums.borrow().get(&hash).cloned()
    }

    /// How many files there are, and how many bytes they have.
    pub fn size(&self) -> Result<(u64, u64)> {
        let reading = || RecordError::system(format!("cannot read {}", self.directory.display()));
        let mut size = (0, 0);
        for entry in std::fs::read_dir(&self.directory).map_err(reading())? {
            let metadata = entry.and_then(|entry| entry.metadata()).map_err(reading())?;
            size = (size.0 + 1, size.1 + metadata.len());
        }
        Ok(size)
    }

    /// Opens a file and makes sure that it is the one.
    /// How large one is, if it is there.
    pub fn size_of(&self, hash: Hash) -> Option<u64> {
        Some(std::fs::metadata(self.path(hash)).ok()?.len())
    }

    pub fn open(&self, hash: Hash) -> Result<File> {
        let path = self.path(hash);
        let reading = || RecordError::system(format!("cannot read {}", path.display()));
        let mut file = File::open(&path).map_err(reading())?;
        if self.verified.borrow().contains(&hash) {
            return Ok(file);
        }
        if hash_while(&mut file, |_| Ok(())).map_err(reading())? != hash {
            return Err(RecordError::damaged(path.display(), "its bytes are not what they were"));
        }
        self.verified.borrow_mut().insert(hash);
        Ok(file)
    }
}

/// The hash of what is left of a file, all of which is handed over, however often a signal
/// comes.
fn hash_while(
    file: &mut File,
    mut hand_over: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<Hash> {
    let mut hasher = Xxh3::new();
    let mut buffer = vec![0; 1 << 17];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(Hash(hasher.digest128())),
            Ok(n) => {
                hasher.update(&buffer[..n]);
                hand_over(&buffer[..n])?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Lets the file system share the blocks until one of the two is written to.
fn clone_file(from: &File, to: &File) -> bool {
    // SAFETY: both descriptors are open; the kernel changes nothing in this process.
    unsafe { libc::ioctl(to.as_raw_fd(), libc::FICLONE, from.as_raw_fd()) == 0 }
}

/// A file that is not whole yet. Nothing is left of it if this process is killed, except
/// where the file system knows no files without names.
struct New {
    file: File,
    name: Option<PathBuf>,
}

impl New {
    fn in_directory(directory: &Path) -> io::Result<New> {
        let mut options = File::options();
        options.read(true).write(true).mode(0o600);
        if let Ok(file) = options.clone().custom_flags(libc::O_TMPFILE).open(directory) {
            return Ok(New { file, name: None });
        }
        let name = directory.join(format!("new.{}", std::process::id()));
        let file = options.create(true).truncate(true).open(&name)?;
        Ok(New { file, name: Some(name) })
    }

    /// Gives the file its name, unless there is one of that name, which then has the same
    /// bytes.
    fn call(mut self, path: &Path) -> io::Result<()> {
        if let Some(name) = self.name.take() {
            return std::fs::rename(name, path);
        }
        let from = CString::new(format!("/proc/self/fd/{}", self.file.as_raw_fd()))?;
        let to = CString::new(path.as_os_str().as_bytes())?;
        let (here, flags) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
        // SAFETY: both strings end with a zero and live until the call is over.
        match unsafe { libc::linkat(here, from.as_ptr(), here, to.as_ptr(), flags) } {
            0 => Ok(()),
            _ => match io::Error::last_os_error() {
                error if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                error => Err(error),
            },
        }
    }
}

impl Drop for New {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = std::fs::remove_file(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_kept_once_and_found_again() {
        let directory = tempfile::tempdir().unwrap();
        let (original, kept) = (directory.path().join("original"), directory.path().join("files"));
        fs::create_dir(&kept).unwrap();
        fs::write(&original, vec![7; 300_000]).unwrap();
        let files = Files::in_directory(&kept);
        let keep = || files.keep(&mut File::open(&original).unwrap(), "original").unwrap();
        let hash = keep();
        assert_eq!(keep(), hash);
        // What is written to the original is not written to the copy.
        File::options().write(true).open(&original).unwrap().write_all(b"other").unwrap();
        assert_ne!(keep(), hash);
        assert_eq!(files.size().unwrap(), (2, 600_000));
        files.open(hash).unwrap();
        assert_eq!(fs::read(files.path(hash)).unwrap(), vec![7; 300_000]);
    }

    #[test]
    fn what_has_changed_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let original = directory.path().join("original");
        fs::write(&original, b"what it was").unwrap();
        let files = Files::in_directory(directory.path());
        let hash = files.keep(&mut File::open(&original).unwrap(), "original").unwrap();
        fs::write(files.path(hash), b"what it is!").unwrap();
        assert!(matches!(files.open(hash), Err(RecordError::Damaged { .. })));
    }
}
