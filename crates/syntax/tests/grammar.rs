//! Grammars and the trees of texts in their languages.

mod support;

use support::{check, dump, find, used, without};
use why_syntax::grammar::{Grammar, Recursion};
use why_tree::{NodeId, Shown, Tree};

/// Figure 5.2 of the thesis on hierarchical delta debugging.
const ARITHMETIC: &str = r"
    %token N /[0-9]+/ '1'
    %skip /[ \t\n]+/
    %%
    E: E '*' E
     | E '/' E
     | E '+' E
     | E '-' E
     | '(' E ')'
     | N
     ;
";

const FAILING: &str = "((1+(2*3))/(2-2))+(3*5)";

#[test]
fn arithmetic_of_the_thesis() {
    let grammar = Grammar::read(ARITHMETIC.as_bytes()).unwrap();
    assert_eq!(grammar.minimal("E"), Some(&b"1"[..]));
    let tree = grammar.tree(FAILING.as_bytes(), Recursion::Nested).unwrap();
    check(&tree, FAILING.as_bytes());
    // What its figure 5.4 shows: both operands that do not matter are the smallest.
    let first = find(&tree, FAILING.as_bytes(), "E", "(1+(2*3))");
    let last = find(&tree, FAILING.as_bytes(), "E", "(3*5)");
    let shown = |id: NodeId| if id == first || id == last { Shown::Minimal } else { Shown::Kept };
    assert_eq!(tree.render(FAILING.as_bytes(), shown), b"(1/(2-2))+1");
    // And what it leaves to others: the division in place of the sum.
    let division = find(&tree, FAILING.as_bytes(), "E", "(1+(2*3))/(2-2)");
    assert!(tree.fits(division, Tree::ROOT));
}

#[test]
fn operands_are_a_list() {
    let grammar = Grammar::read(ARITHMETIC.as_bytes()).unwrap();
    let text = b"10+(2)*30";
    let tree = grammar.tree(text, Recursion::Flat).unwrap();
    check(&tree, text);
    let expected = r#"
E nonempty "10+(2)*30" "1"
  E "10" ""
    N "10" "1"
  "+" between "+" "+"
  E "(2)" ""
    E "(2)" "1"
      N "2" "2"
  "*" between "*" "*"
  E "30" ""
    N "30" "1"
"#;
    assert_eq!(dump(&tree, text), expected.trim_start());
    let middle = find(&tree, text, "E", "(2)");
    assert_eq!(without(&tree, text, middle), "10+30");
}

/// The example of docs/grammars.md.
fn json() -> Grammar {
    let docs = include_str!("../../../docs/grammars.md");
    let lines = docs.lines().skip_while(|line| !line.starts_with("    "));
    let example: Vec<&str> = lines.take_while(|line| line.starts_with("    ")).collect();
    Grammar::read(example.join("\n").as_bytes()).unwrap()
}

#[test]
fn the_documented_example_works() {
    let grammar = json();
    assert_eq!(grammar.minimal("value"), Some(&b"0"[..]));
    assert_eq!(grammar.minimal("members"), Some(&b"\"\":0"[..]));
    let text = br#"{ "a": [1, {"x": true}, 30], "b": null }"#;
    let tree = grammar.tree(text, Recursion::Flat).unwrap();
    check(&tree, text);
    let without = |kind, part| without(&tree, text, find(&tree, text, kind, part));
    let object = r#"{"x": true}"#;
    assert_eq!(without("value", object), r#"{ "a": [1, 30], "b": null }"#);
    assert_eq!(without("value", "30"), r#"{ "a": [1, {"x": true}], "b": null }"#);
    assert_eq!(without("member", r#""b": null"#), r#"{ "a": [1, {"x": true}, 30] }"#);
    assert_eq!(without("member", r#""a": [1, {"x": true}, 30]"#), r#"{ "b": null }"#);
    assert_eq!(without("value", r#"[1, {"x": true}, 30]"#), r#"{ "a": 0, "b": null }"#);
    let tree = grammar.tree(b"[[1]]", Recursion::Flat).unwrap();
    assert!(tree.fits(find(&tree, b"[[1]]", "NUMBER", "1"), Tree::ROOT));
}

#[test]
fn a_list_that_needs_an_element_becomes_its_smallest_text() {
    let grammar = json();
    let text = br#"{"ab":1,"cd":2}"#;
    let tree = grammar.tree(text, Recursion::Flat).unwrap();
    let shown = |id: NodeId| match tree.kind_name(tree.node(id).kind) {
        "member" if tree.node(id).minimal.is_empty() => Shown::Minimal,
        _ => Shown::Kept,
    };
    assert_eq!(tree.render(text, shown), br#"{"":0}"#);
}

#[test]
fn files_for_yacc_are_understood() {
    let source = r#"
        %{ #include "x.h" %}
        %union { int number; /* } */ char *text; }
        %token <number> NUMBER 258 "a number" OTHER
        %type <text> list
        %left '+' '-'
        %define api.pure full
        %start list
        %%
        list: /* empty */ { $$ = 0; } | list item[last] { puts("}"); } ';' // more
            | list error ';' { yyerrok; } ;
        item: "print" %prec UMINUS | NAME '=' { mid(); } NAME | %empty ;
        %%
        %token NAME /[a-z]+/
        %skip /[ \n]+/
    "#;
    let grammar = Grammar::read(source.as_bytes()).unwrap();
    let text = b"a = b; print; ;\n";
    let tree = grammar.tree(text, Recursion::Flat).unwrap();
    check(&tree, text);
    let statement = find(&tree, text, "item \";\"", "print;");
    assert_eq!(without(&tree, text, statement), "a = b; ;\n");
    assert_eq!(without(&tree, text, find(&tree, text, "item", "a = b")), "; print; ;\n");
    assert!(grammar.tree(b"a = ;", Recursion::Flat).is_err());
}

#[test]
fn errors_name_line_and_column() {
    let error = |source: &str| Grammar::read(source.as_bytes()).err().unwrap().to_string();
    let is = |source: &str, expected: &str| assert_eq!(error(source), expected, "{source}");
    is("", "line 1, column 1: here should be %%, and then the rules");
    is("%%\n", "line 2, column 1: there are no rules");
    is("%%\na: b;", "line 2, column 4: b has no rule and no definition; add %token b /…/");
    is("%%\na: 'x'", "line 2, column 7: the rule of a does not end with ;");
    is("%%\na 'x';", "line 2, column 3: here should be a colon and what a is made of");
    is("%%\n  a: 'x;", "line 2, column 6: this quote is not closed");
    is("%%\na: { 'x';", "line 2, column 4: this { has no }");
    is("%%\na: '';", "line 2, column 4: a token cannot be empty; leave it out");
    is(
        "%%\na: 'x' a;",
        "line 2, column 1: a can never end: each of its rules needs one that never ends",
    );
    is("%start b\n%%\na: 'x';", "line 1, column 8: b has no rule");
    is("%skip x\n%%\na: 'x';", "line 1, column 7: here should be an expression between slashes");
    is("%token A /x\n%%\na: A;", "line 1, column 10: this expression has no / at its end");
    is(
        "%token A /x(/\n%%\na: A;",
        "line 1, column 10: this expression cannot be used: unclosed group",
    );
    is(
        "%token A /^x/\n%%\na: A;",
        "line 1, column 10: an expression cannot ask what stands around a token",
    );
    is(
        "%token A /x/ \"y\"\n%%\na: A;",
        "line 1, column 14: this is not a A by the tokens' expressions",
    );
    is(
        "%token A /x/ B /x/\n%%\na: A B;",
        "line 1, column 16: nothing is ever this token: others match all that it does",
    );
    is("%token A /x/ A /y/\n%%\na: A;", "line 1, column 14: A is defined twice");
    is("%%\na: /* 'x';", "line 2, column 4: this /* has no */");
    is("%%\na: 'x' @;", "line 2, column 8: '@' has no meaning here");
}

#[test]
fn what_does_not_fit_is_told() {
    let grammar = json();
    let error = |text: &str| grammar.tree(text.as_bytes(), Recursion::Flat).err().unwrap();
    assert_eq!(
        error("[1,\n 2}").to_string(),
        "line 2, column 3: found \"}\", wanted \",\" or \"]\""
    );
    assert_eq!(error("[1,\n @]").to_string(), "line 2, column 2: no token begins with \"@]\"");
    assert!(error("[").to_string().starts_with("line 1, column 2: found the end, wanted "));
    assert!(error("").to_string().starts_with("line 1, column 1: found the end, wanted "));
}

#[test]
fn symbols_that_never_end_are_told() {
    let source = b"%%\na: 'x' | b;\nb: 'y' c;\nc: b 'z';";
    let grammar = Grammar::read(source).unwrap();
    let told: Vec<(&str, usize)> =
        grammar.unproductive().map(|(name, place)| (name, place.line)).collect();
    assert_eq!(told, [("b", 3), ("c", 4)]);
}

#[test]
fn a_smallest_text_can_be_too_long_to_write() {
    let mut source = "%%\na0: a1 a1 | 'y' a1 a1;\n".to_owned();
    for level in 1..60 {
        let next = level + 1;
        source += &format!("a{level}: a{next} a{next};\n");
    }
    source += "a60: 'x';\n";
    let grammar = Grammar::read(source.as_bytes()).unwrap();
    assert_eq!(grammar.unproductive().count(), 0);
    assert_eq!(grammar.minimal("a0"), None);
    assert_eq!(grammar.minimal("a57"), Some(&b"xxxxxxxx"[..]));
}

/// 100,000 levels or elements, of each form of recursion.
#[test]
fn depth_and_length_do_no_harm() {
    const N: usize = 100_000;
    let deep = |source: &str, text: String, parts: usize| {
        let grammar = Grammar::read(source.as_bytes()).unwrap();
        for recursion in [Recursion::Flat, Recursion::Nested] {
            let tree = grammar.tree(text.as_bytes(), recursion).unwrap();
            check(&tree, text.as_bytes());
            assert!(tree.len() >= parts, "{} of {parts}", tree.len());
        }
    };
    let begun = used();
    deep(ARITHMETIC, "(".repeat(N) + "12" + &")".repeat(N), N);
    deep(ARITHMETIC, "1+".repeat(N) + "12", N);
    deep("%token X /[a-z]+/ %% l: | l X ';' ;", "xy;".repeat(N), N);
    deep("%token X /[a-z]+/ %% l: X ';' l | ;", "xy;".repeat(N), N);
    deep("%token X /[a-z]+/ %% l: X | X ',' l ;", "xy,".repeat(N) + "x", N);
    deep("%% a: 'x' | '(' a ')' | '-' a ;", "-(".repeat(N) + "x" + &")".repeat(N), N);
    let spent = used() - begun;
    assert!(spent.as_secs() < 30, "{spent:?}");
}
