//! Trees of texts in any language, from its grammar alone: a file in the form of YACC with
//! definitions of its tokens (docs/grammars.md).
//!
//! From top to bottom: `words` and `read` read the file, `rules` are what it says, `lexer`
//! divides a text into tokens, `minimal` finds the smallest text of each symbol, `earley`
//! parses and `derivation` tells what it found, `lists` flattens recursion, and `tree` makes
//! the tree. Whatever is replaced in it, in any combination, the text is again one of the
//! language.

mod derivation;
mod earley;
mod lexer;
mod lists;
mod minimal;
mod read;
mod rules;
mod tree;
mod words;

use lexer::Lexer;
use minimal::Minima;
use rules::Rules;
use thiserror::Error;
use why_tree::Tree;

pub struct Grammar {
    rules: Rules,
    lexer: Lexer,
    minima: Minima,
}

/// A place in a text, both counted from 1; columns in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

/// What is wrong with a grammar, or why a text is not in its language.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {}, column {}: {message}", place.line, place.column)]
pub struct GrammarError {
    pub place: Place,
    pub message: String,
}

/// What becomes of rules such as `list: item | list ',' item`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recursion {
    /// A list of which each element may be left out.
    Flat,
    /// One node within the other, as they are derived.
    Nested,
}

impl Grammar {
    pub fn read(source: &[u8]) -> Result<Grammar, GrammarError> {
        let file = read::read(source)?;
        let rules = Rules::new(&file)?;
        let lexer = Lexer::new(&rules, &file)?;
        let minima = Minima::find(&rules, &lexer);
        if minima.length(rules.start()).is_none() {
            let name = rules.name(rules.start());
            let message =
                format!("{name} can never end: each of its rules needs one that never ends");
            return Err(GrammarError { place: rules.place(rules.start()), message });
        }
        Ok(Grammar { rules, lexer, minima })
    }

    /// The symbols from which no text can be made, and where they are defined.
    pub fn unproductive(&self) -> impl Iterator<Item = (&str, Place)> {
        let rules = &self.rules;
        let nothing = |&symbol: &rules::Symbol| self.minima.length(symbol).is_none();
        rules.nonterminals().filter(nothing).map(|symbol| (rules.name(symbol), rules.place(symbol)))
    }

    /// The smallest text of a symbol.
    pub fn minimal(&self, symbol: &str) -> Option<&[u8]> {
        self.minima.text(self.rules.symbol(symbol)?)
    }

    /// The tree of a text, or what in the text does not fit.
    pub fn tree(&self, text: &[u8], recursion: Recursion) -> Result<Tree, GrammarError> {
        let tokens = self.lexer.tokens(text)?;
        let chart = earley::parse(&self.rules, &tokens)
            .map_err(|failure| self.explain(text, &tokens, &failure))?;
        let derived = derivation::derive(&self.rules, &chart, tokens.len());
        Ok(tree::build(self, text, &tokens, &derived, recursion))
    }

    fn explain(
        &self,
        text: &[u8],
        tokens: &[lexer::Token],
        failure: &earley::Failure,
    ) -> GrammarError {
        let token = tokens.get(failure.token);
        let found = match token {
            Some(token) => format!("{:?}", String::from_utf8_lossy(&text[token.span.clone()])),
            None => "the end".to_owned(),
        };
        let mut wanted: Vec<&str> =
            failure.wanted.iter().map(|&terminal| self.rules.name(terminal)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let place = place_of(text, token.map_or(text.len(), |token| token.span.start));
        let message = format!("found {found}, wanted {}", wanted.join(" or "));
        GrammarError { place, message }
    }
}

/// Where in a text an offset lies.
fn place_of(text: &[u8], offset: usize) -> Place {
    let before = &text[..offset];
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1;
    Place { line, column }
}
