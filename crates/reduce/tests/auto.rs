//! What `auto` leaves, against brute force.

mod support;

use std::time::{Duration, Instant};
use support::{Brackets, Chance, by_chance, cases, fails, is_balanced, wants};
use why_reduce::auto::{Reader, auto};
use why_reduce::oracle::Function;
use why_reduce::trees::{Draft, Edit, Put};
use why_reduce::units::Unit;
use why_tree::{Spacing, Tree};

#[test]
fn auto_leaves_no_byte_that_is_not_needed() {
    for (text, letters) in cases(300) {
        let mut oracle = Function::new(|text: &[u8]| fails(wants(&letters, text)));
        let left = auto(&text, &Brackets, &mut oracle).unwrap();
        assert_eq!(left, letters, "{text:?}");
    }
}

#[test]
fn auto_takes_any_bytes() {
    let texts: [&[u8]; 5] = [b"", b"x", b"\0\0\0", b"\xff\xfe(\xc3", b"\n"];
    for text in texts {
        // Nothing is needed.
        let mut oracle = Function::new(|_: &[u8]| fails(true));
        assert_eq!(auto(text, &Brackets, &mut oracle).unwrap(), b"");
        // All is needed.
        let mut oracle = Function::new(|candidate: &[u8]| fails(candidate == text));
        assert_eq!(auto(text, &Brackets, &mut oracle).unwrap(), text);
    }
}

#[test]
fn deep_nesting_takes_seconds() {
    let depth = 100_000;
    let mut text = vec![b'('; depth];
    text.push(b'x');
    text.resize(2 * depth + 1, b')');
    let start = Instant::now();
    let mut oracle = Function::new(|text: &[u8]| fails(text.contains(&b'x') && is_balanced(text)));
    let left = auto(&text, &Brackets, &mut oracle).unwrap();
    assert_eq!(left, b"x");
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

/// Words and brackets: a word may become `x`, and words are kept apart by a space.
struct Words;

impl Reader for Words {
    fn tree(&self, text: &[u8]) -> Tree {
        let mut tree = Tree::rooted("text", 0..text.len(), Vec::new());
        tree.set_spacing(Spacing::usual());
        let word = tree.kind("word");
        for (index, span) in Unit::Token.cut(text).into_iter().enumerate() {
            let minimal = if index % 2 == 0 { b"x".to_vec() } else { Vec::new() };
            tree.add(Tree::ROOT, word, span, minimal);
        }
        tree
    }

    fn brackets(&self, text: &[u8]) -> Tree {
        Brackets.brackets(text)
    }
}

/// Every shorter text that lacks one node, one token or one byte.
fn without_one(text: &[u8], reader: &dyn Reader) -> Vec<Vec<u8>> {
    let mut others = Vec::new();
    for tree in [reader.tree(text), reader.brackets(text)] {
        let draft = Draft::new(&tree, text);
        for node in tree.ids() {
            let edit = Edit { node, put: Put::Minimal };
            others.push(draft.with(&[vec![edit]], &[false]).render());
        }
    }
    for unit in [Unit::Token, Unit::Byte] {
        for span in unit.cut(text) {
            others.push([&text[..span.start], &text[span.end..]].concat());
        }
    }
    others.retain(|other| other.len() < text.len());
    others
}

#[test]
fn nothing_can_be_left_out_alone_whatever_the_test() {
    let mut changed = 0;
    for seed in 0..400 {
        let mut chance = Chance(seed);
        let length = chance.below(50);
        let mut original = chance.brackets(length);
        for byte in &mut original {
            if chance.below(6) == 0 {
                *byte = b" \n,;\"0\xff\0"[chance.below(8)];
            }
        }
        let rarely = 2 + chance.below(30);
        let test = |text: &[u8]| text == original || by_chance(text, seed, rarely);
        for reader in [&Words as &dyn Reader, &Brackets] {
            let mut last: Option<Vec<u8>> = None;
            let mut oracle = Function::new(|text: &[u8]| {
                // What fails is the text that is gone on with, so it only gets shorter.
                assert!(last.as_ref().is_none_or(|last| text.len() < last.len()));
                if test(text) {
                    last = Some(text.to_vec());
                }
                fails(test(text))
            });
            let left = auto(&original, reader, &mut oracle).unwrap();
            assert!(last.is_none_or(|last| last == left), "the last one that failed is left");
            assert!(test(&left));
            for other in without_one(&left, reader) {
                assert!(!test(&other), "seed {seed}: {left:?} can be {other:?}");
            }
            changed += usize::from(left != original);
        }
    }
    assert!(changed > 400, "{changed}");
}

#[test]
fn columns_of_a_table_go_together() {
    let text = b"f(a,b,c,d);g(1,2,3,4)";
    let length = |text: &[u8], name: u8| {
        let at = text.iter().position(|&byte| byte == name)?;
        let rest = text.get(at + 1..)?.strip_prefix(b"(")?;
        let end = rest.iter().position(|&byte| byte == b')')?;
        let whole = rest[..end].split(|&byte| byte == b',').all(|cell| cell.len() == 1);
        whole.then(|| rest[..end].len())
    };
    let both_alike = |text: &[u8]| {
        let (f, g) = (length(text, b'f'), length(text, b'g'));
        f.is_some() && f == g && text.contains(&b'3')
    };
    let mut oracle = Function::new(|text: &[u8]| fails(both_alike(text)));
    let left = auto(text, &Lists, &mut oracle).unwrap();
    assert_eq!(String::from_utf8_lossy(&left), "f(c)g(3)");
}

/// Brackets that hold lists.
struct Lists;

impl Reader for Lists {
    fn tree(&self, text: &[u8]) -> Tree {
        Words.tree(text)
    }

    fn brackets(&self, text: &[u8]) -> Tree {
        why_syntax::brackets::tree(text)
    }
}
