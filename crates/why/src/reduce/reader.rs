//! Which tree an input has.

use crate::trial::Failure;
use std::path::{Path, PathBuf};
use why_reduce::auto::Reader;
use why_syntax::languages::Language;
use why_tree::Tree;

/// What was said of the language of the input.
pub struct Syntax {
    language: Option<&'static Language>,
}

impl Syntax {
    pub fn new(lang: Option<&str>, _grammar: Option<&PathBuf>) -> Result<Syntax, Failure> {
        let language = lang.map(|name| Language::by_name(name).ok_or_else(|| unknown(name)));
        Ok(Syntax { language: language.transpose()? })
    }

    /// Who reads a file of this name.
    pub fn reader(&self, name: &Path) -> FileReader {
        FileReader { language: self.language.or_else(|| Language::of_file(name)) }
    }
}

fn unknown(name: &str) -> Failure {
    let known: Vec<&str> =
        why_syntax::languages::LANGUAGES.iter().map(|language| language.name).collect();
    Failure::Misused(format!("no language is called {name}; known are {}", known.join(", ")))
}

pub struct FileReader {
    language: Option<&'static Language>,
}

impl Reader for FileReader {
    fn tree(&self, text: &[u8]) -> Tree {
        why_syntax::tree(self.language, text)
    }

    fn brackets(&self, text: &[u8]) -> Tree {
        why_syntax::brackets::tree(text)
    }
}
