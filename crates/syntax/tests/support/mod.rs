//! What all tests of trees need.

#![allow(dead_code, reason = "each test uses a part of it")]

use nix::time::{ClockId, clock_gettime};
use std::time::Duration;
use why_tree::{NodeId, Role, Shown, Tree};

/// What this thread has used of the processor's time: however busy the machine is.
pub fn used() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
}

/// Numbers that look random and are the same each time.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        ((self.next() >> 33) as usize) % limit
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// Asserts what holds for every tree: parents come before their children, children lie in
/// their parents one behind the other, nothing is empty but perhaps the root, and with all
/// parts kept the text is the text.
pub fn check(tree: &Tree, text: &[u8]) {
    assert_eq!(tree.node(Tree::ROOT).span, 0..text.len());
    for id in tree.ids() {
        let node = tree.node(id);
        assert!(node.span.start <= node.span.end && node.span.end <= text.len());
        assert_eq!(node.parent.is_none(), id == Tree::ROOT);
        assert!(id == Tree::ROOT || !node.span.is_empty(), "{:?} is empty", node.span);
        let mut at = node.span.start;
        for &child in &node.children {
            assert!(child > id);
            assert_eq!(tree.node(child).parent, Some(id));
            let span = &tree.node(child).span;
            assert!(at <= span.start && span.end <= node.span.end, "{span:?} in {:?}", node.span);
            at = span.end;
        }
    }
    assert_eq!(tree.render(text, |_| Shown::Kept), text);
}

/// The tree as text: a line for each part, with its kind, its text and what may replace it.
pub fn dump(tree: &Tree, text: &[u8]) -> String {
    let mut dump = String::new();
    let mut depth = vec![0; tree.len()];
    for id in tree.ids() {
        let node = tree.node(id);
        if let Some(parent) = node.parent {
            depth[id.0 as usize] = depth[parent.0 as usize] + 1;
        }
        let indent = "  ".repeat(depth[id.0 as usize]);
        let shown = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        let kind = tree.kind_name(node.kind);
        let role = if node.role == Role::Separator { " between" } else { "" };
        let nonempty = if node.nonempty { " nonempty" } else { "" };
        dump += &format!(
            "{indent}{kind}{role}{nonempty} {:?} {:?}\n",
            shown(&text[node.span.clone()]),
            shown(&node.minimal)
        );
    }
    dump
}

/// The first part of this kind with this text.
pub fn find(tree: &Tree, text: &[u8], kind: &str, part: &str) -> NodeId {
    let is = |id: &NodeId| {
        let node = tree.node(*id);
        tree.kind_name(node.kind) == kind && &text[node.span.clone()] == part.as_bytes()
    };
    tree.ids().find(is).unwrap_or_else(|| {
        panic!("no {kind} {part:?} in\n{}", dump(tree, text));
    })
}

/// The text with one part replaced by its minimal text.
pub fn without(tree: &Tree, text: &[u8], part: NodeId) -> String {
    let shown = |id| if id == part { Shown::Minimal } else { Shown::Kept };
    String::from_utf8_lossy(&tree.render(text, shown)).into_owned()
}

/// The text with random parts replaced by their minimal texts, or by others that fit.
pub fn vary(tree: &Tree, text: &[u8], random: &mut Random) -> Vec<u8> {
    let rarely = 2 + random.below(8);
    let mut shown = vec![Shown::Kept; tree.len()];
    for id in tree.ids() {
        let other = NodeId(random.below(tree.len()) as u32);
        shown[id.0 as usize] = match random.below(rarely) {
            0 => Shown::Minimal,
            1 if within(tree, other, id) && tree.fits(other, id) => Shown::Part(other),
            _ => Shown::Kept,
        };
    }
    tree.render(text, |id| shown[id.0 as usize])
}

fn within(tree: &Tree, part: NodeId, whole: NodeId) -> bool {
    let mut at = tree.node(part).parent;
    while let Some(parent) = at {
        if parent == whole {
            return true;
        }
        at = tree.node(parent).parent;
    }
    false
}
