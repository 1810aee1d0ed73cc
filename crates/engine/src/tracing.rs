//! The trace buffers of an address space and their reader on another core.

use crate::directions::{Anew, Directions};
use crate::error::Result;
use crate::memory::{Address, PAGE};
use crate::shared::SharedMemory;
use crate::task::Tid;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use why_trace::shape::{Kind, Shape, Shared};
use why_trace::{Counter, Totals};

/// Two buffers: the target fills one while the reader empties the other. Much smaller
/// ones would lie in the cache of the other core whenever they are written to.
pub const BUFFER_BYTES: usize = 1 << 22;
const BUFFERS: usize = 2;
/// At first only the last of a buffer is filled: what is executed often is seen soon.
const FIRST_FILLED: usize = 1 << 16;
/// So many times, and as often with each twice as much.
const SAME: u32 = 48;
/// In the target each buffer is followed by a page that faults.
const STRIDE: u64 = BUFFER_BYTES as u64 + PAGE;
/// More than a few records of the supervisor's and system calls take.
const ROOM: u64 = 256;
pub const SPAN: u64 = BUFFERS as u64 * STRIDE;

/// Makes something of the trace of a process.
pub trait TraceReader {
    /// Makes the next units and the next ids of records known.
    fn learn(&mut self, shapes: &[Arc<Shape>], kinds: &[Kind]);

    /// The next records.
    fn read(&mut self, records: &[u8]);

    /// There are no more. If not everything could be kept: the error of the system.
    fn finish(&mut self) -> Option<i32>;
}

/// Makes the reader of a process, on the thread on which it will read; none if nobody wants to
/// know.
pub type Readers = Arc<dyn Fn(i32) -> Option<Box<dyn TraceReader>> + Send + Sync>;

pub struct SpaceTrace {
    pub memory: Arc<SharedMemory>,
    /// Where the target has the first buffer.
    pub base: Address,
    /// Whose records the reader takes the next ones for.
    pub thread: Option<Tid>,
    /// The bases of FS and GS that the reader was told last, for each thread.
    pub bases: FxHashMap<Tid, (u64, u64)>,
    /// The units that the reader has seen should be made anew.
    pub anew: Vec<Anew>,
    filling: usize,
    /// Where its records begin.
    begin: Address,
    swaps: u32,
    to_reader: Sender<Range<usize>>,
    emptied: Receiver<Vec<Anew>>,
    reader: JoinHandle<(Totals, Option<i32>)>,
}

impl SpaceTrace {
    /// The reader's thread begins with `prepare`.
    pub fn new(
        base: Address,
        shapes: Shared,
        prepare: impl FnOnce() -> Option<Box<dyn TraceReader>> + Send + 'static,
    ) -> Result<SpaceTrace> {
        let memory = Arc::new(SharedMemory::new("trace", BUFFER_BYTES * BUFFERS)?);
        let (to_reader, full) = channel();
        let (empty, emptied) = channel();
        let shared = Arc::clone(&memory);
        let reader = std::thread::spawn(move || {
            let reader = prepare();
            read_all(&shared, &shapes, reader, &full, &empty)
        });
        Ok(SpaceTrace {
            memory,
            base,
            thread: None,
            bases: FxHashMap::default(),
            anew: Vec::new(),
            filling: 0,
            begin: base + (BUFFER_BYTES - FIRST_FILLED) as u64,
            swaps: 0,
            to_reader,
            emptied,
            reader,
        })
    }

    /// Where buffer `index` lies in the target, and its offset in the shared memory.
    pub fn buffers(&self) -> [(Address, u64); BUFFERS] {
        std::array::from_fn(|i| (self.base + i as u64 * STRIDE, (i * BUFFER_BYTES) as u64))
    }

    /// Where the next records go.
    pub fn begin(&self) -> Address {
        self.begin
    }

    /// Whether some more records of the supervisor's fit in at `next`.
    pub fn has_room(&self, next: Address) -> bool {
        let end = self.base + self.filling as u64 * STRIDE + BUFFER_BYTES as u64;
        next + ROOM <= end
    }

    /// Whether an address lies in a guard page.
    pub fn is_guard(&self, address: Address) -> bool {
        address
            .checked_sub(self.base)
            .is_some_and(|o| o < SPAN && o % STRIDE >= BUFFER_BYTES as u64)
    }

    /// Hands the buffer filled up to `next` to the reader; where to go on.
    pub fn swap(&mut self, next: Address) -> Address {
        let end = self.base + self.filling as u64 * STRIDE + BUFFER_BYTES as u64;
        // Of a process that was killed the last place known may be long past.
        let next = if (self.begin..=end).contains(&next) { next } else { self.begin };
        let in_memory = |at: Address| (self.filling + 1) * BUFFER_BYTES - (end - at) as usize;
        let sent = self.to_reader.send(in_memory(self.begin)..in_memory(next));
        // The reader ends early only after a malformed record, which `finish` reports.
        if sent.is_ok() {
            self.anew.extend(self.emptied.recv().into_iter().flatten());
        }
        self.filling = (self.filling + 1) % BUFFERS;
        self.swaps = self.swaps.saturating_add(1);
        let filled = FIRST_FILLED.checked_shl(self.swaps / SAME).unwrap_or(0);
        let unused = match filled {
            1..BUFFER_BYTES => BUFFER_BYTES - filled,
            _ => 0,
        };
        self.begin = self.base + self.filling as u64 * STRIDE + unused as u64;
        self.begin
    }

    /// Waits for the reader, who has got all that there is. Also the error because of
    /// which it could not keep everything, if so.
    pub fn finish(self) -> (Totals, Option<i32>) {
        drop(self.to_reader);
        self.reader.join().expect("the trace is well formed")
    }
}

fn read_all(
    memory: &SharedMemory,
    shapes: &Shared,
    mut reader: Option<Box<dyn TraceReader>>,
    full: &Receiver<Range<usize>>,
    empty: &Sender<Vec<Anew>>,
) -> (Totals, Option<i32>) {
    let (mut counter, mut directions) = (Counter::new(), Directions::default());
    let mut learnt = (0, 0);
    // The other buffer is free from the start.
    let _ = empty.send(Vec::new());
    while let Ok(Range { start, end }) = full.recv() {
        // Whoever adds to them does not wait until they are learnt.
        let (new, kinds) = {
            let shapes = shapes.read().expect("no writer panicked");
            (shapes.all[learnt.0..].to_vec(), shapes.kinds[learnt.1..].to_vec())
        };
        learnt = (learnt.0 + new.len(), learnt.1 + kinds.len());
        counter.learn(&kinds);
        directions.learn(&new, &kinds);
        if let Some(reader) = &mut reader {
            reader.learn(&new, &kinds);
        }
        assert!(start <= end && end <= BUFFERS * BUFFER_BYTES);
        // SAFETY: in bounds; the target does not write to this buffer before it is
        // reported empty.
        let bytes = unsafe { std::slice::from_raw_parts(memory.start().add(start), end - start) };
        counter.read(bytes).expect("the trace is well formed");
        if let Some(reader) = &mut reader {
            reader.read(bytes);
        }
        let _ = empty.send(directions.read(bytes));
    }
    (counter.totals, reader.and_then(|mut reader| reader.finish()))
}
