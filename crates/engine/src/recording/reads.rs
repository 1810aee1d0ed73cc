//! What the program reads from files: a large file is kept once, and what is read of it is
//! told by where it stands there.
//!
//! Which file was read, and where, is a guess: the log of calls tells no descriptor, and
//! `read` no offset; whoever shares a descriptor moves its offset. So what was read is always
//! compared with the kept copy, and told in full where it differs.

use super::Recorder;
use super::descriptors::{follow_descriptors, position};
use crate::call_log::{self, Record};
use crate::image::Identity;
use crate::memory::Address;
use crate::ptrace::Registers;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use why_record::event::Event;
use why_record::files::{Files, Hash};
use why_record::sums::BLOCK;

/// Smaller reads are told in full.
const LARGE: usize = 4096;
/// A file is kept when so much of it was read, one part behind the other,
const WORTH_KEEPING: u64 = 256 << 10;
/// and it is not more times as large as that.
const MOST_TIMES: u64 = 256;
/// The same where its parts are read in no order.
const SCATTERED: u64 = 16;
/// With how many files a logged read is compared.
const TRIED: usize = 16;

/// The files of a process that are large enough to be kept.
#[derive(Clone, Default)]
pub(super) struct OpenFiles {
    by_descriptor: FxHashMap<i32, Rc<RefCell<OpenFile>>>,
    /// The one that was read last.
    last: Option<i32>,
}

/// What descriptors that are copies of each other share.
struct OpenFile {
    /// What it was when it was opened.
    identity: Identity,
    /// Where it is read next, if its offset stays what it is.
    next: u64,
    /// What was read last, each time from where the last time ended.
    read: Range<u64>,
    /// How much was read in all.
    total: u64,
    copy: Copy,
}

#[derive(Clone, Copy)]
enum Copy {
    NotYet,
    Kept(Hash),
    Impossible,
}

impl OpenFile {
    fn was_read(&mut self, offset: u64, size: u64) {
        if self.read.end != offset {
            self.read.start = offset;
        }
        self.read.end = offset + size;
        self.total += size;
    }

    fn is_worth_keeping(&self) -> bool {
        let is_worth = |read: u64, times: u64| {
            read >= WORTH_KEEPING && self.identity.size <= read.saturating_mul(times)
        };
        is_worth(self.read.end - self.read.start, MOST_TIMES) || is_worth(self.total, SCATTERED)
    }
}

impl OpenFiles {
    /// A descriptor has been opened.
    fn opened(&mut self, pid: Tid, descriptor: i32) {
        self.by_descriptor.remove(&descriptor);
        let metadata = std::fs::metadata(path(pid, descriptor)).ok();
        let Some(identity) = metadata.as_ref().and_then(Identity::of) else {
            return;
        };
        if identity.size >= WORTH_KEEPING {
            let next = position(pid, descriptor).unwrap_or(0);
            let file = OpenFile { identity, next, read: 0..0, total: 0, copy: Copy::NotYet };
            self.by_descriptor.insert(descriptor, Rc::new(RefCell::new(file)));
        }
    }

    /// What a call does to the descriptors.
    pub(super) fn follow(&mut self, pid: Tid, name: &str, r: &Registers, result: u64) {
        let opens = matches!(name, "open" | "openat" | "openat2" | "creat");
        if opens && (result as i64) >= 0 {
            self.opened(pid, result as i32);
        }
        follow_descriptors(&mut self.by_descriptor, name, r, result);
    }

    /// Descriptors, in the order in which they are to be tried.
    fn tried(&self) -> Vec<i32> {
        let others = self.by_descriptor.keys().filter(|fd| Some(**fd) != self.last);
        self.last.iter().chain(others).copied().take(TRIED).collect()
    }

    /// Somebody has moved offsets: looks where they are.
    fn find_offsets(&self, pid: Tid) {
        for descriptor in self.tried() {
            let file = self.by_descriptor.get(&descriptor);
            if let Some((file, next)) = file.zip(position(pid, descriptor)) {
                file.borrow_mut().next = next;
            }
        }
    }
}

impl Recorder {
    /// A process is recorded from now on, with the descriptors that it has.
    pub(super) fn find_open_files(&mut self, pid: Tid) {
        let mut files = OpenFiles::default();
        for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
            if let Some(descriptor) = entry.file_name().to_str().and_then(|n| n.parse().ok()) {
                files.opened(pid, descriptor);
            }
        }
        self.open_files.insert(pid, files);
    }

    /// The copy of a file, if there is one or it is worth one.
    fn copy_of(&mut self, pid: Tid, descriptor: i32, file: &mut OpenFile) -> Option<Hash> {
        if matches!(file.copy, Copy::NotYet)
            && let Some(hash) = self.kept.get(&file.identity)
        {
            file.copy = Copy::Kept(*hash);
        }
        if matches!(file.copy, Copy::NotYet) && file.is_worth_keeping() {
            // If there cannot be a copy, for want of room or permission, bytes are told.
            let kept = self.keep(&path(pid, descriptor));
            file.copy = kept.map_or(Copy::Impossible, Copy::Kept);
        }
        match file.copy {
            Copy::Kept(hash) => Some(hash),
            Copy::NotYet | Copy::Impossible => None,
        }
    }

    /// Finds the file that a call has read these bytes from, and moves its offset. If there is
    /// a copy, tells it and where the bytes stand there.
    fn find_read(&mut self, pid: Tid, bytes: &[u8], from: Offset) -> Found {
        let Some(files) = self.open_files.get(&pid) else {
            return Found::Nowhere;
        };
        for descriptor in files.tried() {
            let Some(file) = self.open_files[&pid].by_descriptor.get(&descriptor).cloned() else {
                continue;
            };
            let mut file = file.borrow_mut();
            let copy = self.copy_of(pid, descriptor, &mut file);
            let path = copy.map_or_else(|| path(pid, descriptor), |hash| self.files.path(hash));
            let offsets = match from {
                Offset::Given(offset) => [Some(offset), None],
                Offset::OfFile { sought } => [Some(file.next), sought],
            };
            let mut offsets = offsets.into_iter().flatten();
            let Some(offset) = offsets.find(|offset| stand_there(&path, *offset, bytes)) else {
                continue;
            };
            if let Offset::OfFile { .. } = from {
                file.next = offset + bytes.len() as u64;
            }
            file.was_read(offset, bytes.len() as u64);
            self.open_files.entry(pid).or_default().last = Some(descriptor);
            return copy.map_or(Found::InFile, |hash| Found::InCopy(hash, offset));
        }
        Found::Nowhere
    }
}

/// From where a call has read.
#[derive(Clone, Copy)]
enum Offset {
    Given(u64),
    /// From the file's own offset, which may have been moved.
    OfFile {
        sought: Option<u64>,
    },
}

enum Found {
    InCopy(Hash, u64),
    InFile,
    Nowhere,
}

impl Supervisor {
    /// What a call has read into this memory.
    pub(super) fn record_read(
        &mut self,
        tid: Tid,
        name: &str,
        r: &Registers,
        range: Range<Address>,
    ) -> Outcome<()> {
        let size = range.end - range.start;
        if let Some((hash, offset)) = self.copy_read(tid, name, r, size) {
            let files = self.recorder.as_ref().expect("recording").files.clone();
            let memory = &self.space_of(tid).memory;
            let read = |at, buffer: &mut [u8]| memory.read_of_stopped(tid, at, buffer).is_ok();
            if memory_holds(read, range.clone(), &files, hash, offset) {
                return self.record(tid, &Event::Copied { at: range.start, size, hash, offset });
            }
        }
        self.record_memory(tid, range)
    }

    /// The copy of the file that a call has read, and where it has read there.
    fn copy_read(&mut self, tid: Tid, name: &str, r: &Registers, size: u64) -> Option<(Hash, u64)> {
        if size < LARGE as u64 {
            return None;
        }
        let (pid, descriptor) = (self.tasks[&tid].pid, r.rdi as i32);
        let recorder = self.recorder.as_mut()?;
        let file = recorder.open_files.get(&pid)?.by_descriptor.get(&descriptor)?.clone();
        let mut file = file.borrow_mut();
        let offset = if name == "read" {
            file.next = position(pid, descriptor)?;
            file.next.checked_sub(size)?
        } else {
            r.r10
        };
        file.was_read(offset, size);
        let hash = recorder.copy_of(pid, descriptor, &mut file)?;
        Some((hash, offset))
    }

    /// What came of calls that the thread made without the supervisor.
    pub(crate) fn record_calls(&mut self, tid: Tid, calls: &[u8]) -> Outcome<()> {
        let pid = self.tasks[&tid].pid;
        let Some(recorder) = &mut self.recorder else {
            return Ok(());
        };
        let has_files =
            recorder.open_files.get(&pid).is_some_and(|files| !files.by_descriptor.is_empty());
        let (mut in_full, mut sought, mut lost) = (Vec::with_capacity(calls.len()), None, false);
        for record in call_log::records(calls) {
            if i64::from(record.number) == libc::SYS_lseek {
                sought = Some(record.result);
            }
            let bytes = &calls[record.bytes.clone()];
            let found = if has_files && is_large_read(&record) {
                let recorder = self.recorder.as_mut().expect("recording");
                recorder.find_read(pid, bytes, offset_of(&record, sought))
            } else {
                Found::InFile
            };
            lost |= matches!(found, Found::Nowhere);
            if let Found::InCopy(hash, offset) = found {
                self.record_logged(tid, &mut in_full)?;
                self.record(tid, &from_file(&record, hash, offset))?;
            } else {
                let size = bytes.len() as u32;
                in_full.extend(call_log::header(record.number, record.result, size));
                in_full.extend(bytes);
            }
        }
        if lost && let Some(files) = self.recorder.as_ref().and_then(|r| r.open_files.get(&pid)) {
            files.find_offsets(pid);
        }
        self.record_logged(tid, &mut in_full)
    }

    /// Calls that are told in full, if there are any.
    fn record_logged(&mut self, tid: Tid, calls: &mut Vec<u8>) -> Outcome<()> {
        match std::mem::take(calls) {
            none if none.is_empty() => Ok(()),
            calls => self.record(tid, &Event::Calls(calls)),
        }
    }
}

fn is_large_read(record: &Record) -> bool {
    matches!(i64::from(record.number), libc::SYS_read | libc::SYS_pread64)
        && record.bytes.len() >= LARGE
        && record.result == record.bytes.len() as u64
}

/// From where it has read, as far as that is known.
fn offset_of(record: &Record, sought: Option<u64>) -> Offset {
    match i64::from(record.number) {
        libc::SYS_pread64 => Offset::Given(record.fourth),
        _ => Offset::OfFile { sought },
    }
}

fn from_file(record: &Record, hash: Hash, offset: u64) -> Event {
    let (number, result, size) = (record.number, record.result, record.bytes.len() as u32);
    Event::CallFromFile { number, result, hash, offset, size }
}

fn path(pid: Tid, descriptor: i32) -> PathBuf {
    format!("/proc/{pid}/fd/{descriptor}").into()
}

/// Whether a file holds these bytes at an offset.
fn stand_there(path: &Path, offset: u64, bytes: &[u8]) -> bool {
    // A descriptor may have become that of a pipe, which would wait to be opened.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let mut there = vec![0; bytes.len()];
    let Ok(file) = file else {
        return false;
    };
    // Most that differ do so from the beginning.
    let (first, rest) = there.split_at_mut(LARGE.min(bytes.len()));
    let same = |at: usize, there: &mut [u8]| {
        file.read_exact_at(there, offset.saturating_add(at as u64)).is_ok()
            && *there == bytes[at..at + there.len()]
    };
    same(0, first) && (rest.is_empty() || same(LARGE, rest))
}

/// Whether memory, as it is read, holds what a kept file holds from an offset on.
fn memory_holds(
    read: impl Fn(Address, &mut [u8]) -> bool,
    range: Range<Address>,
    files: &Files,
    hash: Hash,
    offset: u64,
) -> bool {
    let (path, sums) = (files.path(hash), files.sums(hash));
    let mut buffer = vec![0; BLOCK.min(range.end - range.start) as usize];
    let mut at = range.start;
    while at < range.end {
        let place = offset.saturating_add(at - range.start);
        let size = (BLOCK - place % BLOCK).min(range.end - at);
        let bytes = &mut buffer[..size as usize];
        if !read(at, bytes) {
            return false;
        }
        let told = sums.as_ref().and_then(|sums| sums.hold(place, bytes));
        if !told.unwrap_or_else(|| stand_there(&path, place, bytes)) {
            return false;
        }
        at += size;
    }
    true
}
