//! Whatever one part is replaced by, the text still fits the grammar of its language; and so
//! it nearly always does when many are.

mod support;

use support::{Random, dump, vary, without};
use tree_sitter::{Language as Grammar, Parser};
use why_syntax::languages::Language;

type Sample = (&'static str, fn() -> Grammar, &'static str);

const SAMPLES: [Sample; 12] = [
    (
        "c",
        || tree_sitter_c::LANGUAGE.into(),
        "static int f(int a, char *b[]) { int x[2] = {1, 2}, y; if (a) { g(a, b); return 1; } \
         else a++; for (y = 0; y < 3; y++) x[y] = x[y] * (x[0] + 0); switch (y) { case 1: h(); } }",
    ),
    (
        "cpp",
        || tree_sitter_cpp::LANGUAGE.into(),
        "class V : public B { int f(int a, T b) { for (;a;) { g<int>(a, b); } return a ? 1 : 2; } };",
    ),
    (
        "rust",
        || tree_sitter_rust::LANGUAGE.into(),
        "use a::{b, c};\nstruct S<T> { a: u8, b: Vec<T> }\nfn f(a: u8, b: &S) -> u8 { let x: u8 = a + 1; \
         if a > b { g(a); h(x) } else { match a { 1 => 2, _ => { 3 } } } }",
    ),
    (
        "java",
        || tree_sitter_java::LANGUAGE.into(),
        "package p; import q.R; class A extends B implements C { private int x = 1, y; \
         int f(int a, String b) throws E { if (a > 1) { g(a); } else return 2; return 0; } }",
    ),
    (
        "javascript",
        || tree_sitter_javascript::LANGUAGE.into(),
        "function f(a, b = 2) { if (a) { g(a, b); return [a, b]; } else { b++; } \
         const o = { x: 1, y: () => 2 }; for (const i of o) h(i); }",
    ),
    (
        "typescript",
        || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        "interface I { a: number; b?: string }\nfunction f(a: number, b?: string): I { return { a: a, b: b }; }",
    ),
    (
        "python",
        || tree_sitter_python::LANGUAGE.into(),
        "import os\n\ndef f(a, b=2):\n    if a > b:\n        g(a)\n        return [a, b]\n    else:\n        b += 1\n    while b:\n        pass\n",
    ),
    (
        "go",
        || tree_sitter_go::LANGUAGE.into(),
        "package p\n\nimport \"fmt\"\n\nfunc f(a int, b string) (int, error) {\n\tif a > 1 {\n\t\tfmt.Println(a, b)\n\t\treturn 1, nil\n\t}\n\tx := []int{1, 2, 3}\n\treturn x[0], nil\n}\n",
    ),
    (
        "json",
        || tree_sitter_json::LANGUAGE.into(),
        r#"{ "a": [1, {"x": true}, 30, [2]], "b": null, "c": {"d": "e"} }"#,
    ),
    (
        "sql",
        || tree_sitter_sequel::LANGUAGE.into(),
        "CREATE TABLE t (a INTEGER, b TEXT);\nINSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y');\n\
         SELECT a, b FROM t WHERE a > 1 AND b = 'x' ORDER BY b LIMIT 3;\n",
    ),
    (
        "css",
        || tree_sitter_css::LANGUAGE.into(),
        "@media print { a { color: red } }\na:hover, b > c { color: red; margin: 0 1px 2px; }",
    ),
    (
        "lua",
        || tree_sitter_lua::LANGUAGE.into(),
        "local function f(a, b)\n  if a > 1 then\n    print(a, b)\n    return { 1, 2, x = 3 }\n  end\n  for i = 1, 3 do g(i) end\nend\n",
    ),
];

#[test]
fn replaced_texts_fit() {
    let mut random = Random(5);
    let (mut tried, mut fitting) = (0, 0);
    for (name, grammar, text) in SAMPLES {
        let mut parser = Parser::new();
        parser.set_language(&grammar()).unwrap();
        let mut fits = |text: &[u8]| !parser.parse(text, None).unwrap().root_node().has_error();
        assert!(fits(text.as_bytes()), "{name}");
        let tree = Language::by_name(name).unwrap().tree(text.as_bytes()).unwrap();
        for id in tree.ids() {
            let remains = without(&tree, text.as_bytes(), id);
            let dump = || dump(&tree, text.as_bytes());
            assert!(fits(remains.as_bytes()), "{name} without {id:?}: {remains}\n{}", dump());
        }
        for _ in 0..200 {
            tried += 1;
            fitting += usize::from(fits(&vary(&tree, text.as_bytes(), &mut random)));
        }
    }
    assert!(fitting * 100 >= tried * 95, "{fitting} of {tried}");
}
