//! Divides a text into tokens: the longest that match, and of equally long ones literals
//! before expressions, and what is defined first before the rest.

mod automaton;

use super::read::{File, Matches};
use super::rules::Rules;
use super::{GrammarError, Place, place_of};
use automaton::Automaton;
use regex_automata::nfa::thompson::{self, NFA};
use regex_automata::util::syntax;
use std::ops::Range;
use why_tree::Spacing;

pub(super) struct Lexer {
    automaton: Automaton,
    /// Which terminal each pattern is, if it is none that is skipped.
    terminals: Vec<Option<u32>>,
    minima: Vec<Vec<u8>>,
    spacing: Spacing,
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    pub terminal: u32,
    pub span: Range<usize>,
}

struct Pattern {
    regex: String,
    terminal: Option<u32>,
    place: Place,
}

impl Lexer {
    pub fn new(rules: &Rules, file: &File) -> Result<Lexer, GrammarError> {
        let patterns = patterns(rules, file);
        for pattern in &patterns {
            check(pattern)?;
        }
        let regexes: Vec<&str> = patterns.iter().map(|pattern| pattern.regex.as_str()).collect();
        let whole = Place { line: 1, column: 1 };
        let too_large = |error: String| GrammarError {
            place: whole,
            message: format!("the tokens' expressions are too large together: {error}"),
        };
        let nfa = compiler().build_many(&regexes).map_err(|error| too_large(error.to_string()))?;
        let automaton = Automaton::new(&nfa).map_err(too_large)?;
        let terminals: Vec<Option<u32>> = patterns.iter().map(|pattern| pattern.terminal).collect();
        let mut lexer = Lexer {
            automaton,
            terminals,
            minima: vec![Vec::new(); rules.literals().len()],
            spacing: Spacing::none(),
        };
        lexer.find_minima(rules, file, &patterns)?;
        lexer.spacing = lexer.find_spacing();
        Ok(lexer)
    }

    /// The smallest text of each terminal.
    pub fn minima(&self) -> &[Vec<u8>] {
        &self.minima
    }

    /// What keeps tokens apart.
    pub fn spacing(&self) -> &Spacing {
        &self.spacing
    }

    pub fn tokens(&self, text: &[u8]) -> Result<Vec<Token>, GrammarError> {
        let mut tokens = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let Some((pattern, length)) = self.automaton.longest(&text[at..]) else {
                let begin = &text[at..text.len().min(at + 20)];
                let line = begin.split(|&byte| byte == b'\n').next().unwrap_or(begin);
                let found = String::from_utf8_lossy(line);
                let message = format!("no token begins with {found:?}");
                return Err(GrammarError { place: place_of(text, at), message });
            };
            if let Some(terminal) = self.terminals[pattern] {
                tokens.push(Token { terminal, span: at..at + length });
            }
            at += length;
        }
        Ok(tokens)
    }

    fn find_minima(
        &mut self,
        rules: &Rules,
        file: &File,
        patterns: &[Pattern],
    ) -> Result<(), GrammarError> {
        let shortest = self.automaton.shortest(patterns.len());
        for (index, pattern) in patterns.iter().enumerate() {
            let Some(terminal) = pattern.terminal else { continue };
            let Some(shortest) = &shortest[index] else {
                let message = "nothing is ever this token: others match all that it does";
                return Err(GrammarError { place: pattern.place, message: message.to_owned() });
            };
            self.minima[terminal as usize] = shortest.clone();
        }
        for token in &file.tokens {
            let (Some((given, place)), Some(symbol)) = (&token.minimal, rules.symbol(&token.name))
            else {
                continue;
            };
            let super::rules::Symbol::Terminal(terminal) = symbol else { continue };
            let found = self.automaton.longest(given);
            let whole = found.filter(|(_, length)| *length == given.len());
            if whole.and_then(|(pattern, _)| self.terminals[pattern]) != Some(terminal) {
                let message = format!("this is not a {} by the tokens' expressions", token.name);
                return Err(GrammarError { place: *place, message });
            }
            self.minima[terminal as usize] = given.clone();
        }
        Ok(())
    }

    /// A text that is skipped, between all bytes that could continue a token: white space if
    /// that is skipped, and best such as no token has in it.
    fn find_spacing(&self) -> Spacing {
        let skipped = |text: &[u8]| {
            let found = self.automaton.longest(text);
            found.is_some_and(|(pattern, length)| {
                length == text.len() && self.terminals[pattern].is_none()
            })
        };
        let shortest = self.automaton.shortest(self.terminals.len());
        let shortest = shortest.into_iter().zip(&self.terminals);
        let others = shortest.filter(|(_, terminal)| terminal.is_none()).filter_map(|(s, _)| s);
        let usual = [b" ", b"\n", b"\t"].map(|space| space.to_vec());
        let mut possible: Vec<Vec<u8>> = usual.into_iter().chain(others).collect();
        possible.retain(|text| skipped(text));
        let is_token = |pattern: usize| self.terminals[pattern].is_some();
        let continues = self.automaton.continuing(is_token);
        let in_token = |text: &[u8]| (0..=255).any(|byte| continues.contains(byte, text[0]));
        possible.sort_by_key(|text| in_token(text));
        let space = possible.into_iter().next().unwrap_or_default();
        let glued = self.automaton.continuing(|_| true);
        Spacing::new(&space, |last, first| glued.contains(last, first))
    }
}

/// Literals, and then expressions in the order of their definitions.
fn patterns(rules: &Rules, file: &File) -> Vec<Pattern> {
    let mut patterns = Vec::new();
    for (terminal, literal) in (0..).zip(rules.literals()) {
        if let Some(literal) = literal {
            let place = rules.place(super::rules::Symbol::Terminal(terminal));
            let regex = literal.iter().map(|byte| format!("\\x{byte:02x}")).collect();
            patterns.push(Pattern { regex, terminal: Some(terminal), place });
        }
    }
    let mut expressions = Vec::new();
    for token in &file.tokens {
        let symbol = rules.symbol(&token.name);
        if let (
            Some(Matches::Regex(regex, place)),
            Some(super::rules::Symbol::Terminal(terminal)),
        ) = (&token.matches, symbol)
        {
            expressions.push(Pattern {
                regex: regex.clone(),
                terminal: Some(terminal),
                place: *place,
            });
        }
    }
    for (regex, place) in &file.skips {
        expressions.push(Pattern { regex: regex.clone(), terminal: None, place: *place });
    }
    expressions.sort_by_key(|pattern| pattern.place);
    patterns.extend(expressions);
    patterns
}

fn compiler() -> thompson::Compiler {
    let mut compiler = thompson::Compiler::new();
    compiler
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .configure(thompson::Config::new().utf8(false).nfa_size_limit(Some(32 << 20)));
    compiler
}

/// Whether an expression can be used, by itself.
fn check(pattern: &Pattern) -> Result<(), GrammarError> {
    let wrong = |message: String| GrammarError { place: pattern.place, message };
    let nfa: NFA = compiler()
        .build(&pattern.regex)
        .map_err(|error| wrong(format!("this expression cannot be used: {}", reason(&error))))?;
    if !nfa.look_set_any().is_empty() {
        return Err(wrong("an expression cannot ask what stands around a token".to_owned()));
    }
    Ok(())
}

/// What is wrong with an expression, in one line.
fn reason(error: &thompson::BuildError) -> String {
    use std::error::Error;
    let cause = error.source().map_or_else(|| error.to_string(), |cause| cause.to_string());
    let last = cause.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    last.trim().trim_start_matches("error: ").to_owned()
}
