//! `--fails-if`: terms about a run, joined by `and`, `or` and `not`.

use crate::seen::Ended;
use nix::sys::signal::Signal;
use regex::bytes::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Condition {
    Exit(i32),
    Signal(i32),
    Stdout(String),
    Stderr(String),
    File(PathBuf, String),
    /// It took more than so many seconds.
    Time(f64),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("--fails-if: {0}")]
pub struct BadCondition(String);

/// A run, while its directory is still there.
pub struct Facts<'a> {
    pub ended: Ended,
    pub stdout: &'a [u8],
    pub stderr: &'a [u8],
    pub seconds: f64,
    pub directory: &'a Path,
}

impl Condition {
    /// `and` binds closer than `or`.
    pub fn parse(text: &str) -> Result<Condition, BadCondition> {
        let mut rest = text.trim();
        let condition = any(&mut rest)?;
        match rest {
            "" => Ok(condition),
            _ => Err(BadCondition(format!("expected `and` or `or` before {rest:?}"))),
        }
    }

    pub fn holds(&self, run: &Facts) -> bool {
        let matches =
            |pattern: &str, text: &[u8]| regex(pattern).is_ok_and(|pattern| pattern.is_match(text));
        match self {
            Condition::Exit(status) => run.ended == Ended::Status(*status),
            Condition::Signal(number) => run.ended == Ended::Signal(*number),
            Condition::Stdout(pattern) => matches(pattern, run.stdout),
            Condition::Stderr(pattern) => matches(pattern, run.stderr),
            Condition::File(path, pattern) => std::fs::read(run.directory.join(path))
                .is_ok_and(|content| matches(pattern, &content)),
            Condition::Time(seconds) => run.seconds > *seconds,
            Condition::Not(other) => !other.holds(run),
            Condition::And(a, b) => a.holds(run) && b.holds(run),
            Condition::Or(a, b) => a.holds(run) || b.holds(run),
        }
    }

    /// The longest time that is asked about.
    pub fn longest_time(&self) -> Option<f64> {
        match self {
            Condition::Time(seconds) => Some(*seconds),
            Condition::Not(other) => other.longest_time(),
            Condition::And(a, b) | Condition::Or(a, b) => {
                let times = [a.longest_time(), b.longest_time()];
                times.into_iter().flatten().max_by(f64::total_cmp)
            }
            _ => None,
        }
    }
}

/// `^` and `$` are the borders of lines.
fn regex(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).multi_line(true).build()
}

fn any(rest: &mut &str) -> Result<Condition, BadCondition> {
    let mut condition = all(rest)?;
    while word(rest, "or") {
        condition = Condition::Or(Box::new(condition), Box::new(all(rest)?));
    }
    Ok(condition)
}

fn all(rest: &mut &str) -> Result<Condition, BadCondition> {
    let mut condition = term(rest)?;
    while word(rest, "and") {
        condition = Condition::And(Box::new(condition), Box::new(term(rest)?));
    }
    Ok(condition)
}

fn term(rest: &mut &str) -> Result<Condition, BadCondition> {
    let mut negated = false;
    while word(rest, "not") {
        negated = !negated;
    }
    let condition = plain_term(rest)?;
    Ok(if negated { Condition::Not(Box::new(condition)) } else { condition })
}

fn plain_term(rest: &mut &str) -> Result<Condition, BadCondition> {
    if let Some(after) = rest.strip_prefix("stdout~") {
        return Ok(Condition::Stdout(pattern(rest, after)?));
    }
    if let Some(after) = rest.strip_prefix("stderr~") {
        return Ok(Condition::Stderr(pattern(rest, after)?));
    }
    if let Some(after) = rest.strip_prefix("file:") {
        let (path, after) =
            after.split_once('~').ok_or_else(|| BadCondition("file:PATH lacks ~/RE/".into()))?;
        let path = PathBuf::from(path);
        return Ok(Condition::File(path, pattern(rest, after)?));
    }
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (text, after) = rest.split_at(end);
    let condition = simple(text)?;
    *rest = after.trim_start();
    Ok(condition)
}

fn simple(text: &str) -> Result<Condition, BadCondition> {
    let bad = || {
        let what = match text {
            "" => "a term is missing".to_owned(),
            _ => format!("{text:?} is no term"),
        };
        BadCondition(format!(
            "{what}; those are exit=N, signal=NAME, stdout~/RE/, stderr~/RE/, file:PATH~/RE/ and time>N"
        ))
    };
    if let Some(status) = text.strip_prefix("exit=") {
        return status.parse().map(Condition::Exit).map_err(|_| bad());
    }
    if let Some(name) = text.strip_prefix("signal=") {
        let full = format!("SIG{}", name.trim_start_matches("SIG"));
        return Signal::from_str(&full)
            .map(|signal| Condition::Signal(signal as i32))
            .map_err(|_| bad());
    }
    if let Some(seconds) = text.strip_prefix("time>") {
        let seconds: f64 = seconds.trim_end_matches('s').parse().map_err(|_| bad())?;
        return if seconds.is_finite() { Ok(Condition::Time(seconds)) } else { Err(bad()) };
    }
    Err(bad())
}

/// `/RE/`, in which `\/` is a slash.
fn pattern<'a>(rest: &mut &'a str, after: &'a str) -> Result<String, BadCondition> {
    let body = after.strip_prefix('/').ok_or_else(|| BadCondition("a pattern is /RE/".into()))?;
    let mut pattern = String::new();
    let mut chars = body.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '/' => {
                *rest = body[at + 1..].trim_start();
                regex(&pattern).map_err(|error| {
                    let lines = error.to_string();
                    BadCondition(lines.lines().last().unwrap_or_default().to_owned())
                })?;
                return Ok(pattern);
            }
            '\\' => match chars.next() {
                Some((_, '/')) => pattern.push('/'),
                Some((_, other)) => pattern.extend(['\\', other]),
                None => break,
            },
            other => pattern.push(other),
        }
    }
    Err(BadCondition(format!("/{body} lacks its closing slash")))
}

fn word(rest: &mut &str, word: &str) -> bool {
    let ends = |after: &&str| after.is_empty() || after.starts_with(char::is_whitespace);
    let after = rest.strip_prefix(word).filter(ends);
    match after {
        Some(after) => {
            *rest = after.trim_start();
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str, ended: Ended, stderr: &str) -> bool {
        let run = Facts {
            ended,
            stdout: b"out",
            stderr: stderr.as_bytes(),
            seconds: 2.0,
            directory: Path::new("/"),
        };
        Condition::parse(text).unwrap().holds(&run)
    }

    #[test]
    fn terms_are_joined() {
        let one = Ended::Status(1);
        assert!(holds("exit=1", one, ""));
        assert!(!holds("not exit=1", one, ""));
        assert!(holds("exit=2 and exit=3 or exit=1", one, ""));
        assert!(!holds("exit=1 and stderr~/a\\/b/", one, "a b"));
        assert!(holds("exit=1 and stderr~/a\\/b/ and not time>3", one, "a/b"));
        assert!(holds("signal=SEGV or stdout~/u/", one, ""));
        assert!(holds("signal=SIGSEGV", Ended::Signal(11), ""));
    }

    #[test]
    fn a_term_that_is_missing_is_missed() {
        for text in ["exit=1 and", "exit=1 or not", "not"] {
            let error = Condition::parse(text).expect_err(text).to_string();
            assert!(error.starts_with("--fails-if: a term is missing"), "{error}");
        }
    }

    #[test]
    fn what_is_no_condition_is_said() {
        for text in ["", "exit=x", "exit=1 exit=2", "stderr~x", "stderr~/(/", "stderr~/a", "and"] {
            let error = Condition::parse(text).expect_err(text).to_string();
            assert!(error.starts_with("--fails-if: ") && !error.contains('\n'), "{error}");
        }
    }
}
