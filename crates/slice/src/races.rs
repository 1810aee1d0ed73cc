//! Dependences of a slice that nothing orders: one thread wrote what another one read, and by
//! chance it did so before.
//!
//! The region is gone through once more, forwards, from the first instance of the slice on, with
//! what each thread knows of the others ([`Order`]) and who of the slice wrote where last
//! ([`Writers`]). What orders threads is told in `docs/slice.md`.

use crate::backward;
use crate::calls::{Object, Told, What};
use crate::control::Position;
use crate::course::{Moved, Signal, Wrote};
use crate::events::{Events, Happened, NEVER, Record};
use crate::order::Order;
use crate::patterns::Book;
use crate::positions::Positions;
use crate::region::{Region, RegionError, Slice};
use crate::units::{Known, Unit};
use crate::words::Words;
use crate::writers::{Writer, Writers};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::rc::Rc;
use why_effects::Place;

/// A write and a read of the same memory by different threads, both in a slice, such that the
/// read depends on the write and nothing orders them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Race {
    pub write: Party,
    pub read: Party,
    /// The first byte.
    pub memory: u64,
    /// How often this happened between these instructions; what else is told is of the last time.
    pub times: u64,
}

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    pub address: u64,
    /// The call that is shown instead, if the instruction is not.
    pub site: Option<u64>,
    pub thread: u64,
    pub position: Position,
}

impl Region {
    /// The races among the dependences of a slice, by time.
    pub fn races(&self, slice: &Slice) -> Result<Vec<Race>, RegionError> {
        let ends = slice.positions.ends().filter(|_| self.has_several_threads);
        let Some((first, last)) = ends else {
            return Ok(Vec::new());
        };
        let concerned = |index: &usize| {
            let next = self.chunks.get(index + 1);
            self.chunks[*index].before.position <= last
                && next.is_none_or(|next| next.before.position >= first)
        };
        let chunks: Vec<usize> = (0..self.chunks.len()).filter(concerned).collect();
        let mut search = Search {
            units: &self.units,
            positions: &slice.positions,
            words: Words::new(&self.words),
            accesses: FxHashMap::default(),
            operands: Vec::new(),
            order: Order::default(),
            writers: Writers::default(),
            codes: Codes::default(),
            last: FxHashMap::default(),
            races: FxHashMap::default(),
        };
        self.each_chunk(&chunks, |events, book| {
            search.over(events, book);
            Ok(())
        })?;
        let mut races: Vec<Race> = search.races.into_values().collect();
        races.sort_unstable_by_key(|race| (race.read.position, race.write.position));
        Ok(races)
    }
}

/// What an instruction of a unit does with its operands in memory.
struct Access {
    instruction: usize,
    is_atomic: bool,
    /// Which of its operands.
    reads: Vec<usize>,
    writes: Vec<usize>,
}

fn accesses(unit: &Unit) -> Vec<Access> {
    let access = |(index, known): (usize, &std::sync::Arc<Known>)| {
        let own = unit.first_access[index]..unit.first_access[index + 1];
        let is_known = !own.is_empty() && own.len() == known.effects.operands.len();
        is_known.then(|| {
            let mut reads: Vec<usize> = sources(known).filter_map(operand).collect();
            reads.sort_unstable();
            reads.dedup();
            let (is_atomic, writes) = (known.is_atomic(), known.keeping.writes.clone());
            Access { instruction: index, is_atomic, reads, writes }
        })
    };
    unit.instructions.iter().enumerate().filter_map(access).collect()
}

/// What an instruction uses.
fn sources(known: &Known) -> impl Iterator<Item = &Place> {
    let parts = known.effects.parts.iter().filter(|part| !part.frame);
    parts.flat_map(|part| part.lanes.iter().chain(&part.whole)).chain(&known.effects.decides)
}

fn operand(place: &Place) -> Option<usize> {
    match place {
        Place::Memory { operand, .. } | Place::String { operand } => Some(*operand),
        Place::Cells(_) => None,
    }
}

/// Instructions that were executed, by number.
#[derive(Default)]
struct Codes {
    all: Vec<(u64, Option<u64>)>,
    numbers: FxHashMap<(u64, Option<u64>), u32>,
}

impl Codes {
    fn number(&mut self, address: u64, site: Option<u64>) -> u32 {
        let next = self.all.len() as u32;
        let number = *self.numbers.entry((address, site)).or_insert(next);
        if number == next {
            self.all.push((address, site));
        }
        number
    }
}

struct Search<'a> {
    units: &'a [Unit],
    positions: &'a Positions,
    words: Words<'a>,
    /// By unit.
    accesses: FxHashMap<usize, Rc<[Access]>>,
    operands: Vec<Range<u64>>,
    order: Order,
    writers: Writers,
    codes: Codes,
    /// The last instruction of each thread, as a writer.
    last: FxHashMap<u64, Writer>,
    /// By the numbers of both instructions.
    races: FxHashMap<(u32, u32), Race>,
}

impl Search<'_> {
    fn over(&mut self, events: &Events, book: &Book) {
        events.forwards(self.units, book, |happened| match happened {
            Happened::Executed(record) => self.over_unit(record),
            Happened::Interrupted(record, _) => self.over_interrupted(record),
            Happened::Wrote(wrote) => self.over_write(wrote),
            Happened::Told(told) => self.over_told(told),
            Happened::Signal(Signal { thread, begins: true, .. }) => {
                self.order.acquire(*thread, Object::Signals);
            }
            Happened::Signal(_) => {}
        });
    }

    fn over_told(&mut self, Told { at, thread, what }: &Told) {
        // A word may be a part of a larger one.
        let whole = |object: Object| match object {
            Object::Word(word) => {
                let word = self.words.touched(&(word..word.saturating_add(1))).first();
                word.map_or(object, |word| Object::Word(word.start))
            }
            _ => object,
        };
        match what {
            What::Releases(object) => self.order.release(*thread, *at, whole(*object)),
            What::Acquires(object) => self.order.acquire(*thread, whole(*object)),
            What::Begins(Some(creator)) => {
                self.order.acquire(*thread, Object::Birth(creator.call));
            }
            What::Begins(None) => {}
        }
    }

    /// The kernel wrote for a thread.
    fn over_write(&mut self, wrote: &Wrote) {
        let Wrote { at, by, thread, ended, bytes, moved } = wrote;
        if let Some(Moved { from, size }) = *moved {
            self.writers.moved(from..from.wrapping_add(size), bytes.clone());
            return;
        }
        let Some(by) = *by else {
            // It was another process, which is no thread of this one.
            self.writers.wrote(bytes.clone(), None);
            return;
        };
        for word in self.words.touched(bytes) {
            self.order.release(ended.unwrap_or(*thread), *at, Object::Word(word.start));
        }
        let asked = self.last.get(thread).filter(|writer| writer.position == by);
        let writer = asked.filter(|_| self.positions.has(by)).copied();
        self.writers.wrote(bytes.clone(), writer);
    }

    fn over_unit(&mut self, record: &Record) {
        let unit = record.unit;
        let known = self.accesses.entry(unit.first_id).or_insert_with(|| accesses(unit).into());
        let accesses = Rc::clone(known);
        for access in accesses.iter().take_while(|access| access.instruction < record.count) {
            self.over_access(record, access);
        }
        if let Some(index) = record.count.checked_sub(1)
            && unit.instructions[index].is_system_call()
        {
            let writer = self.writer(record, index);
            self.last.insert(record.thread, writer);
        }
    }

    /// Of the last instruction of a record, a part. Of one that was never completed nobody knows.
    fn over_interrupted(&mut self, record: &Record) {
        if record.position < NEVER {
            let all: Vec<Access> = accesses(record.unit);
            let own = all.iter().filter(|access| access.instruction + 1 == record.count);
            own.for_each(|access| self.over_access(record, access));
        }
    }

    fn over_access(&mut self, record: &Record, access: &Access) {
        let (thread, index) = (record.thread, access.instruction);
        let position = record.position + index as Position;
        let mut operands = std::mem::take(&mut self.operands);
        record.operands(index, &mut operands);
        for bytes in access.reads.iter().map(|operand| &operands[*operand]) {
            for word in self.words.touched(bytes) {
                self.order.acquire(thread, Object::Word(word.start));
            }
        }
        let belongs = self.positions.has(position);
        let writer = belongs.then(|| self.writer(record, index));
        if let Some(reader) = writer {
            self.over_read(&record.unit.instructions[index], &operands, reader);
        }
        for bytes in access.writes.iter().map(|operand| &operands[*operand]) {
            self.writers.wrote(bytes.clone(), writer);
            for word in self.words.touched(bytes) {
                let object = Object::Word(word.start);
                let is_whole = bytes.start <= word.start && word.end <= bytes.end;
                match access.is_atomic || !is_whole {
                    true => self.order.release(thread, position + 1, object),
                    false => self.order.replace(thread, position + 1, object),
                }
            }
        }
        self.operands = operands;
    }

    /// An instance of the slice reads memory.
    fn over_read(&mut self, known: &Known, operands: &[Range<u64>], reader: Writer) {
        let executed = backward::Executed { effects: &known.effects, operands };
        for place in sources(known).filter(|place| operand(place).is_some()) {
            for (memory, writer) in self.writers.of(executed.memory(place)) {
                if !self.order.knows(reader.thread, writer.thread, writer.position) {
                    let (write, read) = (self.party(writer), self.party(reader));
                    let race = self.races.entry((writer.code, reader.code));
                    let race = race.or_insert(Race { write, read, memory, times: 0 });
                    // An instruction may use what it reads for several things.
                    if race.times == 0 || race.read.position != read.position {
                        *race = Race { write, read, memory, times: race.times + 1 };
                    }
                }
            }
        }
    }

    fn writer(&mut self, record: &Record, index: usize) -> Writer {
        let known = &record.unit.instructions[index];
        let site = if known.shown { None } else { record.site(index) };
        let code = self.codes.number(known.address, site);
        let position = record.position + index as Position;
        Writer { position, code, thread: record.thread }
    }

    fn party(&self, Writer { position, code, thread }: Writer) -> Party {
        let (address, site) = self.codes.all[code as usize];
        Party { address, site, thread, position }
    }
}
