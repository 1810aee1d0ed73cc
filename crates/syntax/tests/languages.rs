//! A small text of each language, with what one would expect of its parts.

mod support;

use std::path::Path;
use support::{check, dump, find, without};
use why_syntax::languages::{LANGUAGES, Language};
use why_tree::Tree;

struct Sample {
    language: &'static str,
    text: &'static str,
    tree: Tree,
}

fn sample(language: &'static str, text: &'static str) -> Sample {
    let tree = Language::by_name(language).unwrap().tree(text.as_bytes()).unwrap();
    check(&tree, text.as_bytes());
    Sample { language, text, tree }
}

impl Sample {
    /// What remains when the first part of this kind with this text is replaced.
    #[track_caller]
    fn without(&self, kind: &str, part: &str, expected: &str) -> &Sample {
        let text = self.text.as_bytes();
        let remains = without(&self.tree, text, find(&self.tree, text, kind, part));
        assert_eq!(
            remains,
            expected,
            "{} without {part:?}\n{}",
            self.language,
            dump(&self.tree, text)
        );
        self
    }
}

#[test]
fn every_language_is_found_by_name_and_by_file() {
    let names = [
        "c",
        "cpp",
        "rust",
        "java",
        "javascript",
        "typescript",
        "python",
        "go",
        "json",
        "xml",
        "html",
        "css",
        "yaml",
        "toml",
        "sql",
        "shell",
        "ruby",
        "php",
        "lua",
        "markdown",
    ];
    for name in names {
        let language = Language::by_name(name).unwrap();
        assert_eq!(language.name, name);
        for extension in language.extensions {
            let path = format!("/some/where.d/file.{extension}");
            assert_eq!(Language::of_file(Path::new(&path)).unwrap().name, name);
        }
    }
    assert!(Language::of_file(Path::new("Makefile")).is_none());
    assert!(Language::by_name("klingon").is_none());
    let mut extensions: Vec<&str> = LANGUAGES.iter().flat_map(|l| l.extensions).copied().collect();
    let count = extensions.len();
    extensions.sort_unstable();
    extensions.dedup();
    assert_eq!(extensions.len(), count, "two languages have the same extension");
}

/// The program of figure 4.1 of the thesis, with the brace that its `main` lost.
const BUG_C: &str = include_str!("samples/bug.c");

#[test]
fn c_of_the_thesis() {
    let bug = sample("c", BUG_C);
    let copy = &BUG_C[BUG_C.find("int copy").unwrap()..BUG_C.find("int main").unwrap()];
    let remains = BUG_C.replace(copy, "");
    bug.without("function_definition", copy.trim_end(), &remains);
    bug.without("assignment_expression", "j = 0", &BUG_C.replace("j = 0", ""));
    bug.without("binary_expression", "j < n", &BUG_C.replace("j < n", ""));
    bug.without("update_expression", "j++", &BUG_C.replace("j++", ""));
    bug.without("return_statement", "return z[n];", &BUG_C.replace("return z[n];", ""));
    bug.without("parameter_declaration", "int n", &BUG_C.replacen(", int n", "", 1));
    bug.without("binary_expression", "z[i]*(z[0]+0)", &BUG_C.replace("z[i]*(z[0]+0)", "0"));
}

#[test]
fn c() {
    sample("c", "int f(int a, char b) { if (a) { g(a, b); return 1; } else a++; }")
        .without(
            "expression_statement",
            "g(a, b);",
            "int f(int a, char b) { if (a) { return 1; } else a++; }",
        )
        .without(
            "else_clause",
            "else a++;",
            "int f(int a, char b) { if (a) { g(a, b); return 1; }  }",
        )
        .without(
            "parameter_declaration",
            "int a",
            "int f( char b) { if (a) { g(a, b); return 1; } else a++; }",
        );
    // What does not fit is divided by brackets and lines.
    sample("c", "int f() { return @@ 1; } int g;")
        .without("item", "@@", "int f() { return 1; } int g;")
        .without("declaration", "int g;", "int f() { return @@ 1; } ");
}

#[test]
fn cpp() {
    sample(
        "cpp",
        "class V : public B { int f(int a, T b) { if (a) { g<int>(a, b); } return 0; } };",
    )
    .without(
        "base_class_clause",
        ": public B",
        "class V { int f(int a, T b) { if (a) { g<int>(a, b); } return 0; } };",
    )
    .without(
        "expression_statement",
        "g<int>(a, b);",
        "class V : public B { int f(int a, T b) { if (a) {  } return 0; } };",
    )
    .without(
        "parameter_declaration",
        "T b",
        "class V : public B { int f(int a) { if (a) { g<int>(a, b); } return 0; } };",
    );
}

#[test]
fn rust() {
    sample(
        "rust",
        "fn f(a: u8, b: u8) -> u8 { let x: u8 = a + 1; if a > b { g(a); h(x) } else { 2 } }",
    )
    .without(
        "optional",
        "-> u8",
        "fn f(a: u8, b: u8) { let x: u8 = a + 1; if a > b { g(a); h(x) } else { 2 } }",
    )
    .without(
        "optional",
        ": u8",
        "fn f(a: u8, b: u8) -> u8 { let x = a + 1; if a > b { g(a); h(x) } else { 2 } }",
    )
    .without(
        "expression_statement",
        "g(a);",
        "fn f(a: u8, b: u8) -> u8 { let x: u8 = a + 1; if a > b { h(x) } else { 2 } }",
    )
    .without(
        "parameter",
        "b: u8",
        "fn f(a: u8) -> u8 { let x: u8 = a + 1; if a > b { g(a); h(x) } else { 2 } }",
    );
}

#[test]
fn java() {
    sample(
        "java",
        "class A extends B { int x = 1, y; int f(int a) { if (a > 1) { g(a); } return 0; } }",
    )
    .without(
        "superclass",
        "extends B",
        "class A { int x = 1, y; int f(int a) { if (a > 1) { g(a); } return 0; } }",
    )
    .without(
        "variable_declarator",
        "x = 1",
        "class A extends B { int y; int f(int a) { if (a > 1) { g(a); } return 0; } }",
    )
    .without(
        "expression_statement",
        "g(a);",
        "class A extends B { int x = 1, y; int f(int a) { if (a > 1) {  } return 0; } }",
    );
}

#[test]
fn javascript() {
    sample("javascript", "function f(a, b = 2) { if (a) { g(a, b); } const o = { x: 1, y: 2 }; }")
        .without(
            "assignment_pattern",
            "b = 2",
            "function f(a) { if (a) { g(a, b); } const o = { x: 1, y: 2 }; }",
        )
        .without(
            "expression_statement",
            "g(a, b);",
            "function f(a, b = 2) { if (a) {  } const o = { x: 1, y: 2 }; }",
        )
        .without(
            "pair",
            "y: 2",
            "function f(a, b = 2) { if (a) { g(a, b); } const o = { x: 1 }; }",
        );
}

#[test]
fn typescript() {
    sample(
        "typescript",
        "interface I { a: number; b?: string }\nfunction f(a: number): I { return g(a, 1); }",
    )
    .without(
        "property_signature",
        "a: number",
        "interface I { b?: string }\nfunction f(a: number): I { return g(a, 1); }",
    )
    .without(
        "type_annotation",
        ": I",
        "interface I { a: number; b?: string }\nfunction f(a: number) { return g(a, 1); }",
    )
    .without(
        "number",
        "1",
        "interface I { a: number; b?: string }\nfunction f(a: number): I { return g(a); }",
    );
    sample("tsx", "const e = <p id=\"x\">{a}</p>;").without(
        "jsx_attribute",
        "id=\"x\"",
        "const e = <p >{a}</p>;",
    );
}

#[test]
fn python() {
    let text =
        "def f(a, b=2):\n    if a > b:\n        g(a)\n        h(b)\n    else:\n        b += 1\n";
    sample("python", text)
        .without("expression_statement", "g(a)", &text.replace("g(a)\n        ", ""))
        .without("default_parameter", "b=2", &text.replace(", b=2", ""))
        .without("comparison_operator", "a > b", &text.replace("a > b", "2"))
        .without(
            "else_clause",
            "else:\n        b += 1",
            "def f(a, b=2):\n    if a > b:\n        g(a)\n        h(b)\n    \n",
        );
    // A block needs a statement.
    sample("python", "if a:\n    bcdef()\n").without("call", "bcdef()", "if a:\n    a()\n");
}

#[test]
fn go() {
    let text = "package p\n\nfunc f(a int, b string) int {\n\tif a > 1 {\n\t\tg(a, b)\n\t\treturn 1\n\t}\n\treturn 0\n}\n";
    sample("go", text)
        .without("expression_statement", "g(a, b)", &text.replace("g(a, b)\n\t\t", ""))
        .without("parameter_declaration", "b string", &text.replace(", b string", ""));
}

#[test]
fn json() {
    sample("json", r#"{ "a": [1, {"x": true}, 30], "b": null }"#)
        .without("object", r#"{"x": true}"#, r#"{ "a": [1, 30], "b": null }"#)
        .without("array", r#"[1, {"x": true}, 30]"#, r#"{ "a": 1, "b": null }"#)
        .without("pair", r#""b": null"#, r#"{ "a": [1, {"x": true}, 30] }"#)
        .without("pair", r#""x": true"#, r#"{ "a": [1, {}, 30], "b": null }"#);
}

#[test]
fn xml() {
    sample("xml", r#"<a x="1" y="2"><b>text</b><c/><d>one<e/>two</d></a>"#)
        .without("element", "<c/>", r#"<a x="1" y="2"><b>text</b><d>one<e/>two</d></a>"#)
        .without("Attribute", r#"x="1""#, r#"<a y="2"><b>text</b><c/><d>one<e/>two</d></a>"#)
        .without("content", "one<e/>two", r#"<a x="1" y="2"><b>text</b><c/><d></d></a>"#)
        .without("element", r#"<a x="1" y="2"><b>text</b><c/><d>one<e/>two</d></a>"#, "<x/>");
    let xml = sample("xml", r#"<a><b x="1"></b></a>"#);
    let the = |kind, part| find(&xml.tree, xml.text.as_bytes(), kind, part);
    let (outer, inner) = (the("element", xml.text), the("element", r#"<b x="1"></b>"#));
    assert!(xml.tree.fits(inner, outer));
    // A tag has to stay with the other one, and the parser wants a name in front of a value.
    let tag = the("STag", r#"<b x="1">"#);
    assert!(!xml.tree.fits(tag, outer) && !xml.tree.fits(tag, the("STag", "<a>")));
    assert!(!xml.tree.fits(the("Name", "x"), the("Attribute", r#"x="1""#)));
}

#[test]
fn html() {
    let html = sample("html", "<ul id=x><li>1</li><li>2 <b>3</b></li></ul><br>");
    html.without("element", "<li>1</li>", "<ul id=x><li>2 <b>3</b></li></ul><br>")
        .without("content", "2 <b>3</b>", "<ul id=x><li>1</li><li></li></ul><br>")
        .without("attribute", "id=x", "<ul ><li>1</li><li>2 <b>3</b></li></ul><br>")
        .without("element", "<br>", "<ul id=x><li>1</li><li>2 <b>3</b></li></ul>");
    // What an element holds may take its place.
    let text = html.text.as_bytes();
    let element = find(&html.tree, text, "element", "<li>2 <b>3</b></li>");
    let content = find(&html.tree, text, "content", "2 <b>3</b>");
    assert!(html.tree.fits(content, element));
}

#[test]
fn css() {
    sample("css", "a:hover, b > c { color: red; margin: 0 1px; }")
        .without("declaration", "color: red;", "a:hover, b > c { margin: 0 1px; }")
        .without("child_selector", "b > c", "a:hover { color: red; margin: 0 1px; }")
        .without("integer_value", "0", "a:hover, b > c { color: red; margin: 1px; }");
}

#[test]
fn yaml() {
    let text = "a: 1\nlist:\n  - x\n  - y: 2\n    z: [1, 2]\nb: 3\n";
    sample("yaml", text)
        .without("block_sequence_item", "- x", &text.replace("- x\n  ", ""))
        .without("block_mapping_pair", "y: 2", &text.replace("y: 2", ""))
        .without("block_mapping_pair", "a: 1", &text.replace("a: 1\n", ""))
        .without("flow_node", "2", &text.replacen("y: 2", "y: ", 1));
}

#[test]
fn toml() {
    let text = "title = \"x\"\n[owner]\nname = \"y\"\nports = [1, 2, 3]\n";
    sample("toml", text)
        .without("pair", "name = \"y\"", &text.replace("name = \"y\"\n", ""))
        .without("integer", "2", &text.replace("2, ", ""))
        .without("array", "[1, 2, 3]", &text.replace("[1, 2, 3]", "[]"))
        .without("pair", "title = \"x\"", &text.replace("title = \"x\"\n", ""));
}

#[test]
fn sql() {
    let text = "INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y');\nSELECT a, b FROM t WHERE a > 1;\n";
    sample("sql", text)
        .without("list", "(1, 'x')", &text.replace("(1, 'x'), ", ""))
        .without("where", "WHERE a > 1", &text.replace("WHERE a > 1", ""))
        .without("term", "b", &text.replace("SELECT a, b", "SELECT a"))
        .without(
            "statement",
            "SELECT a, b FROM t WHERE a > 1",
            &text.replace("SELECT a, b FROM t WHERE a > 1;", ""),
        );
    // Statements that the grammar does not know are statements all the same, and take no sign
    // along that ends another.
    let text = "SELECT a, b, c, d FROM t WHERE a > 1 AND b < 2;\nPRAGMA a=ON;\nPRAGMA b(1, 2);\n";
    sample("sql", text)
        .without("item", "PRAGMA a=ON;", &text.replace("PRAGMA a=ON;\n", ""))
        .without("item", "2", &text.replace("(1, 2)", "(1)"))
        .without("item", "PRAGMA b(1, 2);", &text.replace("PRAGMA b(1, 2);\n", "\n"));
}

#[test]
fn words_that_only_go_together() {
    let text = "CREATE TABLE a(b TEXT NOT NULL, c INTEGER DEFAULT 0, \
                d INTEGER REFERENCES e(f) ON DELETE CASCADE);";
    let sample = sample("sql", text);
    for phrase in ["NOT NULL", "DEFAULT 0", "ON DELETE CASCADE"] {
        sample.without("optional", phrase, &text.replace(phrase, ""));
    }
}

#[test]
fn shell() {
    let text =
        "if [ -f a ]; then echo \"$x\" b; rm a; fi\nfor i in 1 2; do\n  ls $i | sort\ndone\n";
    sample("shell", text)
        .without("command", "rm a", &text.replace("rm a;", ""))
        .without("number", "1", &text.replace("in 1 2", "in 2"))
        .without("pipeline", "ls $i | sort", &text.replace("ls $i | sort", ""));
}

#[test]
fn ruby() {
    let text = "class A < B\n  def f(a, b = 2)\n    if a > 1\n      puts a, b\n      return [a, b]\n    end\n  end\nend\n";
    sample("ruby", text)
        .without("superclass", "< B", &text.replace(" < B", " "))
        .without("optional_parameter", "b = 2", &text.replace(", b = 2", ""))
        .without("call", "puts a, b", &text.replace("puts a, b\n      ", ""));
}

#[test]
fn php() {
    let text = "<?php\nfunction f($a, $b = 2) { if ($a > 1) { g($a, $b); return [1, 2]; } }\n";
    sample("php", text)
        .without("expression_statement", "g($a, $b);", &text.replace("g($a, $b); ", ""))
        .without("simple_parameter", "$b = 2", &text.replace(", $b = 2", ""))
        .without("array_element_initializer", "1", &text.replace("[1, 2]", "[ 2]"));
}

#[test]
fn lua() {
    let text =
        "function f(a, b)\n  if a > 1 then\n    print(a, b)\n    return { 1, x = 3 }\n  end\nend\n";
    sample("lua", text)
        .without("function_call", "print(a, b)", &text.replace("print(a, b)\n    ", ""))
        .without("field", "x = 3", &text.replace(", x = 3", ""))
        .without("binary_expression", "a > 1", &text.replace("a > 1", "1"));
}

#[test]
fn markdown() {
    let text = "# Title\n\nSome text.\n\n- one\n- two\n\n## Part\n\nMore.\n";
    sample("markdown", text)
        .without("list_item", "- one\n", &text.replace("- one\n", ""))
        .without("paragraph", "Some text.\n", &text.replace("Some text.\n\n", ""))
        .without("section", "## Part\n\nMore.\n", &text.replace("## Part\n\nMore.\n", ""));
}
