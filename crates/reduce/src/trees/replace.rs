//! Replacement: a node is given the smallest text of its kind that the input has.

use super::{Draft, Edit, Put, Search, make};
use crate::oracle::{Oracle, Outcome};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use why_tree::Kind;

/// Says how many edits were made.
pub fn replace(draft: &mut Draft, search: Search, oracle: &mut dyn Oracle) -> Outcome<usize> {
    let sizes = draft.sizes();
    let mut smallest: FxHashMap<Kind, Rc<[u8]>> = FxHashMap::default();
    for id in draft.tree.ids() {
        let node = draft.tree.node(id);
        let text = &draft.text[node.span.clone()];
        let known = smallest.get(&node.kind);
        if known.is_none_or(|known| (text.len(), text) < (known.len(), known)) && !text.is_empty() {
            smallest.insert(node.kind, text.into());
        }
    }
    let mut edits = Vec::new();
    for node in draft.nodes() {
        let Some(text) = smallest.get(&draft.tree.node(node).kind) else { continue };
        let edit = Edit { node, put: Put::Text(text.clone()) };
        if draft.gain(&edit, &sizes) > 0 {
            edits.push(edit);
        }
    }
    // What is in a node that is replaced is gone, too: so one level after the other.
    let mut made = 0;
    let mut depths: FxHashMap<why_tree::NodeId, usize> = FxHashMap::default();
    for id in draft.tree.ids() {
        let above = draft.tree.node(id).parent.map_or(0, |parent| depths[&parent] + 1);
        depths.insert(id, above);
    }
    let deepest = edits.iter().map(|edit| depths[&edit.node]).max().unwrap_or(0);
    for depth in 0..=deepest {
        let there: std::collections::HashSet<_> = draft.nodes().into_iter().collect();
        let level: Vec<Edit> = edits
            .iter()
            .filter(|edit| depths[&edit.node] == depth && there.contains(&edit.node))
            .cloned()
            .collect();
        made += make(draft, level, search, oracle)?;
    }
    Ok(made)
}
