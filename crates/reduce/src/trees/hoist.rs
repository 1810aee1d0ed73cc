//! Hoisting: a node gives its place to a part of it that fits there. So what is
//! needed comes out of what it is nested in.

use super::{Draft, Edit, Put, Search, make};
use crate::oracle::{Oracle, Outcome};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use why_tree::NodeId;

/// So many levels up a place is looked for that a part fits.
const REACH: usize = 32;

/// Says how many edits were made.
pub fn hoist(draft: &mut Draft, search: Search, oracle: &mut dyn Oracle) -> Outcome<usize> {
    let mut made = 0;
    // In the first round each gives its place to its largest part, all of them at once; then
    // the other parts are tried.
    let mut rank = 0;
    loop {
        let edits = candidates(draft, rank);
        if edits.is_empty() {
            return Ok(made);
        }
        made += make(draft, edits, search, oracle)?;
        rank += 1;
    }
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
