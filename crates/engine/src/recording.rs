//! Writes down what happens to a program that it could not have computed itself.
//!
//! The supervisor calls these wherever a thread stops and goes on; without a recording
//! they do nothing.

mod checkpoints;
mod descriptors;
mod ends;
pub(crate) mod locks;
mod memory;
mod notes;
mod offsets;
mod others;
mod outsiders;
mod reads;
mod region;
mod sharing;
mod snapshot;
mod varying;

pub(crate) use snapshot::filled;

pub use region::{Border, Landmark, MappedCode, Region};

use checkpoints::Checkpoints;
use notes::MappedFiles;
use offsets::SharedFiles;
use reads::OpenFiles;
use region::Progress;
use sharing::Sharing;

use crate::cpu::vectors;
use crate::error::{EngineError, Halt};
use crate::image::Identity;
use crate::launch::Chaos;
use crate::maps::Mapping;
use crate::memory::Address;
use crate::outputs::Returned;
use crate::ptrace::{self, Registers};
use crate::space::SpaceId;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{Task, Tid};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use why_record::RecordError;
use why_record::cpu::Shown;
use why_record::event::{Cause, Event, Stream};
use why_record::files::{Files, Hash};
use why_record::registers::Registers as Recorded;
use why_record::store::Recording;
use why_record::stream::Writer;
use why_translate::context::{APP_GS, LAST_CALL};

/// What a recording is to hold.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The recording's directory.
    pub recording: PathBuf,
    /// The time between checkpoints; none are taken without it.
    pub checkpoints: Option<Duration>,
    /// After how many events of a process what is in its memory is told, for a replay to
    /// compare.
    pub hashes: Option<u64>,
    /// The CPU that the program is shown.
    pub cpu: Shown,
    /// How its schedule is varied, if it is.
    pub chaos: Option<Chaos>,
    /// What of the run is recorded.
    pub region: Region,
}

pub struct Recorder {
    wanted: Wanted,
    recording: Recording,
    files: Files,
    /// What has been kept already.
    kept: FxHashMap<Identity, Hash>,
    logs: FxHashMap<SpaceId, Log>,
    /// Memory that may be mapped several times, by device and inode.
    objects: FxHashMap<(String, u64), u32>,
    sharing: Sharing,
    /// Which descriptors of a process are the standard streams that the first one had.
    streams: FxHashMap<Tid, FxHashMap<i32, Stream>>,
    /// Descriptors of processes that are known not to be of files that are mapped.
    unmapped: FxHashMap<Tid, FxHashSet<i32>>,
    /// What large files each process has open.
    open_files: FxHashMap<Tid, OpenFiles>,
    /// Which descriptors each process has that others have as well.
    shared_files: FxHashMap<Tid, SharedFiles>,
    /// How many writes to standard streams there were.
    outputs: u64,
    /// How many programs each process has executed, and the events up to the last one.
    programs: FxHashMap<Tid, u32>,
    events_before: FxHashMap<Tid, u64>,
    /// Processes of which it is known where they come from.
    announced: FxHashSet<Tid>,
    progress: Progress,
    mapped_files: MappedFiles,
    /// When the streams were written last.
    written: Instant,
    /// It is noted that a program steps itself.
    steps_noted: bool,
    pub events: u64,
    pub instructions: u64,
    pub bytes: u64,
}

/// The stream of a process.
struct Log {
    writer: Writer,
    /// Whose stream it is, and of which of its programs.
    process: Tid,
    program: u32,
    /// The event with which a thread went on last, and how many instructions it executed.
    stretch: (u64, u64),
    /// How many events of the process there were.
    events: u64,
    checkpoints: Checkpoints,
    /// The events when memory was last looked at.
    hashed: u64,
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
    /// Where stacks of the program's own end, which grow downwards.
    stacks: FxHashSet<Address>,
}

impl Recorder {
    pub fn new(wanted: &Wanted) -> Recorder {
        let recording = Recording::open(&wanted.recording);
        Recorder {
            wanted: wanted.clone(),
            files: recording.files(),
            recording,
            kept: FxHashMap::default(),
            logs: FxHashMap::default(),
            objects: FxHashMap::default(),
            sharing: Sharing::default(),
            streams: FxHashMap::default(),
            unmapped: FxHashMap::default(),
            open_files: FxHashMap::default(),
            shared_files: FxHashMap::default(),
            outputs: 0,
            programs: FxHashMap::default(),
            events_before: FxHashMap::default(),
            announced: FxHashSet::default(),
            progress: Progress::new(&wanted.region),
            mapped_files: MappedFiles::default(),
            written: Instant::now(),
            steps_noted: false,
            events: 0,
            instructions: 0,
            bytes: 0,
        }
    }

    /// How often a thread is interrupted for a checkpoint. Without an interval they are taken
    /// wherever threads stop anyway.
    pub fn checkpoint_interval(&self) -> Option<Duration> {
        self.wanted.checkpoints.filter(|interval| !interval.is_zero())
    }

    /// The directory of the recording.
    pub fn path(&self) -> &Path {
        &self.recording.path
    }

    /// Begins the next stream of a process.
    fn open(&mut self, space: SpaceId, pid: Tid) -> Outcome<()> {
        let number = self.programs.entry(pid).or_default();
        *number += 1;
        let path = self.recording.stream(pid, *number);
        let writer = Writer::create(&path).map_err(EngineError::Recording)?;
        let log = Log {
            writer,
            process: pid,
            program: *number,
            stretch: (0, 0),
            events: self.events_before.get(&pid).copied().unwrap_or(0),
            checkpoints: Checkpoints::new(self.wanted.checkpoints),
            hashed: 0,
            running: None,
            registers: FxHashMap::default(),
            since: 0,
            vectors: FxHashSet::default(),
            ends: Vec::new(),
            watched: Vec::new(),
            segments: FxHashMap::default(),
            heap_end: None,
            stacks: FxHashSet::default(),
        };
        self.logs.insert(space, log);
        Ok(())
    }

    /// The process goes on without being recorded.
    fn leave(&mut self, space: SpaceId) -> Outcome<()> {
        self.add(space, &Event::Left)?;
        self.close(space)
    }

    /// Writes what has not been written yet, as far as there is room: the recording ends here.
    pub fn break_off(&mut self) {
        for log in self.logs.values_mut() {
            let _ = log.writer.flush();
        }
    }

    /// Keeps a copy of a file that is mapped or read.
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
        // What names the file is mostly its place among those that a process has open.
        let name = std::fs::read_link(path).unwrap_or(path.to_owned()).display().to_string();
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
        let Some(recorder) = self.recorder.as_mut().filter(|recorder| recorder.is_inside()) else {
            return Ok(());
        };
        recorder.open(space, pid)?;
        recorder.begins_unannounced(pid)?;
        recorder.find_open_files(pid);
        self.record_executed(tid, pid)?;
        self.record_standard_input(tid)?;
        for mapping in maps.iter().filter(|mapping| !KERNELS.contains(&mapping.name.as_str())) {
            self.record_mapping(tid, mapping)?;
        }
        Ok(())
    }

    /// What a process executes.
    fn record_executed(&mut self, tid: Tid, pid: Tid) -> Outcome<()> {
        let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let arguments = arguments.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        let executed = Event::Executed {
            program: program.display().to_string(),
            arguments: arguments.map(|word| String::from_utf8_lossy(word).into_owned()).collect(),
        };
        self.record(tid, &executed)
    }

    /// A thread has stopped with these registers. Nothing is written if it had not been
    /// resumed: it has stopped before.
    pub(crate) fn record_stop(&mut self, tid: Tid, at: &Registers, cause: Cause) -> Outcome<()> {
        if self.log(tid).is_none_or(|log| log.running != Some(tid)) {
            return Ok(());
        }
        self.drain_log(tid)?;
        let space = self.space_of(tid);
        let gs_base = space.read_slot(APP_GS);
        // Read last: if it could be read, so could all before.
        let count = space.count_if_there().ok_or(Halt::Gone)?;
        let log = self.log(tid).expect("just seen");
        log.running = None;
        let instructions = count.wrapping_sub(log.since);
        log.stretch.1 = instructions;
        let now = recorded(&settled_at(at, cause), gs_base);
        let before = log.registers.insert(tid, now).unwrap_or_default();
        let registers = now.changed_from(&before);
        let ends = std::mem::take(&mut log.ends);
        self.record(tid, &Event::Stopped { instructions, cause, registers })?;
        self.record_ends(self.space_id(tid), ends)?;
        let space = self.space_id(tid);
        let recorder = self.recorder.as_mut().expect("recording");
        recorder.instructions += instructions;
        if recorder.has_left() { recorder.leave(space) } else { Ok(()) }
    }

    /// A thread is about to go on with these registers.
    pub(crate) fn record_resume(&mut self, tid: Tid, at: &Registers) -> Outcome<()> {
        if self.log(tid).is_some_and(|log| log.running == Some(tid)) || self.space_of(tid).ending {
            return Ok(());
        }
        self.record_results(tid, at)?;
        if self.log(tid).is_none() {
            return Ok(());
        }
        self.watch_descriptors(tid);
        self.record_hashes(tid)?;
        self.checkpoint(tid)?;
        let space = self.space_of(tid);
        let gs_base = space.read_slot(APP_GS);
        let count = space.count_if_there().ok_or(Halt::Gone)?;
        let now = recorded(at, gs_base);
        let log = self.log(tid).expect("just seen");
        let new = !log.registers.contains_key(&tid);
        let before = log.registers.insert(tid, now).unwrap_or_default();
        log.running = Some(tid);
        log.since = count;
        if log.vectors.remove(&tid) || new {
            let vectors = vectors::recorded(&ptrace::vectors(tid)?, self.view.limited);
            self.record(tid, &Event::Vectors(vectors))?;
        }
        let registers = now.changed_from(&before);
        self.record(tid, &Event::Resumed { thread: tid, registers })?;
        if let Some(log) = self.log(tid) {
            log.stretch = (log.events, 0);
        }
        Ok(())
    }

    /// Now and then, what memory holds.
    fn record_hashes(&mut self, tid: Tid) -> Outcome<()> {
        let every = self.recorder.as_ref().and_then(|recorder| recorder.wanted.hashes);
        let Some((log, every)) = self.log(tid).zip(every) else {
            return Ok(());
        };
        if log.events < log.hashed + every {
            return Ok(());
        }
        log.hashed = log.events;
        let mut left_out = self.being_written(self.space_id(tid), tid);
        let pages = self.hash_memory(tid, &mut left_out)?;
        let left_out = left_out.into_iter().map(|range| (range.start, range.end)).collect();
        self.record(tid, &Event::Hashes { pages, left_out })
    }

    /// Where the kernel may be writing for other threads, or has written what is recorded
    /// when they go on.
    fn being_written(&self, space: SpaceId, tid: Tid) -> Vec<Range<Address>> {
        let memory = &self.spaces[&space].memory;
        let mut written = Vec::new();
        for task in self.tasks.values().filter(|task| task.space == space && task.tid != tid) {
            written.extend(task.frame.clone());
            // It may be ending.
            written.push(task.cleared_at_end..task.cleared_at_end + 4);
            written.extend(task.words_at_end.iter().map(|&word| word..word + 4));
            if let Some(r) = &task.recorded_call {
                let arguments = [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9];
                let name = crate::calls::name(r.rax as u32).unwrap_or_default();
                written.extend(Returned { name, arguments, result: 0, memory }.most());
            }
        }
        written
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

    /// The vector registers have been changed by the kernel.
    pub(crate) fn record_vectors_changed(&mut self, tid: Tid) {
        if let Some(log) = self.log(tid) {
            log.vectors.insert(tid);
        }
    }

    /// What the thread's last call, or the kernel on entry to a handler, has written.
    pub(crate) fn record_results(&mut self, tid: Tid, at: &Registers) -> Outcome<()> {
        if self.log(tid).is_none() {
            self.follow_unrecorded_call(tid, at);
            return Ok(());
        }
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
            match name {
                "read" | "pread64" => self.record_read(tid, name, &call, range)?,
                _ => self.record_memory(tid, range)?,
            }
        }
        self.record_written_file(tid, name, &call)?;
        self.record_output(tid, name, &call, result)?;
        self.record_offsets(tid, &call)
    }

    /// A thread has created a process with a copy of its own one's memory.
    pub(crate) fn record_fork(&mut self, tid: Tid, child: Tid, space: SpaceId) -> Outcome<()> {
        let parent = self.space_id(tid);
        let written = self.being_written(parent, tid);
        let Some(recorder) = &mut self.recorder else {
            return Ok(());
        };
        if !recorder.logs.contains_key(&parent) {
            return Ok(());
        }
        recorder.add(parent, &Event::Forked { child })?;
        recorder.announced.insert(child);
        let of_parent = recorder.logs.get(&parent);
        let heap_end = of_parent.and_then(|log| log.heap_end);
        let segments = of_parent.map(|log| log.segments.clone()).unwrap_or_default();
        let stacks = of_parent.map(|log| log.stacks.clone()).unwrap_or_default();
        recorder.open(space, child)?;
        let log = recorder.logs.get_mut(&space).expect("just opened");
        (log.heap_end, log.segments, log.stacks) = (heap_end, segments, stacks);
        self.record_inherited_views(parent, space)?;
        // What the kernel has written for other threads is told to the parent when they go on.
        // In the child they never do.
        for range in written {
            self.record_memory_of(space, range)?;
        }
        Ok(())
    }

    /// A thread executes another program: its process goes on in another stream, unless it
    /// has only been a guest in the memory of its parent.
    pub(crate) fn record_replaced(&mut self, task: &Task) -> Outcome<()> {
        let guest = self.spaces[&task.space].users > 1;
        if guest {
            self.record_thread_end(task)?;
        }
        let (reported, first) = (self.spaces[&task.space].reported, self.first);
        let Some(recorder) = &mut self.recorder else {
            return Ok(());
        };
        if task.pid == first && !guest {
            recorder.counted_before(reported);
        }
        if !recorder.logs.contains_key(&task.space) {
            return Ok(());
        }
        if guest {
            recorder.announced.insert(task.pid);
            return recorder.add(task.space, &Event::Forked { child: task.pid });
        }
        recorder.add(task.space, &Event::Replaced)?;
        let events = recorder.logs.get(&task.space).map_or(0, |log| log.events);
        recorder.events_before.insert(task.pid, events);
        recorder.close(task.space)?;
        self.record_shared_words(task.space)
    }
}

/// Mappings that the kernel provides, and that a replay does without.
pub(crate) const KERNELS: [&str; 5] =
    ["[vvar]", "[vvar_vclock]", "[vdso]", "[vsyscall]", "[uprobes]"];

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
