//! The words that a program was given when it began: its arguments and its environment.

use crate::programs;
use crate::questions::{Failure, no_answer};
use crate::replay::{self, How};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::Path;
use why_engine::{Look, Observer, Scene, Then};
use why_record::position::{Moment, Position};
use why_record::registers::RSP;
use why_record::store::Recording;

#[derive(Default, Serialize, Deserialize)]
pub struct Words {
    /// When it began.
    #[serde(skip)]
    pub begin: Option<Position>,
    pub arguments: Vec<Word>,
    pub environment: Vec<Word>,
}

#[derive(Clone, Serialize, Deserialize)]
pub struct Word {
    /// Where it was.
    pub at: u64,
    pub text: Vec<u8>,
}

impl Words {
    /// Those of the program that a process executes at an event.
    pub fn of(recording: &Recording, process: i32, event: u64) -> Result<Words, Failure> {
        let begin = beginning(recording, process, event)?;
        let look = Look::silently(process, Moment::At(begin), Box::new(Beginning::default()));
        let how = How { look: Some(look), ..How::default() };
        let report = replay::run(recording, how).map_err(no_answer)?;
        let words = report.answer.and_then(|answer| serde_json::from_value(answer).ok());
        let mut words: Words = words.unwrap_or_default();
        words.begin = Some(begin);
        let command = recording.manifest().map_err(no_answer)?.command;
        words.leave_interpreter(&command);
        Ok(words)
    }

    /// An interpreter has words of its own before those of the script that was started.
    fn leave_interpreter(&mut self, command: &[String]) {
        let Some(own) = self.arguments.len().checked_sub(command.len()) else { return };
        let is_script =
            self.arguments.get(own).zip(command.first()).is_some_and(|(given, script)| {
                Path::new(&*given.shown()).file_name() == Path::new(script).file_name()
            });
        if is_script && self.place_in(&command[1..], own + 1) == Some(0) {
            self.arguments.drain(..own);
        }
    }

    /// Where its arguments, from one on, are among words, if they are the last of these.
    fn place_in(&self, words: &[String], from: usize) -> Option<usize> {
        let arguments = self.arguments.get(from..)?;
        let at = words.len().checked_sub(arguments.len())?;
        let are_same = arguments.iter().zip(&words[at..]).all(|(own, word)| own.shown() == *word);
        are_same.then_some(at)
    }

    /// Which word of the command that was started its first argument is, if the command ends with its
    /// arguments.
    pub fn first_in(&self, command: &[String]) -> Option<usize> {
        self.place_in(command, 1)
    }

    /// A variable of the environment, as `NAME=VALUE`.
    pub fn variable(&self, name: &str) -> Option<&Word> {
        self.environment.iter().find(|word| {
            let rest = word.text.strip_prefix(name.as_bytes());
            rest.is_some_and(|rest| rest.starts_with(b"="))
        })
    }
}

impl Word {
    fn shown(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.text)
    }
}

/// Where the program begins that a process executes at an event.
fn beginning(recording: &Recording, process: i32, event: u64) -> Result<Position, Failure> {
    let manifest = recording.manifest().map_err(no_answer)?;
    let programs = programs::of(recording, process).map_err(no_answer)?;
    let begun =
        programs.iter().enumerate().filter_map(|(number, known)| Some((number, known.begin?)));
    let last = begun.take_while(|(_, begin)| begin.event <= event).last();
    let region = manifest.region.filter(|region| region.from.is_some());
    let was_there = region.is_some_and(|region| region.processes.contains(&process));
    match last {
        Some((number, begin)) if number > 0 || !was_there => Ok(begin),
        _ => Err(no_answer(format!(
            "what process {process} was given when its program began is not in the recording, which \
             begins later; record the whole run, or name a variable: --from FILE:LINE:VARIABLE"
        ))),
    }
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
        found.push(Word { at: pointer, text: text.to_vec() });
    }
    found
}
