//! A text as a tree of parts, each with what may stand in its place.
//!
//! Who reads a format builds such a tree; who makes the text smaller needs to know nothing
//! else of the format. Whatever parts are replaced, in any combination, the builder takes
//! the result to be as well formed as the text was.

use std::ops::Range;

/// A part of the text, by its number: parents come before their children, and children in
/// the order of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// What a part is: a symbol of a grammar, a token, a line. Parts of one kind may stand in
/// each other's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub u32);

#[derive(Clone, Debug)]
pub struct Node {
    pub kind: Kind,
    /// Where it stands in the text.
    pub span: Range<usize>,
    pub parent: Option<NodeId>,
    /// What lies between them belongs to the part itself.
    pub children: Vec<NodeId>,
    /// The smallest text that may stand in its place: nothing, if it may be left out.
    pub minimal: Vec<u8>,
}

#[derive(Clone, Debug)]
pub struct Tree {
    /// The names of kinds.
    kinds: Vec<String>,
    nodes: Vec<Node>,
}

impl Tree {
    /// A tree that is its root only, which may not be left out.
    pub fn new(kind: &str, text: &[u8]) -> Tree {
        let root = Node {
            kind: Kind(0),
            span: 0..text.len(),
            parent: None,
            children: Vec::new(),
            minimal: text.to_vec(),
        };
        Tree { kinds: vec![kind.to_owned()], nodes: vec![root] }
    }

    pub const ROOT: NodeId = NodeId(0);

    /// The kind of this name.
    pub fn kind(&mut self, name: &str) -> Kind {
        let found = self.kinds.iter().position(|known| known == name);
        let index = found.unwrap_or_else(|| {
            self.kinds.push(name.to_owned());
            self.kinds.len() - 1
        });
        Kind(index as u32)
    }

    pub fn kind_name(&self, kind: Kind) -> &str {
        &self.kinds[kind.0 as usize]
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
        let node = Node { kind, span, parent: Some(parent), children: Vec::new(), minimal };
        self.nodes.push(node);
        self.nodes[parent.0 as usize].children.push(id);
        id
    }

    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
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
