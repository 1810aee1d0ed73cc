//! A text as a list of tokens, by rules that fit most languages: words, numbers, quoted
//! strings, comments, and signs. White space lies between them.

use std::ops::Range;
use why_tree::{Spacing, Tree};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TokenKind {
    Word,
    Number,
    String,
    Comment,
    Sign,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    pub span: Range<usize>,
}

impl TokenKind {
    fn name(self) -> &'static str {
        match self {
            TokenKind::Word => "word",
            TokenKind::Number => "number",
            TokenKind::String => "string",
            TokenKind::Comment => "comment",
            TokenKind::Sign => "sign",
        }
    }
}

pub fn tree(text: &[u8]) -> Tree {
    let mut tree = Tree::rooted("tokens", 0..text.len(), Vec::new());
    tree.set_spacing(Spacing::usual());
    for token in tokens(text) {
        let kind = tree.kind(token.kind.name());
        tree.add(Tree::ROOT, kind, token.span, Vec::new());
    }
    tree
}

pub fn tokens(text: &[u8]) -> impl Iterator<Item = Token> {
    Tokens { text, at: 0, blocks: [Block::new("/*", "*/"), Block::new("<!--", "-->")] }
}

struct Tokens<'a> {
    text: &'a [u8],
    at: usize,
    blocks: [Block; 2],
}

/// A comment between two marks.
struct Block {
    begin: &'static [u8],
    end: &'static [u8],
    /// No end mark is left: it need not be looked for again and again.
    over: bool,
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let text = &self.text[self.at..];
        self.at += text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        (self.at < self.text.len()).then(|| {
            let (kind, length) = self.first();
            self.at += length;
            Token { kind, span: self.at - length..self.at }
        })
    }
}

impl Tokens<'_> {
    /// What begins here, and its length. There is something, and it is no space.
    fn first(&mut self) -> (TokenKind, usize) {
        let (text, before) = (&self.text[self.at..], self.text[..self.at].last().copied());
        let comment = line_comment(text, before)
            .or_else(|| self.blocks.iter_mut().find_map(|block| block.length(text)));
        if let Some(length) = comment {
            return (TokenKind::Comment, length);
        }
        match text[0] {
            b'0'..=b'9' => (TokenKind::Number, number(text)),
            byte if is_word(byte) => {
                (TokenKind::Word, text.iter().take_while(|&&byte| is_word(byte)).count())
            }
            quote @ (b'"' | b'\'' | b'`') => match string(text, quote) {
                Some(length) => (TokenKind::String, length),
                None => (TokenKind::Sign, 1),
            },
            _ => (TokenKind::Sign, sign(text)),
        }
    }
}

impl Block {
    fn new(begin: &'static str, end: &'static str) -> Block {
        Block { begin: begin.as_bytes(), end: end.as_bytes(), over: false }
    }

    /// The length of the comment at the beginning of a text.
    fn length(&mut self, text: &[u8]) -> Option<usize> {
        let rest = text.strip_prefix(self.begin).filter(|_| !self.over)?;
        let found = rest.windows(self.end.len()).position(|window| window == self.end);
        self.over = found.is_none();
        Some(self.begin.len() + found? + self.end.len())
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// A comment to the end of its line. What only looks like one (the slashes of a URL, `--`
/// and `#` next to a word) is left to signs.
fn line_comment(text: &[u8], before: Option<u8>) -> Option<usize> {
    let space = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_whitespace);
    let spaced = |mark: &[u8]| {
        let rest = text.strip_prefix(mark);
        space(before.as_ref()) && rest.is_some_and(|rest| space(rest.first()))
    };
    let begins = text.starts_with(b"//") && before != Some(b':')
        || spaced(b"#")
        || spaced(b"--")
        || text.starts_with(b"#!");
    begins.then(|| text.iter().position(|&byte| byte == b'\n').unwrap_or(text.len()))
}

/// With its point, its exponent and what letters follow.
fn number(text: &[u8]) -> usize {
    let mut length = 1;
    while let Some(&byte) = text.get(length) {
        let next_is_digit = text.get(length + 1).is_some_and(u8::is_ascii_digit);
        let exponent = matches!(text[length - 1], b'e' | b'E' | b'p' | b'P');
        match byte {
            b'.' if next_is_digit => {}
            b'+' | b'-' if exponent && next_is_digit && !text.starts_with(b"0x") => {}
            _ if is_word(byte) => {}
            _ => break,
        }
        length += 1;
    }
    length
}

/// A string that ends; only one in backquotes goes on over lines.
pub(crate) fn string(text: &[u8], quote: u8) -> Option<usize> {
    let mut at = 1;
    loop {
        match *text.get(at)? {
            b'\\' => at += 1,
            b'\n' if quote != b'`' => return None,
            byte if byte == quote => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
}

/// The longest sign of two or three bytes that is usual, else one byte.
fn sign(text: &[u8]) -> usize {
    const LONG: [&[u8]; 36] = [
        b"<<=", b">>=", b"...", b"===", b"!==", b"**=", b"<=>", b"..=", b"->", b"=>", b"::", b"++",
        b"--", b"&&", b"||", b"<=", b">=", b"==", b"!=", b"+=", b"-=", b"*=", b"/=", b"%=", b"&=",
        b"|=", b"^=", b":=", b"<<", b">>", b"**", b"..", b"</", b"/>", b"??", b"##",
    ];
    LONG.iter().find(|long| text.starts_with(long)).map_or(1, |long| long.len())
}
