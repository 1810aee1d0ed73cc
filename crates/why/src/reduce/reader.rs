//! Which tree an input has.

use crate::say::besides;
use crate::trial::{Failure, no_answer};
use std::path::Path;
use why_reduce::auto::Reader;
use why_syntax::grammar::{Grammar, Place, Recursion};
use why_syntax::languages::{LANGUAGES, Language};
use why_tree::Tree;

/// What was said of the language of the input.
pub enum Syntax {
    /// Its name tells.
    ByName,
    Language(&'static Language),
    Grammar(Box<Grammar>),
}

impl Syntax {
    pub fn new(lang: Option<&str>, grammar: Option<&Path>) -> Result<Syntax, Failure> {
        match (lang, grammar) {
            (_, Some(path)) => Ok(Syntax::Grammar(Box::new(read(path)?))),
            (Some(name), None) => {
                Language::by_name(name).map(Syntax::Language).ok_or_else(|| unknown(name))
            }
            (None, None) => Ok(Syntax::ByName),
        }
    }

    /// Who reads a file of this name.
    pub fn reader(&self, name: &Path) -> FileReader<'_> {
        match self {
            Syntax::ByName => FileReader::Language(Language::of_file(name)),
            Syntax::Language(language) => FileReader::Language(Some(language)),
            Syntax::Grammar(grammar) => FileReader::Grammar(grammar),
        }
    }

    /// Says why a text is none of the grammar's, if it is not.
    pub fn check(&self, text: &[u8]) -> Result<(), Failure> {
        match self {
            Syntax::Grammar(grammar) => {
                let tree = grammar.tree(text, Recursion::Flat);
                tree.map(drop).map_err(|error| no_answer(format!("the input: {error}")))
            }
            _ => Ok(()),
        }
    }
}

fn read(path: &Path) -> Result<Grammar, Failure> {
    let name = path.display();
    let source = std::fs::read(path);
    let source = source.map_err(|error| no_answer(format!("cannot read {name}: {error}")))?;
    let grammar = Grammar::read(&source);
    let grammar = grammar.map_err(|error| Failure::Misused(format!("{name}: {error}")))?;
    for (symbol, place) in grammar.unproductive() {
        let Place { line, column } = place;
        besides!("{name}: line {line}, column {column}: no text can be made from {symbol}");
    }
    Ok(grammar)
}

fn unknown(name: &str) -> Failure {
    let known: Vec<&str> = LANGUAGES.iter().map(|language| language.name).collect();
    Failure::Misused(format!("no language is called {name}; known are {}", known.join(", ")))
}

pub enum FileReader<'a> {
    Language(Option<&'static Language>),
    Grammar(&'a Grammar),
}

impl Reader for FileReader<'_> {
    fn tree(&self, text: &[u8]) -> Tree {
        match self {
            FileReader::Language(language) => why_syntax::tree(*language, text),
            // What was made smaller in spite of the grammar is none of its texts.
            FileReader::Grammar(grammar) => grammar
                .tree(text, Recursion::Flat)
                .unwrap_or_else(|_| why_syntax::brackets::tree(text)),
        }
    }

    fn brackets(&self, text: &[u8]) -> Tree {
        why_syntax::brackets::tree(text)
    }
}
