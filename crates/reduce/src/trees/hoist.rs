//! Hoisting: a node gives its place to a part of it that fits there. So what is
//! needed comes out of what it is nested in.

use super::{Draft, Edit, Put, Search, make};
use crate::oracle::{Oracle, Outcome};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use why_tree::NodeId;

/// So many levels up a place is looked for that a part fits.
const REACH: usize = 32;

/// Each may give its place to any of its parts; says how many edits were made.
pub fn hoist(draft: &mut Draft, search: Search, oracle: &mut dyn Oracle) -> Outcome<usize> {
    let mut made = 0;
    for rank in 0.. {
        let edits = candidates(draft, rank);
        if edits.is_empty() {
            break;
        }
        made += make(draft, edits, search, oracle)?;
    }
    Ok(made)
}

/// Each may give its place to its largest part: what is nested in itself comes out at once.
pub fn hoist_largest(draft: &mut Draft, search: Search, oracle: &mut dyn Oracle) -> Outcome<usize> {
    make(draft, candidates(draft, 0), search, oracle)
}

/// For each node the part of this rank, by size, among the nearest ones that fit its place.
fn candidates(draft: &Draft, rank: usize) -> Vec<Edit> {
    let sizes = draft.sizes();
    let mut edits = Vec::new();
    for (node, mut parts) in nearest_that_fit(draft) {
        parts.sort_by_key(|part| std::cmp::Reverse(sizes[part.0 as usize]));
        if let Some(&part) = parts.get(rank) {
            let edit = Edit { node, put: Put::Node(part) };
            if draft.gain(&edit, &sizes) > 0 {
                edits.push(edit);
            }
        }
    }
    edits
}

/// For each node those below it that may stand in its place and in that of none between.
fn nearest_that_fit(draft: &Draft) -> BTreeMap<NodeId, Vec<NodeId>> {
    let mut found: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    let mut above: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for node in draft.nodes() {
        let mut outer = above.get(&node).copied();
        for _ in 0..REACH {
            match outer {
                Some(place) if draft.tree.fits(node, place) => {
                    found.entry(place).or_default().push(node);
                    break;
                }
                Some(place) => outer = above.get(&place).copied(),
                None => break,
            }
        }
        above.extend(draft.children(node).map(|child| (child, node)));
    }
    found
}
