//! The trace buffers of an address space and their reader on another core.

use crate::directions::{Anew, Directions};
use crate::error::Result;
use crate::memory::{Address, PAGE};
use crate::processor::Beside;
use crate::shared::SharedMemory;
use crate::task::Tid;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use why_trace::shape::{Kind, Shape, Shared};
use why_trace::{Counter, Totals};

/// The target fills one buffer after the other, and the reader empties them. All of them together
/// are much larger than a core's own cache: what the reader has in its is dear to write to.
pub const BUFFER_BYTES: usize = 1 << 21;
/// So many that neither waits for the other where it is slow for a while: the target where code is
/// new, the reader where units are.
const BUFFERS: usize = 16;
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
    /// The units that should be made anew, as the buffers have told.
    pub anew: Vec<Anew>,
    directions: Directions,
    shapes: Shared,
    /// How many units and ids of records the directions know.
    learnt: (usize, usize),
    filling: usize,
    /// Where its records begin.
    begin: Address,
    swaps: u32,
    to_reader: Sender<Range<usize>>,
    /// One for each buffer that the reader does not need any more.
    emptied: Receiver<()>,
    reader: JoinHandle<(Totals, Option<i32>)>,
}

impl SpaceTrace {
    /// The reader's thread begins with `prepare`.
    pub fn new(
        base: Address,
        shapes: Shared,
        beside: Beside,
        prepare: impl FnOnce() -> Option<Box<dyn TraceReader>> + Send + 'static,
    ) -> Result<SpaceTrace> {
        let memory = Arc::new(SharedMemory::new("trace", BUFFER_BYTES * BUFFERS)?);
        let (to_reader, full) = channel();
        let (empty, emptied) = channel();
        // All but the one that is being filled are free from the start.
        for _ in 1..BUFFERS {
            let _ = empty.send(());
        }
        let (shared, of_reader) = (Arc::clone(&memory), Arc::clone(&shapes));
        let reader = std::thread::spawn(move || {
            // If the reader has threads of its own, the engine's processor is also free for them.
            beside.anywhere();
            let mut reader = prepare();
            beside.away();
            let totals = read_all(&shared, &of_reader, &mut reader, &full, &empty);
            // The target has come to its end.
            beside.anywhere();
            (totals, reader.and_then(|mut reader| reader.finish()))
        });
        Ok(SpaceTrace {
            memory,
            base,
            thread: None,
            bases: FxHashMap::default(),
            anew: Vec::new(),
            directions: Directions::default(),
            shapes,
            learnt: (0, 0),
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
        let filled = in_memory(self.begin)..in_memory(next);
        self.see_directions(filled.clone());
        // The reader ends early only after a malformed record, which `finish` reports.
        if self.to_reader.send(filled).is_ok() {
            let _ = self.emptied.recv();
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

    /// Looks at a buffer that is about to be handed over: the sooner it is known what is executed
    /// often, the less there is to write and to read.
    fn see_directions(&mut self, filled: Range<usize>) {
        let (shapes, kinds) = not_learnt(&self.shapes, &mut self.learnt);
        self.directions.learn(&shapes, &kinds);
        // SAFETY: the target is stopped, and the reader does not write.
        let records = unsafe { in_buffer(&self.memory, filled) };
        self.anew.extend(self.directions.read(records));
    }

    /// Waits for the reader, who has got all that there is. Also the error because of
    /// which it could not keep everything, if so.
    pub fn finish(self) -> (Totals, Option<i32>) {
        let SpaceTrace { to_reader, reader, memory, directions, shapes, .. } = self;
        drop(to_reader);
        let found = reader.join().expect("the trace is well formed");
        // There is much to give back, and somebody waits for what was found.
        std::thread::spawn(move || drop((memory, directions, shapes)));
        found
    }
}

fn read_all(
    memory: &SharedMemory,
    shapes: &Shared,
    reader: &mut Option<Box<dyn TraceReader>>,
    full: &Receiver<Range<usize>>,
    empty: &Sender<()>,
) -> Totals {
    let (mut counter, mut learnt) = (Counter::new(), (0, 0));
    while let Ok(filled) = full.recv() {
        let (new, kinds) = not_learnt(shapes, &mut learnt);
        counter.learn(&kinds);
        if let Some(reader) = reader {
            reader.learn(&new, &kinds);
        }
        // SAFETY: the target does not write to this buffer before it is reported empty.
        let records = unsafe { in_buffer(memory, filled) };
        counter.read(records).expect("the trace is well formed");
        if let Some(reader) = reader {
            reader.read(records);
        }
        let _ = empty.send(());
    }
    counter.totals
}

/// The units and ids of records behind so many, which are known then. Whoever adds to them does not
/// wait until they are learnt.
fn not_learnt(shapes: &Shared, learnt: &mut (usize, usize)) -> (Vec<Arc<Shape>>, Vec<Kind>) {
    let shapes = shapes.read().expect("no writer panicked");
    let new = (shapes.all[learnt.0..].to_vec(), shapes.kinds[learnt.1..].to_vec());
    *learnt = (shapes.all.len(), shapes.kinds.len());
    new
}

/// A part of the buffers.
///
/// # Safety
/// Nobody writes to it meanwhile.
unsafe fn in_buffer(memory: &SharedMemory, part: Range<usize>) -> &[u8] {
    assert!(part.start <= part.end && part.end <= BUFFERS * BUFFER_BYTES);
    // SAFETY: in bounds; nobody writes to it, as the caller knows.
    unsafe { std::slice::from_raw_parts(memory.start().add(part.start), part.len()) }
}
