//! Which of the bytes that calls wrote to memory were read from where, for the trace.
//!
//! A replay makes no calls, so descriptors are followed by what calls were told and what came of
//! them. A stream is what an `open` gave: a file from its beginning, and so is the standard input.

use super::descriptors::{Descriptors, Opened};
use crate::memory::{Address, PAGE};
use crate::own_paths::{named_by, path_at};
use crate::ptrace::Registers;
use crate::supervisor::Supervisor;
use crate::task::Tid;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::rc::Rc;
use why_record::event::Thread;

/// A call that a thread has made and that has not come back.
#[derive(Clone, Copy)]
pub struct Call {
    number: i64,
    arguments: [u64; 6],
}

impl Call {
    fn of(registers: &Registers) -> Call {
        let Registers { rax, rdi, rsi, rdx, r10, r8, r9, .. } = *registers;
        Call { number: rax as i64, arguments: [rdi, rsi, rdx, r10, r8, r9] }
    }

    /// Whether it creates a process that is a guest in the memory of this one.
    fn invites(&self) -> bool {
        const GUEST: u64 = (libc::CLONE_VM | libc::CLONE_VFORK) as u64;
        match self.number {
            libc::SYS_vfork => true,
            libc::SYS_clone => self.arguments[0] & GUEST == GUEST,
            _ => false,
        }
    }

    /// Where the path is of a file that it opens.
    fn path(&self) -> Option<Address> {
        match self.number {
            libc::SYS_open | libc::SYS_creat => Some(self.arguments[0]),
            libc::SYS_openat | libc::SYS_openat2 => Some(self.arguments[1]),
            _ => None,
        }
    }

    /// The flags with which it opens a file, or where they are.
    fn flags(&self) -> Result<u64, Address> {
        match self.number {
            libc::SYS_open => Ok(self.arguments[1]),
            libc::SYS_openat => Ok(self.arguments[2]),
            libc::SYS_openat2 => Err(self.arguments[2]),
            _ => Ok(0),
        }
    }
}

fn has_failed(result: u64) -> bool {
    (-4095..0).contains(&(result as i64))
}

/// The number of a stream; the first is the standard input.
pub type Stream = u64;

/// What is known of a stream.
#[derive(Clone)]
pub struct Known {
    /// By which name it was opened, if it was.
    pub name: Option<Rc<str>>,
    /// It was somebody's standard input.
    pub is_standard: bool,
    /// Its file was mapped as code, as programs and libraries are.
    pub is_code: bool,
}

impl Known {
    const STANDARD: Known = Known { name: None, is_standard: true, is_code: false };

    fn named(name: &str) -> Known {
        Known { name: Some(name.into()), is_standard: false, is_code: false }
    }
}

/// Bytes that were read.
#[derive(Clone)]
pub struct Read {
    pub bytes: Range<Address>,
    pub stream: Stream,
    pub offset: u64,
}

/// What was mapped of a file, which had this name.
#[derive(Clone)]
pub struct Mapped {
    pub bytes: Range<Address>,
    pub offset: u64,
    pub name: String,
    pub executable: bool,
}

/// How far a stream has been read by those who share this way to it.
#[derive(Clone, Copy)]
struct Place {
    stream: Stream,
    at: u64,
    /// It is no pipe, as the standard input may be, but has places that one can go to.
    is_file: bool,
}

#[derive(Clone)]
pub struct Inputs {
    calls: FxHashMap<Thread, Call>,
    descriptors: Descriptors,
    places: Vec<Place>,
    streams: Vec<Known>,
    /// Threads of the process itself; those that wait until a guest is gone; and the guests, with
    /// descriptors of their own.
    threads: FxHashSet<Thread>,
    hosts: FxHashSet<Thread>,
    guests: FxHashMap<Thread, Descriptors>,
    /// Where the recording says that descriptors are, since others have them, too.
    moved: FxHashMap<i32, u64>,
}

impl Default for Inputs {
    fn default() -> Inputs {
        let mut inputs = Inputs {
            calls: FxHashMap::default(),
            descriptors: Descriptors::default(),
            places: Vec::new(),
            streams: Vec::new(),
            threads: FxHashSet::default(),
            hosts: FxHashSet::default(),
            guests: FxHashMap::default(),
            moved: FxHashMap::default(),
        };
        let standard = inputs.standard();
        inputs.descriptors.open(0, standard, false);
        inputs
    }
}

impl Inputs {
    pub fn streams(&self) -> &[Known] {
        &self.streams
    }

    /// What a process has that is created now, perhaps by one that was a guest.
    pub(super) fn of_child(&mut self, child: Thread) -> Inputs {
        let descriptors = self.guests.remove(&child).unwrap_or_else(|| self.descriptors.clone());
        let (places, streams) = (self.places.clone(), self.streams.clone());
        Inputs { descriptors, places, streams, ..Inputs::default() }
    }

    /// Another program begins.
    pub(super) fn execute(&mut self) {
        self.descriptors.execute();
        self.hosts.clear();
        self.guests.clear();
        match self.descriptors.get(0) {
            Some(opened) => {
                let stream = self.places[opened].stream;
                self.streams[stream as usize].is_standard = true;
            }
            None => {
                let standard = self.standard();
                self.descriptors.open(0, standard, false);
            }
        }
    }

    /// A descriptor of a file that others have as well is where it is by what they did, too.
    pub(super) fn others_moved(&mut self, descriptor: i32, offset: u64) {
        self.moved.insert(descriptor, offset);
    }

    fn new_stream(&mut self, known: Known) -> Stream {
        self.streams.push(known);
        self.streams.len() as u64 - 1
    }

    fn new_place(&mut self, stream: Stream, is_file: bool) -> Opened {
        self.places.push(Place { stream, at: 0, is_file });
        self.places.len() - 1
    }

    /// A standard input of which nothing else is known.
    fn standard(&mut self) -> Opened {
        let stream = self.new_stream(Known::STANDARD);
        self.new_place(stream, false)
    }

    /// A thread makes a call.
    fn called(&mut self, thread: Thread, call: Call) {
        if self.hosts.is_empty() {
            self.threads.insert(thread);
        } else if !self.threads.contains(&thread) {
            let descriptors = &self.descriptors;
            self.guests.entry(thread).or_insert_with(|| descriptors.clone());
        }
        if call.invites() {
            self.hosts.insert(thread);
        }
        self.calls.insert(thread, call);
    }

    fn descriptors(&mut self, thread: Thread) -> &mut Descriptors {
        self.guests.get_mut(&thread).unwrap_or(&mut self.descriptors)
    }

    fn opened(&mut self, thread: Thread, descriptor: i32) -> Option<Opened> {
        self.descriptors(thread).get(descriptor)
    }

    /// What was opened by a path, unless that leads to another descriptor of which nothing is known.
    fn open(&mut self, thread: Thread, path: &str, process: Thread) -> Option<Opened> {
        let Some(other) = named_by(path, process) else {
            let stream = self.new_stream(Known::named(path));
            return Some(self.new_place(stream, true));
        };
        let other = self.opened(thread, other)?;
        let Place { stream, is_file, .. } = self.places[other];
        // What can be read only once has no beginning to read from again.
        Some(if is_file { self.new_place(stream, true) } else { other })
    }

    /// A descriptor is a copy of another one now.
    fn copied(&mut self, thread: Thread, from: i32, to: i32, closes: bool) {
        match self.opened(thread, from) {
            Some(opened) => self.descriptors(thread).open(to, opened, closes),
            // Such as a pipe.
            None if to == 0 => {
                let standard = self.standard();
                self.descriptors(thread).open(0, standard, closes);
            }
            None => self.descriptors(thread).close(to),
        }
    }

    /// What a call that has written there has read, and what it means for descriptors.
    fn came_back(
        &mut self,
        thread: Thread,
        call: &Call,
        result: u64,
        wrote: &[Range<Address>],
    ) -> Vec<Read> {
        let [first, second, third, fourth, ..] = call.arguments;
        let descriptor = first as i32;
        if has_failed(result) {
            return Vec::new();
        }
        match call.number {
            libc::SYS_read | libc::SYS_readv | libc::SYS_recvfrom | libc::SYS_recvmsg => {
                return self.read(thread, descriptor, None, result, wrote);
            }
            libc::SYS_pread64 | libc::SYS_preadv => {
                return self.read(thread, descriptor, Some(fourth), result, wrote);
            }
            libc::SYS_preadv2 => {
                let given = Some(fourth).filter(|offset| *offset != u64::MAX);
                return self.read(thread, descriptor, given, result, wrote);
            }
            libc::SYS_lseek => {
                if let Some(opened) = self.opened(thread, descriptor) {
                    let place = &mut self.places[opened];
                    (place.at, place.is_file) = (result, true);
                }
            }
            libc::SYS_write | libc::SYS_writev => self.pass_over(thread, descriptor, result),
            libc::SYS_sendfile if third == 0 => self.pass_over(thread, second as i32, result),
            libc::SYS_splice | libc::SYS_copy_file_range if second == 0 => {
                self.pass_over(thread, descriptor, result);
            }
            libc::SYS_close => self.descriptors(thread).close(descriptor),
            libc::SYS_close_range => {
                self.descriptors(thread)
                    .close_range([first, second, third].map(|word| word as u32));
            }
            libc::SYS_dup => self.copied(thread, descriptor, result as i32, false),
            libc::SYS_dup2 | libc::SYS_dup3 if descriptor != second as i32 => {
                let flags = if call.number == libc::SYS_dup3 { third } else { 0 };
                let closes = flags & libc::O_CLOEXEC as u64 != 0;
                self.copied(thread, descriptor, second as i32, closes);
            }
            libc::SYS_fcntl => match second as i32 {
                libc::F_DUPFD => self.copied(thread, descriptor, result as i32, false),
                libc::F_DUPFD_CLOEXEC => self.copied(thread, descriptor, result as i32, true),
                libc::F_SETFD => {
                    let keep = third & libc::FD_CLOEXEC as u64 == 0;
                    self.descriptors(thread).keep_over_exec(descriptor, keep);
                }
                _ => {}
            },
            _ => {}
        }
        Vec::new()
    }

    /// A call went on there, and what it read is not in memory.
    fn pass_over(&mut self, thread: Thread, descriptor: i32, count: u64) {
        if let Some(opened) = self.opened(thread, descriptor) {
            self.places[opened].at += count;
        }
    }

    /// What was read of a descriptor: from where it was, or from an offset that was given.
    fn read(
        &mut self,
        thread: Thread,
        descriptor: i32,
        given: Option<u64>,
        count: u64,
        wrote: &[Range<Address>],
    ) -> Vec<Read> {
        let Some(opened) = self.opened(thread, descriptor) else {
            return Vec::new();
        };
        let moved = self.moved.get(&descriptor).map(|end| end.saturating_sub(count));
        let place = &mut self.places[opened];
        let begin = given.or(moved).unwrap_or(place.at);
        match given {
            Some(_) => place.is_file = true,
            None => place.at = begin + count,
        }
        in_order(wrote, place.stream, begin, count)
    }

    /// Descriptors are where the recording says, whatever the call has done.
    fn settle(&mut self) {
        for (descriptor, offset) in std::mem::take(&mut self.moved) {
            if let Some(opened) = self.descriptors.get(descriptor) {
                let place = &mut self.places[opened];
                (place.at, place.is_file) = (offset, true);
            }
        }
    }

    /// What was mapped, by a call or because a program begins.
    fn mapped(
        &mut self,
        thread: Thread,
        call: Option<&Call>,
        result: u64,
        wrote: &[Range<Address>],
        maps: Vec<Mapped>,
    ) -> Vec<Read> {
        let of_file = call.filter(|call| {
            let [.., flags, _, _] = call.arguments;
            let is_file = flags & libc::MAP_ANONYMOUS as u64 == 0;
            call.number == libc::SYS_mmap && is_file && !has_failed(result)
        });
        let opened = of_file.and_then(|call| self.opened(thread, call.arguments[4] as i32));
        let Some((call, opened)) = of_file.zip(opened) else {
            let is_code = |map: &&Mapped| map.executable;
            let code: FxHashSet<String> =
                maps.iter().filter(is_code).map(|map| map.name.clone()).collect();
            let others = maps.into_iter().filter(|map| !code.contains(&map.name));
            let read = others.map(|Mapped { bytes, offset, name, .. }| Read {
                bytes,
                stream: self.new_stream(Known::named(&name)),
                offset,
            });
            return read.collect();
        };
        let [_, size, access, _, _, offset] = call.arguments;
        let stream = self.places[opened].stream;
        self.streams[stream as usize].is_code |= access & libc::PROT_EXEC as u64 != 0;
        let bytes = match maps.into_iter().next() {
            Some(map) => map.bytes,
            None => {
                // Memory that others may have is told page by page, and apart what lies behind the
                // file's end.
                let all = result..result.saturating_add(size);
                let mut begin = wrote.iter().map(|range| range.start);
                let end = begin.find(|at| all.contains(at) && !at.is_multiple_of(PAGE));
                all.start..end.unwrap_or(all.end)
            }
        };
        vec![Read { bytes, stream, offset }]
    }
}

/// The bytes in the order in which they were read; whatever else was written is none of them.
fn in_order(wrote: &[Range<Address>], stream: Stream, begin: u64, count: u64) -> Vec<Read> {
    let mut done = 0;
    let mut reads = Vec::new();
    for range in wrote {
        let size = (range.end - range.start).min(count - done);
        if size > 0 {
            let bytes = range.start..range.start + size;
            reads.push(Read { bytes, stream, offset: begin + done });
        }
        done += size;
    }
    reads
}

impl Supervisor {
    /// A thread of a traced process makes a call.
    pub(super) fn note_call(&mut self, tid: Tid, registers: &Registers) {
        if self.options.tool.traces() {
            let replayer = self.replayer(tid);
            let (thread, call) = (replayer.running, Call::of(registers));
            replayer.inputs.called(thread, call);
            let [first, second, third, fourth, fifth, _] = call.arguments;
            self.trace_call(tid, registers.rax, [first, second, third, fourth, fifth]);
        }
    }

    /// What the trace tells of the call behind which a thread goes on, if it has made one: the
    /// result, and the two descriptors of one that gives as many.
    pub(crate) fn call_result(&mut self, tid: Tid, result: u64) -> Option<Vec<u64>> {
        let replayer = self.replayer(tid);
        let call = *replayer.inputs.calls.get(&replayer.running)?;
        let pair = match call.number {
            libc::SYS_pipe | libc::SYS_pipe2 => Some(call.arguments[0]),
            libc::SYS_socketpair => Some(call.arguments[3]),
            _ => None,
        };
        let pair = pair.filter(|_| result == 0);
        let both = pair.and_then(|at| self.space_of(tid).memory.read_u64(at).ok());
        let both = both.map(|both| [both & u64::from(u32::MAX), both >> 32]);
        Some([result].into_iter().chain(both.into_iter().flatten()).collect())
    }

    /// A thread goes on, perhaps behind a call: what that has read or mapped.
    pub(crate) fn inputs_read(
        &mut self,
        tid: Tid,
        result: u64,
        wrote: &[Range<Address>],
        maps: Vec<Mapped>,
    ) -> Vec<Read> {
        let replayer = self.replayer(tid);
        let (thread, process) = (replayer.running, replayer.process);
        let call = replayer.inputs.calls.remove(&thread);
        let mut reads = replayer.inputs.mapped(thread, call.as_ref(), result, wrote, maps);
        if let Some(call) = &call {
            let path = call.path().filter(|_| !has_failed(result));
            if let Some(path) = path.map(|path| path_at(&self.space_of(tid).memory, path)) {
                let flags = call.flags().or_else(|at| self.space_of(tid).memory.read_u64(at));
                let closes = flags.unwrap_or(0) & libc::O_CLOEXEC as u64 != 0;
                let inputs = &mut self.replayer(tid).inputs;
                let opened = inputs.open(thread, &path, process);
                let descriptors = inputs.descriptors(thread);
                match opened {
                    Some(opened) => descriptors.open(result as i32, opened, closes),
                    None => descriptors.close(result as i32),
                }
            }
            let inputs = &mut self.replayer(tid).inputs;
            reads.extend(inputs.came_back(thread, call, result, wrote));
            if call.invites() {
                // Who was created then is gone, or was no guest.
                inputs.hosts.remove(&thread);
                inputs.guests.clear();
            }
        }
        self.replayer(tid).inputs.settle();
        reads
    }
}
