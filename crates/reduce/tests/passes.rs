//! Passes of `auto` that are no algorithms of their own: blocks of lines, less indentation,
//! words with the space beside them.

mod support;

use std::cell::Cell;
use std::collections::BTreeMap;
use support::{Chance, fails};
use why_reduce::auto::{Reader, auto};
use why_reduce::lexical::{dedent, words};
use why_reduce::oracle::Function;
use why_reduce::units::{Sort, Span, Unit, sort_of};
use why_reduce::{Oracle, Outcome, Verdict};
use why_tree::Tree;

/// A test that counts how often it is asked in each phase.
struct InPhases<F> {
    test: F,
    phase: String,
    tests: BTreeMap<String, usize>,
}

impl<F: FnMut(&str, &[u8]) -> bool> InPhases<F> {
    fn new(test: F) -> InPhases<F> {
        InPhases { test, phase: String::new(), tests: BTreeMap::new() }
    }
}

impl<F: FnMut(&str, &[u8]) -> bool> Oracle for InPhases<F> {
    fn first(&mut self, candidates: &mut dyn Iterator<Item = Vec<u8>>) -> Outcome<Option<usize>> {
        for (index, candidate) in candidates.enumerate() {
            if self.verdict(candidate)? == Verdict::Fails {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    fn verdict(&mut self, candidate: Vec<u8>) -> Outcome<Verdict> {
        *self.tests.entry(self.phase.clone()).or_default() += 1;
        Ok(fails((self.test)(&self.phase, &candidate)))
    }

    fn phase(&mut self, name: &str) {
        name.clone_into(&mut self.phase);
    }
}

/// Remembers the largest text that a tree was made of; its trees have no parts.
#[derive(Default)]
struct Measured(Cell<usize>);

impl Reader for Measured {
    fn tree(&self, text: &[u8]) -> Tree {
        self.0.set(self.0.get().max(text.len()));
        Tree::new("text", text)
    }

    fn brackets(&self, text: &[u8]) -> Tree {
        self.tree(text)
    }
}

/// Lines of a log, one of which is asked for by its number.
fn log(lines: usize) -> Vec<u8> {
    (0..lines).flat_map(|line| format!("{line:07} something happened\n").into_bytes()).collect()
}

fn holds(text: &[u8], line: usize) -> bool {
    str::from_utf8(text).unwrap().contains(&format!("{line:07}"))
}

#[test]
fn of_a_large_text_no_tree_is_made() {
    let text = log(200_000);
    let wanted = [3, 123_456, 199_999];
    let reader = Measured::default();
    let mut oracle = InPhases::new(|phase: &str, left: &[u8]| {
        if phase == "blocks" {
            let whole = Unit::Line.pieces(left).all(|line| line.len() == text.len() / 200_000);
            assert!(whole, "a line is cut");
        }
        wanted.iter().all(|line| holds(left, *line))
    });
    let left = auto(&text, &reader, &mut oracle).unwrap();
    let numbers: Vec<u8> =
        wanted.iter().flat_map(|line| format!("{line:07}").into_bytes()).collect();
    assert_eq!(String::from_utf8(left), String::from_utf8(numbers));
    // Of 512 blocks, three are needed, and each is found in some nine halvings.
    assert!(reader.0.get() <= text.len() / 100, "{}", reader.0.get());
    assert!(oracle.tests["blocks"] <= 60, "{:?}", oracle.tests);
}

#[test]
fn blocks_that_are_all_needed_stay() {
    // Many lines, and one that is a block by itself.
    for text in [log(200_000), vec![b'x'; 5 << 20]] {
        let blocks = Cell::new(0);
        let mut oracle = InPhases::new(|phase: &str, left: &[u8]| {
            blocks.set(blocks.get() + usize::from(phase == "blocks"));
            assert!(phase == "blocks" || left.len() < text.len());
            // Ends the search behind the blocks, which is not what is tested.
            phase != "blocks"
        });
        assert_eq!(auto(&text, &Measured::default(), &mut oracle).unwrap(), b"");
        assert!((1..=60).contains(&blocks.get()), "{}", blocks.get());
    }
}

/// For each line that is not blank: what is in it, and the last line above that is indented
/// less.
fn structure(text: &[u8]) -> Vec<(&[u8], Option<usize>)> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let lines: Vec<&[u8]> = lines.filter(|line| !line.trim_ascii().is_empty()).collect();
    let indentation = |line: &[u8]| line.len() - line.trim_ascii_start().len();
    let above =
        |at: usize| (0..at).rev().find(|above| indentation(lines[*above]) < indentation(lines[at]));
    (0..lines.len()).map(|at| (lines[at].trim_ascii_start(), above(at))).collect()
}

/// Every text of the same lines, indented by up to `deepest`.
fn indented(lines: &[&[u8]], deepest: usize) -> Vec<Vec<u8>> {
    let mut texts = vec![Vec::new()];
    for line in lines {
        let longer = |text: &Vec<u8>| {
            let text = text.clone();
            (0..=deepest).map(move |depth| [&text[..], &vec![b' '; depth], line].concat())
        };
        texts = texts.iter().flat_map(longer).collect();
    }
    texts
}

#[test]
fn no_text_of_the_same_structure_is_indented_less() {
    let mut changed = 0;
    for seed in 0..300 {
        let mut chance = Chance(seed);
        let mut text = Vec::new();
        for line in 0..1 + chance.below(5) {
            text.resize(
                text.len() + chance.below(9),
                if chance.below(8) == 0 { b'\t' } else { b' ' },
            );
            if chance.below(6) > 0 {
                text.push(b'a' + line as u8);
            }
            text.push(b'\n');
        }
        let mut tests = Vec::new();
        let mut oracle = Function::new(|left: &[u8]| {
            tests.push(left.to_vec());
            fails(true)
        });
        let left = dedent(&text, &mut oracle).unwrap();
        assert_eq!(structure(&left), structure(&text), "{text:?} became {left:?}");
        let lines: Vec<&[u8]> = structure(&text).into_iter().map(|(line, _)| line).collect();
        let same = indented(&lines, lines.len()).into_iter();
        let shortest = same.filter(|other| structure(other) == structure(&text)).map(|it| it.len());
        assert_eq!(Some(left.len()), shortest.min(), "{text:?} became {left:?}");
        // One test at most, of what is then left.
        assert!(tests.is_empty() && left == text || tests == [left.clone()]);
        changed += usize::from(left != text);

        let mut oracle = Function::new(|_: &[u8]| fails(false));
        assert_eq!(dedent(&text, &mut oracle).unwrap(), text);
    }
    assert!(changed > 200, "{changed}");
}

fn is_word(token: &[u8]) -> bool {
    matches!(sort_of(token), Sort::Word | Sort::Number | Sort::String)
}

/// Words, numbers, strings and signs, with space between those that would else be one.
fn some_tokens(chance: &mut Chance) -> Vec<u8> {
    let mut text: Vec<u8> = Vec::new();
    let mut after_word = false;
    for _ in 0..1 + chance.below(9) {
        let token: &[u8] =
            [&b"ab"[..], b"x1", b"42", b"\"s t\"", b"'c'", b"(", b";", b"="][chance.below(8)];
        let space: &[u8] = [&b" "[..], b"  ", b"\n", b"\t", b" \n ", b""][chance.below(6)];
        text.extend_from_slice(if after_word && is_word(token) && space.is_empty() {
            b" "
        } else {
            space
        });
        text.extend_from_slice(token);
        after_word = is_word(token);
    }
    text.extend_from_slice([&b""[..], b" ", b"\n"][chance.below(3)]);
    text
}

fn tokens(text: &[u8]) -> Vec<Vec<u8>> {
    let spans = Unit::Token.pieces(text).map(|span| text[span].to_vec());
    spans.filter(|token| sort_of(token) != Sort::Space).collect()
}

#[test]
fn words_go_with_space_and_with_nothing_else() {
    for seed in 0..400 {
        let text = some_tokens(&mut Chance(seed));
        let words = words(&text);
        let all = tokens(&text);
        assert_eq!(words.len(), all.iter().filter(|token| is_word(token)).count());
        for out in 0_u32..1 << words.len() {
            let is_out = |index: usize| out >> index & 1 == 1;
            // What is left are the other tokens, each still by itself.
            let mut number = 0;
            let mut others = all.clone();
            others.retain(|token| {
                number += usize::from(is_word(token));
                !(is_word(token) && is_out(number - 1))
            });
            let mut left = text.clone();
            for (index, span) in words.iter().enumerate().rev().filter(|(index, _)| is_out(*index))
            {
                left.drain(span.clone());
                assert!(index + 1 == words.len() || span.end <= words[index + 1].start);
            }
            assert_eq!(tokens(&left), others, "{}", String::from_utf8_lossy(&text));
            let line_ends = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(line_ends(&left), line_ends(&text));
        }
        // A word goes alone only if the space beside it goes with another word.
        let pieces = Unit::Token.cut(&text);
        let with_a_word = |space: &Span| {
            words.iter().any(|word| word.start <= space.start && space.end <= word.end)
        };
        for (at, piece) in pieces.iter().enumerate().filter(|(_, piece)| words.contains(piece)) {
            for beside in [at.checked_sub(1), Some(at + 1)] {
                let Some(beside) = beside.and_then(|beside| pieces.get(beside)) else { continue };
                let ends_line = text[beside.clone()].contains(&b'\n');
                if sort_of(&text[beside.clone()]) == Sort::Space && !ends_line {
                    assert!(with_a_word(beside), "{piece:?} of {}", String::from_utf8_lossy(&text));
                }
            }
        }
    }
}
