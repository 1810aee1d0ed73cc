//! Asks the parser whether a text would still fit with a change.

use super::Language;
use super::parse::{Parse, Parsed, Reader};
use rustc_hash::FxHashMap;
use std::ops::Range;
use tree_sitter::{InputEdit, Point};
use why_tree::Spacing;

pub(super) struct Trial<'a> {
    reader: Reader,
    parsed: &'a Parsed,
    text: &'a [u8],
    spacing: Spacing,
    /// The whole text fits.
    fits: bool,
    /// Which of the outermost parts fit alone.
    alone: FxHashMap<usize, bool>,
}

/// How many steps all trials together may take.
const STEPS: usize = 3_000_000;

impl<'a> Trial<'a> {
    pub fn new(language: &Language, parsed: &'a Parsed, text: &'a [u8]) -> Option<Trial<'a>> {
        let reader = Reader::new(language)?;
        let fits = !parsed.tree.root_node().has_error();
        let spacing = language.spacing();
        let alone = FxHashMap::default();
        Some(Trial { reader, parsed, text, spacing, fits, alone })
    }

    /// Whether there may be more.
    pub fn goes_on(&self) -> bool {
        self.reader.steps < STEPS
    }

    /// Whether a node is still one of its kind, without errors, with another text in it.
    pub fn fits(
        &mut self,
        parent: &Parse,
        span: Range<usize>,
        points: (Point, Point),
        with: &[u8],
    ) -> bool {
        let mut with = with.to_vec();
        let around = (self.text[..span.start].last(), self.text.get(span.end));
        if let (true, (Some(&last), Some(&first))) = (with.is_empty(), around) {
            with.extend_from_slice(self.spacing.between(last, first));
        }
        let context = self.context(parent);
        let whole = context == (0..self.text.len());
        let earlier = whole.then(|| self.edited(&span, points, &with));
        let pieces =
            [&self.text[context.start..span.start], &with, &self.text[span.end..context.end]];
        let fits = self.fits || !whole;
        let Some(tree) = self.reader.read(&pieces, earlier.as_ref(), fits) else {
            return false;
        };
        if fits && tree.root_node().has_error() {
            return false;
        }
        let mut now = parent.span.start - context.start..parent.span.end - context.start;
        now.end = now.end + with.len() - span.len();
        is_there(&tree, &pieces, now, parent.symbol)
    }

    /// What has to be parsed to see whether a node fits: the outermost part in which it lies,
    /// if that fits alone and is not most of the text anyway.
    fn context(&mut self, node: &Parse) -> Range<usize> {
        let nodes = &self.parsed.nodes;
        let whole = 0..self.text.len();
        let outermost = &nodes[0].children;
        let at = outermost.partition_point(|&index| nodes[index].span.start <= node.span.start);
        let Some(&index) = at.checked_sub(1).and_then(|at| outermost.get(at)) else {
            return whole;
        };
        let span = nodes[index].span.clone();
        let inside = span.start <= node.span.start && node.span.end <= span.end;
        if !inside || node.span == nodes[0].span || span.len() > self.text.len() / 2 {
            return whole;
        }
        let reader = &mut self.reader;
        let alone = self.alone.entry(index).or_insert_with(|| {
            let tree = reader.read(&[&self.text[span.clone()]], None, true);
            tree.is_some_and(|tree| !tree.root_node().has_error())
        });
        if *alone { span } else { whole }
    }

    /// What is known of the text, for the parser to start from.
    fn edited(
        &self,
        span: &Range<usize>,
        (start, end): (Point, Point),
        with: &[u8],
    ) -> tree_sitter::Tree {
        let mut tree = self.parsed.tree.clone();
        tree.edit(&InputEdit {
            start_byte: span.start,
            old_end_byte: span.end,
            new_end_byte: span.start + with.len(),
            start_position: start,
            old_end_position: end,
            new_end_position: advance(start, with),
        });
        tree
    }
}

/// Whether a symbol without errors is where it was, but for space at its ends.
fn is_there(
    tree: &tree_sitter::Tree,
    pieces: &[&[u8]; 3],
    now: Range<usize>,
    symbol: &str,
) -> bool {
    let byte = |at: usize| {
        let mut at = at;
        for piece in pieces {
            if let Some(&byte) = piece.get(at) {
                return Some(byte);
            }
            at -= piece.len();
        }
        None
    };
    let space = |at: usize| byte(at).is_some_and(|byte| byte.is_ascii_whitespace());
    let Range { start: mut first, end: mut last } = now;
    while first < last && space(first) {
        first += 1;
    }
    while last > first && space(last - 1) {
        last -= 1;
    }
    let root = tree.root_node();
    let mut node = root.descendant_for_byte_range(first, last);
    while let Some(found) = node {
        let mut beyond = (found.start_byte()..first).chain(last..found.end_byte());
        if found.id() != root.id() && !beyond.all(space) {
            return false;
        }
        if found.kind() == symbol {
            return !found.has_error();
        }
        node = found.parent();
    }
    false
}

/// Where a text ends that begins there.
fn advance(start: Point, text: &[u8]) -> Point {
    let lines = text.iter().filter(|&&byte| byte == b'\n').count();
    let last = text.iter().rev().take_while(|&&byte| byte != b'\n').count();
    let column = if lines == 0 { start.column + last } else { last };
    Point { row: start.row + lines, column }
}
