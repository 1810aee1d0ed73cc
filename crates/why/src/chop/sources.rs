//! Where a chop begins.

use crate::questions::{Failure, no_answer};
use crate::replay::{self, How};
use crate::slice::subject::Subject;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;
use why_engine::{Look, Observer, Scene, Then};
use why_record::position::Moment;
use why_record::registers::RSP;
use why_slice::region::Criterion;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// What was read, or some bytes of it.
    Input(Option<RangeInclusive<u64>>),
    Argument(usize),
    Environment(String),
    Criterion(String),
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Source, String> {
        if text == "input" {
            return Ok(Source::Input(None));
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
                Ok(Source::Input(Some(first..=last)))
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

impl Source {
    /// Its bytes, and from when on; in the order of time.
    pub fn find(&self, subject: &Subject) -> Result<Vec<Criterion>, Failure> {
        match self {
            Source::Input(range) => input(subject, range.as_ref()),
            Source::Argument(number) => {
                let words = begin(subject)?;
                let found = words.arguments.get(*number).ok_or_else(|| {
                    let count = words.arguments.len().saturating_sub(1);
                    no_answer(format!("the program had {count} arguments, and none {number}"))
                })?;
                Ok(vec![at_start(found)])
            }
            Source::Environment(name) => {
                let words = begin(subject)?;
                let is_it = |word: &&Word| {
                    word.text.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('='))
                };
                let found = words.environment.iter().find(is_it).ok_or_else(|| {
                    no_answer(format!("the program had no variable {name} in its environment"))
                })?;
                Ok(vec![at_start(found)])
            }
            Source::Criterion(text) => {
                let recording = subject.recording.path.display().to_string();
                let source = Subject::of(&[recording, text.clone()], None)?;
                if source.process != subject.process {
                    return Err(no_answer("a chop lies within one process".to_owned()));
                }
                Ok(vec![source.source()?])
            }
        }
    }
}

/// What was read from the inputs: the standard input, and files that were named.
fn input(
    subject: &Subject,
    range: Option<&RangeInclusive<u64>>,
) -> Result<Vec<Criterion>, Failure> {
    let manifest = subject.recording.manifest().map_err(no_answer)?;
    let arguments = manifest.command.get(1..).unwrap_or_default();
    let is_input = |stream: u64| match subject.traced.stream(stream) {
        // The standard input.
        None => stream == 0,
        Some(name) => arguments.iter().any(|argument| is_same_file(argument, name)),
    };
    let mut streams: Vec<u64> = Vec::new();
    let mut found = Vec::new();
    for input in subject.traced.region.inputs.iter().filter(|input| is_input(input.stream)) {
        if !streams.contains(&input.stream) {
            streams.push(input.stream);
        }
        let size = input.bytes.end - input.bytes.start;
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
    let names = || {
        let name = |stream: &u64| subject.traced.stream(*stream).unwrap_or("standard input");
        streams.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    match (streams.len(), found.is_empty()) {
        (0, _) => Err(no_answer(
            "the program read neither its standard input nor a file that it was given; name a \
             place instead: --from FILE:LINE:VARIABLE"
                .to_owned(),
        )),
        (2.., _) if range.is_some() => {
            Err(no_answer(format!("which input is meant? There are several: {}", names())))
        }
        (_, true) => Err(no_answer(format!("these bytes of {} were never read", names()))),
        _ => Ok(found),
    }
}

/// Whether an argument names a file that was opened, or ends in its name, as `--in=FILE` does.
fn is_same_file(argument: &str, opened: &str) -> bool {
    let ends = |word: &str| Path::new(word).file_name() == Path::new(opened).file_name();
    argument == opened
        || argument.ends_with(opened) && !opened.is_empty()
        || argument.contains('/') && ends(argument) && Path::new(opened).is_absolute()
}

fn at_start(word: &Word) -> Criterion {
    let bytes = word.at..word.at + word.text.len() as u64 + 1;
    Criterion { memory: std::iter::once(bytes).collect(), ..Criterion::default() }
}

/// A string that a program was given when it began.
#[derive(Serialize, Deserialize)]
struct Word {
    at: u64,
    text: String,
}

#[derive(Default, Serialize, Deserialize)]
struct Words {
    arguments: Vec<Word>,
    environment: Vec<Word>,
}

/// What the program was given.
fn begin(subject: &Subject) -> Result<Words, Failure> {
    let look = Look::silently(subject.process, Moment::Start, Box::new(Beginning::default()));
    let how = How { look: Some(look), ..How::default() };
    let report = replay::run(&subject.recording, how).map_err(no_answer)?;
    let words = report.answer.and_then(|answer| serde_json::from_value(answer).ok());
    Ok(words.unwrap_or_default())
}

/// Looks at the first instruction, when the stack holds what the program was given.
#[derive(Default)]
struct Beginning(Words);

impl Observer for Beginning {
    fn arrived(&mut self, scene: &Scene) -> Then {
        let mut at = scene.registers.0[RSP].wrapping_add(8);
        self.0.arguments = words(scene, &mut at);
        self.0.environment = words(scene, &mut at);
        Then::Enough
    }

    fn answer(&mut self) -> serde_json::Value {
        serde_json::to_value(&self.0).expect("plain data")
    }
}

/// The strings of a list that ends with a null.
fn words(scene: &Scene, at: &mut u64) -> Vec<Word> {
    /// A stack that holds more is damaged.
    const MOST: usize = 1 << 16;
    let mut found = Vec::new();
    while found.len() < MOST {
        let mut pointer = [0; 8];
        let got = scene.read(*at, &mut pointer);
        *at = at.wrapping_add(8);
        let pointer = u64::from_le_bytes(pointer);
        if got < 8 || pointer == 0 {
            break;
        }
        let mut bytes = vec![0; 1 << 17];
        let got = scene.read(pointer, &mut bytes);
        let text = bytes[..got].split(|byte| *byte == 0).next().unwrap_or_default();
        // What is no text counts by its length all the same.
        let text: String = text.iter().map(|byte| char::from(byte & 0x7f)).collect();
        found.push(Word { at: pointer, text });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_understood() {
        assert_eq!("input".parse(), Ok(Source::Input(None)));
        assert_eq!("input:3-5".parse(), Ok(Source::Input(Some(3..=5))));
        assert_eq!("input:3".parse(), Ok(Source::Input(Some(3..=3))));
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
