//! A text, its tree, and what has been put in the place of which part.

use std::rc::Rc;
use why_tree::{NodeId, Shown, Tree};

/// What stands in the place of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put {
    /// The part itself.
    Itself,
    /// The smallest text that may stand there.
    Minimal,
    /// A part of it.
    Node(NodeId),
    Text(Rc<[u8]>),
}

#[derive(Clone, Debug)]
pub struct Edit {
    pub node: NodeId,
    pub put: Put,
}

#[derive(Clone)]
pub struct Draft<'a> {
    pub tree: &'a Tree,
    pub text: &'a [u8],
    put: Vec<Put>,
}

impl<'a> Draft<'a> {
    pub fn new(tree: &'a Tree, text: &'a [u8]) -> Draft<'a> {
        Draft { tree, text, put: vec![Put::Itself; tree.len()] }
    }

    pub fn put(&self, node: NodeId) -> &Put {
        &self.put[node.0 as usize]
    }

    /// With the edits of those groups made that are not to be kept from.
    pub fn with(&self, groups: &[Vec<Edit>], kept: &[bool]) -> Draft<'a> {
        let mut draft = self.clone();
        let made = groups.iter().zip(kept).filter(|(_, kept)| !**kept);
        made.flat_map(|(edits, _)| edits).for_each(|edit| draft.apply(edit));
        draft
    }

    fn apply(&mut self, edit: &Edit) {
        self.put[edit.node.0 as usize] = edit.put.clone();
    }

    /// The node that stands in this one's place, if it is one.
    pub fn stands(&self, node: NodeId) -> Option<NodeId> {
        let (node, put) = self.end_of_chain(node);
        (*put == Put::Itself).then_some(node)
    }

    /// The parts of a node that are there, each as what stands in its place.
    pub fn children(&self, node: NodeId) -> impl DoubleEndedIterator<Item = NodeId> {
        self.tree.node(node).children.iter().filter_map(|&child| self.stands(child))
    }

    /// All nodes that are there, parents before their parts.
    pub fn nodes(&self) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = Vec::new();
        let mut stack: Vec<NodeId> = self.stands(Tree::ROOT).into_iter().collect();
        while let Some(node) = stack.pop() {
            nodes.push(node);
            stack.extend(self.children(node).rev());
        }
        nodes
    }

    pub fn render(&self) -> Vec<u8> {
        self.tree.render(self.text, |node| self.shown(node))
    }

    fn shown(&self, node: NodeId) -> Shown<'_> {
        match self.put(node) {
            Put::Itself => Shown::Kept,
            Put::Minimal => Shown::Minimal,
            Put::Text(text) => Shown::Text(text),
            Put::Node(part) => match self.end_of_chain(*part) {
                (part, Put::Itself) => Shown::Part(part),
                (part, Put::Minimal) => Shown::Text(&self.tree.node(part).minimal),
                (_, Put::Text(text)) => Shown::Text(text),
                (_, Put::Node(_)) => unreachable!("the chain goes on"),
            },
        }
    }

    /// Where one that gave its place to another is followed by that one's doing so.
    fn end_of_chain(&self, mut node: NodeId) -> (NodeId, &Put) {
        while let Put::Node(part) = self.put(node) {
            node = *part;
        }
        (node, self.put(node))
    }

    /// How long what stands in the place of each node is.
    pub fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.tree.len()];
        // Parts come behind what they are parts of.
        for id in self.tree.ids().rev() {
            sizes[id.0 as usize] = match self.put(id) {
                Put::Minimal => self.tree.node(id).minimal.len(),
                Put::Text(text) => text.len(),
                Put::Node(part) => sizes[part.0 as usize],
                Put::Itself => self.own_size(id, &sizes),
            };
        }
        sizes
    }

    fn own_size(&self, id: NodeId, sizes: &[usize]) -> usize {
        let node = self.tree.node(id);
        let children = node.children.iter();
        let before: usize = children.clone().map(|&child| self.tree.node(child).span.len()).sum();
        let now: usize = children.map(|&child| sizes[child.0 as usize]).sum();
        node.span.len() - before + now
    }

    /// By how many bytes an edit makes the text shorter.
    pub fn gain(&self, edit: &Edit, sizes: &[usize]) -> usize {
        let size = match &edit.put {
            Put::Itself => return 0,
            Put::Minimal => self.tree.node(edit.node).minimal.len(),
            Put::Node(part) => sizes[part.0 as usize],
            Put::Text(text) => text.len(),
        };
        sizes[edit.node.0 as usize].saturating_sub(size)
    }

    /// Leaves nodes out that gain something by it.
    pub fn removals(&self, nodes: &[NodeId], sizes: &[usize]) -> Vec<Edit> {
        let edits = nodes.iter().map(|&node| Edit { node, put: Put::Minimal });
        edits.filter(|edit| self.gain(edit, sizes) > 0).collect()
    }
}
