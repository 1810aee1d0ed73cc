//! What tree-sitter makes of a text, as a list of nodes, parents before their children.

use super::Language;
use crate::brackets;
use std::ops::{ControlFlow, Range};
use tree_sitter::{ParseOptions, ParseState, Parser, Point};

pub(super) struct Parsed {
    pub tree: tree_sitter::Tree,
    pub nodes: Vec<Parse>,
}

/// A node of tree-sitter's.
pub(super) struct Parse {
    pub symbol: &'static str,
    pub field: Option<&'static str>,
    /// Not just a sign or a word of the grammar's own.
    pub named: bool,
    /// It may stand anywhere, as a comment does.
    pub extra: bool,
    /// It stands for what fits nothing.
    pub error: bool,
    /// There is something in it that fits nothing.
    pub has_error: bool,
    pub span: Range<usize>,
    pub start: Point,
    pub end: Point,
    pub children: Vec<usize>,
}

/// How deep elements may be nested for the parsers of markup, which take time and room for
/// all open elements at each tag, and give up at some depth.
const TAGS: usize = 100;

/// For how many steps the parser may go on: this many, and so many for each byte. A text that
/// fits takes some ten for each byte. Time is no measure: the same text has to have the same
/// tree on a busy machine.
const STEPS: usize = 1_000_000;
const STEPS_FOR_A_BYTE: usize = 50;
/// A step over what does not fit takes as long as so many others.
const UNFIT: usize = 30;
/// The parser asks once in so many steps whether to go on.
const STEPS_AT_ONCE: usize = 100;

pub(super) fn parse(language: &Language, text: &[u8]) -> Option<Parsed> {
    if language.tags.is_some() && brackets::depth_of_tags(text) > TAGS {
        return None;
    }
    let tree = Reader::new(language)?.read(&[text], None, false)?;
    let nodes = nodes(&tree);
    let wrong: usize = unfit(&nodes).map(|node| node.span.len()).sum();
    (wrong <= text.len() / 2).then_some(Parsed { tree, nodes })
}

/// What fits nothing and is not a part of something that does not.
fn unfit(nodes: &[Parse]) -> impl Iterator<Item = &Parse> {
    let mut end = 0;
    nodes.iter().filter(move |node| {
        let counts = node.error && node.span.start >= end;
        if counts {
            end = node.span.end;
        }
        counts
    })
}

pub(super) struct Reader {
    parser: Parser,
    /// How many steps all texts together have taken.
    pub steps: usize,
}

impl Reader {
    pub fn new(language: &Language) -> Option<Reader> {
        let mut parser = Parser::new();
        parser.set_language(&(language.grammar)()).ok()?;
        Some(Reader { parser, steps: 0 })
    }

    /// Reads a text in several pieces, from what is known of an earlier text, unless that
    /// takes too long, or something does not fit though it should.
    pub fn read(
        &mut self,
        pieces: &[&[u8]],
        earlier: Option<&tree_sitter::Tree>,
        fits: bool,
    ) -> Option<tree_sitter::Tree> {
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        let most = STEPS + STEPS_FOR_A_BYTE * length;
        let mut steps = STEPS_AT_ONCE;
        let mut ask = |state: &ParseState| {
            steps += if state.has_error() { UNFIT * STEPS_AT_ONCE } else { STEPS_AT_ONCE };
            let over = steps > most || fits && state.has_error();
            if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut from = |at: usize, _| {
            let mut at = at;
            for piece in pieces {
                if at < piece.len() {
                    return &piece[at..];
                }
                at -= piece.len();
            }
            &[]
        };
        let options = ParseOptions::new().progress_callback(&mut ask);
        let tree = self.parser.parse_with_options(&mut from, earlier, Some(options));
        self.steps += steps;
        if tree.is_none() {
            self.parser.reset();
        }
        tree
    }
}

/// All nodes that have any text.
fn nodes(tree: &tree_sitter::Tree) -> Vec<Parse> {
    let mut nodes: Vec<Parse> = Vec::new();
    let mut cursor = tree.walk();
    let mut parents: Vec<usize> = Vec::new();
    loop {
        let node = cursor.node();
        let empty = node.start_byte() == node.end_byte() && !parents.is_empty();
        if !empty {
            let index = nodes.len();
            if let Some(&parent) = parents.last() {
                nodes[parent].children.push(index);
            }
            nodes.push(Parse {
                symbol: node.kind(),
                field: cursor.field_name(),
                named: node.is_named(),
                extra: node.is_extra(),
                error: node.is_error(),
                has_error: node.has_error(),
                span: node.byte_range(),
                start: node.start_position(),
                end: node.end_position(),
                children: Vec::new(),
            });
            if cursor.goto_first_child() {
                parents.push(index);
                continue;
            }
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return nodes;
            }
            parents.pop();
        }
    }
}
