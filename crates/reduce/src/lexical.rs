//! The lexical phase: shorter names, numbers and strings; less white space.

use crate::changes::{Change, leave_out, make};
use crate::oracle::{Oracle, Outcome};
use crate::trees::Search;
use crate::units::{Sort, Span, Unit, sort_of};
use std::collections::{BTreeMap, BTreeSet};

/// Tokens that are longer are made shorter from within, in fewer steps than byte by byte.
const LONG: usize = 24;

/// Gives every word the same shorter name wherever it stands, and makes strings empty and
/// numbers short.
pub fn shorten(text: &[u8], oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    let mut words: BTreeMap<&[u8], Vec<Span>> = BTreeMap::new();
    let mut changes = Vec::new();
    for span in Unit::Token.cut(text) {
        let token = &text[span.clone()];
        match sort_of(token) {
            Sort::Word if token.len() > 1 => words.entry(token).or_default().push(span),
            Sort::Word => {
                words.entry(token).or_default();
            }
            Sort::Number if token.len() > 1 => {
                changes.push(Change { spans: vec![span], put: b"0".to_vec() });
            }
            Sort::String if token.len() > 2 => {
                let inside = span.start + 1..span.end - 1;
                changes.push(Change { spans: vec![inside], put: Vec::new() });
            }
            _ => {}
        }
    }
    let taken: BTreeSet<&[u8]> = words.keys().copied().collect();
    let mut names = names().filter(|name| !taken.contains(name.as_slice()));
    // The one that gains most gets the first name.
    let mut words: Vec<(&[u8], Vec<Span>)> =
        words.into_iter().filter(|(_, spans)| !spans.is_empty()).collect();
    words.sort_by_key(|(word, spans)| std::cmp::Reverse(word.len() * spans.len()));
    for (word, spans) in words {
        let name = names.next().expect("there are names without end");
        if name.len() < word.len() {
            changes.push(Change { spans, put: name });
        }
    }
    make(text, &changes, Search::among(changes.len()), oracle)
}

/// a to z, then aa, ab and so on.
fn names() -> impl Iterator<Item = Vec<u8>> {
    (0_u32..).map(|mut number| {
        let mut name = Vec::new();
        loop {
            name.insert(0, b'a' + (number % 26) as u8);
            match (number / 26).checked_sub(1) {
                Some(rest) => number = rest,
                None => return name,
            }
        }
    })
}

/// Takes from the inside of long words, numbers and strings what is not needed of them.
pub fn thin(text: &[u8], oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    let mut text = text.to_vec();
    // From the end, so that what is still to come stays where it is.
    for span in Unit::Token.cut(&text).into_iter().rev() {
        let inside = match sort_of(&text[span.clone()]) {
            Sort::String => span.start + 1..span.end - 1,
            Sort::Space => continue,
            _ => span,
        };
        if inside.len() > LONG {
            let bytes: Vec<Span> = inside.map(|at| at..at + 1).collect();
            text = leave_out(&text, &bytes, Search::expecting(2.0), oracle)?;
        }
    }
    Ok(text)
}

/// Each line's indentation as deep as there are smaller ones above it, where lines that are
/// indented alike stay so.
pub fn dedent(text: &[u8], oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    let mut open: Vec<usize> = Vec::new();
    let mut dedented = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let content = line.trim_ascii_start();
        let indentation = line.len() - content.len();
        if content.is_empty() {
            continue;
        }
        while open.pop_if(|outer| *outer >= indentation).is_some() {}
        dedented.resize(dedented.len() + open.len(), b' ');
        dedented.extend_from_slice(content);
        open.push(indentation);
    }
    let smaller = dedented.len() < text.len() && oracle.fails(dedented.clone())?;
    Ok(if smaller { dedented } else { text.to_vec() })
}

/// Makes runs of white space one byte, or nothing.
pub fn squeeze(text: &[u8], oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    let runs = |text: &[u8]| -> Vec<Span> {
        let spans = Unit::Token.cut(text).into_iter();
        spans.filter(|span| sort_of(&text[span.clone()]) == Sort::Space).collect()
    };
    let long = runs(text).into_iter().filter(|span| span.len() > 1);
    let one = |span: Span| {
        let put = if text[span.clone()].contains(&b'\n') { b"\n" } else { b" " };
        Change { spans: vec![span], put: put.to_vec() }
    };
    let text = make(text, &long.map(one).collect::<Vec<_>>(), Search::expecting(1.0), oracle)?;
    // Between two words there has to be something; beside a sign there need not be.
    let is_word = |at: Option<usize>| {
        let byte = at.and_then(|at| text.get(at));
        byte.is_some_and(|byte| matches!(sort_of(&[*byte]), Sort::Word | Sort::Number))
    };
    let beside_sign =
        |span: &Span| !(is_word(span.start.checked_sub(1)) && is_word(Some(span.end)));
    let gone: Vec<Span> = runs(&text).into_iter().filter(beside_sign).collect();
    leave_out(&text, &gone, Search::expecting(1.0), oracle)
}

/// Each word, number and string, with white space on its line that is then not needed either.
pub fn words(text: &[u8]) -> Vec<Span> {
    let tokens = Unit::Token.cut(text);
    let sort = |at: usize| tokens.get(at).map(|span| sort_of(&text[span.clone()]));
    let is_space =
        |at: usize| sort(at) == Some(Sort::Space) && !text[tokens[at].clone()].contains(&b'\n');
    let mut words = Vec::new();
    // No space goes with two words: those before this one are taken.
    let mut free = 0;
    for (at, span) in tokens.iter().enumerate() {
        if !matches!(sort(at), Some(Sort::Word | Sort::Number | Sort::String)) {
            continue;
        }
        let mut span = span.clone();
        if at > free && is_space(at - 1) {
            span.start = tokens[at - 1].start;
        } else if is_space(at + 1) {
            span.end = tokens[at + 1].end;
            free = at + 2;
        }
        words.push(span);
    }
    words
}
