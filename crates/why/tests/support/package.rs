//! Which Debian package brings a program. A tool that is missing is a failure
//! with a remedy, never a test that quietly does not run.

use std::env;
use std::path::{Path, PathBuf};

const PACKAGES: &[(&str, &str)] = &[
    ("c++", "g++"),
    ("cc", "gcc"),
    ("curl", "curl"),
    ("gawk", "gawk"),
    ("gcc", "gcc"),
    ("go", "golang-go"),
    ("java", "default-jdk-headless"),
    ("javac", "default-jdk-headless"),
    ("musl-gcc", "musl-tools"),
    ("nginx", "nginx-light"),
    ("node", "nodejs"),
    ("python3", "python3"),
    ("redis-benchmark", "redis-tools"),
    ("redis-cli", "redis-tools"),
    ("setpriv", "util-linux"),
    ("xz", "xz-utils"),
];

/// The program's path; Err names the package to install.
pub fn find(program: &str) -> Result<PathBuf, String> {
    look_up(program).ok_or_else(|| {
        let package = PACKAGES
            .iter()
            .find(|(name, _)| *name == program)
            .map_or(program, |(_, package)| package);
        format!("{program} is not installed; install the package {package}, or run ./setup")
    })
}

/// Servers live in sbin, which is not on an ordinary user's path.
pub fn look_up(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| path.exists());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/bin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(program))
        .find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok()
}
