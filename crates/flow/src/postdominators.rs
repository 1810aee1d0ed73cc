//! The next block that every way to the end of a function comes through.
//!
//! The algorithm is that of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm",
//! 2001), on the edges backwards from the function's end. A loop that is never left has an end
//! nevertheless, in front of its first block: what is executed in one turn decides over no other.

use crate::graph::{Block, BlockId, Graph};

pub struct PostDominators {
    /// By block; none where all ways meet only behind the function's end.
    immediate: Vec<Option<BlockId>>,
}

impl PostDominators {
    pub fn of(graph: &Graph) -> PostDominators {
        let count = graph.blocks.len();
        let exit = count;
        let successors = with_ends(graph);
        let mut predecessors = vec![Vec::new(); successors.len()];
        for (node, next) in successors.iter().enumerate() {
            next.iter().for_each(|next| predecessors[*next].push(node));
        }
        // Every block is found from the end, and the number of each is above those of the
        // blocks that it is found behind.
        let order = finishing_order(&predecessors, exit);
        let mut number = vec![0; successors.len()];
        for (index, block) in order.iter().enumerate() {
            number[*block] = index;
        }
        let mut immediate: Vec<Option<usize>> = vec![None; successors.len()];
        immediate[exit] = Some(exit);
        loop {
            let mut changed = false;
            for &block in order.iter().rev().filter(|block| **block != exit) {
                let following = successors[block].iter().copied();
                let known = following.filter(|following| immediate[*following].is_some());
                let meet = known.reduce(|one, other| meet(&immediate, &number, one, other));
                if immediate[block] != meet {
                    immediate[block] = meet;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        let of_block = |block: usize| match immediate[block]? {
            // What is in front of a loop's first block is executed with it.
            gate if gate > exit => Some(BlockId(successors[gate][0])),
            next => (next != exit).then_some(BlockId(next)),
        };
        PostDominators { immediate: (0..count).map(of_block).collect() }
    }

    /// The next block behind this one that every way comes through.
    pub fn behind(&self, block: BlockId) -> Option<BlockId> {
        self.immediate[block.0]
    }
}

/// Where the ways from two blocks meet.
fn meet(immediate: &[Option<usize>], number: &[usize], one: usize, other: usize) -> usize {
    let (mut one, mut other) = (one, other);
    let up = |block: usize| immediate[block].expect("it has been numbered");
    while one != other {
        while number[one] < number[other] {
            one = up(one);
        }
        while number[other] < number[one] {
            other = up(other);
        }
    }
    one
}

/// What can follow each block; behind the blocks the function's end, and behind that what is in
/// front of loops that are never left: either the loop follows or the end.
fn with_ends(graph: &Graph) -> Vec<Vec<usize>> {
    let exit = graph.blocks.len();
    let follow = |block: &Block| {
        let next = block.successors.iter().map(|successor| successor.0);
        next.chain(block.ends.then_some(exit)).collect()
    };
    let mut successors: Vec<Vec<usize>> = graph.blocks.iter().map(follow).collect();
    successors.push(Vec::new());
    let mut predecessors = vec![Vec::new(); exit + 1];
    for (block, next) in successors.iter().enumerate() {
        next.iter().for_each(|next| predecessors[*next].push(block));
    }
    let mut reaches = vec![false; exit + 1];
    let spread = |reaches: &mut Vec<bool>, from: usize| {
        let mut open = vec![from];
        while let Some(block) = open.pop() {
            if !std::mem::replace(&mut reaches[block], true) {
                open.extend(&predecessors[block]);
            }
        }
    };
    spread(&mut reaches, exit);
    while let Some(lost) = (0..exit).find(|block| !reaches[*block]) {
        let first = innermost(graph, lost);
        spread(&mut reaches, first);
        let gate = successors.len();
        for next in successors.iter_mut().flatten().filter(|next| **next == first) {
            *next = gate;
        }
        successors.push(vec![first, exit]);
    }
    successors
}

/// The first block of a loop that cannot be left, from a block that leads only to such loops.
fn innermost(graph: &Graph, from: usize) -> usize {
    let reached = |from: usize| {
        let mut seen = vec![false; graph.blocks.len()];
        let mut open = vec![from];
        while let Some(block) = open.pop() {
            if !std::mem::replace(&mut seen[block], true) {
                open.extend(graph.blocks[block].successors.iter().map(|successor| successor.0));
            }
        }
        seen
    };
    let mut block = from;
    loop {
        let seen = reached(block);
        // One that is reached and does not lead back is nearer to the loop.
        let nearer = (0..seen.len()).find(|other| seen[*other] && !reached(*other)[block]);
        match nearer {
            Some(nearer) => block = nearer,
            None => return (0..seen.len()).find(|block| seen[*block]).unwrap_or(block),
        }
    }
}

/// Blocks in the order in which a search from the end leaves them.
fn finishing_order(next: &[Vec<usize>], from: usize) -> Vec<usize> {
    let mut seen = vec![false; next.len()];
    let mut order = Vec::with_capacity(next.len());
    let mut open = vec![(from, 0)];
    seen[from] = true;
    while let Some((block, tried)) = open.pop() {
        match next[block].get(tried) {
            None => order.push(block),
            Some(&other) => {
                open.push((block, tried + 1));
                if !std::mem::replace(&mut seen[other], true) {
                    open.push((other, 0));
                }
            }
        }
    }
    order
}
