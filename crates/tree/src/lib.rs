//! A text as a tree of parts, each with what may stand in its place.
//!
//! Who reads a format builds such a tree; who makes the text smaller needs to know nothing
//! else of the format. Whatever parts are replaced, in any combination, the builder takes
//! the result of [`Tree::render`] to be as well formed as the text was.

mod render;
mod spacing;

pub use render::Shown;
pub use spacing::Spacing;

use std::collections::HashMap;
use std::ops::Range;

/// A part of the text, by its number: parents come before their children, and children in
/// the order of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// What a part is: a symbol of a grammar, a token, a line. Parts of one kind may stand in
/// each other's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub u32);

/// How a part stands among the others of its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Part,
    /// It stands between others, and goes with a neighbour that is left out: with the one
    /// in front of it, or, where that stays, with the last one.
    Separator,
    /// It brings along what ends it, so no separator goes with it.
    Ended,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub kind: Kind,
    /// What its place asks for: more than its own kind may stand there ([`Tree::fits`]), or
    /// nothing but the part itself.
    pub place: Kind,
    /// Where it stands in the text.
    pub span: Range<usize>,
    pub parent: Option<NodeId>,
    /// What lies between them belongs to the part itself.
    pub children: Vec<NodeId>,
    /// The smallest text that may stand in its place: nothing, if it may be left out.
    pub minimal: Vec<u8>,
    pub role: Role,
    /// One of its parts has to stay: with all of them left out, its minimal text takes its
    /// place.
    pub nonempty: bool,
}

#[derive(Clone, Debug)]
pub struct Tree {
    kinds: Vec<KindInfo>,
    by_name: HashMap<String, Kind>,
    nodes: Vec<Node>,
    spacing: Spacing,
}

#[derive(Clone, Debug)]
struct KindInfo {
    name: String,
    /// What asks for one of these may be given this kind, too.
    wider: Vec<Kind>,
}

impl Tree {
    /// A tree that is its root only, which may not be left out.
    pub fn new(kind: &str, text: &[u8]) -> Tree {
        Tree::rooted(kind, 0..text.len(), text.to_vec())
    }

    /// A tree that is its root only.
    pub fn rooted(kind: &str, span: Range<usize>, minimal: Vec<u8>) -> Tree {
        let mut tree = Tree {
            kinds: Vec::new(),
            by_name: HashMap::new(),
            nodes: Vec::new(),
            spacing: Spacing::none(),
        };
        let kind = tree.kind(kind);
        tree.nodes.push(Node {
            kind,
            place: kind,
            span,
            parent: None,
            children: Vec::new(),
            minimal,
            role: Role::Part,
            nonempty: false,
        });
        tree
    }

    pub const ROOT: NodeId = NodeId(0);

    /// The kind of this name.
    pub fn kind(&mut self, name: &str) -> Kind {
        if let Some(&known) = self.by_name.get(name) {
            return known;
        }
        let kind = Kind(self.kinds.len() as u32);
        self.kinds.push(KindInfo { name: name.to_owned(), wider: Vec::new() });
        self.by_name.insert(name.to_owned(), kind);
        kind
    }

    pub fn kind_name(&self, kind: Kind) -> &str {
        &self.kinds[kind.0 as usize].name
    }

    /// What asks for the wider kind may be given the narrower one.
    pub fn widen(&mut self, narrow: Kind, wide: Kind) {
        let wider = &mut self.kinds[narrow.0 as usize].wider;
        if narrow != wide && !wider.contains(&wide) {
            wider.push(wide);
        }
    }

    /// Whether the text of one part may stand in the place of another.
    pub fn fits(&self, part: NodeId, place: NodeId) -> bool {
        let place = self.node(place).place;
        self.places_for(self.node(part).kind).any(|fitting| fitting == place)
    }

    /// All that may be given a text of this kind.
    pub fn places_for(&self, kind: Kind) -> impl Iterator<Item = Kind> {
        let wider = self.kinds[kind.0 as usize].wider.iter().copied();
        std::iter::once(kind).chain(wider)
    }

    /// What has to stand between texts that become neighbours.
    pub fn set_spacing(&mut self, spacing: Spacing) {
        self.spacing = spacing;
    }

    /// Adds a part behind the others of its parent.
    pub fn add(
        &mut self,
        parent: NodeId,
        kind: Kind,
        span: Range<usize>,
        minimal: Vec<u8>,
    ) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node {
            kind,
            place: kind,
            span,
            parent: Some(parent),
            children: Vec::new(),
            minimal,
            role: Role::Part,
            nonempty: false,
        });
        self.nodes[parent.0 as usize].children.push(id);
        id
    }

    /// Adds the parts of a tree that another has made of the text from `start` on, all but its
    /// root, behind the others of a parent.
    pub fn graft(&mut self, parent: NodeId, start: usize, other: &Tree) {
        let kinds: Vec<Kind> = other.kinds.iter().map(|kind| self.kind(&kind.name)).collect();
        let here = |kind: Kind| kinds[kind.0 as usize];
        for (narrow, info) in other.kinds.iter().enumerate() {
            info.wider.iter().for_each(|&wide| self.widen(kinds[narrow], here(wide)));
        }
        let mut ids = vec![parent];
        for node in &other.nodes[1..] {
            let around = node.parent.map_or(parent, |parent| ids[parent.0 as usize]);
            let span = start + node.span.start..start + node.span.end;
            let id = self.add(around, here(node.kind), span, node.minimal.clone());
            ids.push(id);
            let added = self.node_mut(id);
            (added.place, added.role, added.nonempty) =
                (here(node.place), node.role, node.nonempty);
        }
    }

    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// For builders: what a part is once it has been added.
    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.0 as usize]
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        false
    }

    /// All parts, parents before their children.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }
}
