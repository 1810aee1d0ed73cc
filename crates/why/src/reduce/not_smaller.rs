//! Why a result is not smaller: what happened without each of its tokens.

use super::answer::tokens;
use super::watch::Watch;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;
use why_reduce::tester::Tester;
use why_trial::{Files, Pool, Shape};

/// So many tokens are looked up, and no more bytes than this are hashed for it.
const MOST_PARTS: usize = 400;
const MOST_BYTES: usize = 1 << 28;

/// So many are told to people, each in a line of so many columns.
const MOST_LINES: usize = 12;
pub const COLUMNS: usize = 80;
const LONGEST_TOKEN: usize = 24;

/// A token that is left, and what happened without it, if that was tried.
pub struct Part {
    pub file: String,
    pub text: String,
    pub without: Option<String>,
}

/// The tokens that are left, in their order; the longest ones, if there are too many.
pub fn parts(files: &Files, shape: &Shape, tester: &Tester<Pool, Watch>) -> Vec<Part> {
    let size: usize = files.0.iter().map(|(_, text)| text.len()).sum();
    let most = MOST_PARTS.min(MOST_BYTES / size.max(1));
    let of_file = |(index, (_, text)): (usize, &(_, Vec<u8>))| {
        tokens(text).map(move |span| (index, span)).collect::<Vec<_>>()
    };
    let mut spans: Vec<(usize, Range<usize>)> =
        files.0.iter().enumerate().flat_map(of_file).collect();
    if spans.len() > most {
        spans.sort_by_key(|(_, span)| Reverse(span.len()));
        spans.truncate(most);
        spans.sort_by_key(|(index, span)| (*index, span.start));
    }
    let part = |(index, span): (usize, Range<usize>)| {
        let (path, text) = &files.0[index];
        let mut without = files.clone();
        without.0[index].1.drain(span.clone());
        let judgement = tester.judgement(&shape.text(&without));
        Part {
            file: path.display().to_string(),
            text: String::from_utf8_lossy(&text[span]).into_owned(),
            without: judgement.map(|judgement| judgement.reason.to_string()),
        }
    };
    spans.into_iter().map(part).collect()
}

/// For people: the most telling tokens, and how many more there are.
pub fn text(parts: &[Part], left_out: usize) -> String {
    let tried =
        |part: &Part| Some((shortened(&part.text, LONGEST_TOKEN, 8), part.without.clone()?));
    let tried: Vec<(String, String)> = parts.iter().filter_map(tried).collect();
    if tried.is_empty() {
        return String::new();
    }
    let told = most_telling(&tried);
    let width = told.iter().map(|(token, _)| token.chars().count()).max().unwrap_or(0);
    let mut text = "why it is not smaller\n".to_owned();
    for (token, without) in &told {
        let room = COLUMNS - "  without   ".len() - width;
        let _ = writeln!(text, "  without {token:width$}  {}", shortened(without, room, 0));
    }
    match parts.len() + left_out - told.len() {
        0 => {}
        1 => text.push_str("  … and 1 token more\n"),
        more => {
            let _ = writeln!(text, "  … and {more} tokens more");
        }
    }
    text
}

/// What seldom happens says more than what happens without almost any token; of those that are
/// alike in this, a long token says more than a short one.
fn most_telling(tried: &[(String, String)]) -> Vec<&(String, String)> {
    let mut often: HashMap<&str, usize> = HashMap::new();
    for (_, without) in tried {
        *often.entry(without).or_default() += 1;
    }
    let mut order: Vec<usize> = (0..tried.len()).collect();
    order.sort_by_key(|&index| {
        let (token, without) = &tried[index];
        (often[without.as_str()], Reverse(token.chars().count()))
    });
    order.truncate(MOST_LINES);
    order.sort_unstable();
    order.into_iter().map(|index| &tried[index]).collect()
}

/// A text in one line of at most so many columns, with nothing in it that a terminal obeys. If
/// it is longer, so many columns are for its end: both ends of a name tell it from others.
pub fn shortened(text: &str, columns: usize, end: usize) -> String {
    let mut whole = String::new();
    for char in text.chars() {
        if char.is_control() { whole.extend(char.escape_default()) } else { whole.push(char) }
    }
    let length = whole.chars().count();
    if length <= columns {
        return whole;
    }
    let front = whole.chars().take(columns - end - 1);
    front.chain(['…']).chain(whole.chars().skip(length - end)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str, without: Option<&str>) -> Part {
        let without = without.map(str::to_owned);
        Part { file: "input".to_owned(), text: text.to_owned(), without }
    }

    #[test]
    fn all_are_told_if_they_are_few() {
        let parts =
            [part("int", Some("exit 0")), part(";", None), part("\u{1b}[2J", Some("exit 1"))];
        assert_eq!(
            text(&parts, 0),
            "why it is not smaller\n  without int        exit 0\n  \
             without \\u{1b}[2J  exit 1\n  … and 1 token more\n"
        );
        assert_eq!(text(&parts[1..2], 7), "");
    }

    #[test]
    fn of_many_the_telling_ones_are_told() {
        let mut parts: Vec<Part> =
            (0..100).map(|number| part(&format!("t{number}"), Some("exit 0"))).collect();
        parts[40].without = Some("SIGSEGV in parse".to_owned());
        parts[70].text = "a_long_name".repeat(9);
        let text = text(&parts, 50);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), MOST_LINES + 2, "{text}");
        assert!(
            text.contains("without t40") && text.contains("  … and 138 tokens more\n"),
            "{text}"
        );
        assert!(text.contains("without a_long_namea_lo…ong_name  exit 0"), "{text}");
    }

    #[test]
    fn lines_fit_a_terminal() {
        let parts = [part(&"x".repeat(500), Some(&format!("exit 1: {}", "ä ".repeat(200))))];
        for line in text(&parts, 0).lines() {
            assert!(line.chars().count() <= COLUMNS, "{line}");
        }
    }
}
