//! A directory in which programs are recorded and replayed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::support::why::WHY;

pub struct Setting {
    pub directory: TempDir,
}

impl Setting {
    pub fn new() -> Setting {
        Setting { directory: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Any program, in the directory.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("WHY_DIR", self.path("recordings")).current_dir(self.directory.path());
        command
    }

    pub fn why(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(WHY);
        command.args(arguments);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.why(arguments).output().unwrap()
    }

    /// A C program.
    pub fn compile(&self, name: &str, source: &str) -> PathBuf {
        self.compile_with(name, source, &["-O1", "-pthread"])
    }

    pub fn compile_with(&self, name: &str, source: &str, options: &[&str]) -> PathBuf {
        let (source_file, program) = (self.path("source.c"), self.path(name));
        fs::write(&source_file, source).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(options).arg("-o").args([&program, &source_file]);
        assert!(compiler.status().unwrap().success());
        program
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What `why` says when it fails: one line that names the matter, and no defect of its own.
pub fn said_in_one_line(stderr: &[u8], part: &str) {
    let said = text(stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("why: ") && said.contains(part), "{part}: {said}");
    assert!(!said.contains("defect") && !said.contains("panicked"), "{said}");
}

/// All files below a directory.
pub fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files_below(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// Lines are a beginning of others; else says where they begin to differ.
pub fn is_beginning(of: &str, lines: &str) -> Result<(), String> {
    if of.starts_with(lines) {
        return Ok(());
    }
    let pairs = lines.lines().zip(of.lines().chain(std::iter::repeat("nothing")));
    let at = pairs.enumerate().find(|(_, (line, other))| line != other);
    Err(format!("line, replayed and recorded, of {} and {}: {at:?}", lines.len(), of.len()))
}
