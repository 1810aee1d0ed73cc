//! Nested brackets and quoted strings. What lies between two brackets is a list of items:
//! those that commas separate, or else lines and what a semicolon ends.

use crate::tokens::{self, TokenKind};
use std::ops::Range;
use why_tree::{Kind, NodeId, Role, Spacing, Tree};

/// What matters of a token here.
enum Sign {
    /// A bracket that is closed.
    Open,
    /// One that closes.
    Close,
    Comma,
    Semicolon,
    String,
    Other,
}

struct Token {
    sign: Sign,
    span: Range<usize>,
    /// It is the first of its line.
    begins_line: bool,
}

/// What lies between two brackets, or the whole text.
#[derive(Default)]
struct Shape {
    commas: usize,
    semicolons: usize,
}

struct Kinds {
    group: Kind,
    content: Kind,
    item: Kind,
    comma: Kind,
    string: Kind,
}

/// A list of items that is being built.
struct Level {
    /// The whole text, or the group between whose brackets it lies.
    parent: NodeId,
    /// The whole text, or all items of a group, if there are any.
    content: Option<NodeId>,
    item: Option<NodeId>,
    by_commas: bool,
}

impl Level {
    fn content(&mut self, tree: &mut Tree, kinds: &Kinds) -> NodeId {
        *self.content.get_or_insert_with(|| {
            let inside = tree.node(self.parent).span.end;
            tree.add(self.parent, kinds.content, inside..inside, Vec::new())
        })
    }
}

pub(super) fn tree(text: &[u8]) -> Tree {
    let tokens = read(text);
    let mut shapes = shapes(&tokens).into_iter();
    let mut tree = Tree::rooted("text", 0..text.len(), Vec::new());
    tree.set_spacing(Spacing::usual());
    let kinds = Kinds {
        group: tree.kind("group"),
        content: tree.kind("content"),
        item: tree.kind("item"),
        comma: tree.kind("comma"),
        string: tree.kind("string"),
    };
    tree.widen(kinds.content, kinds.group);
    let mut level = |parent: NodeId, content: Option<NodeId>| {
        let shape = shapes.next().unwrap_or_default();
        let by_commas = shape.commas > 0 && shape.semicolons == 0;
        Level { parent, content, item: None, by_commas }
    };
    let mut levels = vec![level(Tree::ROOT, Some(Tree::ROOT))];
    for token in &tokens {
        if let Sign::Close = token.sign {
            close(&mut tree, &mut levels, token);
            continue;
        }
        let Some(inner) = levels.last_mut() else { break };
        let content = inner.content(&mut tree, &kinds);
        if token.begins_line && !inner.by_commas {
            inner.item = None;
        }
        if let Sign::Comma = token.sign
            && inner.by_commas
        {
            let id = tree.add(content, kinds.comma, token.span.clone(), b",".to_vec());
            tree.node_mut(id).role = Role::Separator;
            inner.item = None;
            continue;
        }
        let new_item = || tree.add(content, kinds.item, token.span.clone(), Vec::new());
        let item = *inner.item.get_or_insert_with(new_item);
        tree.node_mut(item).span.end = token.span.end;
        match token.sign {
            Sign::Semicolon => {
                tree.node_mut(item).role = Role::Ended;
                inner.item = None;
            }
            Sign::String => {
                let quotes = [text[token.span.start], text[token.span.end - 1]];
                tree.add(item, kinds.string, token.span.clone(), quotes.to_vec());
            }
            Sign::Open => {
                let group = tree.add(item, kinds.group, token.span.clone(), Vec::new());
                levels.push(level(group, None));
            }
            Sign::Other | Sign::Comma | Sign::Close => {}
        }
    }
    tree
}

/// Ends a list, and with it its group and what the group is a part of.
fn close(tree: &mut Tree, levels: &mut Vec<Level>, token: &Token) {
    let Some(ended) = levels.pop() else { return };
    if let Some(content) = ended.content {
        tree.node_mut(content).span.end = token.span.start;
    }
    let item = levels.last().and_then(|outer| outer.item);
    for id in [ended.parent].into_iter().chain(item) {
        tree.node_mut(id).span.end = token.span.end;
    }
}

fn read(text: &[u8]) -> Vec<Token> {
    let mut read = Vec::new();
    let mut end = 0;
    for token in tokens::tokens(text) {
        let begins_line = text[end..token.span.start].contains(&b'\n');
        end = token.span.end;
        let sign = match (token.kind, &text[token.span.clone()]) {
            (TokenKind::String, _) => Sign::String,
            (TokenKind::Sign, b"(" | b"[" | b"{") => Sign::Open,
            (TokenKind::Sign, b")" | b"]" | b"}") => Sign::Close,
            (TokenKind::Sign, b",") => Sign::Comma,
            (TokenKind::Sign, b";") => Sign::Semicolon,
            _ => Sign::Other,
        };
        read.push(Token { sign, span: token.span, begins_line });
    }
    only_pairs(text, &mut read);
    read
}

/// Takes brackets without a partner for other tokens. A bracket that closes finds the last
/// of its form that is open, across others that are never closed.
fn only_pairs(text: &[u8], tokens: &mut [Token]) {
    let form = |bracket: u8| match bracket {
        b'(' | b')' => 0,
        b'[' | b']' => 1,
        _ => 2,
    };
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut of_form = [0_usize; 3];
    let mut alone = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let form = form(text[token.span.start]);
        match token.sign {
            Sign::Open => {
                open.push((index, form));
                of_form[form] += 1;
            }
            Sign::Close if of_form[form] == 0 => alone.push(index),
            Sign::Close => {
                while let Some((index, other)) = open.pop() {
                    of_form[other] -= 1;
                    if other == form {
                        break;
                    }
                    alone.push(index);
                }
            }
            _ => {}
        }
    }
    for index in alone.into_iter().chain(open.into_iter().map(|(index, _)| index)) {
        tokens[index].sign = Sign::Other;
    }
}

/// What each list consists of, in the order in which they begin.
fn shapes(tokens: &[Token]) -> Vec<Shape> {
    let mut shapes = vec![Shape::default()];
    let mut within = vec![0];
    for token in tokens {
        let Some(&inner) = within.last() else { break };
        match token.sign {
            Sign::Open => {
                within.push(shapes.len());
                shapes.push(Shape::default());
            }
            Sign::Close => {
                within.pop();
            }
            Sign::Comma => shapes[inner].commas += 1,
            Sign::Semicolon => shapes[inner].semicolons += 1,
            Sign::String | Sign::Other => {}
        }
    }
    shapes
}
