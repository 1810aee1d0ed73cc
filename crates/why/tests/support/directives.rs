//! The `key: value` comment lines at the top of a fixture, as fixtures/README.md
//! describes them.

use crate::support::outcome::Ended;

/// The directives of one fixture, defaults filled in.
#[derive(Clone, Debug)]
pub struct Directives {
    pub purpose: String,
    /// None: the default of the file's extension.
    pub build: Option<String>,
    pub variants: Vec<String>,
    pub args: Vec<String>,
    pub stdin: Vec<u8>,
    pub ends: Ended,
    pub needs: Vec<String>,
    pub count_is_exact: bool,
    pub replay: Replay,
}

/// What a replay of the fixture shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replay {
    /// All that the program wrote.
    Whole,
    /// Nothing yet, for this reason.
    NotYet(String),
}

fn replay(value: &str) -> Result<Replay, String> {
    match value.split_once(", ") {
        Some(("not yet", reason)) => Ok(Replay::NotYet(reason.into())),
        _ => Err(format!("not `not yet, REASON`: {value}")),
    }
}

/// Parses the head of a source file. A line that is no directive is an error:
/// a misspelt key must not silently weaken a test.
pub fn parse(source: &str) -> Result<Directives, String> {
    let mut found = Directives {
        purpose: String::new(),
        build: None,
        variants: vec!["default".into()],
        args: Vec::new(),
        stdin: Vec::new(),
        ends: Ended::Status(0),
        needs: Vec::new(),
        count_is_exact: false,
        replay: Replay::Whole,
    };
    for line in head(source) {
        let (key, value) =
            line.split_once(':').ok_or_else(|| format!("not a directive `key: value`: {line}"))?;
        let value = value.trim();
        match key.trim() {
            "purpose" => found.purpose = value.into(),
            "build" => found.build = Some(value.into()),
            "variants" => found.variants = list(value),
            "args" => found.args = shell_words(value)?,
            "stdin" => found.stdin = unescape(value),
            "ends" => found.ends = ended(value)?,
            "needs" => found.needs = list(value),
            "count" if value == "exact" => found.count_is_exact = true,
            "replay" => found.replay = replay(value)?,
            _ => return Err(format!("unknown directive: {line}")),
        }
    }
    if found.purpose.is_empty() {
        return Err("the directive `purpose` is missing".into());
    }
    Ok(found)
}

/// The comment lines before the first blank line, without their comment marks;
/// a `#!` line belongs to the kernel.
fn head(source: &str) -> impl Iterator<Item = &str> {
    source
        .lines()
        .filter(|line| !line.starts_with("#!"))
        .map_while(|line| line.strip_prefix("//").or_else(|| line.strip_prefix('#')))
        .map(str::trim)
}

fn list(value: &str) -> Vec<String> {
    value.split(',').map(|item| item.trim().to_string()).collect()
}

fn ended(value: &str) -> Result<Ended, String> {
    let number = |digits: &str| digits.parse().ok().map(Ended::Status);
    match value.split_once(' ') {
        Some(("status", digits)) => number(digits),
        Some(("signal", name)) => name.parse().ok().map(Ended::Signal),
        _ => None,
    }
    .ok_or_else(|| format!("not `status N` or `signal NAME`: {value}"))
}

/// `\n`, `\t`, `\\` and `\0` in the text of standard input.
fn unescape(value: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' => match rest.next() {
                Some(b'n') => out.push(b'\n'),
                Some(b't') => out.push(b'\t'),
                Some(b'0') => out.push(0),
                Some(other) => out.push(other),
                None => out.push(b'\\'),
            },
            _ => out.push(byte),
        }
    }
    out
}

/// Splits as a shell does: blanks, single and double quotes, backslash.
fn shell_words(value: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut rest = value.chars();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(rest.next()),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    match quote {
        Some(q) => Err(format!("the quote {q} is not closed: {value}")),
        None => Ok(words),
    }
}
