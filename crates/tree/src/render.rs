//! The text of a tree some of whose parts are replaced.

use crate::{NodeId, Role, Tree};
use std::ops::Range;

/// What is written for a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown<'a> {
    /// Its own text and its children, as these are shown.
    Kept,
    /// Its minimal text.
    Minimal,
    /// Some other text.
    Text(&'a [u8]),
    /// Another part: its own text and its children, as these are shown. How that part itself
    /// would be shown in its own place does not matter here.
    Part(NodeId),
}

/// What is still to be written.
enum Piece {
    Node(NodeId),
    /// Text between children.
    Own(Range<usize>),
    /// Text between children, of which the one in front was left out.
    OwnAfterGap(Range<usize>),
    /// Text between children that were both left out.
    OwnInGap(Range<usize>),
}

/// White space; where lines matter, one that ends a line is more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Space {
    None,
    Inline,
    Line,
}

impl Space {
    fn at_the_end_of(text: &[u8]) -> Space {
        let space = &text[text.trim_ascii_end().len()..];
        match space {
            [] => Space::None,
            _ if space.contains(&b'\n') => Space::Line,
            _ => Space::Inline,
        }
    }
}

struct Output<'a> {
    tree: &'a Tree,
    text: &'a [u8],
    written: Vec<u8>,
    /// Where in the text that ended which was written last, if it is from there.
    end: Option<usize>,
    /// The space that was written last, if it lies between parts.
    space: Space,
}

impl Tree {
    /// The text that remains when each part is shown as it is said. A part that is left out
    /// takes a separator along, and the white space behind it where there is some before it or
    /// the next part is left out, too.
    pub fn render<'a>(&self, text: &[u8], shown: impl Fn(NodeId) -> Shown<'a>) -> Vec<u8> {
        let mut output = Output {
            tree: self,
            text,
            written: Vec::with_capacity(text.len()),
            end: Some(0),
            space: Space::Line,
        };
        let mut rest = vec![Piece::Node(Tree::ROOT)];
        while let Some(piece) = rest.pop() {
            match piece {
                Piece::Own(span) => output.own(span),
                Piece::OwnAfterGap(span) => output.own_unless_space(span, output.space),
                Piece::OwnInGap(span) => output.own_unless_space(span, Space::Line),
                Piece::Node(id) => match shown(id) {
                    Shown::Minimal => output.foreign(&self.node(id).minimal),
                    Shown::Text(other) => output.foreign(other),
                    Shown::Part(other) => output.kept(other, &shown, &mut rest),
                    Shown::Kept => output.kept(id, &shown, &mut rest),
                },
            }
        }
        output.written
    }

    /// Which children of a node are left out, separators that go with others included; or
    /// nothing, if the node is to be replaced for want of parts.
    fn left_out<'a>(&self, id: NodeId, shown: &impl Fn(NodeId) -> Shown<'a>) -> Option<Vec<bool>> {
        let node = self.node(id);
        let gone = |&child: &NodeId| match shown(child) {
            Shown::Minimal => self.node(child).minimal.is_empty(),
            Shown::Text(other) => other.is_empty(),
            Shown::Kept | Shown::Part(_) => false,
        };
        let mut out: Vec<bool> = node.children.iter().map(gone).collect();
        let role = |index: usize| self.node(node.children[index]).role;
        let separates = |&index: &usize| role(index) == Role::Separator;
        let mut parts = (0..out.len()).filter(|index| !separates(index));
        if node.nonempty && !node.children.is_empty() {
            let first = parts.next();
            if first.is_some_and(|first| out[first]) && parts.all(|part| out[part]) {
                return None;
            }
        }
        // Each part that is left out takes the next separator along …
        let mut owed = 0_usize;
        // … and those at the end take the separators that nothing stands behind any more.
        let mut loose = Vec::new();
        for (index, out) in out.iter_mut().enumerate() {
            match (role(index), *out) {
                (Role::Separator, true) => owed = owed.saturating_sub(1),
                (Role::Separator, false) if owed > 0 => {
                    owed -= 1;
                    *out = true;
                }
                (Role::Separator, false) => loose.push(index),
                (Role::Part, true) => owed += 1,
                (Role::Ended, true) => {}
                (Role::Part | Role::Ended, false) => {
                    owed = 0;
                    loose.clear();
                }
            }
        }
        for index in loose.into_iter().rev().take(owed) {
            out[index] = true;
        }
        Some(out)
    }
}

impl Output<'_> {
    fn kept<'a>(
        &mut self,
        id: NodeId,
        shown: &impl Fn(NodeId) -> Shown<'a>,
        rest: &mut Vec<Piece>,
    ) {
        let node = self.tree.node(id);
        if node.children.is_empty() {
            return self.part(node.span.clone());
        }
        let Some(out) = self.tree.left_out(id, shown) else {
            return self.foreign(&node.minimal);
        };
        let first = rest.len();
        let mut at = node.span.start;
        let mut after_gap = false;
        for (&child, &out) in node.children.iter().zip(&out) {
            let span = self.tree.node(child).span.clone();
            let own = at..span.start;
            rest.push(match (after_gap, out) {
                (true, true) => Piece::OwnInGap(own),
                (true, false) => Piece::OwnAfterGap(own),
                (false, _) => Piece::Own(own),
            });
            if !out {
                rest.push(Piece::Node(child));
            }
            after_gap = out;
            at = span.end;
        }
        rest.push(Piece::Own(at..node.span.end));
        rest[first..].reverse();
    }

    /// A text that is not needed if it is no more than such space.
    fn own_unless_space(&mut self, span: Range<usize>, enough: Space) {
        let own = &self.text[span.clone()];
        if !own.trim_ascii().is_empty() || Space::at_the_end_of(own) > enough {
            self.own(span);
        }
    }

    fn own(&mut self, span: Range<usize>) {
        if !span.is_empty() {
            self.part(span.clone());
            self.space = Space::at_the_end_of(&self.text[span]);
        }
    }

    /// A part of the text.
    fn part(&mut self, span: Range<usize>) {
        if self.end != Some(span.start) {
            self.separate(&self.text[span.clone()]);
        }
        if !span.is_empty() {
            self.written.extend_from_slice(&self.text[span.clone()]);
            self.end = Some(span.end);
            self.space = Space::None;
        }
    }

    /// A text from elsewhere.
    fn foreign(&mut self, other: &[u8]) {
        if !other.is_empty() {
            self.separate(other);
            self.written.extend_from_slice(other);
            self.end = None;
            self.space = Space::None;
        }
    }

    /// Makes sure that what comes next stays apart from what has been written.
    fn separate(&mut self, next: &[u8]) {
        if let (Some(&last), Some(&first)) = (self.written.last(), next.first()) {
            let between = self.tree.spacing.between(last, first);
            self.written.extend_from_slice(between);
        }
    }
}
