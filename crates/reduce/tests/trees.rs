//! Tree algorithms over trees of brackets, against brute force.

mod support;

use support::{brackets, cases, fails, is_balanced, wants};
use why_reduce::oracle::Function;
use why_reduce::trees::{Draft, Edit, Put, Search, Variant, hdd, hdd_plus, hdd_star, hddr, hoist};
use why_tree::NodeId;

/// The text without one node.
fn without(draft: &Draft, node: NodeId) -> Vec<u8> {
    draft.with(&[vec![Edit { node, put: Put::Minimal }]], &[false]).render()
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
