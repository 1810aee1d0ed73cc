//! What remains of a text when parts of it are replaced, against what a reader would write.

use why_tree::{NodeId, Role, Shown, Spacing, Tree};

/// `(a, b, c)` and the like: words are parts, commas separators, all else the list's own.
fn list(text: &str) -> Tree {
    let mut tree = Tree::rooted("list", 0..text.len(), b"[]".to_vec());
    let (word, comma) = (tree.kind("word"), tree.kind("comma"));
    for (at, sign) in text.char_indices() {
        if sign.is_alphabetic() {
            tree.add(Tree::ROOT, word, at..at + 1, Vec::new());
        } else if sign == ',' {
            let id = tree.add(Tree::ROOT, comma, at..at + 1, b",".to_vec());
            tree.node_mut(id).role = Role::Separator;
        }
    }
    tree
}

/// The text without the words that are named.
fn without(text: &str, tree: &Tree, words: &str) -> String {
    let shown = |id: NodeId| {
        let span = tree.node(id).span.clone();
        let named = span.len() == 1 && words.contains(&text[span]);
        if named { Shown::Minimal } else { Shown::Kept }
    };
    String::from_utf8(tree.render(text.as_bytes(), shown)).unwrap()
}

#[test]
fn a_part_takes_its_separator_along() {
    let check = |text: &str, words: &str, expected: &str| {
        assert_eq!(without(text, &list(text), words), expected, "{text} without {words}");
    };
    check("(a,b,c)", "", "(a,b,c)");
    check("(a,b,c)", "a", "(b,c)");
    check("(a,b,c)", "b", "(a,c)");
    check("(a,b,c)", "c", "(a,b)");
    check("(a,b,c)", "bc", "(a)");
    check("(a,b,c)", "ac", "(b)");
    check("(a,b,c)", "abc", "()");
    check("(a,b,c,)", "c", "(a,b,)");
    check("(a,b,c,)", "abc", "()");
    check("(,a,b)", "b", "(,a)");
    check("(,a,b)", "a", "(,b)");
}

#[test]
fn white_space_goes_where_there_is_enough() {
    let check = |text: &str, words: &str, expected: &str| {
        assert_eq!(without(text, &list(text), words), expected, "{text} without {words}");
    };
    check("{ a b c }", "b", "{ a c }");
    check("{ a b c }", "ab", "{ c }");
    check("a b c", "a", "b c");
    check("a + b c", "b", "a + c");
    check("{ a\nb\nc }", "b", "{ a\nc }");
    check("{ a\nb\nc }", "a", "{ \nb\nc }");
    check("a\n b c", "b", "a\n c");
    check("(a, b, c)", "c", "(a, b)");
    check("(a, b, c)", "bc", "(a)");
    check("(a, b, c)", "ab", "( c)");
}

#[test]
fn a_list_that_needs_a_part_becomes_its_minimal_text() {
    let text = "(a,b)";
    let mut tree = list(text);
    tree.node_mut(Tree::ROOT).nonempty = true;
    assert_eq!(without(text, &tree, "a"), "(b)");
    assert_eq!(without(text, &tree, "ab"), "[]");
}

#[test]
fn texts_that_become_neighbours_stay_apart() {
    let text = "a(b)c";
    let mut tree = Tree::new("text", text.as_bytes());
    let kind = tree.kind("part");
    for span in [0..1, 1..4, 4..5] {
        tree.add(Tree::ROOT, kind, span, Vec::new());
    }
    let render = |tree: &Tree, middle: Shown| {
        let shown = |id| if id == NodeId(2) { middle } else { Shown::Kept };
        String::from_utf8(tree.render(text.as_bytes(), shown)).unwrap()
    };
    assert_eq!(render(&tree, Shown::Minimal), "ac");
    tree.set_spacing(Spacing::usual());
    assert_eq!(render(&tree, Shown::Minimal), "a c");
    assert_eq!(render(&tree, Shown::Text(b"+")), "a+c");
    assert_eq!(render(&tree, Shown::Text(b"d")), "a d c");
    assert_eq!(render(&tree, Shown::Part(NodeId(3))), "a c c");
    assert_eq!(render(&tree, Shown::Kept), text);
}

#[test]
fn kinds_fit_where_wider_ones_are_asked_for() {
    let mut tree = Tree::new("text", b"ab");
    let (number, expression) = (tree.kind("number"), tree.kind("expression"));
    let part = tree.add(Tree::ROOT, number, 0..1, Vec::new());
    let place = tree.add(Tree::ROOT, expression, 1..2, Vec::new());
    assert!(!tree.fits(part, place));
    tree.widen(number, expression);
    assert!(tree.fits(part, place));
    assert!(!tree.fits(place, part));
}
