//! The programs with bugs: fetched, built, and tried with and without the fix.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::bugs::{BUGS, Bug};
use super::crashes;
use crate::workspace::{self, Failure};

/// Has cargo bring all packages to a directory, unless they are there, and tells which.
pub fn fetch(directory: &Path) -> Result<PathBuf, Failure> {
    let vendor = directory.join("vendor");
    if BUGS.iter().all(|bug| vendor.join(bug.package()).is_dir()) {
        return Ok(vendor);
    }
    let mut manifest = "[package]\nname = \"crashes\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\
                        [lib]\npath = \"empty.rs\"\n[workspace]\n[dependencies]\n"
        .to_owned();
    let mut packages: Vec<(&str, &str)> =
        BUGS.iter().map(|bug| (bug.package, bug.version)).collect();
    packages.sort_unstable();
    packages.dedup();
    for (package, version) in packages {
        manifest += &format!("{package} = \"={version}\"\n");
    }
    fs::create_dir_all(directory)?;
    fs::write(directory.join("Cargo.toml"), manifest)?;
    fs::write(directory.join("empty.rs"), "")?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let told = Command::new(cargo)
        .args(["vendor", "--quiet", "--versioned-dirs", "vendor"])
        .current_dir(directory)
        .output()?;
    match told.status.success() {
        true => Ok(vendor),
        false => Err(format!("cargo vendor: {}", String::from_utf8_lossy(&told.stderr)).into()),
    }
}

/// Builds a program, and sees that its bug is what makes it crash.
pub fn build(bug: &Bug, packages: &Path, home: &Path, level: &str) -> Result<PathBuf, Failure> {
    let sources = packages.join(bug.package()).join(bug.directory);
    let program = compile(bug, &sources, &sources.join(bug.file), &home.join("program"), level)?;
    if !crashes(Command::new(&program).arg(bug.input()))? {
        return Err(format!("{} does not crash by itself", bug.name).into());
    }
    let corrected = home.join(bug.file);
    fs::write(&corrected, correct(bug, &fs::read_to_string(sources.join(bug.file))?)?)?;
    let fixed = compile(bug, &sources, &corrected, &home.join("fixed"), level)?;
    if crashes(Command::new(&fixed).arg(bug.input()))? {
        return Err(format!("{} crashes in spite of its fix", bug.name).into());
    }
    Ok(program)
}

/// The source with its lines as they should have been.
fn correct(bug: &Bug, source: &str) -> Result<String, Failure> {
    let mut lines: Vec<&str> = source.lines().collect();
    for (number, line) in bug.fix {
        *lines.get_mut(number - 1).ok_or("the fix is of a line that is not there")? = line;
    }
    Ok(lines.join("\n") + "\n")
}

/// Compiles the library with one of its files taken from elsewhere.
fn compile(
    bug: &Bug,
    sources: &Path,
    file: &Path,
    program: &Path,
    level: &str,
) -> Result<PathBuf, Failure> {
    let mut others: Vec<PathBuf> = fs::read_dir(sources)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    others.sort_unstable();
    others.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let listed = bug.sources.is_empty() || bug.sources.contains(&name);
        listed && name.ends_with(".c") && name != bug.file
    });
    let told = Command::new("cc")
        .args(["-g", "-w", &format!("-O{level}"), "-o"])
        .arg(program)
        .arg("-I")
        .arg(sources)
        .arg(workspace::root().join("xtask/crashes").join(bug.driver))
        .arg(file)
        .args(others)
        .args(bug.flags)
        .output()?;
    match told.status.success() {
        true => Ok(program.to_path_buf()),
        false => Err(format!("cc: {}", String::from_utf8_lossy(&told.stderr)).into()),
    }
}

impl Bug {
    /// The directory of the package.
    fn package(&self) -> String {
        format!("{}-{}", self.package, self.version)
    }
}
