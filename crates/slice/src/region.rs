//! A part of a run, kept so that it can be sliced: its trace in packed chunks, and where the
//! threads were at the beginning of each.

use crate::backward::Area;
use crate::births::Inherited;
pub use crate::builder::Builder;
use crate::control::Position;
pub use crate::course::Input;
use crate::course::{Completions, Course, Moment, Room, Sink, Unknown};
use crate::decoding::Kept;
use crate::events::{Events, Happened};
use crate::finder::Finder;
use crate::kept::Part;
use crate::learnt::Lessons;
use crate::noting::Noting;
use crate::partly::Partly;
use crate::patterns::Patterns;
use crate::positions::Positions;
use crate::reasons::{Reason, Why};
use crate::remembered::Remembered;
use crate::store::{Store, Stored};
use crate::units::{Unit, ids};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::OnceLock;
use why_effects::Cell;
use why_trace::packed::{Damaged, unpack};

#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    #[error(transparent)]
    Unknown(#[from] Unknown),
    #[error("the trace that was kept is damaged")]
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
    pub(crate) remembered: Remembered,
    pub(crate) lessons: Lessons,
    /// Where its code is, if it is in a file.
    pub(crate) code: Option<(Part, Part)>,
    /// Where it is in a recording.
    pub(crate) moments: Vec<Moment>,
    /// What came from outside, in the order of time.
    pub inputs: Vec<Input>,
    /// Instructions that were interrupted in the middle.
    pub(crate) completions: Completions,
    /// By which threads synchronise.
    pub(crate) words: Vec<Range<u64>>,
    pub(crate) has_several_threads: bool,
    /// How many instructions there are.
    pub length: Position,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Chunk {
    pub(crate) before: Course,
    pub(crate) form: Form,
}

/// How a chunk is kept.
#[derive(Serialize, Deserialize)]
pub(crate) enum Form {
    /// As it came.
    Records(Stored),
    /// As it was decoded.
    Events(Part),
}

/// What is looked for: what these bytes were when so many instructions had been executed.
#[derive(Clone, Debug)]
pub struct Criterion {
    pub position: Position,
    pub thread: u64,
    pub cells: Vec<Range<Cell>>,
    pub memory: Vec<Range<u64>>,
    /// Also what selected where that is, if what selects addresses counts.
    pub addresses: Vec<Area>,
    /// Also what a forked process has of it, where this is the one that forked; of a slice forwards,
    /// where this is the forked one.
    pub inherited: Vec<Inherited>,
    /// Also, of a slice forwards, what nobody in the region decided: the process is only there because
    /// of it.
    pub undecided: bool,
    /// Also, why the thread came there, where this is the next instruction.
    pub address: Option<u64>,
    /// Also, why the instruction at this position was executed, and what it decided by.
    pub decision: Option<Position>,
    /// Also what the branch at this position decided by and, where that counts, why it was executed.
    pub predicate: Option<Position>,
    /// What was executed before that many instructions does not count, and of a slice forwards
    /// not what was executed when so many had been.
    pub from: Position,
    pub until: Position,
    /// Code that is not looked into: it made what it made, of nothing.
    pub pruned: Vec<Range<u64>>,
    /// Functions of that code that bind others when these are first called, and leave registers as
    /// they were.
    pub binding: Vec<Range<u64>>,
}

impl Criterion {
    /// Whether some of these bytes are what is asked about.
    pub fn has(&self, area: &Area) -> bool {
        match area {
            Area::Cells(cells) => self.cells.iter().any(|own| overlap(own, cells)),
            Area::Memory(bytes) => self.memory.iter().any(|own| overlap(own, bytes)),
        }
    }
}

fn overlap<T: PartialOrd>(one: &Range<T>, other: &Range<T>) -> bool {
    one.start < other.end && other.start < one.end
}

impl Default for Criterion {
    fn default() -> Criterion {
        Criterion {
            position: 0,
            thread: 0,
            cells: Vec::new(),
            memory: Vec::new(),
            inherited: Vec::new(),
            undecided: false,
            address: None,
            decision: None,
            predicate: None,
            from: 0,
            until: Position::MAX,
            pruned: Vec::new(),
            binding: Vec::new(),
            addresses: Vec::new(),
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
    /// So much of it is taken already.
    pub taken: usize,
    /// Only these are told of in a slice backwards.
    pub only: Option<Only<'a>>,
    /// Tell also what of these depends on the source of a slice forwards.
    pub noting: Option<&'a Positions>,
    /// Tell also what is still looked for where the region began, or, forwards, touched where the
    /// slice ends: of memory, and of the registers of this thread.
    pub inherited_by: Option<u64>,
    /// Who is told, from time to time, how many instructions have been gone over.
    pub watch: Option<&'a dyn Fn(Position)>,
}

/// Which instances a slice backwards tells of.
#[derive(Clone, Copy)]
pub struct Only<'a> {
    pub told: &'a Positions,
    /// It goes on through others, too.
    pub goes_on: bool,
    /// What of them counts, where that is not all.
    pub partly: Option<&'a Partly>,
}

impl Options<'_> {
    pub(crate) fn tell(&self, gone_over: Position) {
        if let Some(watch) = self.watch {
            watch(gone_over);
        }
    }

    /// Whether what decided belongs to a slice.
    pub(crate) fn decides(&self) -> bool {
        !self.data && !self.thin
    }

    /// It is an error to take more memory than is allowed.
    pub(crate) fn check_memory(&self, size: usize) -> Result<(), RegionError> {
        match self.memory {
            Some(limit) if self.taken + size > limit => {
                Err(RegionError::TooLarge { limit: limit >> 20 })
            }
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
    /// How often it came to what another process had written to shared memory, and went no farther.
    pub others_wrote: u64,
    /// Why they belong to the slice, if that was asked for; the first is the last executed.
    pub reasons: Vec<Reason>,
    /// What depends on the source of those that this was to be noted of, where that is not all.
    pub partly: Partly,
    /// What it depends on that was there when the region began, or what depends on it where it ends,
    /// if that was asked for.
    pub inherited: Vec<Inherited>,
}

impl Slice {
    /// How much memory it takes.
    pub(crate) fn size(&self) -> usize {
        let instructions = size_of_val(self.instructions.as_slice());
        instructions + self.positions.size() + self.partly.size()
    }
}

impl Region {
    pub(crate) fn add_unit(&mut self, mut unit: Unit) {
        let number = self.units.len();
        unit.first_id = self.by_id.len();
        self.by_id.extend(ids(number, unit.instructions.len()));
        self.units.push(unit);
    }

    pub(crate) fn patterns(&self) -> &Patterns {
        self.patterns.get_or_init(|| Patterns::of(&self.units))
    }

    /// Reads what happened in a chunk of which there are records, in order; where that led to.
    pub(crate) fn read(
        &self,
        number: usize,
        records: Stored,
        mut finder: Option<&mut Finder>,
        events: &mut Events,
    ) -> Result<Course, RegionError> {
        let mut course = self.chunks[number].before.clone();
        course.prepare();
        events.clear();
        if let Some(finder) = &mut finder {
            finder.begin_chunk();
        }
        let (units, completions, mut room) = (&self.units, &self.completions, Room::default());
        let mut noting = Noting { units, finder, completions, events };
        self.follow(records, &mut course, &mut room, &mut noting)?;
        if number + 1 == self.chunks.len() {
            course.settle(&self.units, &mut room, &mut noting);
        }
        Ok(course)
    }

    /// Follows the records of a chunk.
    pub(crate) fn follow<S: Sink>(
        &self,
        records: Stored,
        course: &mut Course,
        room: &mut Room,
        sink: &mut S,
    ) -> Result<(), RegionError> {
        let mut read = Ok(());
        unpack(&self.store.read(records)?, |id, slots| {
            if read.is_ok() {
                read = course.read(id, slots, &self.by_id, &self.units, room, sink);
            }
        })?;
        Ok(read?)
    }

    /// The chunks of which one has the instruction at a position: of the one in front, the last unit
    /// may be told in the next one.
    pub(crate) fn may_hold(&self, at: Position) -> Range<usize> {
        let behind = self.chunks.partition_point(|chunk| chunk.before.position <= at);
        behind.saturating_sub(1)..(behind + 1).min(self.chunks.len())
    }

    /// What decided that a thread came to an address when so many instructions had been
    /// executed.
    pub(crate) fn decided(
        &self,
        at: Position,
        thread: u64,
        address: u64,
    ) -> Result<Option<Position>, RegionError> {
        for number in self.may_hold(at) {
            let (events, book) = self.events(number)?;
            let mut decided = None;
            events.forwards(&self.units, &book, |happened| {
                if let Happened::Executed(record) = happened
                    && let Some(index) = at.checked_sub(record.position)
                    && (index as usize) < record.count
                {
                    decided = Some(record.decided(index as usize));
                }
            });
            if let Some(decided) = decided {
                return Ok(decided);
            }
        }
        // Then it is where the region ends.
        let last = self.chunks.len().checked_sub(1);
        match last.map(|last| (last, &self.chunks[last].form)) {
            Some((last, Form::Records(records))) => {
                let mut course = self.read(last, *records, None, &mut Events::default())?;
                Ok(course.decided(thread, address))
            }
            _ => Ok(None),
        }
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
