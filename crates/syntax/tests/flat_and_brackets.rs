//! Trees of texts of no known language.

mod support;

use support::{check, dump, find, without};
use why_syntax::tokens::TokenKind::{Comment, Number, Sign, String as Text, Word};
use why_syntax::{brackets, lines, tokens};

#[test]
fn lines_have_their_ends() {
    let text = b"one\ntwo\r\n\nfour";
    let tree = lines::tree(text);
    check(&tree, text);
    let expected = r#"
lines "one\ntwo\r\n\nfour" ""
  line "one\n" ""
  line "two\r\n" ""
  line "\n" ""
  line "four" ""
"#;
    assert_eq!(dump(&tree, text), expected.trim_start());
}

#[test]
fn tokens_of_many_languages() {
    let check = |text: &str, expected: &[(tokens::TokenKind, &str)]| {
        let found: Vec<_> =
            tokens::tokens(text.as_bytes()).map(|token| (token.kind, &text[token.span])).collect();
        assert_eq!(found, expected, "{text}");
    };
    check(
        "int x1=0x1F;",
        &[(Word, "int"), (Word, "x1"), (Sign, "="), (Number, "0x1F"), (Sign, ";")],
    );
    check(
        "1.5e-3+2..3",
        &[(Number, "1.5e-3"), (Sign, "+"), (Number, "2"), (Sign, ".."), (Number, "3")],
    );
    check("0x1e-2", &[(Number, "0x1e"), (Sign, "-"), (Number, "2")]);
    check(
        r#"f("a\"b", 'c')"#,
        &[(Word, "f"), (Sign, "("), (Text, r#""a\"b""#), (Sign, ","), (Text, "'c'"), (Sign, ")")],
    );
    check(
        "don't\nwon't",
        &[(Word, "don"), (Sign, "'"), (Word, "t"), (Word, "won"), (Sign, "'"), (Word, "t")],
    );
    check(
        "a // b\nc /* d\n */ e",
        &[(Word, "a"), (Comment, "// b"), (Word, "c"), (Comment, "/* d\n */"), (Word, "e")],
    );
    check(
        "# one\nx #y\n-- z\ni--",
        &[
            (Comment, "# one"),
            (Word, "x"),
            (Sign, "#"),
            (Word, "y"),
            (Comment, "-- z"),
            (Word, "i"),
            (Sign, "--"),
        ],
    );
    check("http://x", &[(Word, "http"), (Sign, ":"), (Sign, "/"), (Sign, "/"), (Word, "x")]);
    check(
        "a<<=b->c===d",
        &[
            (Word, "a"),
            (Sign, "<<="),
            (Word, "b"),
            (Sign, "->"),
            (Word, "c"),
            (Sign, "==="),
            (Word, "d"),
        ],
    );
    check("/* never closed", &[(Sign, "/"), (Sign, "*"), (Word, "never"), (Word, "closed")]);
}

#[test]
fn tokens_that_are_left_take_no_space_along() {
    let text = b"int  x = y ;";
    let tree = tokens::tree(text);
    check(&tree, text);
    assert_eq!(without(&tree, text, find(&tree, text, "word", "x")), "int  = y ;");
    assert_eq!(without(&tree, text, find(&tree, text, "sign", "=")), "int  x y ;");
}

#[test]
fn brackets_hold_lists() {
    let text = br#"call [a, f(b; c), "d,e"] end"#;
    let tree = brackets::tree(text);
    check(&tree, text);
    let expected = r#"
text "call [a, f(b; c), \"d,e\"] end" ""
  item "call [a, f(b; c), \"d,e\"] end" ""
    group "[a, f(b; c), \"d,e\"]" ""
      content "a, f(b; c), \"d,e\"" ""
        item "a" ""
        comma between "," ","
        item "f(b; c)" ""
          group "(b; c)" ""
            content "b; c" ""
              item "b;" ""
              item "c" ""
        comma between "," ","
        item "\"d,e\"" ""
          string "\"d,e\"" "\"\""
"#;
    assert_eq!(dump(&tree, text), expected.trim_start());
    let without = |kind, part| without(&tree, text, find(&tree, text, kind, part));
    assert_eq!(without("item", "a"), r#"call [ f(b; c), "d,e"] end"#);
    assert_eq!(without("content", r#"a, f(b; c), "d,e""#), "call [] end");
    assert_eq!(without("item", r#""d,e""#), "call [a, f(b; c)] end");
}

#[test]
fn brackets_without_a_partner_are_text() {
    for text in ["a ) b ( c", "( [ ) ]", "}{", "(((", ")))", "f(a[1)"] {
        check(&brackets::tree(text.as_bytes()), text.as_bytes());
    }
    let text = b"( [ x )";
    let tree = brackets::tree(text);
    assert_eq!(without(&tree, text, find(&tree, text, "group", "( [ x )")), "");
}

#[test]
fn tags_hold_elements() {
    let text = br#"<a x="1" y><b>t</b><br><c/>u<!-- n --></a>"#;
    let tree = brackets::tree(text);
    check(&tree, text);
    let expected = r#"
text "<a x=\"1\" y><b>t</b><br><c/>u<!-- n --></a>" ""
  element "<a x=\"1\" y><b>t</b><br><c/>u<!-- n --></a>" ""
    attribute "x=\"1\"" ""
    attribute "y" ""
    content "<b>t</b><br><c/>u<!-- n -->" ""
      element "<b>t</b>" ""
        content "t" ""
          text "t" ""
      tag "<br>" ""
      tag "<c/>" ""
      text "u" ""
      tag "<!-- n -->" ""
"#;
    assert_eq!(dump(&tree, text), expected.trim_start());
    assert!(tree.fits(find(&tree, text, "content", "t"), find(&tree, text, "element", "<b>t</b>")));
}
