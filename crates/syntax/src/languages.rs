//! Trees of texts in known languages, by the grammars of tree-sitter, which take broken
//! texts, too.
//!
//! From top to bottom: `parse` reads a text, `types` knows what a grammar publishes of its
//! symbols, `trial` asks the parser, `removal` finds out by it what may be left out, with
//! `runs` for lists and `phrases` for neighbours that go together, `plan` makes parts of it,
//! `minimal` finds the smallest texts, and `build` makes the tree.

mod build;
mod minimal;
mod parse;
mod phrases;
mod plan;
mod removal;
mod runs;
mod table;
mod trial;
mod types;

pub use table::LANGUAGES;

use std::path::Path;
use why_tree::{Spacing, Tree};

pub struct Language {
    pub name: &'static str,
    /// How names of its files end, and other names for the language.
    pub extensions: &'static [&'static str],
    grammar: fn() -> tree_sitter::Language,
    node_types: &'static str,
    layout: Layout,
    /// Symbols that no other text can stand for, because something else in the text has to
    /// go with them.
    fixed: &'static [&'static str],
    /// Symbols that need a part though their grammar does without, and what is the smallest.
    needed: &'static [(&'static str, &'static str)],
    /// An element's symbol and the symbols of the tags around what it holds.
    tags: Option<Tags>,
}

/// What white space means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// It separates tokens.
    Free,
    /// Lines and their indentation tell what belongs together.
    Lines,
}

#[derive(Clone, Copy)]
struct Tags {
    element: &'static str,
    begin: &'static str,
    end: &'static str,
}

impl Language {
    /// The language that goes by this name or whose files' names end so.
    pub fn by_name(name: &str) -> Option<&'static Language> {
        let name = name.to_ascii_lowercase();
        let called = |language: &&Language| {
            language.name == name || language.extensions.contains(&name.as_str())
        };
        LANGUAGES.iter().find(called)
    }

    /// The language of a file, by its name.
    pub fn of_file(path: &Path) -> Option<&'static Language> {
        let extension = path.extension()?.to_str()?;
        Language::by_name(extension)
    }

    /// What keeps tokens apart; between tags it would be text.
    fn spacing(&self) -> Spacing {
        if self.tags.is_some() { Spacing::none() } else { Spacing::usual() }
    }

    /// The tree of a text, unless the text is beyond the language's parser: it errs over much
    /// of it, or takes too long.
    pub fn tree(&self, text: &[u8]) -> Option<Tree> {
        let parsed = parse::parse(self, text)?;
        let types = types::Types::read(self);
        let removals = removal::Removals::find(self, &parsed, &types, text);
        let plan = plan::plan(self, &parsed, &types, removals, text);
        let minima = minimal::minima(self, &plan, text);
        Some(build::tree(self, &parsed, plan, &minima, text))
    }
}
