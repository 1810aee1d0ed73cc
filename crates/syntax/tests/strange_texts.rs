//! Texts that nobody would write, for every builder of trees: nothing panics, overflows the
//! stack, or takes long.

mod support;

use std::time::Duration;
use support::{Random, check, used, vary};
use why_syntax::languages::{LANGUAGES, Language};
use why_syntax::{brackets, lines, tokens};
use why_tree::{Shown, Tree};

/// All trees of a text, each with the name of its builder.
fn trees(text: &[u8]) -> Vec<(&'static str, Tree)> {
    let mut trees = vec![
        ("lines", lines::tree(text)),
        ("tokens", tokens::tree(text)),
        ("brackets", brackets::tree(text)),
    ];
    for language in LANGUAGES {
        trees.push((language.name, why_syntax::tree(Some(language), text)));
    }
    trees
}

fn check_all(text: &[u8]) {
    let mut random = Random(text.len() as u64 + 1);
    for (name, tree) in trees(text) {
        let begun = used();
        check(&tree, text);
        vary(&tree, text, &mut random);
        tree.render(text, |_| Shown::Minimal);
        assert!(used() - begun < Duration::from_secs(10), "{name}: {:?}", used() - begun);
    }
}

#[test]
fn empty_and_tiny_texts() {
    check_all(b"");
    for byte in 0..=255 {
        check_all(&[byte]);
    }
    for text in [" ", "\n", "\n\n", "\0\0", "<", "<a", "<a>", "</a>", "<!--", "\"", "\"\\", "/*"] {
        check_all(text.as_bytes());
    }
}

#[test]
fn random_bytes() {
    let mut random = Random(7);
    for _ in 0..40 {
        let length = random.below(300);
        let bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        check_all(&bytes);
    }
}

#[test]
fn random_words_of_languages() {
    let words = [
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "<a>",
        "</a>",
        "<b x=\"1\">",
        "\"s\"",
        "'",
        "\"",
        ",",
        ";",
        ":",
        "=",
        "+",
        "if",
        "else",
        "def f():",
        "x",
        "1",
        "\n",
        "  ",
        "#",
        "//",
        "/*",
        "*/",
        "-",
        "- a",
        "end",
        "select",
        "<?php",
        "\u{fffd}",
        "`",
        "\\",
        "$",
        "@",
        "<!--",
        "-->",
        "&",
    ];
    let mut random = Random(8);
    for _ in 0..60 {
        let count = random.below(60);
        let text: String = (0..count).map(|_| *random.pick(&words)).collect();
        check_all(text.as_bytes());
    }
}

#[test]
fn invalid_utf8_and_nul_in_real_text() {
    let c = include_bytes!("samples/bug.c");
    for garbage in [&b"\xff\xfe"[..], b"\0", b"\xc3", b"\xed\xa0\x80"] {
        for at in [0, 40, 200, c.len()] {
            let mut text = c[..at].to_vec();
            text.extend_from_slice(garbage);
            text.extend_from_slice(&c[at..]);
            check_all(&text);
        }
    }
}

const N: usize = 100_000;

/// 100,000 levels of whatever can be nested, closed, half closed and not closed.
#[test]
fn deep_nesting() {
    let nested = [
        ("(", "1", ")"),
        ("{\"a\":[", "1", "]}"),
        ("<a>", "1", "</a>"),
        ("<a x='1'>", "", ""),
        ("([", "", ")]"),
        ("\"", "", ""),
        ("`", "", ""),
        ("/*", "", ""),
        ("<!--", "", ""),
    ];
    for (open, middle, close) in nested {
        for closes in [N, N / 2, 0] {
            let text = open.repeat(N) + middle + &close.repeat(closes);
            let text = text.as_bytes();
            let begun = used();
            for tree in [lines::tree(text), tokens::tree(text), brackets::tree(text)] {
                check(&tree, text);
            }
            assert!(used() - begun < Duration::from_secs(20), "{open} {:?}", used() - begun);
        }
    }
    let deep = brackets::tree((String::from("<a>").repeat(N) + &"</a>".repeat(N)).as_bytes());
    assert_eq!(deep.len(), 2 * N);
}

/// The same in the form of each language; the tree is as deep, by its grammar or by brackets.
#[test]
fn deep_nesting_in_languages() {
    let nested = [
        ("c", "int x = ", "(", "1", ")", ";"),
        ("cpp", "int f() ", "{", "x;", "}", ""),
        ("rust", "const X: u8 = ", "(", "1", ")", ";"),
        ("java", "class A { int x = ", "(", "1", ")", "; }"),
        ("javascript", "", "[", "1", "]", ";"),
        ("typescript", "", "(", "1", ")", ""),
        ("python", "", "(", "1", ")", ""),
        ("go", "package p\nvar x = ", "(", "1", ")", ""),
        ("json", "", "{\"a\":", "1", "}", ""),
        ("xml", "", "<a>", "1", "</a>", ""),
        ("html", "", "<div>", "1", "</div>", ""),
        ("css", "", "a{", "b:c", "}", ""),
        ("yaml", "", "[", "1", "]", ""),
        ("toml", "a = ", "[", "1", "]", ""),
        ("sql", "select ", "(", "1", ")", ";"),
        ("shell", "", "(", "a", ")", ""),
        ("ruby", "", "[", "1", "]", ""),
        ("php", "<?php $x = ", "(", "1", ")", ";"),
        ("lua", "x = ", "{", "1", "}", ""),
        ("markdown", "", "> ", "a", "", ""),
    ];
    for (name, before, open, middle, close, behind) in nested {
        for closes in [N, N / 2] {
            let text =
                before.to_owned() + &open.repeat(N) + middle + &close.repeat(closes) + behind;
            let begun = used();
            let tree = why_syntax::tree(Language::by_name(name), text.as_bytes());
            check(&tree, text.as_bytes());
            assert!(used() - begun < Duration::from_secs(15), "{name} {:?}", used() - begun);
            let mut deepest = 0;
            let mut depth = vec![0; tree.len()];
            for id in tree.ids().skip(1) {
                let parent = tree.node(id).parent.unwrap();
                depth[id.0 as usize] = depth[parent.0 as usize] + 1;
                deepest = deepest.max(depth[id.0 as usize]);
            }
            let expected = if name == "markdown" { 100 } else { closes };
            assert!(deepest >= expected, "{name}: {deepest} levels of {closes}");
        }
    }
}

/// A log of 50 MB, by lines.
#[test]
fn a_large_log() {
    let mut log = Vec::with_capacity(51_000_000);
    let mut line = 0;
    while log.len() < 50_000_000 {
        line += 1;
        let text =
            format!("2024-01-01T00:00:{line:08} INFO some.module: request {line} took 12 ms\n");
        log.extend_from_slice(text.as_bytes());
    }
    let begun = used();
    let tree = lines::tree(&log);
    assert_eq!(tree.len(), line + 1);
    let half = tree.render(&log, |id| if id.0 % 2 == 1 { Shown::Minimal } else { Shown::Kept });
    assert!(half.len() * 2 <= log.len() + 100 && half.len() * 2 + 200 >= log.len());
    assert!(used() - begun < Duration::from_secs(20), "{:?}", used() - begun);
}
