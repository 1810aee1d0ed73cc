//! Where things are: the sources, the build directory and the `why` built in it.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What any chore may fail with: a sentence for the developer.
pub type Failure = Box<dyn std::error::Error>;

/// The root of the sources.
pub fn root() -> PathBuf {
    // Cargo sets it at run time; the constant serves a binary started by hand.
    let manifest = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.parent().expect("xtask lies in the workspace").to_path_buf()
}

/// The build directory of our target, taken from where this program itself was built,
/// so that it is right whatever setting chose it.
pub fn target() -> io::Result<PathBuf> {
    above_program(2)
}

/// A directory above this program, which is `BUILD/TARGET/release/xtask`.
fn above_program(levels: usize) -> io::Result<PathBuf> {
    let program = env::current_exe()?;
    let above = program.ancestors().nth(levels).map(Path::to_path_buf);
    above.ok_or_else(|| io::Error::other("xtask was not built by cargo"))
}

/// Builds `why` in release mode and tells where it is.
pub fn build_why() -> Result<PathBuf, Failure> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--release", "--package", "why"])
        .current_dir(root())
        .env("CARGO_TARGET_DIR", above_program(3)?)
        .status()?;
    if !status.success() {
        return Err("why does not build".into());
    }
    Ok(target()?.join("release/why"))
}

/// The program of that name, Debian's own one first: a development machine often
/// has others in front of it in `PATH`.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    [PathBuf::from("/usr/bin"), PathBuf::from("/bin")]
        .into_iter()
        .chain(env::split_paths(&path))
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
}

/// An empty directory at that path, whatever was there before.
pub fn fresh(directory: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::create_dir_all(directory)
}
