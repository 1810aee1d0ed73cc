//! Where a chop begins.

use super::words::{Word, Words};
use crate::questions::{Failure, no_answer};
use crate::slice::subject::Subject;
use crate::slice::traced::Traced;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use why_record::store::Recording;
use why_slice::region::{Criterion, Input};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// What was read, or some bytes of it.
    Input(Streams, Option<RangeInclusive<u64>>),
    Argument(usize),
    Environment(String),
    Criterion(String),
}

/// Which of the streams that were read are the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Streams {
    /// The standard input, and files that were named on the command line.
    Named,
    /// The standard input, and files with these paths, or below them.
    Below(Vec<PathBuf>),
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Source, String> {
        if text == "input" {
            return Ok(Source::Input(Streams::Named, None));
        }
        let no_range = |range: &str| {
            format!("{range} are no bytes of the input: give FIRST-LAST, counted from 0 on, or one")
        };
        match text.split_once(':') {
            Some(("input", range)) => {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                let numbers = first.parse().ok().zip(last.parse().ok());
                let numbers = numbers.filter(|(first, last): &(u64, u64)| first <= last);
                let (first, last) = numbers.ok_or_else(|| no_range(range))?;
                Ok(Source::Input(Streams::Named, Some(first..=last)))
            }
            Some(("arg", number)) => match number.parse() {
                Ok(number) => Ok(Source::Argument(number)),
                Err(_) => Err(format!("{number} is no number of an argument; the first is 1")),
            },
            Some(("env", name)) => Ok(Source::Environment(name.to_owned())),
            _ => Ok(Source::Criterion(text.to_owned())),
        }
    }
}

/// What was found of a source in a process.
pub enum Sought {
    /// Its bytes, and from when on; in the order of time.
    Here(Vec<Criterion>),
    /// None, and why. What it is a copy of may have them.
    NotHere(String),
}

impl Sought {
    /// It has to be here.
    pub fn here(self) -> Result<Vec<Criterion>, Failure> {
        match self {
            Sought::Here(found) => Ok(found),
            Sought::NotHere(why) => Err(no_answer(why)),
        }
    }
}

impl Source {
    /// Looks for it in a process, which may have begun as a copy of another one.
    pub fn find(&self, subject: &Subject, is_copy: bool) -> Result<Sought, Failure> {
        match self {
            Source::Input(streams, range) => input(subject, streams, range.as_ref()),
            Source::Argument(_) | Source::Environment(_) if is_copy => {
                Ok(Sought::NotHere("a copy of a process is given no words".to_owned()))
            }
            Source::Argument(_) | Source::Environment(_) => {
                let words = Words::of(&subject.recording, subject.process)?;
                let word = self.word(&words)?;
                let bytes = word.at..word.at + word.text.len() as u64 + 1;
                Ok(Sought::Here(vec![at_start(bytes)]))
            }
            Source::Criterion(text) => {
                let recording = subject.recording.path.display().to_string();
                let source = Subject::of(&[recording, text.clone()], None)?;
                if source.process == subject.process {
                    return Ok(Sought::Here(vec![source.source()?]));
                }
                Ok(Sought::NotHere(format!(
                    "{text} is of process {}, and a chop lies within one process and those that it \
                     is a copy of",
                    source.process
                )))
            }
        }
    }

    /// The word that it is, of those that a program was given.
    pub fn word<'a>(&self, words: &'a Words) -> Result<&'a Word, Failure> {
        match self {
            Source::Argument(number) => words.arguments.get(*number).ok_or_else(|| {
                let count = words.arguments.len().saturating_sub(1);
                no_answer(format!("the program had {count} arguments, and none {number}"))
            }),
            Source::Environment(name) => words.variable(name).ok_or_else(|| {
                no_answer(format!("the program had no variable {name} in its environment"))
            }),
            Source::Input(..) | Source::Criterion(_) => {
                Err(no_answer("this is no word that a program was given"))
            }
        }
    }
}

/// Bytes that are there when the program begins.
pub fn at_start(bytes: Range<u64>) -> Criterion {
    Criterion { memory: std::iter::once(bytes).collect(), ..Criterion::default() }
}

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
        let is_input = |input: &&Input| match (traced.stream(input.stream), self) {
            // The standard input.
            (None, _) => input.stream == 0,
            (Some(name), Streams::Named) => {
                arguments.iter().any(|argument| is_same_file(argument, name))
            }
            (Some(name), Streams::Below(paths)) => {
                paths.iter().any(|path| directory.join(name).starts_with(path))
            }
        };
        Ok(traced.region.inputs.iter().filter(is_input).collect())
    }
}

fn input(
    subject: &Subject,
    streams: &Streams,
    range: Option<&RangeInclusive<u64>>,
) -> Result<Sought, Failure> {
    let mut names: Vec<&str> = Vec::new();
    let (mut found, mut end) = (Vec::new(), 0);
    for input in streams.inputs(&subject.recording, &subject.traced)? {
        let name = subject.traced.stream(input.stream).unwrap_or("standard input");
        if !names.contains(&name) {
            names.push(name);
        }
        let size = input.bytes.end - input.bytes.start;
        end = end.max(input.offset + size);
        let (first, last) = match range {
            None => (0, size),
            Some(range) => (
                range.start().saturating_sub(input.offset).min(size),
                range.end().saturating_add(1).saturating_sub(input.offset).min(size),
            ),
        };
        if first < last {
            let bytes = input.bytes.start + first..input.bytes.start + last;
            found.push(Criterion {
                position: input.at,
                thread: input.thread,
                memory: std::iter::once(bytes).collect(),
                ..Criterion::default()
            });
        }
    }
    match (names.len(), found.is_empty()) {
        (0, _) => Ok(Sought::NotHere(NOTHING_READ.to_owned())),
        (2.., _) if range.is_some() => {
            Err(no_answer(format!("which input is meant? There are several: {}", names.join(", "))))
        }
        (_, true) => {
            let told = match end {
                1 => "1 byte of it was".to_owned(),
                _ => format!("{end} bytes of it were"),
            };
            Ok(Sought::NotHere(format!(
                "these bytes of {} were never read; {told}, counted from 0 on",
                names.join(", ")
            )))
        }
        _ => Ok(Sought::Here(found)),
    }
}

pub const NOTHING_READ: &str = "the program read neither its standard input nor a file that it \
     was given; say what it comes from: --from arg:K, env:NAME, or FILE:LINE:VARIABLE";

/// Whether an argument names a file that was opened, or ends in its name, as `--in=FILE` does.
pub fn is_same_file(argument: &str, opened: &str) -> bool {
    let ends = |word: &str| Path::new(word).file_name() == Path::new(opened).file_name();
    argument == opened
        || argument.ends_with(opened) && !opened.is_empty()
        || argument.contains('/') && ends(argument) && Path::new(opened).is_absolute()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_understood() {
        let input = |range| Ok(Source::Input(Streams::Named, range));
        assert_eq!("input".parse(), input(None));
        assert_eq!("input:3-5".parse(), input(Some(3..=5)));
        assert_eq!("input:3".parse(), input(Some(3..=3)));
        assert_eq!("arg:1".parse(), Ok(Source::Argument(1)));
        assert_eq!("env:HOME".parse(), Ok(Source::Environment("HOME".to_owned())));
        assert_eq!("p.c:3:x".parse(), Ok(Source::Criterion("p.c:3:x".to_owned())));
        for wrong in ["input:", "input:x", "input:5-3", "arg:", "arg:x"] {
            assert!(wrong.parse::<Source>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn files_are_known_by_their_arguments() {
        assert!(is_same_file("a.txt", "a.txt"));
        assert!(is_same_file("--in=a.txt", "a.txt"));
        assert!(is_same_file("./dir/a.txt", "/home/dir/a.txt"));
        assert!(!is_same_file("-x", "/etc/passwd"));
    }
}
