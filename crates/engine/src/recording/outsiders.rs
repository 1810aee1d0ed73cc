//! Memory that is shared with a process outside the recording: what that one writes there is
//! not told, so it is at least named.

use crate::maps::{self, Mapping};
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;

impl Supervisor {
    /// Looks who else has mapped an object to write to it, and says so in the manifest.
    pub(super) fn note_outsiders(&mut self, mapping: &Mapping) -> Outcome<()> {
        let is_known = |pid: &Tid| self.tasks.values().any(|task| task.pid == *pid);
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return Ok(());
        };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let others: Vec<String> = pids
            .filter(|pid: &Tid| !is_known(pid) && has_mapped(*pid, mapping))
            .map(|pid| {
                let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
                format!("{pid} ({})", name.unwrap_or_default().trim())
            })
            .collect();
        if others.is_empty() {
            return Ok(());
        }
        let note = format!(
            "{} is shared with process {}, which is not recorded: what it writes there is missing",
            mapping.name,
            others.join(", ")
        );
        self.recorder.as_ref().expect("recording").note(note)
    }
}

/// Whether a process can write to the same memory. One that may not be asked is none that
/// shares memory with a program of ours.
fn has_mapped(pid: Tid, mapping: &Mapping) -> bool {
    let same = |other: &Mapping| {
        other.shared
            && other.writable
            && (&other.device, other.inode) == (&mapping.device, mapping.inode)
    };
    maps::read(pid).is_ok_and(|maps| maps.iter().any(same))
}
