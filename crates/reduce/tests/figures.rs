//! Published figures, ours beside them: of the thesis on hierarchical delta debugging, and of a
//! page that crashes a parser (`cargo test -p why-reduce --test figures -- --nocapture` prints
//! them).

mod support;

use std::collections::HashSet;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::fails;
use tree_sitter::{Node, Parser};
use why_reduce::Oracle;
use why_reduce::lists::{List, ddmin};
use why_reduce::oracle::Function;
use why_reduce::trees::{Draft, Search, Variant, hdd, hdd_star};
use why_reduce::units::{Sort, Unit, sort_of};
use why_syntax::grammar::{Grammar, Recursion};
use why_syntax::languages::Language;

const BUG_C: &[u8] = include_bytes!("../../syntax/tests/samples/bug.c");

/// Two statements of `bug.c` are what an old compiler made wrong code of.
fn is_miscompiled(text: &[u8]) -> bool {
    // It is C, but more than the parser knows.
    let text = String::from_utf8_lossy(text).replace("switch (count%8) do", "do");
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_c::LANGUAGE.into()).unwrap();
    let tree = parser.parse(&text, None).unwrap();
    let root = tree.root_node();
    !root.has_error() && holds(root, "function_definition", text.as_bytes())
}

/// Whether there is a function with a loop with both statements.
fn holds(node: Node, kind: &str, text: &[u8]) -> bool {
    let inside = |kind: &str| {
        let mut cursor = node.walk();
        node.children(&mut cursor).any(|child| holds(child, kind, text))
    };
    match (kind, node.kind() == kind) {
        ("function_definition", true) => inside("for_statement"),
        ("for_statement", true) => {
            let own = &text[node.byte_range()];
            let own: Vec<u8> =
                own.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
            let wanted = b"i=i+j+1;z[i]=z[i]*(z[0]+0);";
            own.windows(wanted.len()).any(|window| window == wanted)
        }
        _ => inside(kind),
    }
}

fn tokens(text: &[u8]) -> usize {
    let pieces = Unit::Token.pieces(text);
    pieces.filter(|span| sort_of(&text[span.clone()]) != Sort::Space).count()
}

/// How many different texts were tested, and what is left.
fn counted(
    test: impl Fn(&[u8]) -> bool,
    reduce: impl FnOnce(&mut Function<&mut dyn FnMut(&[u8]) -> why_reduce::Verdict>) -> Vec<u8>,
) -> (usize, Vec<u8>) {
    let mut seen: HashSet<Vec<u8>> = HashSet::new();
    let mut judge = |text: &[u8]| {
        seen.insert(text.to_vec());
        fails(test(text))
    };
    let left = reduce(&mut Function::new(&mut judge));
    assert!(test(&left));
    (seen.len(), left)
}

fn ddmin_over_bytes(text: &[u8], oracle: &mut dyn Oracle) -> Vec<u8> {
    let render = |kept: &[bool]| {
        let kept = text.iter().zip(kept).filter(|(_, kept)| **kept);
        kept.map(|(byte, _)| *byte).collect::<Vec<u8>>()
    };
    let list = List { weights: vec![1; text.len()], render: &render };
    render(&ddmin(&list, oracle).unwrap())
}

#[test]
fn bug_c_of_figure_4_1() {
    assert!(is_miscompiled(BUG_C));
    let tree = Language::by_name("c").unwrap().tree(BUG_C).unwrap();
    let over_tree = |star: bool| {
        counted(is_miscompiled, |oracle| {
            let mut draft = Draft::new(&tree, BUG_C);
            if star {
                hdd_star(&mut draft, Variant::All, Search::DDMIN, oracle).unwrap();
            } else {
                hdd(&mut draft, Variant::All, Search::DDMIN, oracle).unwrap();
            }
            draft.render()
        })
    };
    let by_bytes = counted(is_miscompiled, |oracle| ddmin_over_bytes(BUG_C, oracle));
    println!("bug.c           tests  tokens   (thesis: tests, tokens)");
    let mut results = Vec::new();
    for (name, (tests, left), theirs) in [
        ("ddmin", by_bytes, "680, 53"),
        ("HDD", over_tree(false), "86, 51"),
        ("HDD*", over_tree(true), "164, 51"),
    ] {
        println!("{name:14} {tests:6} {:7}   ({theirs})", tokens(&left));
        results.push((tests, tokens(&left)));
    }
    let [by_bytes, once, star] = results[..] else { unreachable!("there are three") };
    assert!(once.0 <= 100 && once.1 <= 53, "{once:?}");
    assert!(star.0 <= 164 && star.1 <= 51, "{star:?}");
    assert!(by_bytes.0 >= 5 * once.0, "{by_bytes:?}");
}

/// The parser of the published example, rebuilt: what is printed of it leaves parts out.
fn mini_tidy() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/demo/mini_tidy.c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mini_tidy");
    let built = Command::new("cc").arg("-o").arg(&program).arg(source).status().unwrap();
    assert!(built.success());
    program
}

fn crashes(program: &Path, page: &[u8]) -> bool {
    let mut command = Command::new(program);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(page).unwrap();
    child.wait().unwrap().signal() == Some(libc::SIGSEGV)
}

#[test]
fn mini_tidy_by_ddmin() {
    let program = mini_tidy();
    let test = |page: &[u8]| crashes(&program, page);
    let is_minimal = |page: &[u8]| {
        let without = |at| [&page[..at], &page[at + 1..]].concat();
        test(page) && !(0..page.len()).any(|at| test(&without(at)))
    };
    // The rebuilt parser is like theirs as far as they tell: what they are left with crashes it,
    // too, and nothing of that can be left out.
    assert!(is_minimal(br#"H""/HSSNPPBP""/PP""/P/BP"#));
    assert!(is_minimal(b"SSNB/BP"));

    println!("mini-Tidy       tests  characters   (published: tests, characters)");
    for (name, page, ours, theirs) in [
        (
            "whole page",
            &br#"H"t"/HSFFFSFFNP"a"/PP"b"/PBP"c"/PP"d"/P/BP"e"/PP"f"/P/N/S/S"#[..],
            (169, 27),
            "222, 24",
        ),
        ("relevant part", b"SFFFSNB/BP", (33, 7), "37, 7"),
    ] {
        let (tests, left) = counted(test, |oracle| ddmin_over_bytes(page, oracle));
        let shown = String::from_utf8_lossy(&left);
        println!("{name:14} {tests:6} {:11}   ({theirs})  {shown}", left.len());
        assert!(is_minimal(&left), "{shown}");
        assert_eq!((tests, left.len()), ours, "{name}");
    }
}

/// A value, and whether anything is divided by zero in a text of [`ARITHMETIC`].
fn divides_by_zero(text: &[u8]) -> bool {
    let text: Vec<u8> = text.iter().copied().filter(|byte| *byte != b' ').collect();
    let mut at = 0;
    let value = sum(&text, &mut at);
    at == text.len() && value == Some(None)
}

/// Nothing, if it is no expression; inside, nothing if it has no value.
type Value = Option<Option<i64>>;

fn sum(text: &[u8], at: &mut usize) -> Value {
    chain(text, at, b"+-", product)
}

fn product(text: &[u8], at: &mut usize) -> Value {
    chain(text, at, b"*/", operand)
}

fn chain(text: &[u8], at: &mut usize, signs: &[u8], of: fn(&[u8], &mut usize) -> Value) -> Value {
    let mut value = of(text, at)?;
    while let Some(&sign) = text.get(*at).filter(|sign| signs.contains(sign)) {
        *at += 1;
        let other = of(text, at)?;
        value = value.zip(other).and_then(|(a, b)| match sign {
            b'+' => a.checked_add(b),
            b'-' => a.checked_sub(b),
            b'*' => a.checked_mul(b),
            _ => a.checked_div(b),
        });
    }
    Some(value)
}

fn operand(text: &[u8], at: &mut usize) -> Value {
    if text.get(*at) == Some(&b'(') {
        *at += 1;
        let value = sum(text, at)?;
        let closed = text.get(*at) == Some(&b')');
        *at += 1;
        return closed.then_some(value);
    }
    let digits = text[*at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = str::from_utf8(&text[*at..*at + digits]).ok()?.parse().ok()?;
    *at += digits;
    Some(Some(number))
}

const ARITHMETIC: &str = r"
    %token N /[0-9]+/ '1'
    %%
    E: E '*' E | E '/' E | E '+' E | E '-' E | '(' E ')' | N ;
";

#[test]
fn arithmetic_of_figure_5_2() {
    let text = b"((1+(2*3))/(2-2))+(3*5)";
    assert!(divides_by_zero(text));
    let grammar = Grammar::read(ARITHMETIC.as_bytes()).unwrap();
    let tree = grammar.tree(text, Recursion::Nested).unwrap();
    let (tests, left) = counted(divides_by_zero, |oracle| {
        let mut draft = Draft::new(&tree, text);
        hdd(&mut draft, Variant::All, Search::DDMIN, oracle).unwrap();
        draft.render()
    });
    let left = String::from_utf8(left).unwrap();
    println!("figure 5.2: {left} in {tests} tests   (thesis: (1 / (2 - 2)) + 1)");
    assert_eq!(left, "(1/(2-2))+1");
}
