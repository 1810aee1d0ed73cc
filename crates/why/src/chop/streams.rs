//! Which of the streams that a program read are its input.

use crate::questions::{Failure, no_answer};
use crate::slice::traced::Traced;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use why_record::store::Recording;
use why_slice::region::Input;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Streams {
    /// The standard input, and files that were named on the command line.
    Named,
    /// The standard input, and files with these paths, or below them.
    Below(Vec<PathBuf>),
    /// The file that is called so, or the standard input: see [`STANDARD`].
    One(String),
}

/// What the standard input is called.
pub const STANDARD: &str = "stdin";

impl Streams {
    /// What was read of them, in the order of time.
    pub fn inputs<'a>(
        &self,
        recording: &Recording,
        traced: &'a Traced,
    ) -> Result<Vec<&'a Input>, Failure> {
        let manifest = recording.manifest().map_err(no_answer)?;
        let arguments = manifest.command.get(1..).unwrap_or_default();
        let directory = Path::new(&manifest.directory);
        let is_meant = |opened: &str| match self {
            Streams::Named => {
                arguments.iter().any(|argument| is_named(argument, opened, directory))
            }
            Streams::Below(paths) => {
                paths.iter().any(|path| directory.join(opened).starts_with(path))
            }
            Streams::One(name) => resolved(name, directory) == resolved(opened, directory),
        };
        let is_standard_meant = match self {
            Streams::Named | Streams::Below(_) => true,
            Streams::One(name) => name == STANDARD,
        };
        let is_input = |stream: u64| {
            is_standard_meant && traced.is_standard(stream)
                || traced.stream(stream).is_some_and(is_meant)
        };
        // There may be many reads of one.
        let mut known: HashMap<u64, bool> = HashMap::new();
        let mut is_of_one =
            |input: &&Input| *known.entry(input.stream).or_insert_with(|| is_input(input.stream));
        Ok(traced.region.inputs.iter().filter(|input| is_of_one(input)).collect())
    }
}

/// Whether a word names a file that was opened, or ends in its name, as `--in=FILE` does.
fn is_named(word: &str, opened: &str, directory: &Path) -> bool {
    let ends = |word: &str| Path::new(word).file_name() == Path::new(opened).file_name();
    word.ends_with(opened) && !opened.is_empty()
        || word.contains('/') && ends(word) && Path::new(opened).is_absolute()
        || ends(word) && resolved(word, directory) == resolved(opened, directory)
}

/// The same for all names that a file has from a directory.
pub fn resolved(name: impl AsRef<Path>, directory: &Path) -> PathBuf {
    let path = directory.join(name);
    path.canonicalize().unwrap_or_else(|_| {
        let mut straight = PathBuf::new();
        for component in path.components() {
            match component {
                Component::ParentDir => drop(straight.pop()),
                Component::CurDir => {}
                other => straight.push(other),
            }
        }
        straight
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_names() {
        let is_named = |word, opened| is_named(word, opened, Path::new("/nowhere/else"));
        assert!(is_named("a.txt", "a.txt"));
        assert!(is_named("--in=a.txt", "a.txt"));
        assert!(is_named("./dir/a.txt", "/home/dir/a.txt"));
        assert!(is_named("a.txt", "/nowhere/else/a.txt"));
        assert!(is_named("/nowhere/a.txt", "../a.txt"));
        assert!(!is_named("a.txt", "/nowhere/a.txt"));
        assert!(!is_named("-x", "/etc/passwd"));
    }
}
