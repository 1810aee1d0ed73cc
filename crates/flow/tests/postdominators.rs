//! Compared with brute force: a block comes behind another on every way if there is no way to
//! the end without it.

use why_flow::{BlockId, Graph, PostDominators};

#[path = "support/by_force.rs"]
mod by_force;

use by_force::ends_without;

/// The nearest block behind one that all ways come through.
fn nearest(edges: &[Vec<usize>], from: usize) -> Option<BlockId> {
    let all = |from: usize| -> Vec<usize> {
        (0..edges.len())
            .filter(|other| *other != from && !ends_without(edges, from, *other))
            .collect()
    };
    let behind = all(from);
    let nearest = behind.iter().find(|one| {
        let further = all(**one);
        behind.iter().all(|other| other == *one || further.contains(other))
    });
    nearest.copied().map(BlockId)
}

fn random_edges(random: &mut u64, blocks: usize) -> Vec<Vec<usize>> {
    let mut below = |end: usize| {
        *random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*random >> 33) as usize % end
    };
    (0..blocks)
        .map(|_| {
            let mut next: Vec<usize> = (0..below(4)).map(|_| below(blocks)).collect();
            next.sort_unstable();
            next.dedup();
            next
        })
        .collect()
}

#[test]
fn of_random_graphs() {
    let mut random = 1;
    let mut tried = 0;
    for round in 0..4000 {
        let edges = random_edges(&mut random, 1 + round % 12);
        let every_block_ends =
            (0..edges.len()).all(|block| ends_without(&edges, block, usize::MAX));
        let found = PostDominators::of(&Graph::of_edges(&edges));
        if every_block_ends {
            tried += 1;
            for block in 0..edges.len() {
                assert_eq!(
                    found.behind(BlockId(block)),
                    nearest(&edges, block),
                    "{edges:?} {block}"
                );
            }
        }
    }
    assert!(tried > 500, "{tried}");
}

#[test]
fn a_loop_that_is_never_left_ends_in_front_of_its_first_block() {
    // 0 -> 1 -> 2 -> 1, and 2 -> 3 -> 2.
    let found = PostDominators::of(&Graph::of_edges(&[vec![1], vec![2], vec![1, 3], vec![2]]));
    assert_eq!(found.behind(BlockId(0)), Some(BlockId(1)));
    assert_eq!(found.behind(BlockId(3)), Some(BlockId(2)));
    assert_eq!(found.behind(BlockId(2)), Some(BlockId(1)));
    assert_eq!(found.behind(BlockId(1)), Some(BlockId(2)));
}

#[test]
fn a_long_chain_does_not_overflow() {
    let length = 200_000;
    let mut edges: Vec<Vec<usize>> = (1..length).map(|next| vec![next]).collect();
    edges.push(Vec::new());
    let found = PostDominators::of(&Graph::of_edges(&edges));
    assert_eq!(found.behind(BlockId(7)), Some(BlockId(8)));
    assert_eq!(found.behind(BlockId(length - 1)), None);
}
