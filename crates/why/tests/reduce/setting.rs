//! A directory in which `why reduce` runs, and what it leaves there.

use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const WHY: &str = env!("CARGO_BIN_EXE_why");

/// A directory of its own, in which `why` runs and tests are made.
pub struct Setting {
    directory: TempDir,
}

impl Setting {
    pub fn new(files: &[(&str, &[u8])]) -> Setting {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("tmp")).unwrap();
        for (name, content) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        Setting { directory }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn script(&self, body: &str) {
        let path = self.path("test.sh");
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(WHY);
        command.arg("reduce").args(arguments).current_dir(self.directory.path());
        command.env("TMPDIR", self.path("tmp")).stdin(Stdio::null());
        command
    }

    pub fn reduce(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().unwrap();
        let left: Vec<_> = fs::read_dir(self.path("tmp")).unwrap().collect();
        assert!(left.is_empty(), "temporary files are left: {left:?}");
        output
    }

    /// The answer, as JSON.
    pub fn answer(&self, arguments: &[&str]) -> Value {
        let output = self.reduce(&[&["--json"], arguments].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["schema"], "why.reduce/1");
        answer
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Exit status and the one line that says why.
    pub fn refused(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.reduce(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(output.stdout.is_empty());
        (output.status.code().unwrap(), said)
    }
}
