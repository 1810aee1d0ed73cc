//! Tree algorithms over trees of brackets, against brute force.

mod support;

use support::{Chance, brackets, by_chance, cases, fails, is_balanced, wants};
use why_reduce::oracle::Function;
use why_reduce::shrinking::Shrinking;
use why_reduce::trees::{
    Draft, Edit, Put, Search, Variant, columns, hdd, hdd_plus, hdd_star, hddr, hoist, replace,
    replace_phrases,
};
use why_tree::{NodeId, Tree};

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
fn hdd_star_and_plus_do_so_whatever_the_test() {
    let mut changed = 0;
    for seed in 0..300 {
        let mut chance = Chance(seed);
        let length = 1 + chance.below(40);
        let text = chance.brackets(length);
        let tree = brackets(&text);
        let test = |candidate: &[u8]| candidate == text || by_chance(candidate, seed, 4);
        for star in [true, false] {
            let mut draft = Draft::new(&tree, &text);
            let mut oracle = Function::new(|text: &[u8]| fails(test(text)));
            let oracle = &mut Shrinking::new(&mut oracle, text.len());
            if star {
                hdd_star(&mut draft, Variant::All, Search::DDMIN, oracle).unwrap();
            } else {
                hdd_plus(&mut draft, Variant::All, Search::DDMIN, oracle).unwrap();
            }
            let left = draft.render();
            assert!(test(&left));
            for node in draft.nodes() {
                let other = without(&draft, node);
                assert!(other.len() >= left.len() || !test(&other), "seed {seed}");
            }
            changed += usize::from(left != text);
        }
    }
    assert!(changed > 300, "{changed}");
}

#[test]
fn a_node_is_replaced_only_by_what_fits_its_place() {
    // Words fit where words stand; a number fits there as well, but not the other way round.
    let text = b"long word 1 22 333";
    let mut tree = Tree::new("text", text);
    let (word, number) = (tree.kind("word"), tree.kind("number"));
    tree.widen(number, word);
    for (index, span) in [0..4, 5..9, 10..11, 12..14, 15..18].into_iter().enumerate() {
        let kind = if index < 2 { word } else { number };
        let own = text[span.clone()].to_vec();
        tree.add(Tree::ROOT, kind, span, own);
    }
    let fixed = tree.kind("nothing else");
    tree.node_mut(NodeId(2)).place = fixed;
    let mut draft = Draft::new(&tree, text);
    replace(&mut draft, Search::EACH, &mut Function::new(|_: &[u8]| fails(true))).unwrap();
    assert_eq!(String::from_utf8_lossy(&draft.render()), "1 word 1 1 1");
}

#[test]
fn phrases_are_replaced_only_by_what_was_not_tried() {
    // A leaf, one with a minimal text as short as any, one with a longer one, one without.
    let text = b"f aaaa bbbb cccc dddd";
    let mut tree = Tree::new("text", text);
    let phrase = tree.kind("phrase");
    tree.add(Tree::ROOT, phrase, 0..1, b"f".to_vec());
    let leaf = tree.kind("leaf");
    for (start, minimal) in [(2, &b""[..]), (7, b"m"), (12, b"mm"), (17, b"")] {
        let node = tree.add(Tree::ROOT, phrase, start..start + 4, minimal.to_vec());
        if start > 2 {
            let own = text[start..start + 4].to_vec();
            tree.add(node, leaf, start..start + 4, own);
        }
    }
    let mut draft = Draft::new(&tree, text);
    replace_phrases(&mut draft, Search::ONCE, &mut Function::new(|_: &[u8]| fails(true))).unwrap();
    assert_eq!(String::from_utf8_lossy(&draft.render()), "f aaaa bbbb f f");
}

#[test]
fn a_rough_pass_gives_leaves_their_smallest_texts_together() {
    let text = b"long1 long2 long3";
    let mut tree = Tree::new("text", text);
    let word = tree.kind("word");
    for start in [0, 6, 12] {
        tree.add(Tree::ROOT, word, start..start + 5, b"x".to_vec());
    }
    for (needed, tests, left) in [(&b""[..], 1, &b"x x x"[..]), (b"long2", 1, text)] {
        let mut draft = Draft::new(&tree, text);
        let holds =
            |text: &[u8]| needed.is_empty() || text.windows(needed.len()).any(|at| at == needed);
        let mut oracle = Function::new(|text: &[u8]| fails(holds(text)));
        hdd(&mut draft, Variant::Rough { enough: 0 }, Search::ONCE, &mut oracle).unwrap();
        assert_eq!((draft.render().as_slice(), oracle.tests), (left, tests));
    }
}

#[test]
fn a_rough_pass_ends_with_the_level_after_which_little_is_left() {
    let text = b"(a(b)c)(d(e)f)";
    let tree = brackets(text);
    for (enough, left) in [(0, &b"(c)"[..]), (7, b"(a(b)c)"), (14, b"(c)")] {
        let mut draft = Draft::new(&tree, text);
        let mut oracle = Function::new(|text: &[u8]| fails(wants(b"c", text)));
        hdd(&mut draft, Variant::Rough { enough }, Search::ONCE, &mut oracle).unwrap();
        let rendered = draft.render();
        assert_eq!(String::from_utf8_lossy(&rendered), String::from_utf8_lossy(left), "{enough}");
    }
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
        let rough = Variant::Rough { enough: text.len() / 2 };
        for variant in [Variant::All, Variant::Coarse, Variant::LeafAligned, rough] {
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
fn lists_of_another_kind_are_not_of_a_column() {
    // The whole text is a list of as many parts as either group.
    let text = b"(ab)(cd)";
    let tree = brackets(text);
    let mut draft = Draft::new(&tree, text);
    let wanted: [&[u8]; 3] = [b"(ab)(cd)", b"(a)(c)", b"()()"];
    let mut oracle = Function::new(|text: &[u8]| fails(wanted.contains(&text)));
    assert_eq!(columns(&mut draft, &mut oracle), Ok(2));
    assert_eq!(draft.render(), b"()()");
}
