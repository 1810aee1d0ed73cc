//! Columns: where several lists of one kind have the same length, what stands at the same place
//! in each of them may belong together, as parameters and arguments do, or the cells of a table.

use super::{Draft, Edit, Put, Search, make_groups};
use crate::oracle::{Oracle, Outcome};
use std::collections::BTreeMap;
use why_tree::{Kind, NodeId, Role};

/// Leaves out what stands at the same place of all lists of a kind that have the same length;
/// says how many such columns are gone.
pub fn columns(draft: &mut Draft, oracle: &mut dyn Oracle) -> Outcome<usize> {
    let mut lists: BTreeMap<(usize, Kind), Vec<Vec<NodeId>>> = BTreeMap::new();
    for node in draft.nodes() {
        let is_part = |part: &NodeId| draft.tree.node(*part).role != Role::Separator;
        let parts: Vec<NodeId> = draft.children(node).filter(is_part).collect();
        if parts.len() > 1 {
            let kind = draft.tree.node(node).kind;
            lists.entry((parts.len(), kind)).or_default().push(parts);
        }
    }
    let mut groups = Vec::new();
    for ((length, _), lists) in lists.into_iter().filter(|(_, lists)| lists.len() > 1) {
        for place in 0..length {
            let column = lists.iter().map(|parts| parts[place]);
            groups.push(column.map(|node| Edit { node, put: Put::Minimal }).collect());
        }
    }
    make_groups(draft, groups, Search::ONCE, oracle)
}
