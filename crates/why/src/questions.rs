//! Questions about moments of a recording, and the answers of replays.

pub mod answer;
pub mod elsewhere;
mod visits;

use crate::criterion::{self, Criterion, Place, Value};
use crate::executions::Absent;
use crate::images::Images;
use crate::recordings;
use crate::replay::{self, How};
use crate::say::besides;
use crate::written;
use answer::Answer;
use std::path::Path;
use std::process::ExitCode;
use visits::{Told, Visits};
use why_engine::{Look, Report};
use why_record::position::Moment;
use why_record::store::{self, Recording};

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure {
    Misused(String),
    NoAnswer(String),
}

pub fn no_answer(error: impl ToString) -> Failure {
    Failure::NoAnswer(error.to_string())
}

impl Failure {
    pub fn into_message(self) -> String {
        match self {
            Failure::Misused(message) | Failure::NoAnswer(message) => message,
        }
    }

    /// Says so.
    pub fn tell(&self) -> ExitCode {
        match self {
            Failure::NoAnswer(message) => {
                besides!("{message}");
                ExitCode::FAILURE
            }
            Failure::Misused(message) => {
                besides!("{message}");
                ExitCode::from(crate::MISUSED)
            }
        }
    }
}

/// A recording alone says nothing of what is asked about it.
pub fn more_than_recording(words: &[String]) -> Result<(), Failure> {
    let is_one = |word: &str| {
        let is_path = word.contains('/') && Path::new(word).exists();
        is_path || !word.contains(':') && criterion::parse(word).is_ok()
    };
    match words {
        [only] if names_recording(only) && is_one(only) => {
            recordings::find(Some(Path::new(only))).map_err(no_answer)?;
            Err(Failure::Misused(format!(
                "{only} is a recording: give a criterion behind it, such as crash, FILE:LINE or \
                 end:VARIABLE"
            )))
        }
        _ => Ok(()),
    }
}

/// What can be told of a criterion without a recording is told first.
pub fn can_be_meant(criterion: &str) -> Result<(), Failure> {
    match criterion::parse(criterion) {
        Err(message) if !criterion.contains('/') => Err(Failure::Misused(message)),
        _ => Ok(()),
    }
}

/// The recording that is meant by some words, and what is asked about it.
pub fn understand(words: &[String]) -> Result<(Recording, Vec<Question<'_>>), Failure> {
    more_than_recording(words)?;
    let (name, texts) = split_words(words);
    for text in texts {
        can_be_meant(text)?;
    }
    let recording = recordings::find(name).map_err(no_answer)?;
    let mut questions = Vec::new();
    for text in texts {
        let (mut process, rest) = replay::choose_process(&recording, text).map_err(no_answer)?;
        let mut criterion = criterion::parse(rest).map_err(Failure::Misused)?;
        let is_written = matches!(criterion, Criterion { place: Place::Written(..), value: None });
        if let Place::Written(stream, byte) = criterion.place {
            let named = (rest.len() < text.len()).then_some(process);
            let found = written::find(&recording, stream, byte, named)?;
            process = found.process;
            criterion.place = Place::Moment(Moment::At(found.position));
            criterion.value.get_or_insert(Value::Memory(found.at..found.at.saturating_add(1)));
        }
        questions.push(Question { text, process, criterion, is_written, told: None });
    }
    Ok((recording, questions))
}

/// The recording's name, if the first of several words can be nothing else, and the criteria.
fn split_words(words: &[String]) -> (Option<&Path>, &[String]) {
    match words {
        [first, rest @ ..] if !rest.is_empty() && names_recording(first) => {
            (Some(Path::new(first)), rest)
        }
        _ => (None, words),
    }
}

/// There is a recording of this name, or it looks like the name of one that has gone.
fn names_recording(word: &str) -> bool {
    let numbered = word.rsplit_once('-').is_some_and(|(_, number)| {
        !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    });
    store::exists(Path::new(word)) || numbered || criterion::parse(word).is_err()
}

pub struct Question<'a> {
    /// As it was asked.
    pub text: &'a str,
    pub process: i32,
    pub criterion: Criterion,
    /// Of a byte that is about to be written.
    pub is_written: bool,
    told: Option<Told>,
}

impl Question<'_> {
    /// The same, to keep.
    pub fn into_answer(self) -> Result<Answer, Absent> {
        self.answer()?;
        match self.told {
            Some(Ok(answer)) => Ok(*answer),
            _ => unreachable!("it was just seen"),
        }
    }

    pub fn answer(&self) -> Result<&Answer, Absent> {
        match &self.told {
            Some(Ok(answer)) => match &answer.value {
                Some(Err(message)) => Err(Absent::Because(message.clone())),
                _ => Ok(answer),
            },
            Some(Err(absent)) => Err(absent.clone()),
            None => Err(Absent::Because("the process never executed an instruction".to_owned())),
        }
    }
}

/// What the answers cost together.
#[derive(Default)]
pub struct Stats {
    pub replays: u64,
    pub instructions: u64,
    /// How often the replay went back to a copy, and how many were made.
    pub rewinds: u64,
    pub copies: u64,
}

impl Stats {
    pub fn add(&mut self, report: &Report) {
        self.replays += 1 + report.beginnings;
        self.instructions += report.instructions;
        self.rewinds += report.rewinds;
        self.copies += report.copies;
    }
}

/// Finds the answers, with one session for each process.
pub fn ask(
    recording: &Recording,
    questions: &mut [Question<'_>],
    all_variables: bool,
    stats: &mut Stats,
) -> Result<(), Failure> {
    let mut processes: Vec<i32> = questions.iter().map(|question| question.process).collect();
    processes.sort_unstable();
    processes.dedup();
    let excerpt_of = recording.manifest().map_err(no_answer)?.excerpt.map(|excerpt| excerpt.of);
    for process in processes {
        let own = questions.iter_mut().filter(|question| question.process == process);
        let mut own: Vec<&mut Question> = own.collect();
        let criteria = own.iter().map(|question| question.criterion.clone()).collect();
        let images = Images::new(recording.files());
        let visits = Visits::new(criteria, all_variables, images, excerpt_of.clone());
        let (to, all_before) = visits.first();
        let from = if all_before { None } else { replay::events_before(to) };
        let look = Some(Look::session(process, to, Box::new(visits)));
        let how = How { from, look, ..How::default() };
        let report = replay::run(recording, how).map_err(no_answer)?;
        stats.add(&report);
        let told: Option<Vec<Option<Told>>> =
            report.answer.and_then(|answer| serde_json::from_value(answer).ok());
        for (question, told) in own.iter_mut().zip(told.into_iter().flatten()) {
            question.told = told;
        }
    }
    Ok(())
}
