//! A part of a run, kept so that it can be sliced: its trace in packed chunks, and where the
//! threads were at the beginning of each.

use crate::control::Position;
use crate::course::{Course, Executed, Room, Sink, Unknown};
use crate::events::Events;
use crate::units::{Unit, Ways};
use iced_x86::InstructionInfoFactory;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use why_effects::Cell;
use why_trace::packed::{Damaged, Packer, unpack};
use why_trace::shape::Shape;

#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    #[error(transparent)]
    Unknown(#[from] Unknown),
    #[error("a chunk of the trace is damaged")]
    Damaged,
    #[error("cannot pack the trace: {0}")]
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
    by_id: Vec<(usize, usize)>,
    pub(crate) chunks: Vec<Chunk>,
    /// How many instructions there are.
    pub length: Position,
}

pub(crate) struct Chunk {
    pub(crate) before: Course,
    packed: Vec<u8>,
}

/// Makes a region of a trace.
pub struct Builder<W> {
    ways: W,
    factory: InstructionInfoFactory,
    region: Region,
    course: Course,
    /// At the beginning of the chunk.
    before: Course,
    packer: Packer,
    /// How many instructions a chunk has, or a few more.
    chunk: Position,
    room: Room,
}

/// Nobody has to be told yet.
struct Nobody;

impl Sink for Nobody {
    fn executed(&mut self, _: Executed<'_>) {}

    fn passed_over(&mut self, _: u64) {}

    fn wrote(&mut self, _: Position, _: Range<u64>) {}
}

impl<W: Ways> Builder<W> {
    /// A region in chunks of so many instructions, or a few more.
    pub fn new(ways: W, chunk: Position) -> Builder<W> {
        let region = Region { units: Vec::new(), by_id: Vec::new(), chunks: Vec::new(), length: 0 };
        Builder {
            ways,
            factory: InstructionInfoFactory::new(),
            region,
            course: Course::default(),
            before: Course::default(),
            packer: Packer::default(),
            chunk,
            room: Room::default(),
        }
    }

    /// Makes the next units known.
    pub fn learn(&mut self, shapes: &[Arc<Shape>]) {
        for shape in shapes {
            let unit = self.region.units.len();
            self.region.units.push(Unit::of(shape, &self.ways, &mut self.factory));
            self.region.by_id.extend((0..=shape.instructions.len()).map(|n| (unit, n)));
        }
    }

    /// The next record.
    pub fn record(&mut self, id: u32, slots: &[u64]) -> Result<(), RegionError> {
        let Region { units, by_id, .. } = &self.region;
        let (course, room) = (&mut self.course, &mut self.room);
        course.read(id.into(), slots, by_id, units, room, &mut Nobody)?;
        self.packer.add(id, slots);
        if course.position - self.before.position >= self.chunk {
            self.end_chunk()?;
        }
        Ok(())
    }

    fn end_chunk(&mut self) -> Result<(), RegionError> {
        let before = std::mem::replace(&mut self.before, self.course.clone());
        self.region.chunks.push(Chunk { before, packed: self.packer.finish()? });
        Ok(())
    }

    pub fn finish(mut self) -> Result<Region, RegionError> {
        self.course.settle(&self.region.units, &mut self.room, &mut Nobody);
        self.end_chunk()?;
        self.region.length = self.course.position;
        Ok(self.region)
    }
}

/// What is looked for: what these bytes were when so many instructions had been executed.
pub struct Criterion {
    pub position: Position,
    pub thread: u64,
    pub cells: Vec<Range<Cell>>,
    pub memory: Vec<Range<u64>>,
}

/// How a slice is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Without what selected addresses and what decided.
    pub thin: bool,
    /// Without what decided.
    pub data: bool,
}

/// What belongs to a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// Positions and addresses of instructions, the last first.
    pub instructions: Vec<(Position, u64)>,
    /// The addresses of instructions that were executed on the way and of which it is not
    /// known what they did: some of the slice may be missing.
    pub passed_over: BTreeSet<u64>,
}

impl Region {
    /// What happened in a chunk, in order.
    pub(crate) fn events(&self, chunk: &Chunk, is_last: bool) -> Result<Events, RegionError> {
        let (mut course, mut room) = (chunk.before.clone(), Room::default());
        let mut events = Events::default();
        let mut read = Ok(());
        unpack(&chunk.packed, |id, slots| {
            if read.is_ok() {
                read = course.read(id, slots, &self.by_id, &self.units, &mut room, &mut events);
            }
        })?;
        read?;
        if is_last {
            course.settle(&self.units, &mut room, &mut events);
        }
        Ok(events)
    }
}
