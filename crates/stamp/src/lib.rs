//! Tells builds apart, for build scripts: what one build keeps on the disk may mean something else to
//! another one, which was made of other sources.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// Sets a variable for the crate that is built: a number of sources, by paths from its own directory,
/// and of the versions of all dependencies. Other ones have another number.
pub fn set(variable: &str, sources: impl IntoIterator<Item = PathBuf>) {
    let mut hasher = DefaultHasher::new();
    for path in sources.into_iter().chain([PathBuf::from("../../Cargo.lock")]) {
        println!("cargo::rerun-if-changed={}", path.display());
        hash(&path, &mut hasher);
    }
    println!("cargo::rustc-env={variable}={:016x}", hasher.finish());
}

/// What lies in a directory, in the same order everywhere.
pub fn within(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("the sources are here");
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("a readable directory").path()).collect();
    paths.sort();
    paths
}

fn hash(path: &Path, hasher: &mut DefaultHasher) {
    if path.is_dir() {
        within(path).iter().for_each(|path| hash(path, hasher));
    } else {
        std::fs::read(path).expect("a readable source").hash(hasher);
    }
}
