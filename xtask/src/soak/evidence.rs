//! Keeps both sides of a difference on disk: streams, end and files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use why_fixtures::support::outcome::{Entry, Outcome};

use crate::workspace;

/// Replaces what was kept of an earlier soak. Tells where.
pub fn keep(
    kept: &Path,
    title: &str,
    native: &Outcome,
    under_why: Option<&Outcome>,
    difference: &str,
) -> io::Result<PathBuf> {
    let directory = kept.join(title.replace(|c: char| !c.is_alphanumeric(), "-"));
    workspace::fresh(&directory)?;
    fs::write(directory.join("difference.txt"), format!("{difference}\n"))?;
    outcome(&directory.join("native"), native)?;
    if let Some(under_why) = under_why {
        outcome(&directory.join("why"), under_why)?;
    }
    Ok(directory)
}

fn outcome(directory: &Path, outcome: &Outcome) -> io::Result<()> {
    let files = directory.join("files");
    fs::create_dir_all(&files)?;
    fs::write(directory.join("ended"), format!("{}\n", outcome.ended))?;
    fs::write(directory.join("stdout"), &outcome.stdout)?;
    fs::write(directory.join("stderr"), &outcome.stderr)?;
    for (name, entry) in &outcome.files {
        let path = files.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        match entry {
            Entry::File { bytes, .. } => fs::write(path, bytes)?,
            Entry::Directory { .. } => fs::create_dir_all(path)?,
            // Described, not made again: following one could lead anywhere.
            Entry::Symlink(target) => fs::write(path, format!("symbolic link to {target}\n"))?,
            Entry::Other(kind) => fs::write(path, format!("{kind}\n"))?,
        }
    }
    Ok(())
}
