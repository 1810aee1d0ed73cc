//! Tree algorithms over trees of brackets, against brute force.

mod support;

use std::time::{Duration, Instant};
use support::{Brackets, Chance, brackets, fails, is_balanced};
use why_reduce::auto::auto;
use why_reduce::oracle::Function;
use why_reduce::trees::{Draft, Edit, Put, Search, Variant, hdd, hdd_plus, hdd_star, hddr, hoist};
use why_tree::NodeId;

/// The text without one node.
fn without(draft: &Draft, node: NodeId) -> Vec<u8> {
    draft.with(&[vec![Edit { node, put: Put::Minimal }]], &[false]).render()
}

/// A test that wants some letters in this order, and brackets that match.
fn wants(letters: &[u8], text: &[u8]) -> bool {
    let mut rest = text.iter();
    is_balanced(text) && letters.iter().all(|letter| rest.any(|there| there == letter))
}

fn cases(number: u64) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    (0..number).filter_map(|seed| {
        let mut chance = Chance(seed);
        let length = 1 + chance.below(60);
        let text = chance.brackets(length);
        let letters: Vec<u8> = (0..chance.below(4)).map(|_| b'a' + chance.below(6) as u8).collect();
        wants(&letters, &text).then_some((text, letters))
    })
}

#[test]
fn hdd_star_and_plus_leave_no_node_that_is_not_needed() {
    let mut tried = 0;
    for (text, letters) in cases(300) {
        let tree = brackets(&text);
        for star in [true, false] {
            let mut draft = Draft::new(&tree, &text);
            let mut oracle = Function::new(|text: &[u8]| fails(wants(&letters, text)));
            if star {
                hdd_star(&mut draft, Variant::All, Search::DDMIN, &mut oracle).unwrap();
            } else {
                hdd_plus(&mut draft, Variant::All, Search::DDMIN, &mut oracle).unwrap();
            }
            assert!(wants(&letters, &draft.render()));
            for node in draft.nodes().into_iter().skip(1) {
                assert!(!wants(&letters, &without(&draft, node)), "{text:?} {letters:?}");
            }
            tried += 1;
        }
    }
    assert!(tried > 100);
}

#[test]
fn every_candidate_of_a_tree_is_balanced() {
    for (text, letters) in cases(200) {
        let tree = brackets(&text);
        let mut draft = Draft::new(&tree, &text);
        let mut oracle = Function::new(|text: &[u8]| {
            assert!(is_balanced(text));
            fails(wants(&letters, text))
        });
        for variant in [Variant::All, Variant::Coarse, Variant::LeafAligned] {
            hdd(&mut draft.clone(), variant, Search::DDMIN, &mut oracle).unwrap();
        }
        hddr(&mut draft.clone(), Search::expecting(1.0), &mut oracle).unwrap();
        hoist(&mut draft, Search::expecting(1.0), &mut oracle).unwrap();
        assert!(wants(&letters, &draft.render()));
    }
}

#[test]
fn hoisting_takes_what_is_needed_out_of_what_it_is_nested_in() {
    let text = b"((((x))))y";
    let tree = brackets(text);
    let mut draft = Draft::new(&tree, text);
    let mut oracle =
        Function::new(|text: &[u8]| fails(text.windows(3).any(|window| window == b"(x)")));
    hoist(&mut draft, Search::DDMIN, &mut oracle).unwrap();
    assert_eq!(draft.render(), b"(x)y");
}

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
