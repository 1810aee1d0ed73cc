//! The failing run that a chop is to be found for: what is executed, and what can be reduced.

use super::Args;
use super::contents::{Piece, contents};
use super::recorder;
use super::sources::{Source, arguments};
use super::streams::{Streams, resolved};
use super::words::Words;
use crate::questions::{Failure, can_be_meant, no_answer};
use crate::slice::subject::Subject;
use crate::slice::traced;
use crate::{recordings, replay};
use indicatif::ProgressBar;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;
use why_record::store::Recording;
use why_trial::{Call, Ended, Given};

pub struct Failing {
    pub command: Vec<OsString>,
    /// Where its paths lead from, if not from here.
    pub directory: Option<PathBuf>,
    /// What is reduced, and how it is told.
    pub source: Source,
    pub told: String,
    pub given: Given,
    pub inputs: Vec<PathBuf>,
    /// Where the result goes, if not beside the input.
    pub output: Option<PathBuf>,
    /// How it ended, if it was recorded.
    pub recorded: Option<String>,
    /// Holds an input that was no file.
    _room: Option<TempDir>,
}

impl Failing {
    pub fn of(args: &Args, steps: &ProgressBar) -> Result<Failing, Failure> {
        let source: Source =
            args.from.as_deref().unwrap_or("input").parse().map_err(Failure::Misused)?;
        let misused = |what: &str| Err(Failure::Misused(what.to_owned()));
        if let Some(to) = &args.to {
            can_be_meant(to)?;
        }
        let command = &args.reduction.how.command;
        match (&source, command.as_slice(), args.words.as_slice()) {
            (Source::Criterion(_) | Source::Input(_, Some(_)), ..) => misused(
                "--auto reduces the whole input, an argument or a variable: --from input, arg:K or env:NAME",
            ),
            (Source::Input(Streams::One(file), _), ..) => misused(&format!(
                "--auto reduces one of several files if it is named: why chop --auto {file} -- COMMAND"
            )),
            (_, [], []) => Failing::recorded(args, None, source, steps),
            (_, [], [name]) => Failing::recorded(args, Some(name), source, steps),
            (_, [], _) => {
                misused("a chop is of one recording; an input needs a command behind `--`")
            }
            (Source::Input(..), command, []) if command.iter().any(|word| word == "@@") => {
                misused("what does @@ stand for? Name the input: why chop --auto INPUT -- COMMAND")
            }
            (_, command, []) => {
                is_given(&source, command)?;
                // How it fails here is to be the same where it is tried.
                steps.set_message("recording the failing run");
                let words = command.to_vec();
                let call = Call { words, input: None, variable: None };
                let here = std::env::current_dir().map_err(no_answer)?;
                let recorded = recorder::record(&call, &here, Stdio::inherit())?;
                let name = recorded.path.display().to_string();
                Failing::recorded(args, Some(&name), source, steps)
            }
            (Source::Input(..), command, inputs) => Ok(Failing {
                command: command.to_vec(),
                directory: None,
                told: inputs.join(", "),
                source,
                given: Given::Files,
                inputs: inputs.iter().map(PathBuf::from).collect(),
                output: args.reduction.output.clone(),
                recorded: None,
                _room: None,
            }),
            _ => misused("either an input is reduced, or an argument, or a variable"),
        }
    }

    /// The run of a recording.
    fn recorded(
        args: &Args,
        name: Option<&str>,
        source: Source,
        steps: &ProgressBar,
    ) -> Result<Failing, Failure> {
        let recording = recordings::find(name.map(Path::new)).map_err(no_answer)?;
        let path = recording.path.display();
        let manifest = recording.manifest().map_err(no_answer)?;
        let cut = || no_answer(format!("{path} was cut short: how the run ended is not known"));
        let ended = recorder::how(manifest.finished.as_ref().ok_or_else(cut)?.ended);
        if ended == Ended::Status(0) && args.reduction.how.condition()?.is_none() {
            return Err(no_answer(format!(
                "the run in {path} does not fail: {ended}; --fails-if says what a failure is"
            )));
        }
        let to = args.to.as_deref().unwrap_or("crash");
        let (process, _) = replay::choose_process(&recording, to).map_err(no_answer)?;
        if args.to.is_some() {
            // What is not there now would only be missed after the whole search.
            steps.set_message("looking for what is wrong");
            Subject::of(&[path.to_string(), to.to_owned()], args.view.region.as_deref())?;
        }
        steps.set_message("looking for the input");
        // What is gone may not be needed.
        let there = PathBuf::from(&manifest.directory);
        let is_here = there.canonicalize().ok() == std::env::current_dir().ok();
        let directory = Some(there).filter(|there| there.exists() && !is_here);
        let mut command: Vec<OsString> = manifest.command.iter().map(OsString::from).collect();
        let recorded = Some(ended.to_string());
        let words = Words::of(&recording, process, u64::MAX);
        let first = words.as_ref().ok().and_then(|words| words.first_in(&manifest.command));
        if let (Ok(words), Some(first)) = (&words, first) {
            // The manifest holds text only.
            let exact = words.arguments.iter().skip(1);
            command.splice(first.., exact.map(|word| OsString::from_vec(word.text.clone())));
        }
        if let Source::Argument(_) | Source::Environment(_) = source {
            let words = words?;
            let word = &source.word(&words)?.text;
            let (value, given) = match &source {
                Source::Environment(name) => (
                    word.splitn(2, |byte| *byte == b'=').nth(1).unwrap_or_default(),
                    Given::Variable(name.into()),
                ),
                _ => (word.as_slice(), Given::Word(place(&source, first)?)),
            };
            let found = Failing::of_text(args, command, source, given, value)?;
            return Ok(Failing { recorded, directory, ..found });
        }
        match RecordedInput::of(&recording, process, directory.as_deref())? {
            RecordedInput::Files(inputs) => {
                let names: Vec<String> =
                    inputs.iter().map(|path| path.display().to_string()).collect();
                Ok(Failing {
                    command,
                    directory,
                    source,
                    told: names.join(", "),
                    given: Given::Files,
                    inputs,
                    output: args.reduction.output.clone(),
                    recorded,
                    _room: None,
                })
            }
            RecordedInput::Standard(text) => {
                let found = Failing::of_text(args, command, source, Given::Files, &text)?;
                Ok(Failing { recorded, directory, ..found })
            }
        }
    }

    /// What is reduced is no file.
    fn of_text(
        args: &Args,
        command: Vec<OsString>,
        source: Source,
        given: Given,
        text: &[u8],
    ) -> Result<Failing, Failure> {
        let (name, told) = match &source {
            Source::Argument(number) => (format!("arg-{number}"), format!("argument {number}")),
            Source::Environment(name) => (format!("env-{name}"), name.clone()),
            _ => ("stdin".to_owned(), "the standard input".to_owned()),
        };
        let room = tempfile::tempdir().map_err(no_answer)?;
        let input = room.path().join(&name);
        std::fs::write(&input, text).map_err(no_answer)?;
        let program = command.first().and_then(|word| Path::new(word).file_name());
        let mut file = program.unwrap_or(OsStr::new("command")).to_owned();
        file.push(format!(".{name}.reduced"));
        let output = args.reduction.output.clone();
        Ok(Failing {
            command,
            directory: None,
            source,
            told,
            given,
            inputs: vec![input],
            output: Some(output.unwrap_or_else(|| file.into())),
            recorded: None,
            _room: Some(room),
        })
    }
}

/// Which word of the command an argument of the program is whose first one is that.
fn place(argument: &Source, first: Option<usize>) -> Result<usize, Failure> {
    match (argument, first) {
        (Source::Argument(number @ 1..), Some(first)) => Ok(first + number - 1),
        (Source::Argument(0), _) => {
            Err(no_answer("the program's own name is not reduced; its first argument is arg:1"))
        }
        _ => Err(no_answer(
            "the program that fails was given other arguments than the command that was recorded \
             ends with, so none of them can be reduced; record that program itself",
        )),
    }
}

/// Whether a command that is about to be executed has the word that is to be reduced.
fn is_given(source: &Source, command: &[OsString]) -> Result<(), Failure> {
    match source {
        Source::Argument(number) if *number >= command.len() => {
            let count = arguments(command.len() - 1);
            Err(no_answer(format!("the command has {count}, and none {number}")))
        }
        Source::Environment(name) if std::env::var_os(name).is_none() => {
            Err(no_answer(format!("there is no variable {name} in the environment")))
        }
        _ => Ok(()),
    }
}

/// The input of a recorded run.
enum RecordedInput {
    /// Files that are still what they were.
    Files(Vec<PathBuf>),
    /// All that was read of the standard input.
    Standard(Vec<u8>),
}

impl RecordedInput {
    /// Its files are found from this directory.
    fn of(
        recording: &Recording,
        process: i32,
        directory: Option<&Path>,
    ) -> Result<RecordedInput, Failure> {
        let traced = traced::of_process(recording, process).map_err(no_answer)?;
        let inputs = Streams::Named.inputs(recording, &traced)?;
        let pieces = contents(recording, process, &traced.region, &inputs)?;
        let mut files: Vec<(PathBuf, Vec<&Piece>)> = Vec::new();
        // There may be many pieces of a file, and several names.
        let mut known: HashMap<&str, PathBuf> = HashMap::new();
        let mut standard = Vec::new();
        for piece in &pieces {
            let Some(name) = traced.stream(piece.stream) else {
                standard.extend_from_slice(&piece.bytes);
                continue;
            };
            let path = known.entry(name).or_insert_with(|| {
                let path = directory.map_or(name.into(), |directory| directory.join(name));
                let file = resolved(&path, Path::new(""));
                let same = files.iter().find(|(other, _)| resolved(other, Path::new("")) == file);
                same.map_or(path, |(other, _)| other.clone())
            });
            match files.iter_mut().find(|(other, _)| other == path) {
                Some((_, pieces)) => pieces.push(piece),
                None => files.push((path.clone(), vec![piece])),
            }
        }
        match (files.is_empty(), standard.is_empty()) {
            (true, true) => Err(no_answer(
                "the program is not known to have read its standard input or a file that it was \
                 given; say what is to be reduced: --from arg:K or env:NAME",
            )),
            (true, false) => Ok(RecordedInput::Standard(standard)),
            (false, false) => {
                let names: Vec<String> =
                    files.iter().map(|(path, _)| path.display().to_string()).collect();
                Err(no_answer(format!(
                    "which input is meant? The program read its standard input and {}; name one: \
                     why chop --auto INPUT -- COMMAND",
                    names.join(", ")
                )))
            }
            (false, true) => {
                files.iter().try_for_each(|(path, pieces)| is_unchanged(path, pieces))?;
                Ok(RecordedInput::Files(files.into_iter().map(|(path, _)| path).collect()))
            }
        }
    }
}

/// Whether a file still holds what was read of it.
fn is_unchanged(path: &Path, pieces: &[&Piece]) -> Result<(), Failure> {
    let shown = path.display();
    let failed =
        |why: &dyn Display| no_answer(format!("cannot read {shown} as the run did: {why}"));
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(failed(&"it is no file that is there to be read again"));
    }
    let now = std::fs::read(path).map_err(|error| failed(&error))?;
    let holds = |piece: &&&Piece| {
        let from = usize::try_from(piece.offset).ok().and_then(|offset| now.get(offset..));
        from.is_some_and(|rest| rest.starts_with(&piece.bytes))
    };
    match pieces.iter().all(|piece| holds(&piece)) {
        true => Ok(()),
        false => Err(no_answer(format!(
            "{shown} has changed since it was recorded; record the run again"
        ))),
    }
}
