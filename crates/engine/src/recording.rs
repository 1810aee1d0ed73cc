//! Writes down what happens to a program that it could not have computed itself.
//!
//! The supervisor calls these wherever a thread stops and goes on; without a recording
//! they do nothing.

use crate::error::{EngineError, Halt};
use crate::image::Identity;
use crate::maps::{self, Mapping};
use crate::memory::{Address, PAGE};
use crate::outputs::Returned;
use crate::ptrace::{self, Registers};
use crate::space::SpaceId;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{Task, Tid};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use crate::report::Ended;
use why_record::event::{self, Access, Cause, Event, Source, Stream};
use why_record::files::{Files, Hash};
use why_record::registers::Registers as Recorded;
use why_record::store::Recording;
use why_record::stream::Writer;
use why_record::RecordError;

pub struct Recorder {
    recording: Recording,
    files: Files,
    /// What has been kept already.
    kept: FxHashMap<Identity, Hash>,
    logs: FxHashMap<SpaceId, Log>,
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

    fn record(&mut self, tid: Tid, event: &Event) -> Outcome<()> {
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
        let path = recorder.recording.stream(pid);
        let writer = Writer::create(&path).map_err(EngineError::Recording)?;
        let log = Log {
            writer,
            running: None,
            registers: FxHashMap::default(),
            since: 0,
            vectors: FxHashSet::default(),
            heap_end: None,
        };
        recorder.logs.insert(space, log);
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
        let range = mapping.range.clone();
        let source = if mapping.name == "[stack]" {
            Source::Stack
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
        let access = Access {
            read: mapping.readable,
            write: mapping.writable,
            execute: mapping.executable,
        };
        let size = range.end - range.start;
        self.record(tid, &Event::Mapped { at: range.start, size, access, source: source.clone() })?;
        if mapping.writable {
            self.record_changes(tid, range, &source)?;
        }
        Ok(())
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
            if page != original {
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
        let count = self.space_of(tid).count();
        let log = self.log(tid).expect("just seen");
        log.running = None;
        let instructions = count.wrapping_sub(log.since);
        let now = recorded(at);
        let before = log.registers.insert(tid, now).unwrap_or_default();
        let registers = now.changed_from(&before);
        self.record(tid, &Event::Stopped { instructions, cause, registers })
    }

    /// A thread is about to go on with these registers.
    pub(crate) fn record_resume(&mut self, tid: Tid, at: &Registers) -> Outcome<()> {
        if self.log(tid).is_none_or(|log| log.running == Some(tid)) {
            return Ok(());
        }
        self.record_results(tid, at)?;
        let now = Recorded { ..recorded(at) };
        let count = self.space_of(tid).count();
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
        let stream = match (name, call.rdi) {
            ("write", 1) => Some(Stream::Output),
            ("write", 2) => Some(Stream::Error),
            _ => None,
        };
        if let (Some(stream), 1..) = (stream, result as i64) {
            self.record(tid, &Event::Output { stream, at: call.rsi, size: result })?;
        }
        Ok(())
    }

    /// What is in this memory now, as far as it can be read.
    fn record_memory(&mut self, tid: Tid, range: Range<Address>) -> Outcome<()> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let got = self.space_of(tid).memory.read(range.start, &mut bytes).unwrap_or(0);
        bytes.truncate(got);
        if bytes.is_empty() {
            return Ok(());
        }
        self.record(tid, &Event::Wrote { at: range.start, bytes })
    }

    /// A call has changed the map of memory.
    pub(crate) fn record_memory_call(&mut self, tid: Tid, r: &Registers, result: u64) -> Outcome<()> {
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
                let (size, new_size) = (pages(r.rsi), pages(r.rdx));
                self.record(tid, &Event::Moved { from: r.rdi, size, to: result, new_size })
            }
            libc::SYS_madvise => self.record_discard(tid, r.rdi..r.rdi + pages(r.rsi)),
            _ => Err(crate::unknown::call(r.rax, r.rip - 2).into()),
        }
    }

    fn record_mmap(&mut self, tid: Tid, r: &Registers, at: Address) -> Outcome<()> {
        let (size, flags) = (r.rsi.next_multiple_of(PAGE), r.r10 as i32);
        let source = if flags & libc::MAP_ANONYMOUS != 0 {
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
        for mapping in maps.iter().filter(|m| m.range.start < range.end && m.range.end > range.start) {
            let start = mapping.range.start.max(range.start);
            let end = mapping.range.end.min(range.end);
            let part = Mapping {
                range: start..end,
                offset: mapping.offset + (start - mapping.range.start),
                executable: self.space_of(tid).regions.is_executable(start),
                ..mapping.clone()
            };
            self.record_mapping(tid, &part)?;
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

    /// A thread is gone; the kernel has cleared the word that tells others so.
    pub(crate) fn record_thread_end(&mut self, task: &Task) -> Outcome<()> {
        let Some(recorder) = &mut self.recorder else {
            return Ok(());
        };
        let mut word = [0; 4];
        let at = task.cleared_at_end;
        if at != 0
            && let Some(space) = self.spaces.get(&task.space)
            && space.memory.read_exact(at, &mut word).is_ok()
        {
            recorder.add(task.space, &Event::Wrote { at, bytes: word.to_vec() })?;
        }
        recorder.add(task.space, &Event::ThreadEnded { thread: task.tid })
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
        if let Some(mut log) = recorder.logs.remove(&space) {
            log.writer.flush().map_err(EngineError::Recording)?;
            recorder.bytes += log.writer.bytes_written;
        }
        Ok(())
    }
}

/// Mappings that the kernel provides, and that a replay does without.
const KERNELS: [&str; 5] = ["[vvar]", "[vvar_vclock]", "[vdso]", "[vsyscall]", "[uprobes]"];

fn access(protection: u64) -> Access {
    let has = |bit: i32| protection & bit as u64 != 0;
    Access { read: has(libc::PROT_READ), write: has(libc::PROT_WRITE), execute: has(libc::PROT_EXEC) }
}

/// Set by the kernel for its own purposes.
const RESUME_FLAG: u64 = 1 << 16;

/// The registers as they are recorded.
pub fn recorded(r: &Registers) -> Recorded {
    Recorded([
        r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12,
        r.r13, r.r14, r.r15, r.rip, r.eflags & !RESUME_FLAG, r.fs_base, 0,
    ])
}
