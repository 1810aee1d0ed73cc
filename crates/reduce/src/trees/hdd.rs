//! Hierarchical delta debugging: one level of the tree after the other, from the root down.

use super::{Draft, Edit, Search, make, make_groups};
use crate::lists::Minimiser;
use crate::oracle::{Oracle, Outcome};
use std::collections::BTreeMap;
use why_tree::{Kind, NodeId, Tree};

/// Which nodes are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    All,
    /// Only those that can be left out without a trace.
    Coarse,
    /// Leaves above the last level are tried there once more, with all others.
    LeafAligned,
    /// For those who look closer later: leaves that cannot be left out are given their
    /// smallest texts all at once or not at all, and levels are left over when no more than
    /// so many bytes are.
    Rough {
        enough: usize,
    },
}

/// The nodes of one level, wherever they hang.
pub type Level = Vec<NodeId>;

pub fn nodes_of_level(draft: &Draft, above: &[NodeId]) -> Level {
    above.iter().flat_map(|&node| draft.children(node)).collect()
}

/// One pass over all levels; says how many edits were made.
pub fn hdd(
    draft: &mut Draft,
    variant: Variant,
    mut search: Search,
    oracle: &mut dyn Oracle,
) -> Outcome<usize> {
    let mut made = 0;
    let mut level: Level = draft.stands(Tree::ROOT).into_iter().collect();
    let mut sizes = draft.sizes();
    let weigh =
        |level: &Level, sizes: &[usize]| level.iter().map(|node| sizes[node.0 as usize]).sum();
    search.belief.whole = weigh(&level, &sizes);
    while !level.is_empty() {
        let mut edits = chosen(draft, draft.removals(&level, &sizes), variant);
        let leaves = split_leaves(draft, &mut edits, variant);
        let mut gone = 0;
        if edits.iter().any(|edit| search.tries(draft.gain(edit, &sizes))) {
            gone += make_level(draft, edits, search, oracle)?;
        }
        gone += make_together(draft, leaves, oracle)?;
        if gone > 0 {
            made += gone;
            sizes = draft.sizes();
            level.retain(|&node| draft.stands(node) == Some(node));
            if is_enough(draft, variant) {
                return Ok(made);
            }
        }
        // What is needed has some part that is needed.
        search.belief.needed = (level.len() as f64).max(1.0);
        search.belief.whole = weigh(&level, &sizes);
        level = nodes_of_level(draft, &level);
    }
    if variant == Variant::LeafAligned {
        let is_leaf = |node: &NodeId| draft.children(*node).next().is_none();
        let leaves: Vec<NodeId> = draft.nodes().into_iter().filter(is_leaf).collect();
        let edits = draft.removals(&leaves, &draft.sizes());
        made += make(draft, edits, search, oracle)?;
    }
    Ok(made)
}

/// A long level is tried by kinds first: what belongs to others of its kind, such as all that
/// is declared or all that is called, may not be possible to leave out by halves.
fn make_level(
    draft: &mut Draft,
    mut edits: Vec<Edit>,
    search: Search,
    oracle: &mut dyn Oracle,
) -> Outcome<usize> {
    let mut made = 0;
    if search.minimiser == Minimiser::ProbDd && edits.len() > LONG {
        let groups = by_kind(draft, &edits);
        if (2..=MOST_KINDS).contains(&groups.len()) {
            made += make_groups(draft, groups, Search::ONCE, oracle)?;
            edits.retain(|edit| draft.stands(edit.node) == Some(edit.node));
        }
    }
    Ok(made + make(draft, edits, search, oracle)?)
}

/// A level of more nodes is long.
const LONG: usize = 32;
/// More kinds than this say nothing.
const MOST_KINDS: usize = 16;

/// A node's kind and that of what it begins with, down to here, tell what it is.
const DEPTH: usize = 3;

fn by_kind(draft: &Draft, edits: &[Edit]) -> Vec<Vec<Edit>> {
    let mut groups: BTreeMap<Vec<Kind>, Vec<Edit>> = BTreeMap::new();
    for edit in edits {
        let begins = |node: &NodeId| draft.children(*node).next();
        let path = std::iter::successors(Some(edit.node), begins).take(DEPTH);
        let kinds = path.map(|node| draft.tree.node(node).kind).collect();
        groups.entry(kinds).or_default().push(edit.clone());
    }
    groups.into_values().collect()
}

fn chosen(draft: &Draft, mut edits: Vec<Edit>, variant: Variant) -> Vec<Edit> {
    if variant == Variant::Coarse {
        edits.retain(|edit| draft.tree.node(edit.node).minimal.is_empty());
    }
    edits
}

/// Takes those edits from the list that a rough pass makes together.
fn split_leaves(draft: &Draft, edits: &mut Vec<Edit>, variant: Variant) -> Vec<Edit> {
    let Variant::Rough { .. } = variant else { return Vec::new() };
    let node = |edit: &Edit| draft.tree.node(edit.node);
    let together =
        |edit: &mut Edit| node(edit).children.is_empty() && !node(edit).minimal.is_empty();
    edits.extract_if(.., together).collect()
}

/// Makes those of the edits whose nodes are still there, all at once.
fn make_together(
    draft: &mut Draft,
    mut edits: Vec<Edit>,
    oracle: &mut dyn Oracle,
) -> Outcome<usize> {
    edits.retain(|edit| draft.stands(edit.node) == Some(edit.node));
    if edits.is_empty() {
        return Ok(0);
    }
    make_groups(draft, vec![edits], Search::ONCE, oracle)
}

/// Whether a text that was long has become short.
fn is_enough(draft: &Draft, variant: Variant) -> bool {
    let Variant::Rough { enough } = variant else { return false };
    draft.text.len() > enough && draft.render().len() <= enough
}

/// HDD*: until a whole pass changes nothing. What is left is 1-tree-minimal: no node can be
/// left out alone.
pub fn hdd_star(
    draft: &mut Draft,
    variant: Variant,
    search: Search,
    oracle: &mut dyn Oracle,
) -> Outcome<usize> {
    let mut made = 0;
    loop {
        match hdd(draft, variant, search, oracle)? {
            0 => return Ok(made),
            more => made += more,
        }
    }
}

/// HDD+: one pass, then every node by itself until none can be left out. What is left is
/// 1-tree-minimal.
pub fn hdd_plus(
    draft: &mut Draft,
    variant: Variant,
    search: Search,
    oracle: &mut dyn Oracle,
) -> Outcome<usize> {
    Ok(hdd(draft, variant, search, oracle)? + sweep_nodes(draft, oracle)?)
}

/// HDDr: the parts of one node after the other, so that a list is searched by itself.
pub fn hddr(draft: &mut Draft, search: Search, oracle: &mut dyn Oracle) -> Outcome<usize> {
    let mut made = 0;
    let mut queue: std::collections::VecDeque<NodeId> =
        draft.stands(Tree::ROOT).into_iter().collect();
    while let Some(node) = queue.pop_front() {
        let children: Level = draft.children(node).collect();
        made += make(draft, draft.removals(&children, &draft.sizes()), search, oracle)?;
        queue.extend(draft.children(node));
    }
    Ok(made)
}

/// Tries to leave out every node by itself, round and round, until none can be.
pub fn sweep_nodes(draft: &mut Draft, oracle: &mut dyn Oracle) -> Outcome<usize> {
    let mut made = 0;
    loop {
        let edits = draft.removals(&draft.nodes(), &draft.sizes());
        match make(draft, edits, Search::EACH, oracle)? {
            0 => return Ok(made),
            more => made += more,
        }
    }
}

/// Tries to leave out every node by itself, once.
pub fn pass_nodes(draft: &mut Draft, oracle: &mut dyn Oracle) -> Outcome<usize> {
    let edits = draft.removals(&draft.nodes(), &draft.sizes());
    make(draft, edits, Search::ONCE, oracle)
}
