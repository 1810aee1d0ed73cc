//! Replacement: a node is given the smallest text that the input has of those that fit its
//! place.

use super::{Draft, Edit, Put, Search, make};
use crate::oracle::{Oracle, Outcome};
use rustc_hash::{FxHashMap, FxHashSet};
use why_tree::{Kind, Node, NodeId};

/// Says how many edits were made.
pub fn replace(draft: &mut Draft, search: Search, oracle: &mut dyn Oracle) -> Outcome<usize> {
    replace_if(|_, _| true, draft, search, oracle)
}

/// The same where leaves have been given other names and nodes their minimal texts: only what
/// is new is tried.
pub fn replace_phrases(
    draft: &mut Draft,
    search: Search,
    oracle: &mut dyn Oracle,
) -> Outcome<usize> {
    let is_new = |node: &Node, text: &[u8]| {
        let minimal = node.minimal.len();
        !node.children.is_empty() && (minimal == 0 || text.len() < minimal)
    };
    replace_if(is_new, draft, search, oracle)
}

fn replace_if(
    is_tried: impl Fn(&Node, &[u8]) -> bool,
    draft: &mut Draft,
    search: Search,
    oracle: &mut dyn Oracle,
) -> Outcome<usize> {
    let smallest = smallest_texts(draft);
    let sizes = draft.sizes();
    let mut edits = Vec::new();
    for node in draft.nodes() {
        let Some(text) = smallest.get(&draft.tree.node(node).place) else { continue };
        let edit = Edit { node, put: Put::Text((*text).into()) };
        if draft.gain(&edit, &sizes) > 0 && is_tried(draft.tree.node(node), text) {
            edits.push(edit);
        }
    }
    // What is in a node that is replaced is gone, too: so one level after the other.
    let depths = depths(draft);
    let deepest = edits.iter().map(|edit| depths[edit.node.0 as usize]).max().unwrap_or(0);
    let mut made = 0;
    for depth in 0..=deepest {
        let there: FxHashSet<NodeId> = draft.nodes().into_iter().collect();
        let level = edits
            .iter()
            .filter(|edit| depths[edit.node.0 as usize] == depth && there.contains(&edit.node));
        made += make(draft, level.cloned().collect(), search, oracle)?;
    }
    Ok(made)
}

/// For each place the smallest text of what may stand there.
fn smallest_texts<'a>(draft: &Draft<'a>) -> FxHashMap<Kind, &'a [u8]> {
    let mut smallest: FxHashMap<Kind, &[u8]> = FxHashMap::default();
    for id in draft.tree.ids() {
        let node = draft.tree.node(id);
        let text = &draft.text[node.span.clone()];
        if text.is_empty() {
            continue;
        }
        for place in draft.tree.places_for(node.kind) {
            let known = smallest.entry(place).or_insert(text);
            if (text.len(), text) < (known.len(), *known) {
                *known = text;
            }
        }
    }
    smallest
}

/// How many nodes are above each.
fn depths(draft: &Draft) -> Vec<usize> {
    let mut depths: Vec<usize> = Vec::with_capacity(draft.tree.len());
    for id in draft.tree.ids() {
        let parent = draft.tree.node(id).parent;
        depths.push(parent.map_or(0, |parent| depths[parent.0 as usize] + 1));
    }
    depths
}
