//! A candidate as files: one or several, or a directory.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Relative paths and what is in the files, in order. Paths never lead out of the directory
/// they are put in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files(pub Vec<(PathBuf, Vec<u8>)>);

#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error("cannot read {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("{} leads back to a directory that it is in; leave it out", .0.display())]
    Endless(PathBuf),
    #[error("{} is neither a file nor a directory; leave it out", .0.display())]
    Special(PathBuf),
    #[error("{} has no name of its own; name a file or a directory", .0.display())]
    Nameless(PathBuf),
    #[error("two inputs are called {}; give them different names", .0.display())]
    Twice(PathBuf),
}

impl Files {
    /// Reads files and directories; each is called by the last part of its path.
    pub fn read(inputs: &[PathBuf]) -> Result<Files, FilesError> {
        let mut files = Files::default();
        for input in inputs {
            let name = input.file_name().ok_or_else(|| FilesError::Nameless(input.clone()))?;
            files.add(input, Path::new(name), &mut Vec::new())?;
        }
        files.0.sort();
        match files.0.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(FilesError::Twice(pair[0].0.clone())),
            None => Ok(files),
        }
    }

    /// Links are followed, but not round and round: `inside` are the directories on the way.
    fn add(
        &mut self,
        from: &Path,
        name: &Path,
        inside: &mut Vec<PathBuf>,
    ) -> Result<(), FilesError> {
        let unreadable = |error| FilesError::Unreadable { path: from.to_owned(), error };
        let file = std::fs::metadata(from).map_err(unreadable)?;
        if !file.is_dir() {
            // One that is named itself may be a pipe, as a shell makes them.
            if !file.is_file() && !inside.is_empty() {
                return Err(FilesError::Special(from.to_owned()));
            }
            let content = std::fs::read(from).map_err(unreadable)?;
            self.0.push((name.to_owned(), content));
            return Ok(());
        }
        let real = from.canonicalize().map_err(unreadable)?;
        if inside.contains(&real) {
            return Err(FilesError::Endless(from.to_owned()));
        }
        inside.push(real);
        for entry in std::fs::read_dir(from).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            self.add(&entry.path(), &name.join(entry.file_name()), inside)?;
        }
        inside.pop();
        Ok(())
    }

    pub fn write(&self, directory: &Path) -> io::Result<()> {
        for (path, content) in &self.0 {
            if path.components().any(|part| !matches!(part, Component::Normal(_))) {
                return Err(io::Error::other("a path leads out of its directory"));
            }
            let path = directory.join(path);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(path, content)?;
        }
        Ok(())
    }

    pub fn pack(&self) -> Vec<u8> {
        let mut packed = Vec::new();
        for (path, content) in &self.0 {
            for part in [path.as_os_str().as_bytes(), content] {
                packed.extend_from_slice(&(part.len() as u64).to_le_bytes());
                packed.extend_from_slice(part);
            }
        }
        packed
    }

    fn unpack(mut packed: &[u8]) -> Option<Files> {
        let mut files = Files::default();
        while !packed.is_empty() {
            let path = PathBuf::from(OsStr::from_bytes(take_part(&mut packed)?));
            files.0.push((path, take_part(&mut packed)?.to_vec()));
        }
        Some(files)
    }
}

/// How files and the texts that are reduced belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The text is what is in a file of this name.
    One(PathBuf),
    /// The text is all files, one behind the other.
    Several,
}

impl Shape {
    pub fn of(files: &Files) -> Shape {
        match files.0.as_slice() {
            [(path, _)] if path.components().count() == 1 => Shape::One(path.clone()),
            _ => Shape::Several,
        }
    }

    pub fn text<'a>(&self, files: &'a Files) -> Cow<'a, [u8]> {
        match self {
            Shape::One(_) => Cow::Borrowed(&files.0[0].1),
            Shape::Several => Cow::Owned(files.pack()),
        }
    }

    /// The files of a text that was made of files.
    pub fn files(&self, text: &[u8]) -> Files {
        match self {
            Shape::One(name) => Files(vec![(name.clone(), text.to_vec())]),
            Shape::Several => Files::unpack(text).expect("it was made of files"),
        }
    }
}

fn take_part<'a>(packed: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = packed.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (part, rest) = rest.split_at_checked(length)?;
    *packed = rest;
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_can_be_unpacked() {
        let files = Files(vec![("a".into(), b"1\0".to_vec()), ("d/b".into(), Vec::new())]);
        let packed = files.pack();
        assert_eq!(Files::unpack(&packed), Some(files));
        for length in [1, 8, packed.len() - 1] {
            assert_eq!(Files::unpack(&packed[..length]), None);
        }
    }
}
