//! Where in their files descriptors are that several processes have: each of these moves them for
//! all, and none of their streams tells of the others.

use super::descriptors::position;
use crate::ptrace::Registers;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use rustc_hash::FxHashMap;
use std::path::Path;
use why_record::event::Event;
use why_translate::context::CallClass;

/// Descriptors of files that other processes have as well, and where each was when that was last
/// looked at.
pub(super) type SharedFiles = FxHashMap<i32, u64>;

/// The descriptors of a process by which files may be read, and where they are.
fn files(pid: Tid) -> SharedFiles {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let files = open.filter(|entry| is_file(&entry.path()));
    let numbers = files.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let read = numbers.filter(|number| may_be_read(pid, *number));
    read.filter_map(|number| Some((number, position(pid, number)?))).collect()
}

/// Whether a descriptor was opened for more than to write: of a log nobody asks where it is.
fn may_be_read(pid: Tid, descriptor: i32) -> bool {
    let told = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{descriptor}"));
    let told = told.unwrap_or_default();
    let flags = told.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_ACCMODE != libc::O_WRONLY)
}

fn is_file(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}

impl Supervisor {
    /// A process has been created with copies of its parent's descriptors.
    pub(super) fn share_files(&mut self, parent: Tid, child: Tid) {
        if let Some(recorder) = &mut self.recorder {
            let files = files(child);
            recorder.shared_files.entry(parent).or_default().extend(&files);
            recorder.shared_files.insert(child, files);
        }
    }

    /// A call has come back, and others may have read on meanwhile.
    pub(super) fn record_offsets(&mut self, tid: Tid, call: &Registers) -> Outcome<()> {
        let pid = self.tasks[&tid].pid;
        let waits = matches!(
            crate::calls::class(call.rax as u32),
            CallClass::MayBlock | CallClass::Supervised
        );
        // What a guest has is not the process's.
        let is_own = self.log(tid).is_some_and(|log| log.process == pid);
        if !waits || !is_own {
            return Ok(());
        }
        let recorder = self.recorder.as_mut().expect("it has a log");
        let Some(files) = recorder.shared_files.get_mut(&pid) else {
            return Ok(());
        };
        let mut moved = Vec::new();
        files.retain(|&descriptor, was| {
            let now = position(pid, descriptor);
            if let Some(offset) = now.filter(|now| now != was) {
                *was = offset;
                moved.push(Event::Offset { descriptor, offset });
            }
            now.is_some()
        });
        moved.iter().try_for_each(|event| self.record(tid, event))
    }

    /// A program begins: where its standard input is, if that is a file.
    pub(super) fn record_standard_input(&mut self, tid: Tid) -> Outcome<()> {
        let pid = self.tasks[&tid].pid;
        if !is_file(Path::new(&format!("/proc/{pid}/fd/0"))) {
            return Ok(());
        }
        match position(pid, 0) {
            Some(offset) => self.record(tid, &Event::Offset { descriptor: 0, offset }),
            None => Ok(()),
        }
    }
}
