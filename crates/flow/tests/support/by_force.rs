//! What a graph is by its definition.

/// Whether the end can be reached from a block without another one.
pub fn ends_without(edges: &[Vec<usize>], from: usize, without: usize) -> bool {
    let mut seen = vec![false; edges.len()];
    let mut open = vec![from];
    while let Some(block) = open.pop() {
        if block == without || std::mem::replace(&mut seen[block], true) {
            continue;
        }
        if edges[block].is_empty() {
            return true;
        }
        open.extend(&edges[block]);
    }
    false
}
