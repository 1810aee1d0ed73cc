//! The command of a test on a candidate: its words, its standard input, its environment.

use crate::files::Files;
use crate::message::{Spec, Target};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How a command is given the candidate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Given {
    /// As files: `@@` stands for their names; without it, as standard input.
    #[default]
    Files,
    /// As the text of this word of the command.
    Word(usize),
    /// As the value of this variable of the environment.
    Variable(OsString),
}

/// What is to be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub words: Vec<OsString>,
    /// The file that is standard input; if there is none, nothing is.
    pub input: Option<PathBuf>,
    /// A variable of the environment, and its value.
    pub variable: Option<(OsString, OsString)>,
}

impl Spec {
    /// Puts a candidate in a directory: how the command is called there.
    pub fn prepare(&self, files: &Files, directory: &Path) -> io::Result<Call> {
        let names = || self.names.iter().map(|name| name.clone().into_os_string());
        let (words, given) = match &self.target {
            Target::Script(words) => {
                files.write(directory)?;
                let words = words.iter().cloned().chain(names()).collect();
                return Ok(Call { words, input: only(files, directory), variable: None });
            }
            Target::Command(words, given) => (words, given),
        };
        let mut call = Call { words: words.clone(), input: None, variable: None };
        match given {
            Given::Files => {
                files.write(directory)?;
                let expand = |word: &OsString| -> Vec<OsString> {
                    if word == "@@" { names().collect() } else { vec![word.clone()] }
                };
                let is_named = words.iter().any(|word| word == "@@");
                call.words = words.iter().flat_map(expand).collect();
                call.input = only(files, directory).filter(|_| !is_named);
            }
            Given::Word(number) => {
                if let Some(word) = call.words.get_mut(*number) {
                    *word = text(files);
                }
            }
            Given::Variable(name) => call.variable = Some((name.clone(), text(files))),
        }
        Ok(call)
    }
}

/// The candidate, if it is one file.
fn only(files: &Files, directory: &Path) -> Option<PathBuf> {
    match files.0.as_slice() {
        [(path, _)] => Some(directory.join(path)),
        _ => None,
    }
}

/// The candidate as a word, which ends before a zero.
fn text(files: &Files) -> OsString {
    let content = files.0.first().map_or(&[][..], |(_, content)| content);
    let text = content.split(|byte| *byte == 0).next().unwrap_or_default();
    OsStr::from_bytes(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(words: &[&str], given: Given) -> Spec {
        Spec {
            target: Target::Command(words.iter().map(OsString::from).collect(), given),
            names: vec!["in".into()],
            condition: None,
            memory: None,
            family: String::new(),
        }
    }

    #[test]
    fn a_candidate_is_a_file_a_word_or_a_variable() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files(vec![("in".into(), b"text".to_vec())]);
        let call =
            |words: &[&str], given| spec(words, given).prepare(&files, directory.path()).unwrap();
        let word = call(&["cat", "x"], Given::Word(1));
        assert_eq!((word.words, word.input), (vec!["cat".into(), "text".into()], None));
        let variable = call(&["cat"], Given::Variable("V".into()));
        assert_eq!(variable.variable, Some(("V".into(), "text".into())));
        assert!(!directory.path().join("in").exists(), "neither is a file");
        let named = call(&["cat", "@@"], Given::Files);
        assert_eq!((named.words, named.input), (vec!["cat".into(), "in".into()], None));
        let read = call(&["cat"], Given::Files);
        assert_eq!(read.input, Some(directory.path().join("in")));
        assert_eq!(std::fs::read(directory.path().join("in")).unwrap(), b"text");
    }
}
