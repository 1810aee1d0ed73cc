//! Graphs of functions that compilers made.

use std::process::Command;
use why_flow::{Graph, PostDominators};

#[path = "support/image.rs"]
mod image;

use image::Image;

fn compiled(source: &str, options: &[&str]) -> Image {
    let directory = tempfile::tempdir().expect("a directory");
    let (from, to) = (directory.path().join("source.c"), directory.path().join("program"));
    std::fs::write(&from, source).expect("writing the source");
    let status = Command::new("cc").args(options).arg("-o").args([&to, &from]).status();
    assert!(status.expect("a C compiler").success());
    Image::read(&std::fs::read(&to).expect("the program"))
}

const SOURCE: &str = r#"
    #include <stdlib.h>
    __attribute__((noreturn, noinline)) void give_up(void) { exit(3); }
    __attribute__((noinline)) int choose(int n, int m) {
        switch (n) {
        case 0: return m * 3;
        case 1: return m + 17;
        case 2: m ^= 5; break;
        case 3: m -= 9; break;
        case 4: return m / 3;
        case 5: m += n * m; break;
        case 6: return ~m;
        case 7: m = abs(m); break;
        case 8: return m << 3;
        default: return 1;
        }
        return m + 1;
    }
    __attribute__((noinline)) int check(int n) {
        if (n < 0) give_up();
        return n + 1;
    }
    int main(int argc, char **argv) { return choose(argc, check(argc)); }"#;

const WAYS: [&[&str]; 5] = [
    &["-O0"],
    &["-O2"],
    &["-O0", "-no-pie", "-fno-pie"],
    &["-O2", "-no-pie", "-fno-pie"],
    &["-O2", "-fcf-protection=none"],
];

#[test]
fn a_table_of_jumps_is_read() {
    for options in WAYS {
        let image = compiled(SOURCE, options);
        let graph = Graph::of(&image, image.symbol("choose"));
        let most = graph.blocks.iter().map(|block| block.successors.len()).max();
        assert!(most >= Some(9), "{options:?}: {graph:x?}");
    }
}

#[test]
fn what_does_not_return_is_no_way_on() {
    for options in WAYS {
        let image = compiled(SOURCE, options);
        let graph = Graph::of(&image, image.symbol("check"));
        let found = PostDominators::of(&graph);
        let branch = graph.blocks.iter().position(|block| block.successors.len() == 2);
        let branch = why_flow::BlockId(branch.expect("a branch"));
        assert_eq!(found.behind(branch), None, "{options:?}: what follows depends on it");
    }
}

/// Every function of a large library: blocks lie one behind the other, and lead to blocks.
#[test]
fn of_a_library() {
    let path = "/usr/lib/x86_64-linux-gnu/libcrypto.so.3";
    let image = Image::read(&std::fs::read(path).expect("a library of this machine"));
    let (mut blocks, mut jumps) = (0, 0);
    for (name, range) in &image.functions {
        let graph = Graph::of(&image, range.start);
        assert_eq!(graph.starting(range.start).map(|id| id.0), Some(0), "{name}");
        let mut ranges: Vec<(u64, u64)> = graph.blocks.iter().map(|b| (b.start, b.last)).collect();
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "{name}: {graph:x?}");
        assert!(graph.blocks.iter().all(|block| block.ends || !block.successors.is_empty()));
        let found = PostDominators::of(&graph);
        for id in (0..graph.blocks.len()).map(why_flow::BlockId) {
            if let Some(behind) = found.behind(id) {
                assert_ne!(behind, id, "{name}");
            }
        }
        blocks += graph.blocks.len();
        jumps += graph.blocks.iter().filter(|block| block.successors.len() > 2).count();
    }
    println!("{} functions, {blocks} blocks, {jumps} tables", image.functions.len());
    assert!(blocks > 20_000 && jumps > 20, "{blocks} {jumps}");
}
