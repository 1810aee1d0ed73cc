//! What the program writes to its standard streams, and to files that are mapped.

use crate::maps;
use crate::memory::{Address, Memory};
use crate::own_paths::{named_by, path_at};
use crate::ptrace::Registers;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::fstat;
use rustc_hash::{FxHashMap, FxHashSet};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use why_record::event::{Event, Source, Stream};
use why_translate::context::WATCHED_DESCRIPTORS;

impl Supervisor {
    /// Whether what a process writes to this descriptor is recorded.
    pub(crate) fn is_recorded_stream(&self, tid: Tid, descriptor: u64) -> bool {
        let pid = self.tasks[&tid].pid;
        let streams = self.recorder.as_ref().and_then(|recorder| recorder.streams.get(&pid));
        streams.is_some_and(|streams| streams.contains_key(&(descriptor as i32)))
    }

    /// Whether a call that writes comes back at once, where the order in which threads write to a
    /// standard stream is to be told.
    pub(crate) fn writes_at_once(&mut self, tid: Tid, r: &Registers) -> bool {
        /// A pipe that has room for anything has room for that.
        const PIPE_ROOM: u64 = 4096;
        let pid = self.tasks[&tid].pid;
        let streams = self.recorder.as_ref().and_then(|recorder| recorder.streams.get(&pid));
        let Some(&stream) = streams.and_then(|streams| streams.get(&(r.rdi as i32))) else {
            return false;
        };
        let space = self.space_of(tid);
        if space.users < 2 || space.schedule.is_some() {
            return false;
        }
        let name = crate::calls::name(r.rax as u32).unwrap_or_default();
        let sizes = parts_to_write(&space.memory, name, r).into_iter().map(|(_, size)| size);
        let size = sizes.fold(0, u64::saturating_add);
        // The supervisor has the streams that the program was given.
        let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
        let own = match stream {
            Stream::Output => stdout.as_fd(),
            Stream::Error => stderr.as_fd(),
        };
        let is_file = fstat(own).is_ok_and(|file| file.st_mode & libc::S_IFMT == libc::S_IFREG);
        let has_room = || {
            let mut asked = [PollFd::new(own, PollFlags::POLLOUT)];
            poll(&mut asked, PollTimeout::ZERO).is_ok()
                && asked[0].revents() == Some(PollFlags::POLLOUT)
        };
        is_file || size <= PIPE_ROOM && has_room()
    }

    /// A program begins: which of its descriptors are the standard streams.
    pub(crate) fn follow_streams(&mut self, tid: Tid) {
        let pid = self.tasks[&tid].pid;
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        recorder.unmapped.remove(&pid);
        let streams = recorder.streams.entry(pid);
        streams
            // What is closed on exec is closed now.
            .and_modify(|streams| {
                streams.retain(|fd, _| std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).is_ok());
            })
            .or_insert_with(|| FxHashMap::from_iter([(1, Stream::Output), (2, Stream::Error)]));
        self.watch_streams(tid);
    }

    /// While a process is not recorded, the supervisor only wants to know what becomes of its
    /// standard streams.
    fn watch_streams(&mut self, tid: Tid) {
        let (space, pid) = (self.space_id(tid), self.tasks[&tid].pid);
        let streams = self.recorder.as_ref().and_then(|recorder| recorder.streams.get(&pid));
        let is_stream = |fd| streams.is_some_and(|streams| streams.contains_key(&fd));
        let table: Vec<u8> = (0..256).map(|fd| u8::from(is_stream(fd))).collect();
        let space = &self.spaces[&space];
        // Fails only when the process is gone.
        let _ = space.memory.write(space.context + WATCHED_DESCRIPTORS as u64, &table);
    }

    /// What an unrecorded thread's last call did to the standard streams.
    pub(super) fn follow_unrecorded_call(&mut self, tid: Tid, at: &Registers) {
        let pid = self.tasks[&tid].pid;
        self.task(tid).frame = None;
        let call = self.task(tid).recorded_call.take();
        let Some((recorder, call)) = self.recorder.as_mut().zip(call) else {
            return;
        };
        let Some(name) = crate::calls::name(call.rax as u32) else {
            return;
        };
        let memory = &self.spaces[&self.tasks[&tid].space].memory;
        let streams = recorder.streams.entry(pid).or_default();
        if follow_streams(streams, (memory, pid), name, &call, at.rax) {
            self.watch_streams(tid);
        }
    }

    /// Which descriptors the supervisor must see written to.
    pub(super) fn watch_descriptors(&mut self, tid: Tid) {
        let pid = self.tasks[&tid].pid;
        let space = self.space_id(tid);
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        let Some(log) = recorder.logs.get_mut(&space) else {
            return;
        };
        let streams = recorder.streams.get(&pid);
        let unmapped = recorder.unmapped.get(&pid);
        let table: Vec<u8> = (0..256)
            .map(|fd| {
                let is_stream = streams.is_some_and(|streams| streams.contains_key(&fd));
                let is_unmapped = unmapped.is_some_and(|unmapped| unmapped.contains(&fd));
                u8::from(is_stream || !recorder.objects.is_empty() && !is_unmapped)
            })
            .collect();
        if log.watched != table {
            let space = &self.spaces[&space];
            let _ = space.memory.write(space.context + WATCHED_DESCRIPTORS as u64, &table);
            log.watched = table;
        }
    }

    /// A call may have changed a file of which parts are mapped, and so memory.
    pub(super) fn record_written_file(
        &mut self,
        tid: Tid,
        name: &str,
        r: &Registers,
    ) -> Outcome<()> {
        let recorder = self.recorder.as_ref().expect("recording");
        let descriptor = match name {
            "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" | "ftruncate"
            | "fallocate" | "sendfile" => r.rdi,
            "copy_file_range" | "splice" => r.rdx,
            _ => return Ok(()),
        };
        if recorder.objects.is_empty() {
            return Ok(());
        }
        let Ok(file) = std::fs::metadata(format!("/proc/{tid}/fd/{}", descriptor as i32)) else {
            return Ok(());
        };
        let (major, minor) = (libc::major(file.dev()), libc::minor(file.dev()));
        let identity = (format!("{major:02x}:{minor:02x}"), file.ino());
        if !recorder.objects.contains_key(&identity) {
            let recorder = self.recorder.as_mut().expect("recording");
            recorder.unmapped.entry(self.tasks[&tid].pid).or_default().insert(descriptor as i32);
            return Ok(());
        }
        for mapping in maps::read(tid)? {
            if mapping.shared && (mapping.device.clone(), mapping.inode) == identity {
                let source = Source::Shared { object: 0, offset: mapping.offset };
                self.record_changes(tid, mapping.range, &source)?;
            }
        }
        Ok(())
    }

    /// What a call wrote to the program's standard streams.
    pub(super) fn record_output(
        &mut self,
        tid: Tid,
        name: &str,
        r: &Registers,
        result: u64,
    ) -> Outcome<()> {
        let (space, pid) = (self.space_id(tid), self.tasks[&tid].pid);
        let recorder = self.recorder.as_mut().expect("recording");
        let streams = recorder.streams.entry(pid).or_default();
        follow_streams(streams, (&self.spaces[&space].memory, pid), name, r, result);
        let open_files = recorder.open_files.entry(pid).or_default();
        open_files.follow(pid, name, r, result);
        if let Some(files) = recorder.shared_files.get_mut(&pid) {
            follow_descriptors(files, name, r, result);
        }
        if let Some(unmapped) = recorder.unmapped.get_mut(&pid) {
            forget_descriptors(unmapped, name, r, result);
        }
        let Some(&stream) = streams.get(&(r.rdi as i32)) else {
            return Ok(());
        };
        let mut left = if (result as i64) < 0 { 0 } else { result };
        for (at, size) in parts_to_write(&self.spaces[&space].memory, name, r) {
            let size = size.min(left);
            left -= size;
            if size > 0 {
                let recorder = self.recorder.as_mut().expect("recording");
                let order = recorder.outputs;
                recorder.outputs += 1;
                recorder.add(space, &Event::Output { stream, order, at, size })?;
            }
        }
        Ok(())
    }

    /// A process has been created that has descriptors of its own.
    pub(crate) fn record_descriptors(&mut self, parent: Tid, child: Tid) {
        if let Some(recorder) = &mut self.recorder {
            let streams = recorder.streams.get(&parent).cloned().unwrap_or_default();
            recorder.streams.insert(child, streams);
            let open_files = recorder.open_files.get(&parent).cloned().unwrap_or_default();
            recorder.open_files.insert(child, open_files);
        }
        self.share_files(parent, child);
    }
}

/// Where what a call is to write is, and how much; nothing if it is none of those that write.
fn parts_to_write(memory: &Memory, name: &str, r: &Registers) -> Vec<(Address, u64)> {
    let word = |at: Address| memory.read_u64(at).unwrap_or(0);
    let part = |number: u64| {
        let at = r.rsi.wrapping_add(16 * number);
        (word(at), word(at.wrapping_add(8)))
    };
    match name {
        "write" => vec![(r.rsi, r.rdx)],
        "writev" => (0..r.rdx.min(1024)).map(part).collect(),
        _ => Vec::new(),
    }
}

/// Where a descriptor's next byte is read or written.
pub(super) fn position(tid: Tid, descriptor: i32) -> Option<u64> {
    let info = std::fs::read_to_string(format!("/proc/{tid}/fdinfo/{descriptor}")).ok()?;
    info.strip_prefix("pos:")?.lines().next()?.trim().parse().ok()
}

/// What a call does to the standard streams, which may be opened once more by their paths; whether it
/// does anything.
fn follow_streams(
    streams: &mut FxHashMap<i32, Stream>,
    (memory, pid): (&Memory, Tid),
    name: &str,
    r: &Registers,
    result: u64,
) -> bool {
    let path = match name {
        "open" | "creat" => r.rdi,
        "openat" | "openat2" => r.rsi,
        _ => return follow_descriptors(streams, name, r, result),
    };
    let is_open = (result as i64) >= 0;
    let again = is_open.then(|| named_by(&path_at(memory, path), pid)).flatten();
    let stream = again.and_then(|again| streams.get(&again).copied());
    stream.map(|stream| streams.insert(result as i32, stream)).is_some()
}

/// What a call does to the descriptors of which something is known; whether it does anything.
pub(super) fn follow_descriptors<T: Clone>(
    known: &mut FxHashMap<i32, T>,
    name: &str,
    r: &Registers,
    result: u64,
) -> bool {
    let result = result as i64;
    if result < 0 {
        return false;
    }
    let copies = match name {
        "dup" | "dup2" | "dup3" => true,
        "fcntl" => matches!(r.rsi as i32, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC),
        _ => false,
    };
    if copies {
        match known.get(&(r.rdi as i32)).cloned() {
            Some(what) => known.insert(result as i32, what),
            None => known.remove(&(result as i32)),
        };
    } else if name == "close" {
        known.remove(&(r.rdi as i32));
    } else if name == "close_range" && r.rdx & u64::from(libc::CLOSE_RANGE_CLOEXEC) == 0 {
        known.retain(|&fd, _| !(r.rdi as u32..=r.rsi as u32).contains(&(fd as u32)));
    } else {
        return false;
    }
    true
}

/// Which descriptors are others after a call.
fn forget_descriptors(known: &mut FxHashSet<i32>, name: &str, r: &Registers, result: u64) {
    match name {
        "dup" | "dup2" | "dup3" | "fcntl" => drop(known.remove(&(result as i32))),
        "close" => drop(known.remove(&(r.rdi as i32))),
        "close_range" => known.clear(),
        _ => {}
    }
}
