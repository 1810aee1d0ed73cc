//! A tree of nested brackets, strings and lines, or of nested tags, for any text at all, in
//! one pass over it. It stands in where no grammar fits or a grammar's parser does not.

mod groups;
mod tags;

use why_tree::Tree;

pub fn tree(text: &[u8]) -> Tree {
    tree_of(text, is_markup(text))
}

pub(crate) fn tree_of(text: &[u8], is_markup: bool) -> Tree {
    if is_markup { tags::tree(text) } else { groups::tree(text) }
}

/// Whether the text begins with a tag.
fn is_markup(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii_start();
    text.starts_with(b"<?xml")
        || matches!(text, [b'<', next, ..] if next.is_ascii_alphabetic() || b"!/".contains(next))
}

/// How deep tags are nested in each other.
pub(crate) fn depth_of_tags(text: &[u8]) -> usize {
    tags::depth(text)
}
