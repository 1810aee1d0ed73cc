//! The words of a grammar file.

use super::{GrammarError, Place, place_of};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Name(String),
    /// What stands in quotes.
    Literal(Vec<u8>),
    /// What stands between slashes.
    Regex(String),
    /// `%token` and its like.
    Directive(String),
    /// `%%`
    Section,
    Colon,
    Bar,
    Semicolon,
    /// `{ … }`, `%{ … %}`, `<type>`, `[name]` and numbers, which say nothing of the language.
    Other,
    End,
}

pub(super) struct Words<'a> {
    source: &'a [u8],
    at: usize,
}

impl<'a> Words<'a> {
    pub fn new(source: &'a [u8]) -> Words<'a> {
        Words { source, at: 0 }
    }

    /// The next word and where it stands.
    pub fn next(&mut self) -> Result<(Word, Place), GrammarError> {
        self.skip()?;
        let start = self.at;
        let rest = &self.source[start..];
        let word = match rest {
            [] => Word::End,
            [b'%', b'%', ..] => self.take(2, Word::Section),
            [b'%', b'{', ..] => self.until(b"%}", "%{", Word::Other)?,
            [b'%', ..] => {
                let length = name_length(&rest[1..]);
                self.at += 1 + length;
                Word::Directive(String::from_utf8_lossy(&rest[..1 + length]).into_owned())
            }
            [b':', ..] => self.take(1, Word::Colon),
            [b'|', ..] => self.take(1, Word::Bar),
            [b';', ..] => self.take(1, Word::Semicolon),
            [b'{', ..] => self.action()?,
            [b'<', ..] => self.until(b">", "<", Word::Other)?,
            [b'[', ..] => self.until(b"]", "[", Word::Other)?,
            [b'/', ..] => self.regex()?,
            [quote @ (b'\'' | b'"'), ..] => self.literal(*quote)?,
            [byte, ..] if byte.is_ascii_digit() => self
                .take(rest.iter().take_while(|b| b.is_ascii_alphanumeric()).count(), Word::Other),
            [byte, ..] => match name_length(rest) {
                0 => {
                    return Err(
                        self.error(start, format!("{:?} has no meaning here", *byte as char))
                    );
                }
                length => {
                    let name = String::from_utf8_lossy(&rest[..length]).into_owned();
                    self.take(length, Word::Name(name))
                }
            },
        };
        Ok((word, place_of(self.source, start)))
    }

    fn take(&mut self, length: usize, word: Word) -> Word {
        self.at += length;
        word
    }

    fn error(&self, at: usize, message: String) -> GrammarError {
        GrammarError { place: place_of(self.source, at), message }
    }

    /// White space and comments.
    fn skip(&mut self) -> Result<(), GrammarError> {
        loop {
            match &self.source[self.at..] {
                [byte, ..] if byte.is_ascii_whitespace() => self.at += 1,
                [b'/', b'/', ..] => self.skip_line(),
                [b'/', b'*', ..] => {
                    self.until(b"*/", "/*", Word::Other)?;
                }
                _ => return Ok(()),
            }
        }
    }

    /// The rest of a line.
    pub fn skip_line(&mut self) {
        let rest = &self.source[self.at..];
        self.at += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
    }

    fn until(&mut self, end: &[u8], begin: &str, word: Word) -> Result<Word, GrammarError> {
        let rest = &self.source[self.at..];
        match rest.windows(end.len()).position(|window| window == end) {
            Some(at) => Ok(self.take(at + end.len(), word)),
            None => {
                let end = String::from_utf8_lossy(end);
                Err(self.error(self.at, format!("this {begin} has no {end}")))
            }
        }
    }

    /// An action with all braces in it, but for those in its strings and comments.
    fn action(&mut self) -> Result<Word, GrammarError> {
        let start = self.at;
        let mut open = 0;
        loop {
            match &self.source[self.at..] {
                [] => return Err(self.error(start, "this { has no }".to_owned())),
                [b'{', ..] => open += 1,
                [b'}', ..] => open -= 1,
                [b'/', b'/', ..] => self.skip_line(),
                [b'/', b'*', ..] => {
                    self.until(b"*/", "/*", Word::Other)?;
                    continue;
                }
                [quote @ (b'\'' | b'"'), ..] => {
                    self.literal(*quote)?;
                    continue;
                }
                _ => {}
            }
            self.at = (self.at + 1).min(self.source.len());
            if open == 0 {
                return Ok(Word::Other);
            }
        }
    }

    /// A regular expression, in which `\/` stands for a slash.
    fn regex(&mut self) -> Result<Word, GrammarError> {
        let start = self.at;
        let mut regex = Vec::new();
        self.at += 1;
        loop {
            match &self.source[self.at..] {
                [] | [b'\n', ..] => {
                    return Err(self.error(start, "this expression has no / at its end".to_owned()));
                }
                [b'/', ..] => break,
                [b'\\', b'/', ..] => {
                    regex.push(b'/');
                    self.at += 2;
                }
                [b'\\', next, ..] if *next != b'\n' => {
                    regex.extend([b'\\', *next]);
                    self.at += 2;
                }
                [byte, ..] => {
                    regex.push(*byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        match String::from_utf8(regex) {
            Ok(regex) => Ok(Word::Regex(regex)),
            Err(_) => Err(self.error(start, "this expression is not UTF-8".to_owned())),
        }
    }

    fn literal(&mut self, quote: u8) -> Result<Word, GrammarError> {
        let start = self.at;
        let unclosed = |words: &Self| words.error(start, "this quote is not closed".to_owned());
        let mut literal = Vec::new();
        self.at += 1;
        loop {
            let rest = &self.source[self.at..];
            match rest {
                [] | [b'\n', ..] => return Err(unclosed(self)),
                [byte, ..] if *byte == quote => break,
                [b'\\', b'x', high, low, ..]
                    if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
                {
                    let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
                    literal.push(digit(*high) << 4 | digit(*low));
                    self.at += 4;
                }
                [b'\\', next, ..] => {
                    literal.push(match next {
                        b'n' => b'\n',
                        b't' => b'\t',
                        b'r' => b'\r',
                        b'f' => 0x0c,
                        b'v' => 0x0b,
                        b'0' => 0,
                        other => *other,
                    });
                    self.at += 2;
                }
                [byte, ..] => {
                    literal.push(*byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        Ok(Word::Literal(literal))
    }
}

fn name_length(text: &[u8]) -> usize {
    let in_name = |byte: &&u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-') || **byte >= 0x80
    };
    text.iter().take_while(in_name).count()
}
