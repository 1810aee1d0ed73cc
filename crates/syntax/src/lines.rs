//! A text as a list of lines, each with the sign that ends it.

use why_tree::Tree;

pub fn tree(text: &[u8]) -> Tree {
    let mut tree = Tree::rooted("lines", 0..text.len(), Vec::new());
    let line = tree.kind("line");
    let mut start = 0;
    for content in text.split_inclusive(|&byte| byte == b'\n') {
        tree.add(Tree::ROOT, line, start..start + content.len(), Vec::new());
        start += content.len();
    }
    tree
}
