//! The files of a recording, by what is in them.

use crate::{RecordError, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

/// Of a file's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hash(pub u128);

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

pub struct Files {
    directory: PathBuf,
}

impl Files {
    pub fn in_directory(directory: &Path) -> Files {
        Files { directory: directory.to_owned() }
    }

    pub fn path(&self, hash: Hash) -> PathBuf {
        self.directory.join(hash.to_string())
    }

    /// Keeps a copy of a file as it is now. Never a link: files get rewritten in place.
    pub fn keep(&self, file: &mut File, name: &str) -> Result<Hash> {
        let what = || format!("cannot keep a copy of {name} in the recording");
        let temporary = self.directory.join(format!("new.{}", std::process::id()));
        let mut copy = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&temporary)
            .map_err(RecordError::system(what()))?;
        let copied = clone_file(file, &copy) || copy_all(file, &mut copy).is_ok();
        let hashed = File::open(&temporary).and_then(|mut copy| hash_of(&mut copy));
        match hashed {
            Ok(hash) if copied => {
                std::fs::rename(&temporary, self.path(hash))
                    .map_err(RecordError::system(what()))?;
                Ok(hash)
            }
            Ok(_) => Err(RecordError::system(what())(std::io::Error::last_os_error())),
            Err(error) => Err(RecordError::system(what())(error)),
        }
    }

    /// Opens a file and makes sure that it is the one.
    pub fn open(&self, hash: Hash) -> Result<File> {
        let path = self.path(hash);
        let what = format!("cannot read {}", path.display());
        let mut file = File::open(&path).map_err(RecordError::system(what.clone()))?;
        let found = hash_of(&mut file).map_err(RecordError::system(what))?;
        if found != hash {
            return Err(RecordError::damaged(path.display(), "its bytes are not what they were"));
        }
        Ok(file)
    }
}

/// Copies the rest of a file, however often a signal comes.
fn copy_all(from: &mut File, to: &mut File) -> std::io::Result<()> {
    loop {
        match std::io::copy(from, to) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn hash_of(file: &mut File) -> std::io::Result<Hash> {
    let mut hasher = Xxh3::new();
    let mut buffer = vec![0; 1 << 17];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(Hash(hasher.digest128())),
            Ok(n) => hasher.update(&buffer[..n]),
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
