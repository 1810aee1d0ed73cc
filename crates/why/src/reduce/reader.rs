//! Which tree an input has.

use crate::trial::Failure;
use std::path::Path;
use why_reduce::auto::Reader;
use why_tree::Tree;

/// What was said of the language of the input.
pub struct Syntax {}

impl Syntax {
    pub fn new(_lang: Option<&str>, _grammar: Option<&Path>) -> Result<Syntax, Failure> {
        Ok(Syntax {})
    }

    /// Who reads a file of this name.
    pub fn reader(&self, _name: &Path) -> FileReader {
        FileReader {}
    }
}

pub struct FileReader {}

fn lines(text: &[u8]) -> Tree {
    let mut tree = Tree::new("text", text);
    let line = tree.kind("line");
    let token = tree.kind("token");
    for span in why_reduce::units::Unit::Line.cut(text) {
        let id = tree.add(Tree::ROOT, line, span.clone(), Vec::new());
        for t in why_reduce::units::Unit::Token.cut(&text[span.clone()]) {
            tree.add(id, token, t.start + span.start..t.end + span.start, Vec::new());
        }
    }
    tree
}

impl Reader for FileReader {
    fn tree(&self, text: &[u8]) -> Tree {
        lines(text)
    }

    fn brackets(&self, text: &[u8]) -> Tree {
        lines(text)
    }
}
