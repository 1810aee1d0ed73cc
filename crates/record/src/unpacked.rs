//! Packed recordings that have been opened: unpacked once, below the user's recordings, and
//! found there again until the packed file is gone or another one.

use crate::pack::{self, Progress};
use crate::store::{self, Recording};
use crate::{RecordError, Result};
use std::fs::{self, DirBuilder, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

const DIRECTORY: &str = "unpacked";
/// In an unpacked recording: the file that it was packed in.
const ORIGIN: &str = "packed";

/// The recording that is packed in a file.
pub fn open(packed: &Path, progress: Progress) -> Result<Recording> {
    let reading = || RecordError::system(format!("cannot read {}", packed.display()));
    let packed = packed.canonicalize().map_err(reading())?;
    let name = name(&packed).map_err(reading())?;
    let directory = store::root()?.join(DIRECTORY);
    let path = directory.join(&name);
    if path.join("manifest.json").exists() {
        return Ok(Recording::open(&path));
    }
    sweep(&directory);
    let partial = directory.join(format!("{name}.{}", std::process::id()));
    let result = unpack(&packed, &partial, progress).and_then(|()| match rename(&partial, &path) {
        // Somebody else has been faster.
        Err(_) if path.join("manifest.json").exists() => Ok(()),
        done => done,
    });
    let _ = fs::remove_dir_all(&partial);
    result.map(|()| Recording::open(&path))
}

fn unpack(packed: &Path, to: &Path, progress: Progress) -> Result<()> {
    let what = format!("cannot unpack to {}", to.display());
    let created = DirBuilder::new().recursive(true).mode(0o700).create(to);
    created.map_err(RecordError::system(what.clone()))?;
    pack::unpack(packed, to, progress)?;
    let origin = packed.as_os_str().as_bytes();
    fs::write(to.join(ORIGIN), origin).map_err(RecordError::system(what))
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(RecordError::system(format!(
        "cannot rename {} to {}",
        from.display(),
        to.display()
    )))
}

/// Which file it is, in which state, and how it ends: that is a checksum of all of it.
fn name(packed: &Path) -> std::io::Result<String> {
    let mut file = File::open(packed)?;
    let m = file.metadata()?;
    let mut hasher = Xxh3::new();
    let times = [m.mtime(), m.mtime_nsec(), m.ctime(), m.ctime_nsec()].map(i64::cast_unsigned);
    for number in [m.dev(), m.ino(), m.size()].iter().chain(&times) {
        hasher.update(&number.to_le_bytes());
    }
    file.seek(SeekFrom::Start(m.size().saturating_sub(64)))?;
    let mut end = Vec::new();
    file.take(64).read_to_end(&mut end)?;
    hasher.update(&end);
    Ok(format!("{:032x}", hasher.digest128()))
}

/// Deletes what belongs to no packed file any more, or was never finished.
fn sweep(directory: &Path) {
    let entries = directory.read_dir().into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()).filter(|path| !is_needed(path)) {
        let _ = fs::remove_dir_all(path);
    }
}

fn is_needed(path: &Path) -> bool {
    match path.extension() {
        Some(process) => Path::new("/proc").join(process).exists(),
        None => {
            let origin = fs::read(path.join(ORIGIN)).unwrap_or_default();
            let origin = PathBuf::from(std::ffi::OsString::from_vec(origin));
            name(&origin).is_ok_and(|name| path.ends_with(name))
        }
    }
}
