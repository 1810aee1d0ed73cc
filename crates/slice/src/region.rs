//! A part of a run, kept so that it can be sliced: its trace in packed chunks, and where the
//! threads were at the beginning of each.

use crate::backward::{self, Backward, Dependences};
use crate::control::Position;
use crate::course::{Course, Executed, Restored, Room, Sink, Unknown};
use crate::units::{Unit, Ways};
use crate::wanted::Wanted;
use iced_x86::InstructionInfoFactory;
use rustc_hash::{FxHashMap, FxHashSet};
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
    units: Vec<Unit>,
    /// For each id of a record: the unit and how many instructions were executed.
    by_id: Vec<(usize, usize)>,
    chunks: Vec<Chunk>,
    /// How many instructions there are.
    pub length: Position,
}

struct Chunk {
    before: Course,
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

/// The instructions of a slice, by position, the last first.
pub type Slice = Vec<(Position, u64)>;

impl Region {
    /// Which instructions made a value.
    pub fn slice(&self, criterion: &Criterion, options: Options) -> Result<Slice, RegionError> {
        let mut wanted = Wanted::default();
        wanted.turn_to(criterion.thread);
        criterion.cells.iter().for_each(|cells| wanted.want_cells(cells.clone()));
        criterion.memory.iter().for_each(|bytes| wanted.want_memory(bytes.clone()));
        let mut search = Search {
            units: &self.units,
            backward: Backward::new(Dependences { thin: options.thin }),
            control: !options.data && !options.thin,
            end: criterion.position,
            wanted,
            decided: FxHashSet::default(),
            put_aside: FxHashMap::default(),
            slice: Vec::new(),
        };
        for (index, chunk) in self.chunks.iter().enumerate().rev() {
            if chunk.before.position < criterion.position {
                let is_last = index + 1 == self.chunks.len();
                search.over(&self.events(chunk, is_last)?);
            }
        }
        Ok(search.slice)
    }

    /// What happened in a chunk, in order.
    fn events(&self, chunk: &Chunk, is_last: bool) -> Result<Events, RegionError> {
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

/// What happened, one behind the other.
#[derive(Default)]
struct Events {
    all: Vec<Event>,
    decided: Vec<Option<Position>>,
    accesses: Vec<Range<u64>>,
    restored: FxHashMap<Position, Restored>,
}

enum Event {
    Executed {
        unit: usize,
        thread: u64,
        position: Position,
        /// What decided over its instructions begins there, and their accesses there.
        decided: Range<usize>,
        accesses: usize,
    },
    Wrote {
        position: Position,
        bytes: Range<u64>,
    },
}

impl Sink for Events {
    fn executed(&mut self, executed: Executed<'_>) {
        let decided = self.decided.len()..self.decided.len() + executed.decided.len();
        self.decided.extend(executed.decided);
        let Executed { unit, thread, position, .. } = executed;
        self.restored.extend(executed.restored.iter().map(|restored| (restored.by, *restored)));
        let accesses = self.accesses.len();
        self.accesses.extend(executed.accesses.iter().cloned());
        self.all.push(Event::Executed { unit, thread, position, decided, accesses });
    }

    fn wrote(&mut self, position: Position, bytes: Range<u64>) {
        self.all.push(Event::Wrote { position, bytes });
    }
}

struct Search<'a> {
    units: &'a [Unit],
    backward: Backward,
    control: bool,
    end: Position,
    wanted: Wanted,
    /// What decided over something that is in the slice, or had somebody write to memory.
    decided: FxHashSet<Position>,
    /// Registers that are wanted again where they were put aside.
    put_aside: FxHashMap<Position, Vec<Cell>>,
    slice: Slice,
}

impl Search<'_> {
    fn over(&mut self, events: &Events) {
        for event in events.all.iter().rev() {
            match event {
                Event::Wrote { position, bytes } if *position < self.end => {
                    if self.wanted.take_any(bytes.clone()) {
                        self.decided.insert(*position);
                    }
                }
                Event::Wrote { .. } => {}
                Event::Executed { unit, thread, position, decided, accesses } => {
                    self.wanted.turn_to(*thread);
                    let decided = &events.decided[decided.clone()];
                    let accesses = &events.accesses[*accesses..];
                    let restored = &events.restored;
                    self.over_unit(&self.units[*unit], *position, decided, accesses, restored);
                }
            }
        }
    }

    fn over_unit(
        &mut self,
        unit: &Unit,
        first: Position,
        decided: &[Option<Position>],
        accesses: &[Range<u64>],
        restored: &FxHashMap<Position, Restored>,
    ) {
        for (index, decided) in decided.iter().enumerate().rev() {
            let position = first + index as Position;
            if position >= self.end {
                continue;
            }
            let insn = &unit.instructions[index];
            let operands = &accesses[unit.first_access[index]..unit.first_access[index + 1]];
            if operands.len() < insn.effects.operands.len() {
                // Which lanes a vector selects is not known here.
                continue;
            }
            if let Some(restored) = restored.get(&position) {
                let wanted = self.wanted.take_wanted(restored.kept.cells());
                self.put_aside.entry(restored.saved).or_default().extend(wanted);
            }
            let executed = backward::Executed { effects: &insn.effects, operands };
            let decides = self.decided.remove(&position);
            let defines = self.backward.over(executed, &mut self.wanted);
            if decides {
                self.backward.over_decision(executed, &mut self.wanted);
            }
            for cell in self.put_aside.remove(&position).into_iter().flatten() {
                self.wanted.want_cells(cell..cell + 1);
            }
            if decides || defines {
                self.slice.push((position, insn.address));
                if self.control {
                    self.decided.extend(decided);
                }
            }
        }
    }
}
