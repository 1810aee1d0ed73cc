//! Where the ways meet again that a call parts which may throw.
//!
//! Behind such a call its function goes on, or at its landing pad. That is no branch of the graph:
//! every function that throws nothing would have to wait for its end to be sure of that. A call
//! that never returns leads to its landing pad alone.

use crate::graph::{BlockId, Graph};
use crate::postdominators::PostDominators;
use rustc_hash::FxHashMap;

/// For each landing pad the first block that every way comes through, from the pad as from behind
/// all calls that may lead there; by the addresses of both.
pub fn landings(graph: &Graph, behind: &PostDominators) -> FxHashMap<u64, u64> {
    let chain = |first: Option<BlockId>| -> Vec<BlockId> {
        let next = |block: &BlockId| behind.behind(*block);
        // A loop that is never left is behind itself.
        std::iter::successors(first, next).take(graph.blocks.len()).collect()
    };
    let mut meets: FxHashMap<BlockId, Vec<BlockId>> = FxHashMap::default();
    for (call, pad) in &graph.landings {
        let common = meets.entry(*pad).or_insert_with(|| chain(Some(*pad)));
        let of_call = chain(behind.behind(*call));
        common.retain(|block| of_call.contains(block));
    }
    let start = |block: BlockId| graph.block(block).start;
    let first =
        |(pad, common): (BlockId, Vec<BlockId>)| Some((start(pad), start(*common.first()?)));
    meets.into_iter().filter_map(first).collect()
}
