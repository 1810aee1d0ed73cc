//! Sources that were changed after a program was recorded: what stands in them now need not be what
//! was compiled.

use super::shown::Shown;
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use why_record::store::Recording;

/// What is to be said of them.
pub fn told(shown: &Shown) -> Vec<String> {
    let Ok(manifest) = Recording::open(&shown.recording).manifest() else {
        return Vec::new();
    };
    let is_newer = |file: &str| {
        let now = std::fs::metadata(file);
        now.is_ok_and(|now| now.is_file() && now.mtime() > manifest.recorded_at as i64)
    };
    let of_line = |file: &str| {
        let name = file.rsplit('/').next().unwrap_or(file);
        format!("{name} has changed since: its text may not be what was compiled")
    };
    files(shown).into_iter().filter(|file| is_newer(file)).map(of_line).collect()
}

/// Those that lines are shown of.
fn files(shown: &Shown) -> BTreeSet<&str> {
    let before = shown.before_fork.as_deref().map(files).unwrap_or_default();
    let own = shown.lines.iter().filter_map(|line| line.file.as_deref());
    own.chain(before).collect()
}
