//! A part of a run, kept so that it can be sliced: its trace in packed chunks, and where the
//! threads were at the beginning of each.

use crate::calls::Told;
use crate::control::Position;
pub use crate::course::Input;
use crate::course::{Course, Executed, Moment, Room, Sink, Unknown};
use crate::decoding::Kept;
use crate::events::{Events, Happened, Noting};
use crate::patterns::{Finder, Patterns};
use crate::positions::Positions;
use crate::reasons::{Reason, Why};
use crate::store::{Store, Stored};
use crate::targets::Targets;
use crate::units::{Library, Surrounding, Unit, Ways};
use crate::words::Found;
use iced_x86::Instruction;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use why_effects::Cell;
use why_trace::packed::{Damaged, Packer, unpack};
use why_trace::shape::Shape;

#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    #[error(transparent)]
    Unknown(#[from] Unknown),
    #[error("a chunk of the trace is damaged")]
    Damaged,
    #[error("the slice takes more than {limit} MB of memory")]
    TooLarge { limit: usize },
    #[error("cannot keep the trace: {0}")]
    System(#[from] std::io::Error),
}

impl From<Damaged> for RegionError {
    fn from(_: Damaged) -> RegionError {
        RegionError::Damaged
    }
}

pub struct Region {
    pub(crate) units: Vec<Unit>,
    /// For each id of a record: the unit and how many instructions were executed.
    pub(crate) by_id: Vec<(usize, usize)>,
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) store: Store,
    /// Found when the region is read for the first time.
    pub(crate) patterns: OnceLock<Patterns>,
    pub(crate) kept: Kept,
    /// Where it is in a recording.
    pub(crate) moments: Vec<Moment>,
    /// What came from outside, in the order of time.
    pub inputs: Vec<Input>,
    /// By which threads synchronise.
    pub(crate) words: Vec<Range<u64>>,
    pub(crate) has_several_threads: bool,
    /// How many instructions there are.
    pub length: Position,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Chunk {
    pub(crate) before: Course,
    pub(crate) packed: Stored,
}

/// Makes a region of a trace.
pub struct Builder<W> {
    ways: W,
    library: Library,
    region: Region,
    course: Course,
    /// At the beginning of the chunk.
    before: Course,
    packer: Packer,
    /// How many instructions a chunk has, or a few more.
    chunk: Position,
    room: Room,
    /// What the units are made of again when the region is opened.
    shapes: Vec<Arc<Shape>>,
    words: Found,
    targets: Targets,
}

/// Only moments, inputs, what threads synchronise by and where jumps led are of interest yet.
struct Noted<'a> {
    units: &'a [Unit],
    words: &'a mut Found,
    targets: &'a mut Targets,
    moments: &'a mut Vec<Moment>,
    inputs: &'a mut Vec<Input>,
}

impl Sink for Noted<'_> {
    const DETAILS: bool = false;

    fn executed(&mut self, executed: Executed<'_>) {
        let Executed { unit: number, thread, count, .. } = executed;
        self.targets.executed(self.units, thread, number, count);
        let unit = &self.units[number];
        let end = unit.first_access[executed.count];
        for access in unit.atomics.iter().take_while(|access| **access < end) {
            self.words.add(&unit.plan.accesses[*access].at(executed.values));
        }
    }

    fn told(&mut self, told: Told) {
        self.words.add_told(&told);
    }

    fn read(&mut self, input: Input) {
        self.inputs.push(input);
    }

    fn moment(&mut self, moment: Moment) {
        // Where the same way goes on, nothing is new.
        let follows = |last: &Moment| {
            last.event == moment.event
                && moment.ticks.wrapping_sub(last.ticks) == moment.position - last.position
        };
        if !self.moments.last().is_some_and(follows) {
            self.moments.push(moment);
        }
    }
}

impl<W: Ways> Builder<W> {
    /// A region in chunks of so many instructions, or a few more.
    pub fn new(ways: W, chunk: Position) -> Builder<W> {
        Builder::with(ways, chunk, Store::Memory(Vec::new()))
    }

    /// The same in a file: `Region::open` opens it once it is finished.
    pub fn create(ways: W, chunk: Position, file: File) -> Result<Builder<W>, RegionError> {
        Ok(Builder::with(ways, chunk, Store::file(file)?))
    }

    fn with(ways: W, chunk: Position, store: Store) -> Builder<W> {
        let region = Region {
            units: Vec::new(),
            by_id: Vec::new(),
            chunks: Vec::new(),
            store,
            patterns: OnceLock::new(),
            kept: Kept::default(),
            moments: Vec::new(),
            inputs: Vec::new(),
            words: Vec::new(),
            has_several_threads: false,
            length: 0,
        };
        Builder {
            ways,
            library: Library::default(),
            region,
            course: Course::default(),
            before: Course::default(),
            packer: Packer::default(),
            chunk,
            room: Room::default(),
            shapes: Vec::new(),
            words: Found::default(),
            targets: Targets::default(),
        }
    }

    /// Makes the next units known.
    pub fn learn(&mut self, shapes: &[Arc<Shape>]) {
        for shape in shapes {
            let (ways, library) = (&self.ways, &mut self.library);
            let mut known =
                |insn: &Instruction| library.known(insn, || Surrounding::of(insn, ways));
            let instructions = shape.instructions.iter().map(&mut known).collect();
            self.region.add_unit(self.library.unit(shape, instructions));
            self.shapes.push(Arc::clone(shape));
        }
    }

    /// The next record.
    pub fn record(&mut self, id: u32, slots: &[u64]) -> Result<(), RegionError> {
        let Region { units, by_id, moments, inputs, .. } = &mut self.region;
        let (course, room) = (&mut self.course, &mut self.room);
        let (words, targets) = (&mut self.words, &mut self.targets);
        let noted = &mut Noted { units, words, targets, moments, inputs };
        course.read(id.into(), slots, by_id, units, room, noted)?;
        self.packer.add(id, slots);
        if course.position - self.before.position >= self.chunk {
            self.end_chunk()?;
        }
        Ok(())
    }

    fn end_chunk(&mut self) -> Result<(), RegionError> {
        let before = std::mem::replace(&mut self.before, self.course.clone());
        let packed = self.region.store.add(&self.packer.finish()?)?;
        self.region.chunks.push(Chunk { before, packed });
        Ok(())
    }

    pub fn finish(mut self) -> Result<Region, RegionError> {
        let Region { units, moments, inputs, .. } = &mut self.region;
        let (words, targets) = (&mut self.words, &mut self.targets);
        let noted = &mut Noted { units, words, targets, moments, inputs };
        self.course.settle(units, &mut self.room, noted);
        self.end_chunk()?;
        self.region.length = self.course.position;
        self.region.words = self.words.finish();
        self.region.has_several_threads = self.course.has_several_threads();
        if self.ways.learn_targets(&self.targets.finish()) {
            self.region.follow_again(&self.ways, &mut self.library, &self.shapes)?;
        }
        self.region.keep(&self.library.all, &self.shapes)?;
        Ok(self.region)
    }
}

/// What is looked for: what these bytes were when so many instructions had been executed.
#[derive(Clone, Debug)]
pub struct Criterion {
    pub position: Position,
    pub thread: u64,
    pub cells: Vec<Range<Cell>>,
    pub memory: Vec<Range<u64>>,
    /// Also, why the thread came there, where this is the next instruction.
    pub address: Option<u64>,
    /// What was executed before that many instructions does not count, and of a slice forwards
    /// not what was executed when so many had been.
    pub from: Position,
    pub until: Position,
    /// Code that is not looked into: it made what it made, of nothing.
    pub pruned: Vec<Range<u64>>,
}

impl Default for Criterion {
    fn default() -> Criterion {
        Criterion {
            position: 0,
            thread: 0,
            cells: Vec::new(),
            memory: Vec::new(),
            address: None,
            from: 0,
            until: Position::MAX,
            pruned: Vec::new(),
        }
    }
}

/// How a slice is made.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Without what selected addresses and what decided.
    pub thin: bool,
    /// Without what decided.
    pub data: bool,
    /// Say why instructions belong to the slice.
    pub reasons: Why,
    /// It is enough to say how many instructions belong to a slice, and which positions they have.
    pub count_only: bool,
    /// To take more memory than so many bytes is an error.
    pub memory: Option<usize>,
    /// Only these are told of: what else a slice backwards goes through is not.
    pub only: Option<&'a Positions>,
}

impl Options<'_> {
    /// It is an error to take more memory than is allowed.
    pub(crate) fn check_memory(&self, taken: usize) -> Result<(), RegionError> {
        match self.memory {
            Some(limit) if taken > limit => Err(RegionError::TooLarge { limit: limit >> 20 }),
            _ => Ok(()),
        }
    }
}

/// What belongs to a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// Positions and addresses of instructions, the last first, unless it was enough to count them.
    pub instructions: Vec<(Position, u64)>,
    pub positions: Positions,
    pub count: u64,
    /// The addresses of instructions that were executed on the way and of which it is not
    /// known what they did: some of the slice may be missing.
    pub passed_over: BTreeSet<u64>,
    /// How many instructions were left out that would belong to it, because their code was not to
    /// be looked into.
    pub pruned: u64,
    /// Why they belong to the slice, if that was asked for; the first is the last executed.
    pub reasons: Vec<Reason>,
}

impl Slice {
    /// How much memory it takes.
    pub(crate) fn size(&self) -> usize {
        size_of_val(self.instructions.as_slice()) + self.positions.size()
    }
}

impl Region {
    pub(crate) fn add_unit(&mut self, mut unit: Unit) {
        let number = self.units.len();
        unit.first_id = self.by_id.len();
        self.by_id.extend((0..=unit.instructions.len()).map(|executed| (number, executed)));
        self.units.push(unit);
    }

    pub(crate) fn patterns(&self) -> &Patterns {
        self.patterns.get_or_init(|| Patterns::of(&self.units))
    }

    /// Reads what happened in a chunk, in order; where that led to.
    pub(crate) fn read(
        &self,
        number: usize,
        patterns: Option<&mut Finder>,
        events: &mut Events,
    ) -> Result<Course, RegionError> {
        let chunk = &self.chunks[number];
        let (mut course, mut room) = (chunk.before.clone(), Room::default());
        course.prepare();
        events.clear();
        let mut noting = Noting { units: &self.units, patterns, events };
        self.follow(number, &mut course, &mut room, &mut noting)?;
        if number + 1 == self.chunks.len() {
            course.settle(&self.units, &mut room, &mut noting);
        }
        Ok(course)
    }

    /// Follows the records of a chunk.
    pub(crate) fn follow<S: Sink>(
        &self,
        number: usize,
        course: &mut Course,
        room: &mut Room,
        sink: &mut S,
    ) -> Result<(), RegionError> {
        let mut read = Ok(());
        unpack(&self.store.read(self.chunks[number].packed)?, |id, slots| {
            if read.is_ok() {
                read = course.read(id, slots, &self.by_id, &self.units, room, sink);
            }
        })?;
        Ok(read?)
    }

    /// What decided that a thread came to an address when so many instructions had been
    /// executed.
    pub(crate) fn decided(
        &self,
        at: Position,
        thread: u64,
        address: u64,
    ) -> Result<Option<Position>, RegionError> {
        let behind = self.chunks.partition_point(|chunk| chunk.before.position <= at);
        let Some(chunk) = behind.checked_sub(1) else {
            return Ok(None);
        };
        // Of the chunk in front, the last unit may be told in the next one.
        for number in chunk..(chunk + 2).min(self.chunks.len()) {
            let mut events = Events::default();
            let mut course = self.read(number, None, &mut events)?;
            for happened in events.forwards(&self.units) {
                if let Happened::Executed(record) = happened
                    && let Some(index) = at.checked_sub(record.position)
                    && (index as usize) < record.count
                {
                    return Ok(record.decided(index as usize));
                }
            }
            if number + 1 == self.chunks.len() {
                return Ok(course.decided(thread, address));
            }
        }
        Ok(None)
    }

    /// How many instructions had been executed at a moment of the recording; none if it is not
    /// in the region.
    pub fn position(&self, event: u64, ticks: u64) -> Option<Position> {
        let before = |moment: &&Moment| moment.event == event && moment.ticks <= ticks;
        let last = self.moments.iter().rfind(before)?;
        let position = last.position + (ticks - last.ticks);
        (position <= self.length).then_some(position)
    }

    /// Where a position is in the recording: event and ticks.
    pub fn moment(&self, position: Position) -> Option<(u64, u64)> {
        let behind = self.moments.partition_point(|moment| moment.position <= position);
        let last = &self.moments[behind.checked_sub(1)?];
        Some((last.event, last.ticks + (position - last.position)))
    }
}
