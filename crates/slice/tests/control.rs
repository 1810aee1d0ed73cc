//! Compared with the definition: over an instruction decided the last branch of the same call
//! on which its block depends; and a block depends on a branch if one way from there always
//! comes to it and another need not.

use why_flow::{BlockId, Graph, PostDominators};
use why_slice::control::Control;

#[path = "../../flow/tests/support/by_force.rs"]
mod by_force;

use by_force::ends_without;

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Blocks of which each leads to up to three others, and from each of which the end can be
/// reached.
fn random_function(random: &mut Random) -> Vec<Vec<usize>> {
    loop {
        let count = 2 + random.below(10);
        let edges: Vec<Vec<usize>> = (0..count)
            .map(|block| {
                let next = if block + 1 == count { 0 } else { 1 + random.below(3) };
                let mut next: Vec<usize> = (0..next).map(|_| random.below(count)).collect();
                next.sort_unstable();
                next.dedup();
                next
            })
            .collect();
        if (0..count).all(|block| ends_without(&edges, block, usize::MAX)) {
            return edges;
        }
    }
}

/// Whether every way from a block comes to another one, or it is that.
fn always_comes_to(edges: &[Vec<usize>], from: usize, to: usize) -> bool {
    from == to || !ends_without(edges, from, to)
}

fn depends(edges: &[Vec<usize>], block: usize, branch: usize) -> bool {
    let always = |from: &usize| always_comes_to(edges, *from, block);
    edges[branch].iter().any(always) && !edges[branch].iter().all(always)
}

struct Walk<'a> {
    functions: &'a [Vec<Vec<usize>>],
    meets: &'a [PostDominators],
    random: &'a mut Random,
    control: Control,
    position: u64,
    steps: usize,
}

impl Walk<'_> {
    /// Executes a function; blocks have the addresses 100 * function + block.
    fn function(&mut self, function: usize, call: Option<u64>, stack: u64) {
        let edges = &self.functions[function];
        // The branches of this call, as they were executed.
        let mut branches: Vec<(u64, usize)> = Vec::new();
        let mut block = 0;
        loop {
            self.position += 1;
            let position = self.position;
            let decided = branches.iter().rev().find(|(_, branch)| depends(edges, block, *branch));
            let expected = decided.map(|(position, _)| *position).or(call);
            let address = |block: usize| (100 * function + block) as u64;
            assert_eq!(self.control.at(address(block)), expected, "{edges:?} block {block}");
            self.steps += 1;
            if stack > 20 && self.random.below(8) == 0 {
                self.position += 1;
                self.control.call(Some(position), stack, Some(BACK));
                let called = self.random.below(self.functions.len());
                self.function(called, Some(position), stack - 8);
                self.control.unwound(stack, BACK, self.position);
            }
            if edges[block].len() > 1 {
                let meet = self.meets[function].behind(BlockId(block)).map(|id| address(id.0));
                self.control.branch(position, meet);
                branches.push((position, block));
            }
            let Some(next) = edges[block].get(self.random.below(edges[block].len().max(1))) else {
                return;
            };
            block = *next;
        }
    }
}

/// Where callers go on.
const BACK: u64 = 1000;

#[test]
fn what_decided_is_what_the_definition_says() {
    let mut random = Random(1);
    let mut steps = 0;
    for _ in 0..400 {
        let functions: Vec<Vec<Vec<usize>>> =
            (0..3).map(|_| random_function(&mut random)).collect();
        let meets: Vec<PostDominators> =
            functions.iter().map(|edges| PostDominators::of(&Graph::of_edges(edges))).collect();
        let mut walk = Walk {
            functions: &functions,
            meets: &meets,
            random: &mut random,
            control: Control::default(),
            position: 0,
            steps: 0,
        };
        walk.function(0, None, 60);
        steps += walk.steps;
    }
    assert!(steps > 10_000, "{steps}");
}

#[test]
fn a_jump_out_of_several_calls_ends_them() {
    let mut control = Control::default();
    control.branch(1, Some(50));
    control.call(Some(2), 0x1000, Some(BACK));
    control.branch(3, None);
    control.call(Some(4), 0xf00, Some(BACK));
    assert_eq!(control.at(7), Some(4));
    control.unwound(0xe80, 7, 5);
    assert_eq!(control.at(7), Some(4));
    control.unwound(0x1000, BACK, 5);
    assert_eq!(control.at(BACK), Some(1));
    assert_eq!(control.at(50), None);
}

#[test]
fn a_jump_to_elsewhere_than_behind_a_call_decides() {
    let mut control = Control::default();
    control.branch(1, Some(50));
    control.branch(2, Some(40));
    control.call(Some(3), 0x1000, Some(BACK));
    control.unwound(0x1000, 7, 6);
    assert_eq!(control.at(7), Some(6));
    control.branch(8, Some(20));
    assert_eq!(control.at(19), Some(8));
    assert_eq!(control.at(20), Some(6));
    assert_eq!(control.at(50), None);
}

#[test]
fn a_handler_is_decided_by_nobody() {
    let mut control = Control::default();
    control.branch(1, Some(50));
    control.call(None, 0x1000, None);
    assert_eq!(control.at(50), None);
    control.unwound(0x1000, 7, 2);
    assert_eq!(control.at(7), Some(1));
}
