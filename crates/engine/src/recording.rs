//! Writes down what happens to a program that it could not have computed itself.
//!
//! The supervisor calls these wherever a thread stops and goes on; without a recording
//! they do nothing.

use crate::error::{EngineError, Halt};
use crate::image::Identity;
use crate::maps::{self, Mapping};
use crate::memory::{Address, Memory, PAGE};
use crate::memory_calls::DISCARDS;
use crate::outputs::Returned;
use crate::ptrace::{self, Registers};
use crate::report::Ended;
use crate::space::SpaceId;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{Task, Tid};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};
use why_record::RecordError;
use why_record::event::{self, Access, Cause, Event, Source, Stream};
use why_record::files::{Files, Hash};
use why_record::registers::Registers as Recorded;
use why_record::store::Recording;
use why_record::stream::Writer;
use why_translate::context::{APP_GS, LAST_CALL, WATCHED_DESCRIPTORS};

pub struct Recorder {
    recording: Recording,
    files: Files,
    /// What has been kept already.
    kept: FxHashMap<Identity, Hash>,
    logs: FxHashMap<SpaceId, Log>,
    /// Memory that may be mapped several times, by device and inode.
    objects: FxHashMap<(String, u64), u32>,
    /// Which descriptors of a process are the standard streams that the first one had.
    streams: FxHashMap<Tid, FxHashMap<i32, Stream>>,
    /// Descriptors of processes that are known not to be of files that are mapped.
    unmapped: FxHashMap<Tid, FxHashSet<i32>>,
    /// How many writes to standard streams there were.
    outputs: u64,
    /// How many programs each process has executed.
    programs: FxHashMap<Tid, u32>,
    pub events: u64,
    pub bytes: u64,
}

/// The stream of a process.
struct Log {
    writer: Writer,
    /// The thread that was resumed last and has not stopped.
    running: Option<Tid>,
    /// What each thread had when it stopped or was resumed last.
    registers: FxHashMap<Tid, Recorded>,
    /// The instructions of the process when a thread was resumed last.
    since: u64,
    /// Threads whose vector registers are not what they computed.
    vectors: FxHashSet<Tid>,
    /// Threads that ended while another one ran, and what the kernel wrote then.
    ends: Vec<(Tid, Vec<Address>)>,
    /// The descriptors that are watched, as the process has it.
    watched: Vec<u8>,
    /// The sizes of attached segments of shared memory.
    segments: FxHashMap<Address, u64>,
    /// Where the heap ends.
    heap_end: Option<Address>,
}

impl Recorder {
    pub fn new(recording: Recording) -> Recorder {
        Recorder {
            files: recording.files(),
            recording,
            kept: FxHashMap::default(),
            logs: FxHashMap::default(),
            objects: FxHashMap::default(),
            streams: FxHashMap::default(),
            unmapped: FxHashMap::default(),
            outputs: 0,
            programs: FxHashMap::default(),
            events: 0,
            bytes: 0,
        }
    }

    fn add(&mut self, space: SpaceId, event: &Event) -> Outcome<()> {
        let Some(log) = self.logs.get_mut(&space) else {
            return Ok(());
        };
        self.events += 1;
        Ok(log.writer.add(event).map_err(EngineError::Recording)?)
    }

    /// Begins the next stream of a process.
    fn open(&mut self, space: SpaceId, pid: Tid) -> Outcome<()> {
        let number = self.programs.entry(pid).or_default();
        *number += 1;
        let path = self.recording.stream(pid, *number);
        let writer = Writer::create(&path).map_err(EngineError::Recording)?;
        let log = Log {
            writer,
            running: None,
            registers: FxHashMap::default(),
            since: 0,
            vectors: FxHashSet::default(),
            ends: Vec::new(),
            watched: Vec::new(),
            segments: FxHashMap::default(),
            heap_end: None,
        };
        self.logs.insert(space, log);
        Ok(())
    }

    fn close(&mut self, space: SpaceId) -> Outcome<()> {
        if let Some(mut log) = self.logs.remove(&space) {
            log.writer.flush().map_err(EngineError::Recording)?;
            self.bytes += log.writer.bytes_written;
        }
        Ok(())
    }

    /// Keeps a copy of a file that is mapped.
    fn keep(&mut self, path: &Path) -> Outcome<Hash> {
        let reading = |error| {
            let what = format!("cannot read {} to keep a copy", path.display());
            EngineError::Recording(RecordError::system(what)(error))
        };
        let mut file = File::open(path).map_err(reading)?;
        let identity = Identity::of(&file.metadata().map_err(reading)?);
        if let Some(hash) = identity.as_ref().and_then(|identity| self.kept.get(identity)) {
            return Ok(*hash);
        }
        let name = path.display().to_string();
        let hash = self.files.keep(&mut file, &name).map_err(EngineError::Recording)?;
        if let Some(identity) = identity {
            self.kept.insert(identity, hash);
        }
        Ok(hash)
    }
}

impl Supervisor {
    fn space_id(&self, tid: Tid) -> SpaceId {
        self.tasks[&tid].space
    }

    pub(crate) fn record(&mut self, tid: Tid, event: &Event) -> Outcome<()> {
        let space = self.space_id(tid);
        match &mut self.recorder {
            Some(recorder) => recorder.add(space, event),
            None => Ok(()),
        }
    }

    fn log(&mut self, tid: Tid) -> Option<&mut Log> {
        let space = self.space_id(tid);
        self.recorder.as_mut()?.logs.get_mut(&space)
    }

    /// A program begins, with this memory.
    pub(crate) fn record_program(&mut self, tid: Tid, maps: &[Mapping]) -> Outcome<()> {
        let space = self.space_id(tid);
        let pid = self.tasks[&tid].pid;
        let Some(recorder) = &mut self.recorder else {
            return Ok(());
        };
        recorder.open(space, pid)?;
        recorder.unmapped.remove(&pid);
        let streams = recorder.streams.entry(pid);
        streams
            // What is closed on exec is closed now.
            .and_modify(|streams| {
                streams.retain(|fd, _| std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).is_ok());
            })
            .or_insert_with(|| FxHashMap::from_iter([(1, Stream::Output), (2, Stream::Error)]));
        let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let arguments = arguments.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        let executed = Event::Executed {
            program: program.display().to_string(),
            arguments: arguments.map(|word| String::from_utf8_lossy(word).into_owned()).collect(),
        };
        self.record(tid, &executed)?;
        for mapping in maps.iter().filter(|mapping| !KERNELS.contains(&mapping.name.as_str())) {
            self.record_mapping(tid, mapping)?;
        }
        Ok(())
    }

    /// Memory that is there, with what is in it.
    fn record_mapping(&mut self, tid: Tid, mapping: &Mapping) -> Outcome<()> {
        let source = self.record_fresh_mapping(tid, mapping)?;
        if mapping.writable || mapping.shared {
            self.record_changes(tid, mapping.range.clone(), &source)?;
        }
        Ok(())
    }

    /// Memory that holds nothing but what it was mapped from.
    fn record_fresh_mapping(&mut self, tid: Tid, mapping: &Mapping) -> Outcome<Source> {
        let range = mapping.range.clone();
        let source = if mapping.name == "[stack]" {
            Source::Stack
        } else if mapping.shared {
            let recorder = self.recorder.as_mut().expect("recording");
            let identity = (mapping.device.clone(), mapping.inode);
            let next = recorder.objects.len() as u32;
            let object = *recorder.objects.entry(identity).or_insert(next);
            if object == next {
                recorder.unmapped.clear();
            }
            Source::Shared { object, offset: mapping.offset }
        } else if mapping.inode == 0 {
            Source::Zero
        } else {
            let path = format!("/proc/{tid}/map_files/{:x}-{:x}", range.start, range.end);
            let recorder = self.recorder.as_mut().expect("recording");
            let hash = recorder.keep(Path::new(&path)).or_else(|error| match error {
                Halt::Engine(_) => recorder.keep(Path::new(&mapping.name)),
                gone => Err(gone),
            })?;
            Source::File { hash, offset: mapping.offset }
        };
        let access =
            Access { read: mapping.readable, write: mapping.writable, execute: mapping.executable };
        let size = range.end - range.start;
        self.record(tid, &Event::Mapped { at: range.start, size, access, source: source.clone() })?;
        Ok(source)
    }

    /// What of a mapping's memory is not what it was mapped from.
    fn record_changes(&mut self, tid: Tid, range: Range<Address>, source: &Source) -> Outcome<()> {
        let file = match source {
            Source::File { hash, offset } => {
                let recorder = self.recorder.as_ref().expect("recording");
                let file = File::open(recorder.files.path(*hash)).ok();
                file.map(|file| (file, *offset))
            }
            _ => None,
        };
        let (mut page, mut original) = ([0; PAGE as usize], [0; PAGE as usize]);
        for at in range.clone().step_by(PAGE as usize) {
            if self.space_of(tid).memory.read_exact(at, &mut page).is_err() {
                continue;
            }
            original.fill(0);
            if let Some((file, offset)) = &file {
                let _ = file.read_at(&mut original, offset + (at - range.start));
            }
            if page != original || matches!(source, Source::Shared { .. }) {
                self.record(tid, &Event::Wrote { at, bytes: page.to_vec() })?;
            }
        }
        Ok(())
    }

    /// A thread has stopped with these registers. Nothing is written if it had not been
    /// resumed: it has stopped before.
    pub(crate) fn record_stop(&mut self, tid: Tid, at: &Registers, cause: Cause) -> Outcome<()> {
        if self.log(tid).is_none_or(|log| log.running != Some(tid)) {
            return Ok(());
        }
        self.drain_log(tid)?;
        let space = self.space_of(tid);
        let (count, gs_base) = (space.count(), space.read_slot(APP_GS));
        let log = self.log(tid).expect("just seen");
        log.running = None;
        let instructions = count.wrapping_sub(log.since);
        let now = recorded(&settled_at(at, cause), gs_base);
        let before = log.registers.insert(tid, now).unwrap_or_default();
        let registers = now.changed_from(&before);
        let ends = std::mem::take(&mut log.ends);
        self.record(tid, &Event::Stopped { instructions, cause, registers })?;
        self.record_ends(self.space_id(tid), ends)
    }

    /// A thread is about to go on with these registers.
    pub(crate) fn record_resume(&mut self, tid: Tid, at: &Registers) -> Outcome<()> {
        if self.log(tid).is_none_or(|log| log.running == Some(tid)) || self.space_of(tid).ending {
            return Ok(());
        }
        self.record_results(tid, at)?;
        self.watch_descriptors(tid);
        let space = self.space_of(tid);
        let (count, gs_base) = (space.count(), space.read_slot(APP_GS));
        let now = recorded(at, gs_base);
        let log = self.log(tid).expect("just seen");
        let new = !log.registers.contains_key(&tid);
        let before = log.registers.insert(tid, now).unwrap_or_default();
        log.running = Some(tid);
        log.since = count;
        if log.vectors.remove(&tid) || new {
            let vectors = ptrace::vectors(tid)?;
            self.record(tid, &Event::Vectors(vectors))?;
        }
        let registers = now.changed_from(&before);
        self.record(tid, &Event::Resumed { thread: tid, registers })
    }

    /// Whether the recording says that the thread does not run.
    pub(crate) fn has_stopped(&mut self, tid: Tid) -> bool {
        self.log(tid).is_some_and(|log| log.running != Some(tid))
    }

    /// The kernel has called a handler, whose frame lies at the stack pointer.
    pub(crate) fn record_frame(&mut self, tid: Tid) -> Outcome<()> {
        if self.recorder.is_none() {
            return Ok(());
        }
        // Return address and ucontext; in it, where the vector registers are saved; and
        // there, how many bytes they take.
        const VECTORS: u64 = 8 + 0xe0;
        const VECTOR_BYTES: u64 = 464 + 4;
        let frame = ptrace::registers(tid)?.rsp;
        let memory = &self.space_of(tid).memory;
        let vectors = memory.read_u64(frame + VECTORS).unwrap_or(0);
        let size = memory.read_u64(vectors + VECTOR_BYTES).unwrap_or(0) as u32;
        let end = (vectors + u64::from(size)).max(frame + 8 + 304 + 128);
        if end - frame < 1 << 16 {
            self.task(tid).frame = Some(frame..end);
        }
        self.record_vectors_changed(tid);
        Ok(())
    }

    /// A thread is right behind a call that it made without the supervisor, and that is not
    /// logged yet: it is recorded as if the supervisor had made it.
    pub(crate) fn record_call_in_cache(
        &mut self,
        tid: Tid,
        registers: &Registers,
        next: Address,
    ) -> Outcome<()> {
        if self.recorder.is_none() {
            return Ok(());
        }
        let number = self.space_of(tid).read_slot(LAST_CALL);
        let at_call = Registers { rax: number, rip: next, ..*registers };
        self.record_stop(tid, &at_call, Cause::Call(number as u32))?;
        self.task(tid).recorded_call = Some(at_call);
        Ok(())
    }

    /// Which descriptors the supervisor must see written to.
    fn watch_descriptors(&mut self, tid: Tid) {
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

    /// The vector registers have been changed by the kernel.
    pub(crate) fn record_vectors_changed(&mut self, tid: Tid) {
        if let Some(log) = self.log(tid) {
            log.vectors.insert(tid);
        }
    }

    /// What the thread's last call, or the kernel on entry to a handler, has written.
    fn record_results(&mut self, tid: Tid, at: &Registers) -> Outcome<()> {
        if let Some(frame) = self.task(tid).frame.take() {
            self.record_memory(tid, frame)?;
        }
        let Some(call) = self.task(tid).recorded_call.take() else {
            return Ok(());
        };
        let Some(name) = crate::calls::name(call.rax as u32) else {
            return Ok(());
        };
        let arguments = [call.rdi, call.rsi, call.rdx, call.r10, call.r8, call.r9];
        let result = at.rax;
        let memory = &self.space_of(tid).memory;
        let written = Returned { name, arguments, result, memory }.written();
        let Some(written) = written else {
            return Err(crate::unknown::call(call.rax, call.rip - 2).into());
        };
        for range in written {
            self.record_memory(tid, range)?;
        }
        self.record_written_file(tid, name, &call)?;
        self.record_output(tid, name, &call, result)
    }

    /// A call may have changed a file of which parts are mapped, and so memory.
    fn record_written_file(&mut self, tid: Tid, name: &str, r: &Registers) -> Outcome<()> {
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
    fn record_output(&mut self, tid: Tid, name: &str, r: &Registers, result: u64) -> Outcome<()> {
        let (space, pid) = (self.space_id(tid), self.tasks[&tid].pid);
        let recorder = self.recorder.as_mut().expect("recording");
        let streams = recorder.streams.entry(pid).or_default();
        follow_descriptors(streams, name, r, result);
        if let Some(unmapped) = recorder.unmapped.get_mut(&pid) {
            forget_descriptors(unmapped, name, r, result);
        }
        let Some(&stream) = streams.get(&(r.rdi as i32)) else {
            return Ok(());
        };
        let mut left = if (result as i64) < 0 { 0 } else { result };
        let parts: Vec<(Address, u64)> = match name {
            "write" => vec![(r.rsi, left)],
            "writev" => {
                let memory = &self.spaces[&space].memory;
                let word = |at: Address| memory.read_u64(at).unwrap_or(0);
                let part = |i: u64| (word(r.rsi + 16 * i), word(r.rsi + 16 * i + 8));
                (0..r.rdx.min(1024)).map(part).collect()
            }
            _ => return Ok(()),
        };
        for (at, size) in parts {
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

    /// The program has written to its own memory as to a file.
    pub(crate) fn record_write_to_memory(
        &mut self,
        tid: Tid,
        r: &Registers,
        result: u64,
    ) -> Outcome<()> {
        if self.recorder.is_none() || (result as i64) <= 0 {
            return Ok(());
        }
        let at = match r.rax as i64 {
            libc::SYS_pwrite64 | libc::SYS_pwritev | libc::SYS_pwritev2 => r.r10,
            _ => {
                let info = std::fs::read_to_string(format!("/proc/{tid}/fdinfo/{}", r.rdi as i32));
                let info = info.unwrap_or_default();
                let place = info.strip_prefix("pos:").and_then(|rest| rest.lines().next());
                let end: u64 = place.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
                end.saturating_sub(result)
            }
        };
        self.record_memory(tid, at..at.saturating_add(result))
    }

    /// What is in this memory now, as far as it can be read.
    fn record_memory(&mut self, tid: Tid, range: Range<Address>) -> Outcome<()> {
        // What is not there cannot have been written to, whatever the arguments said.
        const MOST: u64 = 1 << 31;
        let mut bytes = vec![0; (range.end - range.start).min(MOST) as usize];
        let got = self.space_of(tid).memory.read(range.start, &mut bytes).unwrap_or(0);
        bytes.truncate(got);
        if bytes.is_empty() {
            return Ok(());
        }
        self.record(tid, &Event::Wrote { at: range.start, bytes })
    }

    /// A call has changed the map of memory.
    pub(crate) fn record_memory_call(
        &mut self,
        tid: Tid,
        r: &Registers,
        result: u64,
    ) -> Outcome<()> {
        if self.recorder.is_none() || (-4095..0).contains(&(result as i64)) {
            return Ok(());
        }
        let pages = |size: u64| size.next_multiple_of(PAGE);
        match r.rax as i64 {
            libc::SYS_munmap => {
                self.record(tid, &Event::Unmapped { at: r.rdi, size: pages(r.rsi) })
            }
            libc::SYS_mprotect | libc::SYS_pkey_mprotect => {
                let (at, size) = (r.rdi, pages(r.rsi));
                self.record(tid, &Event::Protected { at, size, access: access(r.rdx) })
            }
            libc::SYS_mmap => self.record_mmap(tid, r, result),
            libc::SYS_mremap => {
                if r.rsi == 0 {
                    // Shared memory is mapped once more.
                    let maps = maps::read(tid)?;
                    let mapping = maps.iter().find(|m| m.range.contains(&result)).cloned();
                    return mapping.map_or(Ok(()), |mapping| self.record_mapping(tid, &mapping));
                }
                let (size, new_size) = (pages(r.rsi), pages(r.rdx));
                let stays = r.r10 as i32 & libc::MREMAP_DONTUNMAP != 0;
                self.record(tid, &Event::Moved { from: r.rdi, size, to: result, new_size, stays })
            }
            libc::SYS_madvise if !DISCARDS.contains(&(r.rdx as i32)) => Ok(()),
            libc::SYS_madvise => self.record_discard(tid, r.rdi..r.rdi + pages(r.rsi)),
            libc::SYS_shmat => {
                let maps = maps::read(tid)?;
                let mapping = maps.iter().find(|m| m.range.contains(&result)).cloned();
                let Some(mapping) = mapping else {
                    return Err(Halt::Gone);
                };
                let size = mapping.range.end - mapping.range.start;
                if let Some(log) = self.log(tid) {
                    log.segments.insert(result, size);
                }
                self.record_mapping(tid, &mapping)
            }
            libc::SYS_shmdt => {
                let size = self.log(tid).and_then(|log| log.segments.remove(&r.rdi)).unwrap_or(0);
                self.record(tid, &Event::Unmapped { at: r.rdi, size })
            }
            _ => Err(crate::unknown::call(r.rax, r.rip - 2).into()),
        }
    }

    fn record_mmap(&mut self, tid: Tid, r: &Registers, at: Address) -> Outcome<()> {
        let (size, flags) = (r.rsi.next_multiple_of(PAGE), r.r10 as i32);
        let shared = flags & 0xf != libc::MAP_PRIVATE;
        let source = if shared {
            let maps = maps::read(tid)?;
            let Some(mapping) = maps.iter().find(|m| m.range.contains(&at)) else {
                return Err(Halt::Gone);
            };
            let executable = r.rdx & libc::PROT_EXEC as u64 != 0;
            let offset = mapping.offset + (at - mapping.range.start);
            let part = Mapping { range: at..at + size, offset, executable, ..mapping.clone() };
            return self.record_mapping(tid, &part);
        } else if flags & libc::MAP_GROWSDOWN != 0 {
            Source::Stack
        } else if flags & libc::MAP_ANONYMOUS != 0 {
            Source::Zero
        } else {
            let path = format!("/proc/{tid}/fd/{}", r.r8 as i32);
            let recorder = self.recorder.as_mut().expect("recording");
            let hash = recorder.keep(Path::new(&path))?;
            Source::File { hash, offset: r.r9 }
        };
        self.record(tid, &Event::Mapped { at, size, access: access(r.rdx), source })
    }

    /// What was in this memory is gone: it is as it was mapped.
    fn record_discard(&mut self, tid: Tid, range: Range<Address>) -> Outcome<()> {
        let maps = maps::read(tid)?;
        for mapping in
            maps.iter().filter(|m| m.range.start < range.end && m.range.end > range.start)
        {
            let start = mapping.range.start.max(range.start);
            let end = mapping.range.end.min(range.end);
            let part = Mapping {
                range: start..end,
                offset: mapping.offset + (start - mapping.range.start),
                executable: self.space_of(tid).regions.is_executable(start),
                ..mapping.clone()
            };
            // What is shared is still there for others.
            if !part.shared {
                self.record_fresh_mapping(tid, &part)?;
            }
        }
        Ok(())
    }

    /// The heap now ends there.
    pub(crate) fn record_heap(&mut self, tid: Tid, end: Address) -> Outcome<()> {
        let Some(log) = self.log(tid) else {
            return Ok(());
        };
        let before = log.heap_end.replace(end).unwrap_or(end).next_multiple_of(PAGE);
        let end = end.next_multiple_of(PAGE);
        let access = Access { read: true, write: true, execute: false };
        if end > before {
            let size = end - before;
            self.record(tid, &Event::Mapped { at: before, size, access, source: Source::Zero })
        } else if end < before {
            self.record(tid, &Event::Unmapped { at: end, size: before - end })
        } else {
            Ok(())
        }
    }

    /// A thread ends of itself. What the kernel writes then must be there before others go
    /// on, so they wait for its end; the first thread of a process is never seen to end
    /// before the others.
    pub(crate) fn record_exit(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        /// More than it takes, even on a busy machine.
        const PATIENCE: Duration = Duration::from_millis(200);
        let words = self.words_at_end(tid);
        self.task(tid).words_at_end = words.clone();
        let space = self.space_id(tid);
        let is_first = self.tasks[&tid].pid == tid;
        let alone = self.space_of(tid).users == 1;
        self.hold_into(tid, registers)?;
        if !is_first || alone {
            return Ok(());
        }
        let began = Instant::now();
        let cleared = self.tasks[&tid].cleared_at_end;
        let is_cleared =
            |memory: &Memory| memory.read_u64(cleared).is_ok_and(|word| word as u32 == 0);
        while !is_cleared(&self.spaces[&space].memory) && began.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
        self.record_words(space, &words)?;
        self.release(tid)
    }

    /// The words that the kernel writes when a thread ends: the one that tells others so,
    /// and the locks that it holds.
    fn words_at_end(&mut self, tid: Tid) -> Vec<Address> {
        /// So many the kernel looks at.
        const MOST: usize = 2048;
        let Task { cleared_at_end, robust_list: head, .. } = self.tasks[&tid];
        let memory = &self.space_of(tid).memory;
        let mut words = vec![cleared_at_end];
        if head != 0 {
            let offset = memory.read_u64(head + 8).unwrap_or(0);
            let pending = memory.read_u64(head + 16).unwrap_or(0) & !1;
            let mut entry = memory.read_u64(head).unwrap_or(head) & !1;
            while entry != head && entry != 0 && words.len() < MOST {
                words.push(entry.wrapping_add(offset));
                entry = memory.read_u64(entry).unwrap_or(head) & !1;
            }
            if pending != 0 {
                words.push(pending.wrapping_add(offset));
            }
        }
        words.retain(|&word| word != 0);
        words
    }

    /// What is in these words now.
    fn record_words(&mut self, space: SpaceId, words: &[Address]) -> Outcome<()> {
        let Some(recorder) = &mut self.recorder else {
            return Ok(());
        };
        for &at in words {
            let mut word = [0; 4];
            let memory = self.spaces.get(&space).map(|space| &space.memory);
            if memory.is_some_and(|memory| memory.read_exact(at, &mut word).is_ok()) {
                recorder.add(space, &Event::Wrote { at, bytes: word.to_vec() })?;
            }
        }
        Ok(())
    }

    /// A thread is gone. While another one runs that is not told: only where it stops can
    /// something else happen.
    pub(crate) fn record_thread_end(&mut self, task: &Task) -> Outcome<()> {
        let log = self.recorder.as_mut().and_then(|recorder| recorder.logs.get_mut(&task.space));
        let Some(log) = log else {
            return Ok(());
        };
        let end = (task.tid, task.words_at_end.clone());
        if log.running.is_some_and(|running| running != task.tid) {
            log.ends.push(end);
            return Ok(());
        }
        self.record_ends(task.space, vec![end])
    }

    fn record_ends(&mut self, space: SpaceId, ends: Vec<(Tid, Vec<Address>)>) -> Outcome<()> {
        for (thread, words) in ends {
            self.record_words(space, &words)?;
            if let Some(recorder) = &mut self.recorder {
                recorder.add(space, &Event::ThreadEnded { thread })?;
            }
        }
        Ok(())
    }

    /// A process has been created with a copy of another's memory.
    pub(crate) fn record_fork(
        &mut self,
        parent: SpaceId,
        child: Tid,
        space: SpaceId,
    ) -> Outcome<()> {
        let Some(recorder) = &mut self.recorder else {
            return Ok(());
        };
        recorder.add(parent, &Event::Forked { child })?;
        let heap_end = recorder.logs.get(&parent).and_then(|log| log.heap_end);
        recorder.open(space, child)?;
        recorder.logs.get_mut(&space).expect("just opened").heap_end = heap_end;
        Ok(())
    }

    /// A process has been created that has descriptors of its own.
    pub(crate) fn record_descriptors(&mut self, parent: Tid, child: Tid) {
        if let Some(recorder) = &mut self.recorder {
            let streams = recorder.streams.get(&parent).cloned().unwrap_or_default();
            recorder.streams.insert(child, streams);
        }
    }

    /// A thread executes another program: its process goes on in another stream, unless it
    /// has only been a guest in the memory of its parent.
    pub(crate) fn record_replaced(&mut self, task: &Task) -> Outcome<()> {
        let guest = self.spaces[&task.space].users > 1;
        if guest {
            self.record_thread_end(task)?;
        }
        let Some(recorder) = &mut self.recorder else {
            return Ok(());
        };
        if guest {
            return recorder.add(task.space, &Event::Forked { child: task.pid });
        }
        recorder.add(task.space, &Event::Replaced)?;
        recorder.close(task.space)
    }

    /// The process of a space is over.
    pub(crate) fn record_end(&mut self, space: SpaceId, ended: Ended) -> Outcome<()> {
        let Some(recorder) = &mut self.recorder else {
            return Ok(());
        };
        let ended = match ended {
            Ended::Status(status) => event::Ended::Status(status),
            Ended::Signal(signal) => event::Ended::Signal(signal),
        };
        recorder.add(space, &Event::Ended(ended))?;
        recorder.close(space)
    }
}

/// What a call does to the descriptors of the standard streams.
fn follow_descriptors(
    streams: &mut FxHashMap<i32, Stream>,
    name: &str,
    r: &Registers,
    result: u64,
) {
    let result = result as i64;
    if result < 0 {
        return;
    }
    let copies = match name {
        "dup" | "dup2" | "dup3" => true,
        "fcntl" => matches!(r.rsi as i32, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC),
        _ => false,
    };
    if copies {
        match streams.get(&(r.rdi as i32)).copied() {
            Some(stream) => streams.insert(result as i32, stream),
            None => streams.remove(&(result as i32)),
        };
    } else if name == "close" {
        streams.remove(&(r.rdi as i32));
    } else if name == "close_range" && r.rdx & u64::from(libc::CLOSE_RANGE_CLOEXEC) == 0 {
        streams.retain(|&fd, _| !(r.rdi as u32..=r.rsi as u32).contains(&(fd as u32)));
    }
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

/// Mappings that the kernel provides, and that a replay does without.
const KERNELS: [&str; 5] = ["[vvar]", "[vvar_vclock]", "[vdso]", "[vsyscall]", "[uprobes]"];

fn access(protection: u64) -> Access {
    let has = |bit: i32| protection & bit as u64 != 0;
    Access {
        read: has(libc::PROT_READ),
        write: has(libc::PROT_WRITE),
        execute: has(libc::PROT_EXEC),
    }
}

/// The registers at a stop. Those that a call overwrites may hold anything before it.
pub fn settled_at(at: &Registers, cause: Cause) -> Registers {
    match cause {
        Cause::Call(_) => Registers { rcx: at.rip, r11: at.eflags & !RESUME_FLAG, ..*at },
        _ => *at,
    }
}

/// Set by the kernel for its own purposes.
const RESUME_FLAG: u64 = 1 << 16;

/// The registers as they are recorded, with the GS base that the program believes it has.
pub fn recorded(r: &Registers, gs_base: u64) -> Recorded {
    Recorded([
        r.rax,
        r.rcx,
        r.rdx,
        r.rbx,
        r.rsp,
        r.rbp,
        r.rsi,
        r.rdi,
        r.r8,
        r.r9,
        r.r10,
        r.r11,
        r.r12,
        r.r13,
        r.r14,
        r.r15,
        r.rip,
        r.eflags & !RESUME_FLAG,
        r.fs_base,
        gs_base,
    ])
}
