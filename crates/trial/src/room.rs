//! Where a worker makes its tests: a directory of its own, on its own machine.

use nix::fcntl::{Flock, FlockArg};
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// Locked as long as its worker lives, so that others can tell what a killed one has left.
pub struct Room {
    family: String,
    directory: TempDir,
    _lock: Flock<File>,
}

impl Room {
    pub fn open(family: &str) -> io::Result<Room> {
        loop {
            let directory = tempfile::Builder::new().prefix(&prefix(family)).tempdir()?;
            // A relative that has just cleaned up may have taken it for one that was left.
            if let Some(lock) = lock(directory.path())
                && directory.path().exists()
            {
                return Ok(Room { family: family.to_owned(), directory, _lock: lock });
            }
        }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// The directory of one test.
pub struct TestDirectory(TempDir);

impl TestDirectory {
    pub fn new(room: &Path) -> io::Result<TestDirectory> {
        tempfile::Builder::new().prefix("test-").tempdir_in(room).map(TestDirectory)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        remove(self.path());
    }
}

/// Deletes a directory of tests: what a test has made, it may have forbidden to change.
fn remove(directory: &Path) {
    if std::fs::remove_dir_all(directory).is_err() {
        permit(directory);
        let _ = std::fs::remove_dir_all(directory);
    }
}

/// Makes all directories in a directory ours to change.
fn permit(directory: &Path) {
    let _ = std::fs::set_permissions(directory, Permissions::from_mode(0o700));
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            permit(&entry.path());
        }
    }
}

impl Drop for Room {
    /// Deletes the rooms of dead relatives; its own is deleted with the directory.
    fn drop(&mut self) {
        let entries = std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
        let prefix = prefix(&self.family);
        for entry in entries
            .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()))
        {
            if let Some(_lock) = lock(&entry.path()) {
                remove(&entry.path());
            }
        }
    }
}

fn prefix(family: &str) -> String {
    format!("why-{family}-")
}

fn lock(directory: &Path) -> Option<Flock<File>> {
    Flock::lock(File::open(directory).ok()?, FlockArg::LockExclusiveNonblock).ok()
}
