//! A function as blocks of instructions that are executed one after the other.

use crate::Program;
use crate::instructions::{Flow, Instructions, flow};
use rustc_hash::FxHashMap;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlockId(pub usize);

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    pub start: u64,
    /// Its last instruction.
    pub last: u64,
    pub successors: Vec<BlockId>,
    /// The function may end with it, or nobody knows where it leads.
    pub ends: bool,
}

/// The first block is that of the entry; the others follow by address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Graph {
    pub blocks: Vec<Block>,
    /// Blocks with a call, and where that goes on if what it called throws.
    pub(crate) landings: Vec<(BlockId, BlockId)>,
    by_start: FxHashMap<u64, BlockId>,
}

impl Graph {
    /// The function that begins at an address; without blocks if no code is there.
    pub fn of(program: &dyn Program, entry: u64) -> Graph {
        let code = Instructions::of(program, entry);
        let mut leaders: Vec<u64> =
            code.leaders.iter().copied().filter(|leader| code.all.contains_key(leader)).collect();
        leaders.sort_unstable_by_key(|leader| (*leader != entry, *leader));
        let by_start: FxHashMap<u64, BlockId> =
            leaders.iter().enumerate().map(|(id, start)| (*start, BlockId(id))).collect();
        let blocks = leaders.iter().map(|start| block(program, &code, &by_start, *start)).collect();
        let mut graph = Graph { blocks, landings: Vec::new(), by_start };
        graph.landings = graph.landings_of(&code);
        graph
    }

    fn landings_of(&self, code: &Instructions) -> Vec<(BlockId, BlockId)> {
        let mut landings = Vec::new();
        for (number, block) in self.blocks.iter().enumerate() {
            let mut at = block.start;
            loop {
                let pad = code.landings.get(&at).and_then(|pad| self.starting(*pad));
                landings.extend(pad.map(|pad| (BlockId(number), pad)));
                if at == block.last {
                    break;
                }
                at = code.all[&at].next_ip();
            }
        }
        landings
    }

    /// A graph of blocks without code, each with those that may follow it; the function ends
    /// with those that none follows.
    pub fn of_edges(edges: &[Vec<usize>]) -> Graph {
        let block = |(id, successors): (usize, &Vec<usize>)| Block {
            start: id as u64,
            last: id as u64,
            successors: successors.iter().copied().map(BlockId).collect(),
            ends: successors.is_empty(),
        };
        let blocks: Vec<Block> = edges.iter().enumerate().map(block).collect();
        let by_start = blocks.iter().enumerate().map(|(id, b)| (b.start, BlockId(id))).collect();
        Graph { blocks, landings: Vec::new(), by_start }
    }

    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.0]
    }

    /// The block that begins at an address.
    pub fn starting(&self, address: u64) -> Option<BlockId> {
        self.by_start.get(&address).copied()
    }
}

fn block(
    program: &dyn Program,
    code: &Instructions,
    by_start: &FxHashMap<u64, BlockId>,
    start: u64,
) -> Block {
    let known = |addresses: &[u64]| -> Vec<BlockId> {
        let mut blocks: Vec<BlockId> =
            addresses.iter().filter_map(|address| by_start.get(address).copied()).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks
    };
    let mut at = start;
    loop {
        let insn = &code.all[&at];
        let next = insn.next_ip();
        let (successors, ends) = match flow(program, insn) {
            Flow::Ends => (Vec::new(), true),
            Flow::Jump { or_on } => {
                let mut targets = code.targets.get(&at).cloned().unwrap_or_default();
                // It leads out of the function, or nobody knows where.
                let leaves = targets.is_empty();
                if or_on {
                    targets.push(next);
                }
                (known(&targets), leaves)
            }
            Flow::On if by_start.contains_key(&next) => (known(&[next]), false),
            // Behind it there is no code, or that of another function.
            Flow::On if !code.all.contains_key(&next) => (Vec::new(), true),
            Flow::On => {
                at = next;
                continue;
            }
        };
        let ends = ends || successors.is_empty();
        return Block { start, last: at, successors, ends };
    }
}
