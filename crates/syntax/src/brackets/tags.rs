//! Nested tags: elements with their attributes and what they hold. An element is closed by
//! the next tag of its name; a tag that is never closed is a part of its own.

use rustc_hash::FxHashMap;
use std::ops::Range;
use why_tree::{Kind, NodeId, Tree};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `<a …>` that is closed later.
    Open,
    /// `</a>` that closes one.
    Close,
    /// All others, comments and declarations included.
    Alone,
}

struct Tag {
    form: Form,
    span: Range<usize>,
    name: Range<usize>,
}

struct Kinds {
    element: Kind,
    content: Kind,
    attribute: Kind,
    tag: Kind,
    text: Kind,
    line: Kind,
}

pub(super) fn tree(text: &[u8]) -> Tree {
    let mut tree = Tree::rooted("text", 0..text.len(), Vec::new());
    let kinds = Kinds {
        element: tree.kind("element"),
        content: tree.kind("content"),
        attribute: tree.kind("attribute"),
        tag: tree.kind("tag"),
        text: tree.kind("text"),
        line: tree.kind("line"),
    };
    tree.widen(kinds.content, kinds.element);
    let mut levels = vec![Level { parent: Tree::ROOT, content: Some(Tree::ROOT), inside: 0 }];
    let mut end = 0;
    for tag in read(text) {
        let Some(level) = levels.last_mut() else { break };
        add_text(&mut tree, &kinds, level, text, end..tag.span.start);
        end = tag.span.end;
        if tag.form == Form::Close {
            close(&mut tree, level, &tag);
            levels.pop();
            continue;
        }
        let content = level.content(&mut tree, &kinds);
        let kind = if tag.form == Form::Open { kinds.element } else { kinds.tag };
        let id = tree.add(content, kind, tag.span.clone(), Vec::new());
        add_attributes(&mut tree, &kinds, id, text, &tag);
        if tag.form == Form::Open {
            levels.push(Level { parent: id, content: None, inside: end });
        }
    }
    add_text(&mut tree, &kinds, &mut levels[0], text, end..text.len());
    tree
}

/// The whole text, or an element that is not closed yet.
struct Level {
    parent: NodeId,
    /// The whole text, or all that an element holds, if that is anything.
    content: Option<NodeId>,
    /// Where that begins.
    inside: usize,
}

impl Level {
    fn content(&mut self, tree: &mut Tree, kinds: &Kinds) -> NodeId {
        let inside = self.inside..self.inside;
        *self
            .content
            .get_or_insert_with(|| tree.add(self.parent, kinds.content, inside, Vec::new()))
    }
}

fn close(tree: &mut Tree, level: &Level, tag: &Tag) {
    if let Some(content) = level.content {
        tree.node_mut(content).span.end = tag.span.start;
    }
    tree.node_mut(level.parent).span.end = tag.span.end;
}

/// Text that is more than space, with its lines if there are several.
fn add_text(tree: &mut Tree, kinds: &Kinds, level: &mut Level, text: &[u8], span: Range<usize>) {
    if text[span.clone()].trim_ascii().is_empty() {
        return;
    }
    let content = level.content(tree, kinds);
    let id = tree.add(content, kinds.text, span.clone(), Vec::new());
    let mut at = span.start;
    for line in text[span.clone()].split_inclusive(|&byte| byte == b'\n') {
        if line.len() < span.len() {
            tree.add(id, kinds.line, at..at + line.len(), Vec::new());
        }
        at += line.len();
    }
}

/// `name`, `name=value` and `name="value"`, where white space separates them.
fn add_attributes(tree: &mut Tree, kinds: &Kinds, element: NodeId, text: &[u8], tag: &Tag) {
    if tag.name.is_empty() {
        return;
    }
    let end = tag.span.end - if text[..tag.span.end].ends_with(b"/>") { 2 } else { 1 };
    let mut at = tag.name.end;
    while at < end {
        at += text[at..end].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let start = at;
        while at < end && !text[at].is_ascii_whitespace() {
            at += match text[at] {
                quote @ (b'"' | b'\'') => quoted(&text[at..end], quote).unwrap_or(1),
                _ => 1,
            };
        }
        if start < at {
            tree.add(element, kinds.attribute, start..at, Vec::new());
        }
    }
}

/// How far tags are nested.
pub(super) fn depth(text: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for tag in read(text) {
        match tag.form {
            Form::Open => depth += 1,
            Form::Close => depth -= 1,
            Form::Alone => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn read(text: &[u8]) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut at = 0;
    let mut marks = Marks::default();
    while let Some(begin) = text[at..].iter().position(|&byte| byte == b'<') {
        at += begin;
        match marks.tag(text, at) {
            Some(tag) => {
                at = tag.span.end;
                tags.push(tag);
            }
            None => at += 1,
        }
    }
    only_pairs(text, &mut tags);
    tags
}

/// End marks that are nowhere any more, and need not be looked for again.
#[derive(Default)]
struct Marks {
    gone: Vec<&'static [u8]>,
}

impl Marks {
    /// The tag that begins here, if it is one and ends.
    fn tag(&mut self, text: &[u8], at: usize) -> Option<Tag> {
        let rest = &text[at..];
        let special: [(&[u8], &'static [u8]); 4] =
            [(b"<!--", b"-->"), (b"<![CDATA[", b"]]>"), (b"<?", b"?>"), (b"<!", b">")];
        for (begin, end) in special {
            if rest.starts_with(begin) {
                let length = begin.len() + self.find(&rest[begin.len()..], end)? + end.len();
                return Some(Tag { form: Form::Alone, span: at..at + length, name: at..at });
            }
        }
        let closes = rest.get(1) == Some(&b'/');
        let name = at + if closes { 2 } else { 1 };
        let in_name = |&&byte: &&u8| !byte.is_ascii_whitespace() && !b"<>/=\"'".contains(&byte);
        let name = name..name + text[name..].iter().take_while(in_name).count();
        if name.is_empty() || text[name.start].is_ascii_digit() {
            return None;
        }
        let mut end = name.end;
        loop {
            match *text.get(end)? {
                b'>' => break,
                b'<' => return None,
                quote @ (b'"' | b'\'') if text[end - 1] == b'=' => {
                    end += quoted(&text[end..], quote)?;
                }
                _ => end += 1,
            }
        }
        let form = match (closes, text[end - 1]) {
            (true, _) => Form::Close,
            (false, b'/') => Form::Alone,
            (false, _) => Form::Open,
        };
        Some(Tag { form, span: at..end + 1, name })
    }

    fn find(&mut self, text: &[u8], end: &'static [u8]) -> Option<usize> {
        if self.gone.contains(&end) {
            return None;
        }
        let found = text.windows(end.len()).position(|window| window == end);
        if found.is_none() {
            self.gone.push(end);
        }
        found
    }
}

/// The length of what is quoted, with the quotes.
fn quoted(text: &[u8], quote: u8) -> Option<usize> {
    text[1..].iter().position(|&byte| byte == quote).map(|length| length + 2)
}

/// Takes tags without a partner for such that stand alone.
fn only_pairs(text: &[u8], tags: &mut [Tag]) {
    let mut open: Vec<usize> = Vec::new();
    let mut of_name: FxHashMap<&[u8], usize> = FxHashMap::default();
    let mut alone = Vec::new();
    for (index, tag) in tags.iter().enumerate() {
        let name = &text[tag.name.clone()];
        match tag.form {
            Form::Open => {
                open.push(index);
                *of_name.entry(name).or_default() += 1;
            }
            Form::Close if of_name.get(name).is_none_or(|&count| count == 0) => alone.push(index),
            Form::Close => {
                while let Some(index) = open.pop() {
                    let other = &text[tags[index].name.clone()];
                    *of_name.entry(other).or_default() -= 1;
                    if other == name {
                        break;
                    }
                    alone.push(index);
                }
            }
            Form::Alone => {}
        }
    }
    for index in alone.into_iter().chain(open) {
        tags[index].form = Form::Alone;
    }
}
