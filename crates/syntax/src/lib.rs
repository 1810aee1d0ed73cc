//! Trees of texts ([`why_tree::Tree`]): by the grammars of known languages, by a grammar that
//! the user gives, by brackets and tags where none fits, by tokens and by lines.
//!
//! Nothing here is known of who makes a text smaller. No text makes a builder panic, overflow
//! the stack, or take longer than its length explains.

pub mod brackets;
pub mod grammar;
pub mod languages;
pub mod lines;
pub mod tokens;

use languages::Language;
use why_tree::Tree;

/// The tree of a text by its language, or by its brackets where that has no tree for it.
pub fn tree(language: Option<&Language>, text: &[u8]) -> Tree {
    let by_language = language.and_then(|language| language.tree(text));
    by_language.unwrap_or_else(|| brackets::tree(text))
}
