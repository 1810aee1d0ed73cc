//! `cargo xtask scaling`: how many tests HDD makes on balanced trees, beside what the thesis on
//! hierarchical delta debugging proves it makes at most.

use std::process::ExitCode;

use why_reduce::Verdict;
use why_reduce::oracle::Function;
use why_reduce::trees::{Draft, Search, Variant, hdd};
use why_tree::Tree;

use crate::workspace::Failure;

/// Count the tests that HDD makes on balanced trees of growing size
#[derive(clap::Args)]
pub struct Args {
    /// The largest tree, in leaves
    #[arg(long, value_name = "N", default_value_t = 4096)]
    leaves: usize,
}

/// A tree in which each node has so many parts, of which so many are needed if the node is.
#[derive(Clone, Copy)]
struct Shape {
    branches: usize,
    needed: usize,
}

/// A leaf is a byte that tells whether it is needed.
const NEEDED: u8 = b'x';
const NEEDLESS: u8 = b'.';

/// One needed part in each, two of four, and all of them.
const SHAPES: [(usize, usize); 9] =
    [(2, 1), (4, 1), (8, 1), (16, 1), (4, 2), (2, 2), (3, 3), (4, 4), (8, 8)];

pub fn main(args: Args) -> Result<ExitCode, Failure> {
    println!("| b | m | grows at most as | grows as | tests for n leaves |");
    println!("|---|---|---|---|---|");
    for (branches, needed) in SHAPES {
        let shape = Shape { branches, needed };
        let curve = shape.curve(args.leaves);
        let point = |(leaves, tests): &(usize, u64)| format!("{leaves}: {tests}");
        let points: Vec<String> = curve.iter().map(point).collect();
        let (limit, growth) = (shape.limit(), shape.growth(&curve));
        println!("| {branches} | {needed} | {limit} | {growth} | {} |", points.join(", "));
    }
    Ok(ExitCode::SUCCESS)
}

impl Shape {
    /// The power of n by which the tests grow at most, by the thesis; with 0, it is log n.
    fn power(self) -> f64 {
        2.0 * (self.needed as f64).ln() / (self.branches as f64).ln()
    }

    fn limit(self) -> String {
        match self.needed {
            1 => "log n".into(),
            _ if self.power() == 1.0 => "n".into(),
            _ => format!("n^{}", self.power()),
        }
    }

    /// How the tests have grown between the last two trees.
    fn growth(self, curve: &[(usize, u64)]) -> String {
        let [.., (leaves, tests), (more_leaves, more_tests)] = *curve else { return "-".into() };
        if self.needed == 1 {
            let each = (more_tests - tests) as f64 / (more_leaves as f64 / leaves as f64).log2();
            return format!("{each:.2} log2 n");
        }
        let grown = more_tests as f64 / tests as f64;
        format!("n^{:.2}", grown.ln() / (more_leaves as f64 / leaves as f64).ln())
    }

    /// Tests by leaves, for trees of more than one level up to this size.
    fn curve(self, most: usize) -> Vec<(usize, u64)> {
        let sizes = (2..).map(|depth| (depth, self.branches.pow(depth)));
        let sizes = sizes.take_while(|(_, leaves)| *leaves <= most);
        sizes.map(|(depth, leaves)| (leaves, self.tests(depth))).collect()
    }

    fn tests(self, depth: u32) -> u64 {
        let (tree, text) = self.tree(depth);
        let count = |text: &[u8]| text.iter().filter(|byte| **byte == NEEDED).count();
        let wanted = count(&text);
        let mut oracle =
            Function::new(
                |left: &[u8]| {
                    if count(left) == wanted { Verdict::Fails } else { Verdict::Passes }
                },
            );
        let mut draft = Draft::new(&tree, &text);
        hdd(&mut draft, Variant::All, Search::DDMIN, &mut oracle)
            .expect("a function always answers");
        assert_eq!(draft.render(), vec![NEEDED; wanted], "nothing but what is needed is left");
        oracle.tests
    }

    fn tree(self, depth: u32) -> (Tree, Vec<u8>) {
        let leaves = self.branches.pow(depth);
        let mut text = vec![NEEDLESS; leaves];
        let mut tree = Tree::rooted("node", 0..leaves, Vec::new());
        let kind = tree.kind("node");
        let mut level = vec![(Tree::ROOT, 0..leaves, true)];
        for _ in 0..depth {
            let mut next = Vec::new();
            for (parent, span, is_needed) in level {
                let width = span.len() / self.branches;
                for branch in 0..self.branches {
                    let start = span.start + branch * width;
                    let id = tree.add(parent, kind, start..start + width, Vec::new());
                    // Not the first ones: those would be found too soon.
                    let is_needed = is_needed && branch >= self.branches - self.needed;
                    next.push((id, start..start + width, is_needed));
                }
            }
            level = next;
        }
        for (_, span, _) in level.iter().filter(|(_, _, is_needed)| *is_needed) {
            text[span.start] = NEEDED;
        }
        (tree, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is proven of ddmin: on a list of k, at most k² + 3k tests, and one for none of it.
    /// Each level has as many nodes as its parents that are needed have parts.
    fn most(shape: Shape, depth: u32) -> u64 {
        let nodes = |level| (shape.branches * shape.needed.pow(level)) as u64;
        1 + (0..depth).map(nodes).map(|nodes| nodes * nodes + 3 * nodes + 1).sum::<u64>()
    }

    #[test]
    fn no_tree_takes_more_than_is_proven() {
        for (branches, needed) in SHAPES {
            let shape = Shape { branches, needed };
            for depth in (2..9).take_while(|depth| branches.pow(*depth) <= 1024) {
                let tests = shape.tests(depth);
                assert!(tests <= most(shape, depth), "({branches}, {needed}), {depth}: {tests}");
            }
        }
    }

    /// How the last tree compares with the first: by what the thesis allows, and no more.
    #[test]
    fn tests_grow_as_the_thesis_says() {
        for (branches, needed) in SHAPES {
            let shape = Shape { branches, needed };
            let curve = shape.curve(branches.pow(3).max(1024));
            let allowed = |leaves: usize| match needed {
                1 => (leaves as f64).ln(),
                _ => (leaves as f64).powf(shape.power()),
            };
            let (first, last) = (curve[0], curve[curve.len() - 1]);
            let grown = last.1 as f64 / first.1 as f64;
            let ratio = grown / (allowed(last.0) / allowed(first.0));
            assert!(curve.len() > 1 && ratio < 1.2, "({branches}, {needed}): {curve:?}");
        }
    }
}
