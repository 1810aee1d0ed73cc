//! The languages there are.

use super::{Language, Layout, Tags};

/// A language like most: others say what is different.
const USUAL: Language = Language {
    name: "",
    extensions: &[],
    grammar: || tree_sitter_c::LANGUAGE.into(),
    node_types: "[]",
    layout: Layout::Free,
    fixed: &[],
    needed: &[],
    tags: None,
};

pub static LANGUAGES: &[Language] = &[
    Language {
        name: "c",
        extensions: &["c", "h"],
        grammar: || tree_sitter_c::LANGUAGE.into(),
        node_types: tree_sitter_c::NODE_TYPES,
        ..USUAL
    },
    Language {
        name: "cpp",
        extensions: &["cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx"],
        grammar: || tree_sitter_cpp::LANGUAGE.into(),
        node_types: tree_sitter_cpp::NODE_TYPES,
        ..USUAL
    },
    Language {
        name: "rust",
        extensions: &["rs"],
        grammar: || tree_sitter_rust::LANGUAGE.into(),
        node_types: tree_sitter_rust::NODE_TYPES,
        ..USUAL
    },
    Language {
        name: "java",
        extensions: &["java"],
        grammar: || tree_sitter_java::LANGUAGE.into(),
        node_types: tree_sitter_java::NODE_TYPES,
        ..USUAL
    },
    Language {
        name: "javascript",
        extensions: &["js", "jsx", "mjs", "cjs"],
        grammar: || tree_sitter_javascript::LANGUAGE.into(),
        node_types: tree_sitter_javascript::NODE_TYPES,
        ..USUAL
    },
    Language {
        name: "typescript",
        extensions: &["ts", "mts", "cts"],
        grammar: || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        node_types: tree_sitter_typescript::TYPESCRIPT_NODE_TYPES,
        ..USUAL
    },
    Language {
        name: "tsx",
        extensions: &["tsx"],
        grammar: || tree_sitter_typescript::LANGUAGE_TSX.into(),
        node_types: tree_sitter_typescript::TSX_NODE_TYPES,
        ..USUAL
    },
    Language {
        name: "python",
        extensions: &["py", "pyi", "pyw"],
        grammar: || tree_sitter_python::LANGUAGE.into(),
        node_types: tree_sitter_python::NODE_TYPES,
        layout: Layout::Lines,
        needed: &[("block", "pass")],
        ..USUAL
    },
    Language {
        name: "go",
        extensions: &["go"],
        grammar: || tree_sitter_go::LANGUAGE.into(),
        node_types: tree_sitter_go::NODE_TYPES,
        ..USUAL
    },
    Language {
        name: "json",
        extensions: &["json", "jsonl", "geojson"],
        grammar: || tree_sitter_json::LANGUAGE.into(),
        node_types: tree_sitter_json::NODE_TYPES,
        ..USUAL
    },
    Language {
        name: "xml",
        extensions: &["xml", "xsl", "xslt", "xsd", "svg", "rss"],
        grammar: || tree_sitter_xml::LANGUAGE_XML.into(),
        node_types: tree_sitter_xml::XML_NODE_TYPES,
        tags: Some(Tags { element: "element", begin: "STag", end: "ETag" }),
        fixed: &["STag", "ETag"],
        ..USUAL
    },
    Language {
        name: "html",
        extensions: &["html", "htm", "xhtml"],
        grammar: || tree_sitter_html::LANGUAGE.into(),
        node_types: tree_sitter_html::NODE_TYPES,
        tags: Some(Tags { element: "element", begin: "start_tag", end: "end_tag" }),
        fixed: &["start_tag", "end_tag", "tag_name"],
        ..USUAL
    },
    Language {
        name: "css",
        extensions: &["css"],
        grammar: || tree_sitter_css::LANGUAGE.into(),
        node_types: tree_sitter_css::NODE_TYPES,
        ..USUAL
    },
    Language {
        name: "yaml",
        extensions: &["yaml", "yml"],
        grammar: || tree_sitter_yaml::LANGUAGE.into(),
        node_types: tree_sitter_yaml::NODE_TYPES,
        layout: Layout::Lines,
        ..USUAL
    },
    Language {
        name: "toml",
        extensions: &["toml"],
        grammar: || tree_sitter_toml_ng::LANGUAGE.into(),
        node_types: tree_sitter_toml_ng::NODE_TYPES,
        ..USUAL
    },
    Language {
        name: "sql",
        extensions: &["sql"],
        grammar: || tree_sitter_sequel::LANGUAGE.into(),
        node_types: tree_sitter_sequel::NODE_TYPES,
        ..USUAL
    },
    Language {
        name: "shell",
        extensions: &["sh", "bash", "ksh", "zsh"],
        grammar: || tree_sitter_bash::LANGUAGE.into(),
        node_types: tree_sitter_bash::NODE_TYPES,
        ..USUAL
    },
    Language {
        name: "ruby",
        extensions: &["rb"],
        grammar: || tree_sitter_ruby::LANGUAGE.into(),
        node_types: tree_sitter_ruby::NODE_TYPES,
        ..USUAL
    },
    Language {
        name: "php",
        extensions: &["php", "phtml"],
        grammar: || tree_sitter_php::LANGUAGE_PHP.into(),
        node_types: tree_sitter_php::PHP_NODE_TYPES,
        ..USUAL
    },
    Language {
        name: "lua",
        extensions: &["lua"],
        grammar: || tree_sitter_lua::LANGUAGE.into(),
        node_types: tree_sitter_lua::NODE_TYPES,
        ..USUAL
    },
    Language {
        name: "markdown",
        extensions: &["md", "markdown"],
        grammar: || tree_sitter_md::LANGUAGE.into(),
        node_types: tree_sitter_md::NODE_TYPES_BLOCK,
        layout: Layout::Lines,
        ..USUAL
    },
];
