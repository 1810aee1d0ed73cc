//! Computes what it is given: of its optimised code, some is of no line, and calls from there as well.

use std::collections::HashMap;
use std::fmt;

#[derive(Debug, Clone)]
enum Token {
    Number(f64),
    Op(char),
    Open,
    Close,
}

#[derive(Debug)]
struct Error {
    at: usize,
    what: String,
}
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} at {}", self.what, self.at)
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, Error> {
    let mut found = Vec::new();
    let chars: Vec<char> = text.chars().collect();
    let mut at = 0;
    while at < chars.len() {
        match chars[at] {
            '0'..='9' | '.' => {
                let start = at;
                while at < chars.len() && (chars[at].is_ascii_digit() || chars[at] == '.') {
                    at += 1;
                }
                let text: String = chars[start..at].iter().collect();
                let number =
                    text.parse().map_err(|_| Error { at: start, what: "number".to_string() })?;
                found.push(Token::Number(number));
                continue;
            }
            c @ ('+' | '-' | '*' | '/') => found.push(Token::Op(c)),
            '(' => found.push(Token::Open),
            ')' => found.push(Token::Close),
            ' ' => {}
            c => return Err(Error { at, what: format!("unexpected {c}") }),
        }
        at += 1;
    }
    Ok(found)
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    counts: HashMap<char, u32>,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }
    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }
    fn expr(&mut self) -> Result<f64, Error> {
        let mut left = self.term()?;
        while let Some(Token::Op(op @ ('+' | '-'))) = self.peek().cloned() {
            self.next();
            *self.counts.entry(op).or_insert(0) += 1;
            let right = self.term()?;
            left = if op == '+' { left + right } else { left - right };
        }
        Ok(left)
    }
    fn term(&mut self) -> Result<f64, Error> {
        let mut left = self.atom()?;
        while let Some(Token::Op(op @ ('*' | '/'))) = self.peek().cloned() {
            self.next();
            *self.counts.entry(op).or_insert(0) += 1;
            let right = self.atom()?;
            left = if op == '*' { left * right } else { left / right };
        }
        Ok(left)
    }
    fn atom(&mut self) -> Result<f64, Error> {
        match self.next() {
            Some(Token::Number(n)) => Ok(n),
            Some(Token::Open) => {
                let value = self.expr()?;
                match self.next() {
                    Some(Token::Close) => Ok(value),
                    other => Err(Error { at: self.at, what: format!("expected ) not {other:?}") }),
                }
            }
            other => Err(Error { at: self.at, what: format!("unexpected {other:?}") }),
        }
    }
}

fn main() {
    let text = std::env::args().nth(1).unwrap_or_default();
    let tokens = match tokens(&text) {
        Ok(tokens) => tokens,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2)
        }
    };
    let mut parser = Parser { tokens, at: 0, counts: HashMap::new() };
    match parser.expr() {
        Ok(value) => {
            let counts: u32 = parser.counts.values().sum();
            println!("{value} {counts}");
            let table = [0u8; 4];
            println!("{}", table[value as usize]);
        }
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(3)
        }
    }
}
