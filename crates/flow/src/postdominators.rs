//! The next block that every way to the end of a function comes through.
//!
//! The algorithm is that of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm",
//! 2001), on the edges backwards from the function's end. A loop that is never left has an end
//! nevertheless: its first block.

use crate::graph::{BlockId, Graph};

pub struct PostDominators {
    /// By block; none where all ways meet only behind the function's end.
    immediate: Vec<Option<BlockId>>,
}

impl PostDominators {
    pub fn of(graph: &Graph) -> PostDominators {
        let count = graph.blocks.len();
        let exit = count;
        let ends = ends(graph);
        let mut predecessors = vec![Vec::new(); count + 1];
        for (id, block) in graph.blocks.iter().enumerate() {
            for successor in &block.successors {
                predecessors[successor.0].push(id);
            }
            if ends[id] {
                predecessors[exit].push(id);
            }
        }
        // Every block is found from the end, and the number of each is above those of the
        // blocks that it is found behind.
        let order = finishing_order(&predecessors, exit);
        let mut number = vec![0; count + 1];
        for (index, block) in order.iter().enumerate() {
            number[*block] = index;
        }
        let mut immediate: Vec<Option<usize>> = vec![None; count + 1];
        immediate[exit] = Some(exit);
        loop {
            let mut changed = false;
            for &block in order.iter().rev().filter(|block| **block != exit) {
                let following = graph.blocks[block].successors.iter().map(|successor| successor.0);
                let known = following
                    .chain(ends[block].then_some(exit))
                    .filter(|following| immediate[*following].is_some());
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
        let of_block = |block: usize| immediate[block].filter(|next| *next != exit).map(BlockId);
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

/// With which blocks the function ends, so that every block comes to one of them.
fn ends(graph: &Graph) -> Vec<bool> {
    let mut ends: Vec<bool> = graph.blocks.iter().map(|block| block.ends).collect();
    let mut predecessors = vec![Vec::new(); graph.blocks.len()];
    for (id, block) in graph.blocks.iter().enumerate() {
        for successor in &block.successors {
            predecessors[successor.0].push(id);
        }
    }
    let mut reaches = vec![false; graph.blocks.len()];
    let spread = |reaches: &mut Vec<bool>, from: usize| {
        let mut open = vec![from];
        while let Some(block) = open.pop() {
            if !std::mem::replace(&mut reaches[block], true) {
                open.extend(&predecessors[block]);
            }
        }
    };
    for block in (0..ends.len()).filter(|block| ends[*block]) {
        spread(&mut reaches, block);
    }
    while let Some(lost) = (0..ends.len()).find(|block| !reaches[*block]) {
        let entered = innermost(graph, lost);
        ends[entered] = true;
        spread(&mut reaches, entered);
    }
    ends
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
