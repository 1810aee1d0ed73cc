//! An answer to be read, in 80 columns.

use crate::questions::answer::{Answer, FrameSeen, LineMoment, ValueSeen, VariableSeen};
use why_record::registers::NAMES;

const COLUMNS: usize = 80;
/// A parameter's value in a backtrace.
const SHORT: usize = 24;

pub struct Parts {
    pub registers: bool,
    pub backtrace: bool,
}

pub fn text(answer: &Answer, parts: &Parts) -> String {
    let mut out = format!("{}/{}  thread {}\n", answer.process, answer.position, answer.thread);
    let asked = answer.value.is_some();
    if let Some(Ok(value)) = &answer.value {
        out += &value_text(value);
        if answer.moment == Some(LineMoment::Before) {
            out += "(before the line was left: it is not known as it was then)\n";
        }
    }
    if parts.backtrace {
        out += &backtrace(answer);
    }
    let frame = answer.frame.and_then(|index| Some((index, answer.frames.get(index)?)));
    if !asked && let Some((index, frame)) = frame {
        if !parts.backtrace {
            out += &frame_line(index, frame);
        }
        out += &variables(&frame.variables);
    }
    if parts.registers || !asked && !parts.backtrace && frame.is_none() {
        for (name, value) in NAMES.iter().zip(&answer.registers) {
            out += &register(name, *value);
        }
    }
    out
}

fn register(name: &str, value: u64) -> String {
    format!("{name:<8} {value:#018x}\n")
}

fn value_text(value: &ValueSeen) -> String {
    match value {
        ValueSeen::Register { name, value } => register(name, *value),
        ValueSeen::Memory { address, bytes } => dump(*address, bytes),
        ValueSeen::Expression { expression, value, .. } => {
            wrapped(&format!("{expression} = {value}"), 0, 4)
        }
    }
}

/// Sixteen bytes a line, as numbers and as text.
fn dump(at: u64, bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return format!("{at:#014x}  no memory is mapped there\n");
    }
    let lines = bytes.chunks(16).enumerate().map(|(line, part)| {
        let numbers: Vec<String> = part.iter().map(|byte| format!("{byte:02x}")).collect();
        let visible = |&byte: &u8| if (0x20..0x7f).contains(&byte) { byte as char } else { '.' };
        let text: String = part.iter().map(visible).collect();
        format!("{:#014x}  {:<47}  {text}\n", at + 16 * line as u64, numbers.join(" "))
    });
    lines.collect()
}

fn backtrace(answer: &Answer) -> String {
    let frames = answer.frames.iter().enumerate();
    let mut out: String = frames.map(|(index, frame)| frame_line(index, frame)).collect();
    if let Some(why) = &answer.frames_left_out {
        out += &format!("    ({why} behind this frame)\n");
    }
    out
}

/// `#1  function (parameter=value) at file:line`
fn frame_line(index: usize, frame: &FrameSeen) -> String {
    let function = match (&frame.function, &frame.module) {
        (Some(function), _) => function.clone(),
        (None, Some(_)) => format!("{:#x}", frame.pc),
        (None, None) => format!("{:#x}, code of no file", frame.pc),
    };
    let parameters: Vec<String> = frame
        .variables
        .iter()
        .filter(|variable| variable.parameter && frame.own)
        .map(|variable| format!("{}={}", variable.name, brief(&variable.value)))
        .collect();
    let parameters = match (frame.own, parameters.is_empty()) {
        (true, _) => format!(" ({})", parameters.join(", ")),
        (false, true) => String::new(),
        (false, false) => " (…)".to_owned(),
    };
    let place = match (&frame.file, &frame.line, &frame.module) {
        (Some(file), Some(line), _) => {
            format!(" at {}:{line}", file.rsplit('/').next().unwrap_or(file))
        }
        (_, _, Some(module)) => format!(" in {module}"),
        _ => String::new(),
    };
    let inlined = if frame.inlined { " (inlined)" } else { "" };
    let signal = if frame.signal { " <signal handler called>" } else { "" };
    wrapped(&format!("#{index:<3}{function}{parameters}{place}{inlined}{signal}"), 0, 6)
}

fn variables(variables: &[VariableSeen]) -> String {
    /// Longer names stand out.
    const MOST_NAME: usize = 16;
    let longest = variables.iter().map(|v| v.name.chars().count()).max().unwrap_or(0);
    let width = longest.min(MOST_NAME);
    let lines = variables
        .iter()
        .map(|variable| wrapped(&format!("{:<width$} = {}", variable.name, variable.value), 4, 8));
    lines.collect()
}

/// A value among others: of a string only the text, and of anything long the beginning.
fn brief(text: &str) -> String {
    let string = text.find(" \"").filter(|_| text.starts_with("0x")).map(|at| &text[at + 1..]);
    let text = string.unwrap_or(text);
    match text.char_indices().nth(SHORT) {
        Some((end, _)) if string.is_some() => format!("{}…\"", &text[..end]),
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The text in lines that fit, broken at spaces, but not around a `=`.
fn wrapped(text: &str, first: usize, others: usize) -> String {
    /// Stands for a space that is not one to break at.
    const KEPT: char = '\u{a0}';
    let text = text.replace(" = ", &format!("{KEPT}={KEPT}"));
    let mut out = " ".repeat(first);
    let mut column = first;
    let mut is_first = true;
    for word in text.split(' ') {
        let length = word.chars().count();
        if !is_first && column + 1 + length > COLUMNS {
            out += "\n";
            out += &" ".repeat(others);
            column = others;
        } else if !is_first {
            out.push(' ');
            column += 1;
        }
        out += word;
        column += length;
        is_first = false;
    }
    out.push('\n');
    out.replace(KEPT, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_broken_at_spaces() {
        let text = vec!["word"; 40].join(" ");
        let lines = wrapped(&text, 4, 8);
        assert!(lines.lines().all(|line| line.chars().count() <= COLUMNS), "{lines}");
        assert_eq!(lines.split_whitespace().count(), 40);
        assert_eq!(wrapped("a = 1", 2, 4), "  a = 1\n");
    }

    #[test]
    fn parameters_are_brief() {
        assert_eq!(brief("0x1000 \"text\""), "\"text\"");
        assert_eq!(brief("{a = 1}"), "{a = 1}");
        assert_eq!(brief(&"ä".repeat(50)).chars().count(), SHORT + 1);
        assert!(brief(&format!("0x1000 \"{}\"", "ä".repeat(50))).ends_with("…\""));
    }
}
