//! A text cut into pieces of one sort.

use std::ops::Range;

/// Where a piece stands in the text. Together they are the whole text.
pub type Span = Range<usize>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Byte,
    /// Of UTF-8; a byte that belongs to none is a piece by itself.
    Char,
    Token,
    Line,
}

impl Unit {
    pub fn cut(self, text: &[u8]) -> Vec<Span> {
        self.pieces(text).collect()
    }

    /// One after the other, for those who need not have them all at once.
    pub fn pieces(self, text: &[u8]) -> impl Iterator<Item = Span> {
        let length = match self {
            Unit::Byte => |_: &[u8]| 1,
            Unit::Char => char_length,
            Unit::Token => token_length,
            Unit::Line => line_length,
        };
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = at;
            let rest = &text[start..];
            at += if rest.is_empty() { return None } else { length(rest) };
            Some(start..at)
        })
    }
}

/// Brackets that match each other, whatever stands between them.
pub fn bracket_pairs(text: &[u8]) -> Vec<[Span; 2]> {
    let mut open: Vec<(u8, usize)> = Vec::new();
    let mut pairs = Vec::new();
    for (at, &byte) in text.iter().enumerate() {
        let opening = match byte {
            b'(' | b'[' | b'{' => {
                open.push((byte, at));
                continue;
            }
            b')' => b'(',
            b']' => b'[',
            b'}' => b'{',
            _ => continue,
        };
        // One that does not match closes nothing.
        if let Some((_, start)) = open.pop_if(|(last, _)| *last == opening) {
            pairs.push([start..start + 1, at..at + 1]);
        }
    }
    pairs
}

fn line_length(rest: &[u8]) -> usize {
    rest.iter().position(|&byte| byte == b'\n').map_or(rest.len(), |at| at + 1)
}

fn char_length(rest: &[u8]) -> usize {
    let length = match rest[0] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    let whole = rest.get(..length).is_some_and(|char| str::from_utf8(char).is_ok());
    if whole { length } else { 1 }
}

/// What a token begins with says what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Space,
    Word,
    Number,
    String,
    Sign,
}

pub fn sort_of(token: &[u8]) -> Sort {
    match token.first() {
        Some(byte) if byte.is_ascii_whitespace() => Sort::Space,
        Some(byte) if byte.is_ascii_digit() => Sort::Number,
        Some(b'"' | b'\'' | b'`') if token.len() > 1 => Sort::String,
        Some(&byte) if is_word(byte) => Sort::Word,
        _ => Sort::Sign,
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// A word, a number, a string on one line, a run of white space, or a sign.
fn token_length(rest: &[u8]) -> usize {
    let run = |of: &dyn Fn(u8) -> bool| rest.iter().take_while(|&&byte| of(byte)).count();
    match rest[0] {
        byte if byte.is_ascii_whitespace() => run(&|byte| byte.is_ascii_whitespace()),
        byte if byte.is_ascii_digit() => run(&|byte| is_word(byte) || byte == b'.'),
        byte if is_word(byte) => run(&is_word),
        quote @ (b'"' | b'\'' | b'`') => string_length(rest, quote).unwrap_or(1),
        _ => 1,
    }
}

/// Nothing, if it does not end on its line.
fn string_length(rest: &[u8], quote: u8) -> Option<usize> {
    let mut at = 1;
    loop {
        match *rest.get(at)? {
            b'\\' => at += 2,
            b'\n' => return None,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}
