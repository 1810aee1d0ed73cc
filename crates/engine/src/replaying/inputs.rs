//! Which of the bytes that calls wrote to memory were read from where, for the trace.
//!
//! A replay makes no calls, so descriptors are followed by what calls were told and what came of
//! them. A stream is what an `open` gave: a file from its beginning, and so is the standard input.

use crate::memory::Address;
use crate::ptrace::Registers;
use crate::supervisor::Supervisor;
use crate::task::Tid;
use rustc_hash::FxHashMap;
use std::ops::Range;
use why_record::event::Thread;

/// A call that a thread has made and that has not come back.
#[derive(Clone, Copy)]
pub struct Call {
    number: i64,
    arguments: [u64; 5],
}

impl Call {
    fn of(registers: &Registers) -> Call {
        let Registers { rax, rdi, rsi, rdx, r10, r8, .. } = *registers;
        Call { number: rax as i64, arguments: [rdi, rsi, rdx, r10, r8] }
    }
}

/// The number of a stream; the first is the standard input.
pub type Stream = u64;

/// Bytes that were read.
#[derive(Clone)]
pub struct Read {
    pub bytes: Range<Address>,
    pub stream: Stream,
    pub offset: u64,
}

#[derive(Clone)]
pub struct Inputs {
    calls: FxHashMap<Thread, Call>,
    /// By descriptor: the stream, and how far it has been read.
    open: FxHashMap<i32, (Stream, u64)>,
    streams: Stream,
}

impl Default for Inputs {
    fn default() -> Inputs {
        let open = FxHashMap::from_iter([(0, (0, 0))]);
        Inputs { calls: FxHashMap::default(), open, streams: 1 }
    }
}

impl Inputs {
    fn new_stream(&mut self) -> Stream {
        self.streams += 1;
        self.streams - 1
    }

    /// What a call that has written there has read, and what it means for descriptors.
    fn came_back(&mut self, call: &Call, result: u64, wrote: &[Range<Address>]) -> Vec<Read> {
        let [first, _, _, fourth, _] = call.arguments;
        let descriptor = first as i32;
        let failed = result as i64;
        if (-4095..0).contains(&failed) {
            return Vec::new();
        }
        match call.number {
            libc::SYS_read | libc::SYS_readv | libc::SYS_recvfrom | libc::SYS_recvmsg => {
                let Some((stream, at)) = self.open.get_mut(&descriptor) else {
                    return Vec::new();
                };
                let begin = *at;
                *at += result;
                in_order(wrote, *stream, begin, result)
            }
            libc::SYS_pread64 | libc::SYS_preadv => {
                let stream = self.open.get(&descriptor).map(|(stream, _)| *stream);
                stream.map_or(Vec::new(), |stream| in_order(wrote, stream, fourth, result))
            }
            libc::SYS_lseek => {
                self.open.entry(descriptor).and_modify(|(_, at)| *at = result);
                Vec::new()
            }
            libc::SYS_close => {
                self.open.remove(&descriptor);
                Vec::new()
            }
            libc::SYS_dup | libc::SYS_dup2 | libc::SYS_dup3 => {
                let same = self.open.get(&descriptor).copied();
                self.open.extend(same.map(|same| (result as i32, same)));
                Vec::new()
            }
            _ => Vec::new(),
        }
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
            replayer.inputs.calls.insert(thread, call);
            self.trace_call(tid, registers.rax, call.arguments);
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

    /// A thread goes on, perhaps behind a call: what that has read.
    pub(crate) fn inputs_read(
        &mut self,
        tid: Tid,
        result: u64,
        wrote: &[Range<Address>],
    ) -> Vec<Read> {
        let replayer = self.replayer(tid);
        let thread = replayer.running;
        let Some(call) = replayer.inputs.calls.remove(&thread) else {
            return Vec::new();
        };
        let path = match call.number {
            libc::SYS_open | libc::SYS_creat => Some(call.arguments[0]),
            libc::SYS_openat => Some(call.arguments[1]),
            _ => None,
        };
        if let Some(path) = path.filter(|_| (result as i64) >= 0) {
            let path = self.string_at(tid, path);
            self.begin_stream(tid, Some(result as i32), &path);
        }
        self.replayer(tid).inputs.came_back(&call, result, wrote)
    }

    /// A path, as far as it can be read.
    fn string_at(&mut self, tid: Tid, at: Address) -> String {
        let mut bytes = vec![0; libc::PATH_MAX as usize];
        let got = self.space_of(tid).memory.read(at, &mut bytes).unwrap_or(0);
        let path = bytes[..got].split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(path).into_owned()
    }

    /// A file was opened, or mapped.
    pub(super) fn begin_stream(&mut self, tid: Tid, descriptor: Option<i32>, name: &str) -> Stream {
        let replayer = self.replayer(tid);
        let stream = replayer.inputs.new_stream();
        replayer.inputs.open.extend(descriptor.map(|descriptor| (descriptor, (stream, 0))));
        if let Some(look) = replayer.look() {
            look.opened(stream, name);
        }
        stream
    }
}
