//! What a slice is of: a value at a moment of a recorded process, and the process's trace.

mod telling;

use super::lines::Sources;
use super::loader::Linking;
use super::near;
use super::predicate::Predicate;
use super::shown::ViewArgs;
use super::traced::{self, Traced};
use crate::criterion::{self, Code, Place};
use crate::excerpt;
use crate::executions::Absent;
use crate::fork::Fork;
use crate::images::Images;
use crate::progress;
use crate::questions::answer::{Answer, ValueSeen};
use crate::questions::{self, Failure, Question, Stats, elsewhere, no_answer};
use crate::recordings;
use crate::written;
use std::path::Path;
use std::time::{Duration, Instant};
use why_record::position::{Moment, Position};
use why_record::store::Recording;
use why_slice::region::{Criterion, Options, Region, RegionError, Slice};

pub struct Subject {
    pub recording: Recording,
    pub process: i32,
    /// As it was asked.
    pub question: String,
    pub answer: Answer,
    place: Position,
    /// What is before and behind these does not count.
    from: Option<Position>,
    until: Option<Position>,
    pub traced: Traced,
    /// Of a process that ended itself, by what it came to that.
    predicate: Option<Predicate>,
    /// It is a byte that is about to be written.
    is_written: bool,
    stats: Stats,
    tracing: Duration,
    slicing: Duration,
}

impl Subject {
    pub fn of(words: &[String], region: Option<&str>) -> Result<Subject, Failure> {
        questions::more_than_recording(words)?;
        let (before, behind) = sides(region)?;
        let sides = [before, behind].into_iter().flatten();
        let all: Vec<String> = words.iter().cloned().chain(sides.map(str::to_owned)).collect();
        let (recording, mut questions) = questions::understand(&all)?;
        excerpt::refuse(&recording, "does not know what made a value").map_err(no_answer)?;
        if questions.len() != 1 + [before, behind].iter().flatten().count() {
            return Err(several(words));
        }
        let process = questions[0].process;
        let mut stats = Stats::default();
        questions::ask(&recording, &mut questions, false, &mut stats)?;
        let mut questions = questions.into_iter();
        let question = questions.next().expect("there is one");
        let (text, is_written) = (question.text.to_owned(), question.is_written);
        let answered = |question: Question| {
            let process = question.process;
            let answer = question.into_answer();
            answer.map_err(|absent| no_answer(explained(&recording, process, &absent)))
        };
        let answer = answered(question)?;
        let place = placed(&answer)?;
        let mut next = |side: Option<&str>| match side.and_then(|_| questions.next()) {
            Some(question) => placed(&answered(question)?).map(Some),
            None => Ok(None),
        };
        let (from, until) = (next(before)?, next(behind)?);
        let told = region.unwrap_or_default();
        if let (Some(from), Some(until)) = (from, until)
            && until < from
        {
            return Err(no_answer(format!(
                "the region {told} ends at {until}, before it begins at {from}"
            )));
        }
        if from.is_some_and(|from| place < from) || until.is_some_and(|until| place > until) {
            return Err(no_answer(format!(
                "{text} is at {}, and so not in the region {told}",
                answer.position
            )));
        }
        let begun = Instant::now();
        let traced = traced::of_process(&recording, process).map_err(no_answer)?;
        let tracing = begun.elapsed();
        let mut subject = Subject {
            recording,
            process,
            question: text,
            answer,
            place,
            from,
            until,
            traced,
            predicate: None,
            is_written,
            stats,
            tracing,
            slicing: Duration::ZERO,
        };
        subject.predicate = subject.find_predicate()?;
        Ok(subject)
    }

    /// Of a process that ended itself it is of interest why it did.
    fn find_predicate(&self) -> Result<Option<Predicate>, Failure> {
        let is_crash = self.question.rsplit('/').next() == Some("crash");
        let Some(pc) = self.place.pc.filter(|_| is_crash) else {
            return Ok(None);
        };
        let Criterion { position, thread, .. } = self.source()?;
        let (of, region) = ((&self.recording, self.process), &self.traced.region);
        let found = Predicate::of_end(of, region, &mut self.sources(), (position, thread, pc));
        let found = found.map_err(no_answer)?;
        let from = self.position(self.from)?.unwrap_or(0);
        Ok(found.filter(|predicate| predicate.position > from))
    }

    /// Another process of the recording, at a position.
    pub fn elsewhere(&self, process: i32, position: Position) -> Result<Subject, Failure> {
        let recording = self.recording.path.display().to_string();
        Subject::of(&[recording, format!("{process}/{position}")], None)
    }

    /// The event behind which the moment is that was asked about.
    pub fn event(&self) -> u64 {
        self.place.event
    }

    pub fn sources(&self) -> Sources<'_> {
        let mut images = Images::new(self.recording.files());
        Sources::new(&self.traced.modules, &mut images, &self.traced.programs)
    }

    /// What is looked for.
    pub fn criterion(&mut self, view: &ViewArgs) -> Result<Criterion, Failure> {
        let origins = &self.answer.origins;
        if self.answer.value.is_some() && origins.is_empty() {
            return Err(Failure::NoAnswer(format!(
                "{}: the compiler knew this value when it made the program: nothing that was \
                 executed made it",
                self.question
            )));
        }
        if let Some(Ok(ValueSeen::Memory { address, bytes })) = &self.answer.value
            && bytes.is_empty()
        {
            return Err(Failure::NoAnswer(format!(
                "{}: no memory is mapped at {address:#x} then",
                self.question
            )));
        }
        let Linking { code: pruned, binding } = self.left_aside(&view.prune)?;
        let criterion = Criterion {
            from: self.position(self.from)?.unwrap_or(0),
            until: self.position(self.until)?.unwrap_or(u64::MAX),
            // Why it came there, if no value is asked for.
            address: self.place.pc.filter(|_| self.answer.value.is_none()),
            pruned,
            binding,
            ..self.source()?
        };
        let is_selected = self.is_written && self.is_made_by_nobody(&criterion, view)?;
        Ok(match &self.predicate {
            None if is_selected => Criterion {
                address: self.place.pc,
                addresses: written::selected_by(&self.answer.registers),
                ..criterion
            },
            None => criterion,
            // How it then ended is of no interest, but for the status.
            Some(Predicate { position, has_status, .. }) => Criterion {
                predicate: Some(*position),
                address: None,
                cells: if *has_status { criterion.cells } else { Vec::new() },
                memory: Vec::new(),
                ..criterion
            },
        })
    }

    /// Whether the value was there from the beginning. Of one that was written as it was, nobody has
    /// copied it: then the call that wrote it is the one that selected it.
    fn is_made_by_nobody(
        &mut self,
        criterion: &Criterion,
        view: &ViewArgs,
    ) -> Result<bool, Failure> {
        let fork = || Fork::of(&self.recording, self.process, self.event()).map_err(no_answer);
        // What a copy of a process has of that was made there; and what selects does not count then.
        if view.thin || fork()?.is_some() {
            return Ok(false);
        }
        let ever = Criterion { from: 0, ..criterion.clone() };
        let options = Options { thin: true, count_only: true, ..view.options() };
        let makers = self.timed(|region, watch| {
            region.slice(&ever, Options { watch: Some(watch), ..options })
        })?;
        Ok(makers.count == 0 && makers.pruned == 0 && makers.others_wrote == 0)
    }

    /// The value, as where something else begins.
    pub fn source(&self) -> Result<Criterion, Failure> {
        let position = self.position(Some(self.place))?.expect("a place was given");
        let origins = &self.answer.origins;
        Ok(Criterion {
            position,
            thread: self.answer.thread as u64,
            cells: origins.cells.clone(),
            memory: origins.memory.clone(),
            ..Criterion::default()
        })
    }

    /// How many instructions had been executed at a place.
    pub fn position(&self, place: Option<Position>) -> Result<Option<u64>, Failure> {
        let Some(place) = place else {
            return Ok(None);
        };
        let position = self.traced.region.position(place.event, place.ticks);
        let missing = || no_answer(format!("{place} is not in the trace of the process"));
        position.map(Some).ok_or_else(missing)
    }

    /// What is not looked into: the linker, and more.
    fn left_aside(&self, names: &[String]) -> Result<Linking, Failure> {
        let sources = self.sources();
        let mut linking = sources.linking();
        for name in names {
            let found = sources.code_named(name);
            if found.is_empty() {
                return Err(Failure::NoAnswer(format!(
                    "there is no function, source or mapped file {name:?}, so it cannot be pruned"
                )));
            }
            linking.code.extend(found);
        }
        Ok(linking)
    }

    /// Finds something in the trace, and is told how far that has come.
    pub fn timed(
        &mut self,
        find: impl FnOnce(&Region, &dyn Fn(u64)) -> Result<Slice, RegionError>,
    ) -> Result<Slice, Failure> {
        let begun = Instant::now();
        let bar = progress::of_instructions("slicing", self.traced.region.length);
        let found = find(&self.traced.region, &|gone_over| bar.set_position(gone_over));
        bar.finish_and_clear();
        let found = found.map_err(|error| match error {
            RegionError::TooLarge { .. } => no_answer(format!(
                "{error}: allow it more with --memory, or ask for less with --region or --thin"
            )),
            RegionError::Damaged | RegionError::Unknown(_) => {
                traced::forget(&self.recording, self.process);
                no_answer(format!("{error}, and was deleted: ask again, and it is made anew"))
            }
            error => no_answer(error),
        });
        self.slicing += begun.elapsed();
        found
    }
}

/// Why there is no answer, and where what was never executed was, or what was near it.
fn explained(recording: &Recording, process: i32, absent: &Absent) -> String {
    let elsewhere = elsewhere::told(recording, process, absent, &mut Stats::default());
    let near = || match absent {
        Absent::Never(code) => near(recording, process, code),
        Absent::Because(_) => String::new(),
    };
    format!("{absent}{}", elsewhere.unwrap_or_else(near))
}

/// What was executed near code that never was. A slice of it would need the trace, too.
fn near(recording: &Recording, process: i32, code: &Code) -> String {
    let Ok(traced) = traced::of_process(recording, process) else { return String::new() };
    let mut images = Images::new(recording.files());
    near::told(code, &traced, &mut Sources::new(&traced.modules, &mut images, &traced.programs))
}

/// Why some words are not one criterion, behind a recording's name or not.
fn several(words: &[String]) -> Failure {
    let one = "a slice is of one value: give one criterion, behind the recording's name";
    let misused = || Failure::Misused(one.to_owned());
    let is_function = |word: &str| {
        matches!(
            criterion::parse(word),
            Ok(criterion::Criterion { place: Place::Code(Code::Function(_), None), value: None })
        )
    };
    match words {
        [first, _] if is_function(first) => {
            recordings::find(Some(Path::new(first))).map_or_else(no_answer, |_| misused())
        }
        _ => misused(),
    }
}

/// The places that a region lies between.
fn sides(region: Option<&str>) -> Result<(Option<&str>, Option<&str>), Failure> {
    let Some(region) = region else {
        return Ok((None, None));
    };
    let some = |side: &'static str| move |text: &&str| *text != side && !text.is_empty();
    let (from, until) = region.split_once("..").ok_or_else(|| {
        Failure::Misused(format!("{region} is no region: give FROM..UNTIL, such as main..end"))
    })?;
    Ok((Some(from).filter(some("start")), Some(until).filter(some("end"))))
}

/// The moment of an answer.
fn placed(answer: &Answer) -> Result<Position, Failure> {
    match answer.position.parse() {
        Ok(Moment::At(position)) => Ok(position),
        _ => Err(no_answer(format!("{} is no moment of a process", answer.position))),
    }
}
