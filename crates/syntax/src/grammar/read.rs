//! Reads a grammar file: declarations, rules, declarations.

use super::words::{Word, Words};
use super::{GrammarError, Place};

#[derive(Default)]
pub(super) struct File {
    pub tokens: Vec<Definition>,
    /// What may stand between tokens.
    pub skips: Vec<(String, Place)>,
    pub rules: Vec<Rule>,
    pub start: Option<(String, Place)>,
}

/// A token: what it matches, and its smallest text if that is given.
pub(super) struct Definition {
    pub name: String,
    pub place: Place,
    pub matches: Option<Matches>,
    pub minimal: Option<(Vec<u8>, Place)>,
}

pub(super) enum Matches {
    Literal(Vec<u8>),
    Regex(String, Place),
}

pub(super) struct Rule {
    pub name: String,
    pub place: Place,
    pub symbols: Vec<(Named, Place)>,
}

/// A symbol, by its name or by the text that it is.
pub(super) enum Named {
    Name(String),
    Literal(Vec<u8>),
}

pub(super) fn read(source: &[u8]) -> Result<File, GrammarError> {
    let mut reader = Reader { words: Words::new(source), ahead: None, file: File::default() };
    reader.declarations()?;
    reader.expect(&Word::Section, "%%, and then the rules")?;
    reader.rules()?;
    if reader.peek()? == Word::Section {
        reader.next()?;
        reader.declarations()?;
        reader.expect(&Word::End, "a declaration such as %token or %skip")?;
    }
    if reader.file.rules.is_empty() {
        return Err(reader.error("there are no rules".to_owned())?);
    }
    Ok(reader.file)
}

struct Reader<'a> {
    words: Words<'a>,
    ahead: Option<(Word, Place)>,
    file: File,
}

impl Reader<'_> {
    fn next(&mut self) -> Result<(Word, Place), GrammarError> {
        self.ahead.take().map_or_else(|| self.words.next(), Ok)
    }

    fn look(&mut self) -> Result<&(Word, Place), GrammarError> {
        let ahead = self.next()?;
        Ok(self.ahead.insert(ahead))
    }

    fn peek(&mut self) -> Result<Word, GrammarError> {
        Ok(self.look()?.0.clone())
    }

    /// An error about the next word.
    fn error(&mut self, message: String) -> Result<GrammarError, GrammarError> {
        Ok(GrammarError { place: self.look()?.1, message })
    }

    fn expect(&mut self, wanted: &Word, what: &str) -> Result<(), GrammarError> {
        if self.peek()? == *wanted {
            self.next()?;
            return Ok(());
        }
        Err(self.error(format!("here should be {what}"))?)
    }

    fn declarations(&mut self) -> Result<(), GrammarError> {
        loop {
            match self.peek()? {
                Word::Directive(directive) => {
                    self.next()?;
                    self.declaration(&directive)?;
                }
                Word::Other | Word::Semicolon => {
                    self.next()?;
                }
                _ => return Ok(()),
            }
        }
    }

    fn declaration(&mut self, directive: &str) -> Result<(), GrammarError> {
        match directive {
            "%token" | "%term" => self.tokens(),
            "%skip" => self.skip(),
            "%start" => match self.next()? {
                (Word::Name(name), place) => {
                    self.file.start = Some((name, place));
                    Ok(())
                }
                (_, place) => {
                    let message = "here should be the name of the first symbol".to_owned();
                    Err(GrammarError { place, message })
                }
            },
            // Precedences decide between derivations, and all that is wanted is one; types
            // and options say nothing of the language.
            _ => {
                while matches!(self.peek()?, Word::Name(_) | Word::Literal(_) | Word::Other) {
                    self.next()?;
                }
                Ok(())
            }
        }
    }

    fn tokens(&mut self) -> Result<(), GrammarError> {
        loop {
            match self.peek()? {
                Word::Other => {
                    self.next()?;
                }
                Word::Name(name) => {
                    let (_, place) = self.next()?;
                    let definition = self.definition(name, place)?;
                    self.file.tokens.push(definition);
                }
                _ => return Ok(()),
            }
        }
    }

    /// What follows a token's name: an expression and perhaps the smallest text, or the text.
    fn definition(&mut self, name: String, place: Place) -> Result<Definition, GrammarError> {
        let mut definition = Definition { name, place, matches: None, minimal: None };
        while self.peek()? == Word::Other {
            self.next()?;
        }
        if let Word::Regex(regex) = self.peek()? {
            let (_, place) = self.next()?;
            definition.matches = Some(Matches::Regex(regex, place));
        }
        if let Word::Literal(literal) = self.peek()? {
            let (_, place) = self.next()?;
            match definition.matches {
                Some(_) => definition.minimal = Some((literal, place)),
                None => definition.matches = Some(Matches::Literal(literal)),
            }
        }
        Ok(definition)
    }

    fn skip(&mut self) -> Result<(), GrammarError> {
        let before = self.file.skips.len();
        while let Word::Regex(regex) = self.peek()? {
            let (_, place) = self.next()?;
            self.file.skips.push((regex, place));
        }
        if self.file.skips.len() == before {
            return Err(self.error("here should be an expression between slashes".to_owned())?);
        }
        Ok(())
    }

    fn rules(&mut self) -> Result<(), GrammarError> {
        loop {
            match self.peek()? {
                Word::Name(name) => {
                    let (_, place) = self.next()?;
                    while self.peek()? == Word::Other {
                        self.next()?;
                    }
                    self.expect(&Word::Colon, &format!("a colon and what {name} is made of"))?;
                    self.alternatives(&name, place)?;
                }
                Word::Section | Word::End => return Ok(()),
                _ => return Err(self.error("here should be the name of a rule".to_owned())?),
            }
        }
    }

    fn alternatives(&mut self, name: &str, place: Place) -> Result<(), GrammarError> {
        let mut symbols = Vec::new();
        loop {
            let ends = match self.peek()? {
                Word::Bar => false,
                Word::Semicolon => true,
                Word::Literal(literal) => {
                    let (_, place) = self.next()?;
                    symbols.push((Named::Literal(literal), place));
                    continue;
                }
                Word::Name(other) => {
                    let (_, place) = self.next()?;
                    symbols.push((Named::Name(other), place));
                    continue;
                }
                Word::Other => {
                    self.next()?;
                    continue;
                }
                Word::Directive(directive) => {
                    self.next()?;
                    // A precedence has a name.
                    if directive == "%prec" {
                        self.next()?;
                    }
                    continue;
                }
                _ => return Err(self.error(format!("the rule of {name} does not end with ;"))?),
            };
            self.next()?;
            // What YACC does after an error is no part of the language.
            let recovers =
                |(symbol, _): &(Named, Place)| matches!(symbol, Named::Name(n) if n == "error");
            if !symbols.iter().any(recovers) {
                self.file.rules.push(Rule { name: name.to_owned(), place, symbols });
            }
            if ends {
                return Ok(());
            }
            symbols = Vec::new();
        }
    }
}
