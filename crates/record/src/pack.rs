//! A recording as one file, which can be sent to somebody else.
//!
//! The file consists of [`chunks`](crate::chunks) whose first byte says what the others are:
//!
//! | | |
//! |---|---|
//! | `F` | the name of a file of the recording, relative to it: it begins here |
//! | `B` | the next bytes of that file |
//! | `E` | the XXH3 of all chunks before: the recording is whole |
//!
//! Neither side holds more than a chunk in memory.

use crate::chunks::{ChunkReader, ChunkWriter, Fault, Magic};
use crate::{RecordError, Result};
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

pub const MAGIC: Magic = *b"why-pack";
const PIECE_BYTES: u64 = 1 << 20;

const MANIFEST: &str = "manifest.json";
/// What else belongs to a recording; what can be made again does not.
const DIRECTORIES: [&str; 4] = ["events", "files", "checkpoints", "slices"];

/// A file of a recording.
pub struct Entry {
    name: String,
    path: PathBuf,
    pub size: u64,
}

/// Is told of bytes as they are read.
pub type Progress<'a> = &'a mut dyn FnMut(u64);

/// The files that a pack of this recording holds.
pub fn contents(recording: &Path) -> Result<Vec<Entry>> {
    let manifest = recording.join(MANIFEST);
    let size = manifest.metadata().map_err(reading(&manifest))?.len();
    let mut entries = vec![Entry { name: MANIFEST.to_owned(), path: manifest, size }];
    for directory in DIRECTORIES {
        add_directory(&recording.join(directory), directory, &mut entries)?;
    }
    Ok(entries)
}

fn add_directory(path: &Path, name: &str, entries: &mut Vec<Entry>) -> Result<()> {
    if !path.exists() {
        return Ok(());
    }
    let mut found = Vec::new();
    for entry in path.read_dir().map_err(reading(path))? {
        found.push(entry.map_err(reading(path))?);
    }
    found.sort_by_key(|entry| entry.file_name());
    for entry in found {
        let path = entry.path();
        let metadata = entry.metadata().map_err(reading(&path))?;
        let name = format!("{name}/{}", entry.file_name().to_string_lossy());
        if metadata.is_dir() {
            add_directory(&path, &name, entries)?;
        } else if metadata.is_file() && is_safe(&name) {
            entries.push(Entry { name, path, size: metadata.len() });
        } else {
            return Err(RecordError::damaged(path.display(), "it is no file of a recording"));
        }
    }
    Ok(())
}

/// Writes a recording's files as one, to a file of this name.
pub fn pack(entries: &[Entry], to: &mut File, name: &Path, progress: Progress) -> Result<()> {
    let writing = |error| RecordError::system(format!("cannot write {}", name.display()))(error);
    let mut chunks = ChunkWriter::new(to, MAGIC, 0);
    let mut digest = Xxh3::new();
    let mut write = |piece: &[u8]| {
        digest.update(piece);
        chunks.write(piece).map_err(writing)
    };
    for entry in entries {
        write(&[b"F", entry.name.as_bytes()].concat())?;
        let mut file = File::open(&entry.path).map_err(reading(&entry.path))?;
        loop {
            let mut piece = vec![b'B'];
            let taken = (&mut file).take(PIECE_BYTES).read_to_end(&mut piece);
            match taken.map_err(reading(&entry.path))? {
                0 => break,
                n => progress(n as u64),
            }
            write(&piece)?;
        }
    }
    let end = digest.digest().to_le_bytes();
    chunks.write(&[b"E", &end[..]].concat()).map_err(writing)
}

fn reading(path: &Path) -> impl FnOnce(std::io::Error) -> RecordError {
    RecordError::system(format!("cannot read {}", path.display()))
}

/// Makes a directory of a packed recording. What is in it is not to be trusted before all of
/// it has been unpacked.
pub fn unpack(packed: &Path, to: &Path, progress: Progress) -> Result<()> {
    let file = File::open(packed).map_err(reading(packed))?;
    let mut chunks = ChunkReader::new(BufReader::new(file), MAGIC, 0);
    let damaged = |how: &str| {
        let what = packed.display().to_string();
        RecordError::DamagedPack { what, how: how.to_owned() }
    };
    let mut next = || match chunks.next_chunk() {
        Ok(piece) => Ok(piece),
        Err(Fault::System(error)) => Err(reading(packed)(error)),
        Err(Fault::Foreign) => Err(RecordError::Foreign { what: packed.display().to_string() }),
        Err(Fault::Version(version)) => {
            Err(RecordError::OtherVersion { what: packed.display().to_string(), version })
        }
        Err(Fault::CutOff) => Err(damaged("it ends too early")),
        Err(Fault::Damaged(how)) => Err(damaged(how)),
    };
    let mut unpacked = Unpacked { directory: to, current: None };
    let mut digest = Xxh3::new();
    while let Some(piece) = next()? {
        match piece.split_first() {
            Some((b'F', name)) => {
                let name = std::str::from_utf8(name).ok().filter(|name| is_safe(name));
                let name = name.ok_or_else(|| damaged("it names a file outside a recording"))?;
                unpacked.begin(name)?;
            }
            Some((b'B', bytes)) => {
                let written = unpacked.add(bytes)?;
                written.ok_or_else(|| damaged("it has bytes of no file"))?;
                progress(bytes.len() as u64);
            }
            Some((b'E', end)) => {
                let whole = end == digest.digest().to_le_bytes() && to.join(MANIFEST).exists();
                return match (whole, next()?) {
                    (true, None) => Ok(()),
                    _ => Err(damaged("it is not whole")),
                };
            }
            _ => return Err(damaged("it has a piece that none can be")),
        }
        digest.update(&piece);
    }
    Err(damaged("it ends too early"))
}

/// A recording's directory as it grows.
struct Unpacked<'a> {
    directory: &'a Path,
    current: Option<(File, PathBuf)>,
}

impl Unpacked<'_> {
    fn begin(&mut self, name: &str) -> Result<()> {
        let path = self.directory.join(name);
        let mut directories = std::fs::DirBuilder::new();
        directories.recursive(true).mode(0o700);
        let parent = path.parent().expect("it is in a directory");
        // A name that comes twice is refused like everything that cannot be created.
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o600);
        let file = directories.create(parent).and_then(|()| options.open(&path));
        let file = file.map_err(unpacking(&path))?;
        self.current = Some((file, path));
        Ok(())
    }

    /// None if no file has begun.
    fn add(&mut self, bytes: &[u8]) -> Result<Option<()>> {
        match &mut self.current {
            Some((file, path)) => file.write_all(bytes).map(Some).map_err(unpacking(path)),
            None => Ok(None),
        }
    }
}

fn unpacking(path: &Path) -> impl FnOnce(std::io::Error) -> RecordError {
    RecordError::system(format!("cannot unpack to {}", path.display()))
}

/// Whether a file or directory in a recording may be called so.
pub fn is_plain(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    (1..=100).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(allowed)
}

/// Whether a file of this name can only be one of a recording's, wherever that is: no name
/// leads out of it.
fn is_safe(name: &str) -> bool {
    let mut parts = name.split('/');
    let first = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    let known = match rest.len() {
        0 => first == MANIFEST,
        1..=3 => DIRECTORIES.contains(&first),
        _ => false,
    };
    known && rest.into_iter().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn no_name_leads_out_of_a_recording() {
        for name in ["manifest.json", "events/1.1", "files/00ff", "checkpoints/1.1/7"] {
            assert!(is_safe(name), "{name}");
        }
        for name in [
            "",
            "/",
            "events",
            "events/",
            "events/..",
            "events/../manifest.json",
            "../events/1.1",
            "/events/1.1",
            "events//1.1",
            "events/.hidden",
            "events/a\0b",
            "events/a b",
            "other/1.1",
            "events/1/2/3/4/5",
        ] {
            assert!(!is_safe(name), "{name}");
        }
    }

    /// A pack whose chunks are all right and say this.
    fn said(directory: &Path, pieces: &[&[u8]]) -> Result<()> {
        let packed = directory.join("packed");
        let mut chunks = ChunkWriter::new(File::create(&packed).unwrap(), MAGIC, 0);
        pieces.iter().for_each(|piece| chunks.write(piece).unwrap());
        let to = directory.join("unpacked");
        let _ = fs::remove_dir_all(&to);
        unpack(&packed, &to, &mut |_| ())
    }

    #[test]
    fn what_a_stranger_may_have_packed_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let manifest: &[u8] = b"Fmanifest.json";
        let mut digest = Xxh3::new();
        digest.update(manifest);
        let end = [b"E", &digest.digest().to_le_bytes()[..]].concat();
        let end = end.as_slice();
        said(directory.path(), &[manifest, end]).unwrap();
        for pieces in [
            &[][..],
            &[end],
            &[manifest],
            &[b"Bbytes"],
            &[manifest, end, end],
            &[manifest, b"", end],
            &[manifest, b"X", end],
            &[manifest, manifest, end],
            &[b"Fevents/../../outside", b"Bbytes", end],
            &[b"F/outside", end],
            &[b"F\xff", end],
        ] {
            assert!(said(directory.path(), pieces).is_err(), "{pieces:?}");
        }
        assert!(!directory.path().join("outside").exists());
    }
}
