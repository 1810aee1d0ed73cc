//! Criteria: which moment of a recording is meant, and which value.
//!
//! `[PROC/]PLACE[#N][:VALUE]`

use serde::{Deserialize, Serialize};
use std::ops::Range;
use why_record::event::Stream;
use why_record::position::Moment;
use why_record::registers::NAMES;
use why_symbols::Expression;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Criterion {
    pub place: Place,
    pub value: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Moment(Moment),
    /// An execution of some code: the last one unless it is numbered.
    Code(Code, Option<u64>),
    /// Where a byte was written, by its number from 0 on.
    Written(Stream, u64),
}

/// What has executions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Code {
    Line { file: String, line: u64 },
    Function(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// By its place in the list of names.
    Register(usize),
    Memory(Range<u64>),
    Expression(Expression),
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Code::Line { file, line } => write!(f, "{file}:{line}"),
            Code::Function(name) => f.write_str(name),
        }
    }
}

/// What stands before the slash, if that can be a process and not a directory: a number, or
/// the name of a program that was recorded.
pub fn split_process(text: &str, is_program: impl Fn(&str) -> bool) -> (Option<&str>, &str) {
    match text.split_once('/') {
        Some((process, rest)) if process.parse::<u32>().is_ok() || is_program(process) => {
            (Some(process), rest)
        }
        _ => (None, text),
    }
}

/// What is right.
const FORM: &str = "give PLACE[#N][:VALUE], where PLACE is start, end, crash, FILE:LINE, FUNC, stdout:N \
                    or a position EVENT.TICKS as `why print` tells it, and VALUE an expression such \
                    as list->next[2].name, %REG or ADDR+SIZE";

/// A criterion without its process.
pub fn parse(text: &str) -> Result<Criterion, String> {
    let (place, value) = split_value(text);
    let value = match value.map(parse_value).transpose() {
        Ok(value) => value,
        Err(why) => return Err(format!("{text:?} is no criterion: {why}; {FORM}")),
    };
    let (code, number) = match place.split_once('#') {
        Some((code, number)) => (code, Some(execution(number)?)),
        None => (place, None),
    };
    if let Ok(moment) = code.parse::<Moment>() {
        return match number {
            None => Ok(Criterion { place: Place::Moment(moment), value }),
            Some(_) => Err(format!("{code} happens only once; leave out what follows #")),
        };
    }
    if let "stdout" | "stderr" = code {
        return Err(format!("{code} needs the number of a byte; the first is {code}:0"));
    }
    if let Some((name @ ("stdout" | "stderr"), byte)) = code.split_once(':') {
        let stream = if name == "stdout" { Stream::Output } else { Stream::Error };
        return match (byte.parse(), number) {
            (Ok(byte), None) => Ok(Criterion { place: Place::Written(stream, byte), value }),
            (_, Some(_)) => Err(format!("{code} is written only once; leave out what follows #")),
            (Err(_), _) => Err(format!("{byte} is no number of a byte; the first is {name}:0")),
        };
    }
    let code = match code.rsplit_once(':') {
        Some((file, line)) if !file.ends_with(':') => {
            let line = line.parse().map_err(|_| format!("{line} is no number of a line"))?;
            Code::Line { file: file.to_owned(), line }
        }
        _ if code.contains('/') => {
            let process = code.split('/').next().unwrap_or_default();
            return Err(format!(
                "{code}: no process {process} was recorded, and there is no line behind the name \
                 of a file"
            ));
        }
        _ if is_name(code) => Code::Function(code.to_owned()),
        _ => {
            return Err(format!("{text:?} is no criterion: it begins with no place; {FORM}"));
        }
    };
    Ok(Criterion { place: Place::Code(code, number), value })
}

/// Names of functions, with those of types in them, but no number.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || "_<~$".contains(c)) && !text.ends_with("::")
}

fn execution(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{text} is no number of an execution; the first is 1")),
    }
}

/// Cuts at the colon before the value: the first that is neither part of `::` nor followed
/// by the number of a line.
fn split_value(text: &str) -> (&str, Option<&str>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b':' {
            at += 1;
        } else if bytes.get(at + 1) == Some(&b':') {
            at += 2;
        } else {
            let rest = &text[at + 1..];
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let ends = matches!(rest.as_bytes().get(digits), None | Some(b'#' | b':'));
            let is_line = digits > 0 && ends && text[..at].parse::<Moment>().is_err();
            if !is_line || text[..at].contains(':') && !text[..at].ends_with("::") {
                return (&text[..at], Some(rest));
            }
            at += 1 + digits;
        }
    }
    (text, None)
}

fn parse_value(text: &str) -> Result<Value, String> {
    if let Some(name) = text.strip_prefix('%') {
        let index = NAMES.iter().position(|known| *known == name);
        return index
            .map(Value::Register)
            .ok_or_else(|| format!("there is no register {name}; there are {}", NAMES.join(", ")));
    }
    if text.is_empty() {
        return Err("nothing stands behind its last colon".to_owned());
    }
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        let expression: Result<Expression, why_symbols::NoExpression> = text.parse();
        return expression.map(Value::Expression).map_err(|error| error.0);
    }
    /// More than a screen is not for reading.
    const MOST: u64 = 1 << 20;
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let parts = text.split_once('+').and_then(|(at, size)| Some((number(at)?, number(size)?)));
    match parts {
        Some((at, size)) if (1..=MOST).contains(&size) && at.checked_add(size).is_some() => {
            Ok(Value::Memory(at..at + size))
        }
        _ => Err(format!("{text} is neither %REG nor ADDR+SIZE with at most {MOST} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use why_record::registers::RIP;

    fn line(file: &str, line: u64) -> Code {
        Code::Line { file: file.to_owned(), line }
    }

    #[test]
    fn criteria_are_understood() {
        let function = |name: &str| Code::Function(name.to_owned());
        for (text, place, value) in [
            ("main", Place::Code(function("main"), None), None),
            ("main#3", Place::Code(function("main"), Some(3)), None),
            ("a::b#2:x", Place::Code(function("a::b"), Some(2)), Some("x")),
            ("a::b:c::d", Place::Code(function("a::b"), None), Some("c::d")),
            ("p.c:10", Place::Code(line("p.c", 10), None), None),
            ("src/p.c:10#2:*q->r[3]", Place::Code(line("src/p.c", 10), Some(2)), Some("*q->r[3]")),
            ("p.c:10:x", Place::Code(line("p.c", 10), None), Some("x")),
            ("crash:p", Place::Moment(Moment::End), Some("p")),
            ("start", Place::Moment(Moment::Start), None),
            ("stdout:5", Place::Written(Stream::Output, 5), None),
            ("stderr:0:p", Place::Written(Stream::Error, 0), Some("p")),
        ] {
            let parsed = parse(text).unwrap();
            assert_eq!(parsed.place, place, "{text}");
            let expected = value.map(|value| Value::Expression(value.parse().unwrap()));
            assert_eq!(parsed.value, expected, "{text}");
        }
        assert_eq!(parse("end:%rip").unwrap().value, Some(Value::Register(RIP)));
        let memory = parse("3.4:0x1000+16").unwrap().value;
        assert_eq!(memory, Some(Value::Memory(0x1000..0x1010)));
        let memory = parse("p.c:10:0x1000+16").unwrap();
        assert_eq!(memory.value, Some(Value::Memory(0x1000..0x1010)));
    }

    #[test]
    fn what_is_no_criterion_is_refused() {
        for wrong in [
            "",
            "end:%zax",
            "end:12",
            "end:0x10+0",
            "end:1+0x10000000",
            "main#0",
            "main#x",
            "end#1",
            "sh/main",
            "p.c:10:",
            "main:",
            "12",
            "main:a..b",
            "stdout:5#2",
            "stdout",
            "stdout:-1",
            "stderr:x:y",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_process_is_no_directory() {
        let known = |name: &str| name == "sh";
        assert_eq!(split_process("12/end", known), (Some("12"), "end"));
        assert_eq!(split_process("sh/main", known), (Some("sh"), "main"));
        assert_eq!(split_process("src/p.c:1", known), (None, "src/p.c:1"));
    }
}
