//! Tells builds of the engine apart: translations kept by one are of no use to
//! another that translates differently.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

fn main() {
    let mut hasher = DefaultHasher::new();
    for directory in ["src", "../translate/src"] {
        println!("cargo::rerun-if-changed={directory}");
        hash_sources(Path::new(directory), &mut hasher);
    }
    println!("cargo::rustc-env=WHY_ENGINE_BUILD={:016x}", hasher.finish());
}

fn hash_sources(directory: &Path, hasher: &mut DefaultHasher) {
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .expect("the sources are here")
        .map(|entry| entry.expect("a readable directory").path())
        .collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            hash_sources(&path, hasher);
        } else {
            std::fs::read(&path).expect("a readable source").hash(hasher);
        }
    }
}
