//! Makes a region of a trace: packs its records and learns its units. The course of the run is
//! followed beside that, on another thread.

use crate::again::Again;
use crate::control::Position;
use crate::course::Unknown;
use crate::decoding::Kept;
use crate::following::Following;
use crate::kept::Code;
use crate::learnt::Lessons;
use crate::region::{Chunk, Form, Region, RegionError};
use crate::remembered::Remembered;
use crate::store::{Store, Stored};
use crate::units::{Library, Surrounding, Unit, Ways, ids};
use iced_x86::Instruction;
use std::fs::File;
use std::sync::{Arc, OnceLock};
use why_trace::packed::Packer;
use why_trace::shape::{Kind, Shape};
use why_trace::{FIRST_UNIT_ID, UNDO};

/// Of records that have not come yet.
const NOT_MET: u32 = u32::MAX;

pub struct Builder<W> {
    ways: W,
    library: Library,
    /// The units that may be executed, by their numbers, and what their records may be, by the ids
    /// of these.
    offered: Vec<Arc<Shape>>,
    kinds: Vec<Kind>,
    /// By the same, their ids in the region: there are only units that were executed,
    own: Vec<u32>,
    /// each with the first id of its records, by its number in what was offered.
    met: Vec<u32>,
    /// What the units are made of again when the region is opened.
    shapes: Vec<Arc<Shape>>,
    /// For each id of a record: the unit and how many instructions were executed.
    by_id: Vec<(usize, usize)>,
    store: Store,
    packer: Packer,
    packed: Vec<Stored>,
    /// How many instructions a chunk has, or a few more; and how many this one has so far.
    chunk: Position,
    length: Position,
    following: Following,
    again: Again,
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
        Builder {
            ways,
            library: Library::default(),
            offered: Vec::new(),
            kinds: Vec::new(),
            own: Vec::new(),
            met: Vec::new(),
            shapes: Vec::new(),
            by_id: Vec::new(),
            store,
            packer: Packer::default(),
            packed: Vec::new(),
            chunk,
            length: 0,
            following: Following::begin(),
            again: Again::default(),
        }
    }

    /// The next units, and ids of records. Many never come: what there is to know of a unit is found
    /// when its first record does.
    pub fn learn(&mut self, shapes: &[Arc<Shape>], kinds: &[Kind]) {
        self.offered.extend_from_slice(shapes);
        self.met.resize(self.offered.len(), NOT_MET);
        self.kinds.extend_from_slice(kinds);
        self.own.resize(self.kinds.len(), NOT_MET);
    }

    /// The id in the region of records that come for the first time.
    #[cold]
    fn meet(&mut self, id: usize) -> u32 {
        let kind = self.kinds[id];
        if self.met[kind.unit()] == NOT_MET {
            self.met[kind.unit()] = self.add(Arc::clone(&self.offered[kind.unit()]));
        }
        self.own[id] = self.met[kind.unit()] + u32::from(kind.executed);
        self.own[id]
    }

    /// A unit is executed for the first time. The first id of its records.
    fn add(&mut self, shape: Arc<Shape>) -> u32 {
        let (ways, library) = (&self.ways, &mut self.library);
        let mut known = |insn: &Instruction| library.known(insn, || Surrounding::of(insn, ways));
        let instructions: Vec<_> = shape.instructions.iter().map(&mut known).collect();
        let (number, first_id) = (self.shapes.len(), self.by_id.len());
        self.by_id.extend(ids(number, instructions.len()));
        self.again.learn(&instructions);
        let unit = Unit { first_id, ..self.library.unit(&shape, instructions) };
        self.following.learn(number, unit);
        self.shapes.push(shape);
        FIRST_UNIT_ID + first_id as u32
    }

    /// The next record.
    pub fn record(&mut self, id: u32, slots: &[u64]) -> Result<(), RegionError> {
        let id = match id.checked_sub(FIRST_UNIT_ID).map(|unit| unit as usize) {
            None => id,
            Some(unit) => match self.own.get(unit).copied() {
                Some(NOT_MET) => self.meet(unit),
                own => own.ok_or(Unknown)?,
            },
        };
        self.following.record(id, slots);
        self.packer.add(id, slots);
        let unit = id.checked_sub(FIRST_UNIT_ID).and_then(|id| self.by_id.get(id as usize));
        self.length += unit.map_or(0, |(_, executed)| *executed as Position);
        if let (UNDO, [undone]) = (id, slots) {
            self.length = self.length.saturating_sub(*undone);
        }
        if self.length >= self.chunk {
            self.end_chunk()?;
        }
        Ok(())
    }

    /// How many instructions have come, or a few less.
    pub fn instructions(&self) -> Position {
        self.packed.len() as Position * self.chunk + self.length
    }

    fn end_chunk(&mut self) -> Result<(), RegionError> {
        self.length = 0;
        self.following.end_chunk();
        self.again.end_chunk(self.packer.ids(), &self.by_id);
        self.packed.push(self.store.add(&self.packer.finish()?)?);
        // What is learnt early needs not be followed again, and to learn takes its time.
        if self.packed.len().is_power_of_two() {
            self.learn_what_was_seen();
        }
        Ok(())
    }

    /// From now on ways are those by which jumps were seen to lead, and calls those that were made.
    fn learn_what_was_seen(&mut self) {
        let seen = self.following.take_seen();
        let mut changed = self.ways.learn_targets(&seen.targets);
        changed.extend(self.library.learn_arguments(&seen.arguments));
        let renewed = self.library.renew(&changed, &self.ways);
        for (number, unit) in self.again.renew(&renewed, &mut self.library, &self.shapes) {
            let first_id = self.by_id.partition_point(|(of, _)| *of < number);
            self.following.relearn(number, Unit { first_id, ..unit });
        }
    }

    pub fn finish(mut self) -> Result<Region, RegionError> {
        self.following.end();
        self.end_chunk()?;
        self.learn_what_was_seen();
        let mut followed = self.following.finish()?;
        followed.completions.finish();
        let chunks = followed.began.into_iter().zip(self.packed);
        let mut region = Region {
            units: followed.units,
            by_id: self.by_id,
            chunks: chunks
                .map(|(before, packed)| Chunk { before, form: Form::Records(packed) })
                .collect(),
            store: self.store,
            patterns: OnceLock::new(),
            kept: Kept::default(),
            remembered: Remembered::default(),
            lessons: Lessons::default(),
            code: None,
            moments: followed.moments,
            inputs: followed.inputs,
            completions: followed.completions,
            words: followed.words.finish(),
            has_several_threads: followed.course.has_several_threads(),
            length: followed.course.position,
        };
        let (again, known) = (&self.again, &self.library.all);
        let code = Code { known, numbers: again.numbers(), shapes: &self.shapes };
        region.keep(&code, |region| region.follow_again(again))?;
        // There is much to give back, and somebody waits for the region.
        let rest = (self.library, self.offered, self.shapes, self.again, self.packer);
        std::thread::spawn(move || drop(rest));
        Ok(region)
    }
}
