//! Slices compared with those of an independent, naive slicer.
//!
//! The naive one shares nothing with the product but the decoder: it has its own tables of
//! what depends on what, goes forwards, keeps all dependences as a graph and slices by what can
//! be reached in it; control dependence is found by its definition. What both have to follow
//! is written down in `docs/slice.md`.

#[path = "naive/arithmetic.rs"]
mod arithmetic;
#[path = "naive/bits.rs"]
mod bits;
#[path = "naive/compare.rs"]
mod compare;
#[path = "naive/decided.rs"]
mod decided;
#[path = "naive/floats.rs"]
mod floats;
#[path = "naive/hidden.rs"]
mod hidden;
#[path = "../../flow/tests/support/image.rs"]
mod image;
#[path = "naive/kept.rs"]
mod kept;
#[path = "naive/kernel.rs"]
mod kernel;
#[path = "naive/lanes.rs"]
mod lanes;
#[path = "naive/machine.rs"]
mod machine;
#[path = "naive/masked.rs"]
mod masked;
#[path = "naive/moves.rs"]
mod moves;
#[path = "naive/others.rs"]
mod others;
#[path = "naive/product.rs"]
mod product;
#[path = "naive/random.rs"]
mod random;
#[path = "naive/shadow.rs"]
mod shadow;
#[path = "naive/slicer.rs"]
mod slicer;
#[path = "naive/sources.rs"]
mod sources;
#[path = "naive/stack.rs"]
mod stack;
#[path = "naive/stepped.rs"]
mod stepped;
#[path = "naive/strings.rs"]
mod strings;
#[path = "naive/tables.rs"]
mod tables;
#[path = "naive/vectors.rs"]
mod vectors;
#[path = "naive/ways.rs"]
mod ways;
#[path = "naive/wide.rs"]
mod wide;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many random programs are tried.
const RANDOM: u64 = 16;

fn programs() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/naive/programs");
    let files = std::fs::read_dir(directory).expect("the programs");
    let mut programs: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    programs.sort();
    programs
}

/// What the first line of a program wants it to be built with, behind `built with:`.
fn wished(program: &Path) -> Vec<String> {
    let source = std::fs::read_to_string(program).expect("a program");
    let first = source.lines().next().unwrap_or_default();
    let wishes = first.split_once("built with:").map_or("", |(_, wishes)| wishes);
    wishes.split_whitespace().filter(|word| word.starts_with('-')).map(str::to_owned).collect()
}

/// Compares programs, each at several levels, some at once. What differs.
fn compare_all(programs: &[PathBuf], levels: &[&[&'static str]]) -> Vec<String> {
    let runs: Vec<_> = programs
        .iter()
        .flat_map(|program| levels.iter().map(move |level| (program, level)))
        .collect();
    let (next, differing) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((program, level)) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let wished = wished(program);
                    let options: Vec<&str> =
                        level.iter().copied().chain(wished.iter().map(String::as_str)).collect();
                    let name = program.file_name().expect("a name").to_string_lossy();
                    let level = level.join(" ");
                    if options.iter().any(|option| option.contains("avx512")) && !wide::is_there() {
                        println!("{name} {level}: cannot be executed, this CPU lacks AVX-512");
                        continue;
                    }
                    let compared = std::panic::catch_unwind(|| {
                        compare::compare(&stepped::stepped(program, &options))
                    });
                    let differs = match &compared {
                        Ok(comparison) => comparison.differs.is_some(),
                        Err(_) => true,
                    };
                    match compared {
                        Ok(comparison) => println!("{name} {level}: {comparison}"),
                        Err(_) => println!("{name} {level}: failed"),
                    }
                    if differs {
                        differing.lock().unwrap().push(format!("{name} {level}"));
                    }
                }
            });
        }
    });
    differing.into_inner().unwrap()
}

#[test]
fn slices_of_programs_are_the_naive_ones() {
    let mut programs = programs();
    assert!(programs.len() >= 60, "{}", programs.len());
    if let Ok(only) = std::env::var("WHY_NAIVE") {
        programs.retain(|program| program.to_string_lossy().contains(&only));
    }
    let differing = compare_all(&programs, &[&["-O0"], &["-O2"]]);
    assert!(differing.is_empty(), "{differing:?} differ");
}

/// Another range of seeds is tried with `WHY_NAIVE_SEED=FIRST`.
#[test]
fn slices_of_random_programs_are_the_naive_ones() {
    let first = std::env::var("WHY_NAIVE_SEED").map_or(0, |seed| seed.parse().expect("a seed"));
    let directory = tempfile::tempdir().expect("a directory");
    let written = (first..first + RANDOM).map(|seed| {
        let path = directory.path().join(format!("seed-{seed}.c"));
        std::fs::write(&path, random::program(seed)).expect("writing a program");
        path
    });
    let programs: Vec<PathBuf> = written.collect();
    let differing = compare_all(&programs, &[&["-O0"], &["-O2"], &["-O3", "-mavx2", "-mbmi2"]]);
    assert!(differing.is_empty(), "{differing:?} differ");
}
