//! Where a chop begins.

use super::streams::{STANDARD, Streams, resolved};
use super::words::{Word, Words};
use crate::questions::{Failure, no_answer};
use crate::slice::subject::Subject;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use why_slice::region::{Criterion, Input};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// What was read, or some bytes of it.
    Input(Streams, Option<RangeInclusive<u64>>),
    Argument(usize),
    Environment(String),
    Criterion(String),
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Source, String> {
        if text == "input" {
            return Ok(Source::Input(Streams::Named, None));
        }
        match text.split_once(':') {
            Some(("input", rest)) => {
                let (name, range) = match rest.rsplit_once(':') {
                    Some((name, range)) => (Some(name), Some(range)),
                    None if is_like_range(rest) => (None, Some(rest)),
                    None => (Some(rest), None),
                };
                let named = |name: &str| match name {
                    "" => Err(format!("{text} names no file: give input:FILE or input:FILE:0-9")),
                    name => Ok(Streams::One(name.to_owned())),
                };
                let streams = name.map_or(Ok(Streams::Named), named)?;
                Ok(Source::Input(streams, range.map(bytes).transpose()?))
            }
            Some(("arg", number)) => match number.parse() {
                Ok(number) => Ok(Source::Argument(number)),
                Err(_) => Err(format!("{number} is no number of an argument; the first is 1")),
            },
            Some(("env", "")) => Err("env: names no variable: give env:NAME".to_owned()),
            Some(("env", name)) => Ok(Source::Environment(name.to_owned())),
            _ => Ok(Source::Criterion(text.to_owned())),
        }
    }
}

fn is_like_range(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
        && text.chars().all(|char| char.is_ascii_digit() || char == '-')
}

/// Bytes of an input, from the first to the last.
fn bytes(range: &str) -> Result<RangeInclusive<u64>, String> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let numbers = first.parse().ok().zip(last.parse().ok());
    let numbers = numbers.filter(|(first, last): &(u64, u64)| first <= last);
    numbers.map(|(first, last)| first..=last).ok_or_else(|| {
        format!("{range} are no bytes of the input: give FIRST-LAST, counted from 0 on, or one")
    })
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
                let words = Words::of(&subject.recording, subject.process, subject.event())?;
                let word = self.word(&words)?;
                let bytes = word.at..word.at + word.text.len() as u64 + 1;
                Ok(Sought::Here(vec![since(subject.position(words.begin)?, bytes)]))
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
                no_answer(format!("the program had {}, and none {number}", arguments(count)))
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

pub fn arguments(count: usize) -> String {
    if count == 1 { "one argument".to_owned() } else { format!("{count} arguments") }
}

/// Bytes that are there when a program begins.
pub fn since(begin: Option<u64>, bytes: Range<u64>) -> Criterion {
    let position = begin.unwrap_or_default();
    Criterion { position, memory: std::iter::once(bytes).collect(), ..Criterion::default() }
}

fn input(
    subject: &Subject,
    streams: &Streams,
    range: Option<&RangeInclusive<u64>>,
) -> Result<Sought, Failure> {
    let manifest = subject.recording.manifest().map_err(no_answer)?;
    let inputs = streams.inputs(&subject.recording, &subject.traced)?;
    let directory = Path::new(&manifest.directory);
    let names = names(&inputs, subject, directory);
    let (mut found, mut end) = (Vec::new(), 0);
    for input in inputs {
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
        (0, _) => Ok(Sought::NotHere(match streams {
            Streams::One(name) => nothing_of(name, subject, directory)?,
            _ => NOTHING_READ.to_owned(),
        })),
        (2.., _) if range.is_some() => Err(no_answer(format!(
            "which input is meant? There are several: {}; give its name, as in input:{}:0-9",
            names.join(", "),
            names[0]
        ))),
        (_, true) => {
            let told = match end {
                1 => "1 byte of it was".to_owned(),
                _ => format!("{end} bytes of it were"),
            };
            Ok(Sought::NotHere(format!(
                "these bytes of {} are not known to have been read; {told}, counted from 0 on",
                names.join(", ")
            )))
        }
        _ => Ok(Sought::Here(found)),
    }
}

/// The names of what was read; of a file with several, the one by which it was opened first.
fn names<'a>(inputs: &[&Input], subject: &'a Subject, directory: &Path) -> Vec<&'a str> {
    let mut streams: Vec<u64> = inputs.iter().map(|input| input.stream).collect();
    streams.sort_unstable();
    streams.dedup();
    let (mut files, mut names): (Vec<Option<PathBuf>>, Vec<&str>) = (Vec::new(), Vec::new());
    for name in streams.into_iter().map(|stream| subject.traced.stream(stream)) {
        let file = name.map(|name| resolved(name, directory));
        if !files.contains(&file) {
            files.push(file);
            names.push(name.unwrap_or(STANDARD));
        }
    }
    names
}

/// Why there is nothing of an input that was named.
fn nothing_of(name: &str, subject: &Subject, directory: &Path) -> Result<String, Failure> {
    let all = Streams::Named.inputs(&subject.recording, &subject.traced)?;
    let read = match names(&all, subject, directory).join(", ") {
        names if names.is_empty() => names,
        names => format!("; it read {names}"),
    };
    Ok(format!("the program is not known to have read anything of {name}{read}"))
}

const NOTHING_READ: &str = "the program is not known to have read its standard input or a file \
     that it was given; say what it comes from: --from arg:K, env:NAME, or FILE:LINE:VARIABLE";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_understood() {
        let input = |range| Ok(Source::Input(Streams::Named, range));
        assert_eq!("input".parse(), input(None));
        assert_eq!("input:3-5".parse(), input(Some(3..=5)));
        assert_eq!("input:3".parse(), input(Some(3..=3)));
        let one = |name: &str, range| Ok(Source::Input(Streams::One(name.to_owned()), range));
        assert_eq!("input:a.txt".parse(), one("a.txt", None));
        assert_eq!("input:stdin:7".parse(), one("stdin", Some(7..=7)));
        assert_eq!("arg:1".parse(), Ok(Source::Argument(1)));
        assert_eq!("env:HOME".parse(), Ok(Source::Environment("HOME".to_owned())));
        assert_eq!("p.c:3:x".parse(), Ok(Source::Criterion("p.c:3:x".to_owned())));
        for wrong in ["input:", "input::3", "input:a:x", "input:5-3", "arg:", "arg:x", "env:"] {
            assert!(wrong.parse::<Source>().is_err(), "{wrong}");
        }
    }
}
