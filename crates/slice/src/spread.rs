//! What was made of a value: a region forwards.

use crate::backward::{self, Dependences};
use crate::births::Births;
use crate::control::Position;
use crate::course::Signal;
use crate::events::{Events, Happened, Record};
use crate::forward::Forward;
use crate::memory::{Memory, bits, each_bit};
use crate::patterns::Patterns;
use crate::positions::Positions;
use crate::reasons::{Reasons, Via, Why};
use crate::region::{Criterion, Options, Region, RegionError, Slice};
use crate::saves::Kept;
use crate::search::TOLD;
use crate::units::{Known, Turn, Unit};
use crate::wanted::{Wanted, Wanter};
use rustc_hash::FxHashMap;
use std::ops::Range;
use why_effects::{Cell, cells};

impl Region {
    /// What was made of a value, and what was only done because of it.
    pub fn forward(&self, source: &Criterion, options: Options) -> Result<Slice, RegionError> {
        self.forward_of(std::slice::from_ref(source), options)
    }

    /// The same of several values, each from its own moment on; in the order of these.
    pub fn forward_of(
        &self,
        sources: &[Criterion],
        options: Options,
    ) -> Result<Slice, RegionError> {
        let mut slices = self.forward_each(&[sources], options)?;
        Ok(slices.pop().expect("one was asked for"))
    }

    /// Several slices forwards, each of several values, in one go through the trace.
    pub fn forward_each(
        &self,
        all: &[&[Criterion]],
        options: Options,
    ) -> Result<Vec<Slice>, RegionError> {
        let mut spreads: Vec<Spread> =
            all.iter().map(|sources| Spread::new(self, sources, options)).collect();
        let start = spreads.iter().map(|spread| spread.start).min().unwrap_or(0);
        let end = spreads.iter().map(|spread| spread.end).max().unwrap_or(0);
        let concerned = |index: &usize| {
            let next = self.chunks.get(index + 1);
            self.chunks[*index].before.position < end
                && next.is_none_or(|next| next.before.position > start)
        };
        let chunks: Vec<usize> = (0..self.chunks.len()).filter(concerned).collect();
        self.each_chunk(&chunks, |events| {
            spreads.iter_mut().for_each(|spread| spread.over(events));
            let taken: usize = spreads.iter().map(Spread::size).sum();
            options.check_memory(taken + self.kept_size())
        })?;
        Ok(spreads.into_iter().map(Spread::finish).collect())
    }
}

/// The instructions that values spread to.
struct Spread<'a> {
    units: &'a [Unit],
    patterns: &'a Patterns,
    operands: Vec<Range<u64>>,
    forward: Forward,
    control: bool,
    start: Position,
    end: Position,
    /// Those that are still to come.
    sources: &'a [Criterion],
    touched: Wanted,
    /// Branches and calls of the slice, those of the system too; and who they are, if anybody asks.
    deciding: Positions,
    deciders: Deciders,
    /// What was touched of registers that were put aside, where they were.
    stored: Memory,
    /// What was touched of registers when a handler began, by when that was.
    interrupted: FxHashMap<Position, Vec<(Cell, Wanter)>>,
    /// What was touched of registers that new threads have of their creators.
    births: Births,
    reasons: Option<Reasons>,
    lists: bool,
    slice: Slice,
}

/// Who they are, in the order of their positions.
#[derive(Default)]
struct Deciders(Vec<(Position, Wanter)>);

impl Deciders {
    fn find(&self, position: Position) -> Wanter {
        let found = self.0.binary_search_by_key(&position, |(position, _)| *position);
        found.map_or(Wanter::default(), |found| self.0[found].1)
    }
}

impl<'a> Spread<'a> {
    /// Nothing has been executed.
    fn new(region: &'a Region, sources: &'a [Criterion], options: Options) -> Spread<'a> {
        Spread {
            units: &region.units,
            patterns: region.patterns(),
            operands: Vec::new(),
            forward: Forward::new(Dependences { thin: options.thin }),
            control: !options.data && !options.thin,
            start: sources.first().map_or(0, |source| source.position),
            end: sources.iter().map(|source| source.until).min().unwrap_or(0),
            sources,
            touched: Wanted::new(options.reasons != Why::Nothing),
            deciding: Positions::up_to(region.length),
            deciders: Deciders::default(),
            stored: Memory::new(options.reasons != Why::Nothing),
            interrupted: FxHashMap::default(),
            births: Births::default(),
            reasons: Reasons::of(options.reasons),
            lists: !options.count_only,
            slice: Slice { positions: Positions::up_to(region.length), ..Slice::default() },
        }
    }

    /// All has been executed.
    fn finish(self) -> Slice {
        let Spread { mut slice, reasons, .. } = self;
        let Slice { instructions, positions, .. } = &mut slice;
        instructions.retain(|(position, _)| positions.has(*position));
        instructions.reverse();
        slice.count = slice.positions.count();
        slice.reasons = reasons.map(|reasons| reasons.all).unwrap_or_default();
        slice
    }

    fn over(&mut self, events: &Events) {
        self.slice.passed_over.extend(&events.passed_over);
        for happened in events.forwards(self.units) {
            match happened {
                Happened::Wrote(wrote) => {
                    // What is read is written first.
                    self.begin_sources_before(wrote.at);
                    if wrote.at > self.start {
                        self.touched.take_any(wrote.bytes.clone());
                        if self.deciding.has(wrote.by) {
                            self.touched.turn_to_wanter(self.deciders.find(wrote.by));
                            self.touched.want_memory(wrote.bytes.clone());
                        }
                    }
                }
                Happened::Signal(signal) => {
                    self.begin_sources_before(signal.at);
                    self.over_signal(signal);
                }
                Happened::Told(told) => {
                    self.begin_sources_before(told.at);
                    self.births.over(told, &mut self.touched);
                }
                Happened::Executed(record) if self.is_untouched(&record) => {}
                Happened::Executed(record) => {
                    for index in 0..record.count {
                        self.begin_sources_before(record.position + index as Position + 1);
                        self.touched.turn_to(record.thread);
                        self.over_instruction(&record, index);
                    }
                }
            }
        }
    }

    /// Notes what is touched of a register that is put aside.
    fn put_aside(&mut self, kept: Kept, at: u64) {
        let first = kept.cells().start;
        self.stored.remove(at, bits(REGISTER));
        each_bit(self.touched.cells_mask(kept.cells()), |index| {
            let toucher = self.touched.who_wanted_cell(first + index as Cell);
            self.stored.add_some(at.wrapping_add(index.into()), 1, toucher);
        });
    }

    /// That is touched again.
    fn bring_back(&mut self, kept: Kept, at: u64) {
        let first = kept.cells().start;
        self.touched.drop_cells(kept.cells());
        each_bit(self.stored.mask(at, REGISTER), |index| {
            self.touched.turn_to_wanter(self.stored.who(at.wrapping_add(index.into())));
            self.touched.want_some_cells(first + index as Cell, 1);
        });
    }

    /// Whether nothing of a unit can belong to the slice, nor anything be touched no more.
    fn is_untouched(&mut self, record: &Record) -> bool {
        let end = record.position + record.count as Position;
        if self.sources.first().is_some_and(|source| source.position < end) {
            return false;
        }
        let Some(crossing) = self.patterns.crossing(record.unit, record.count) else {
            return false;
        };
        self.touched.turn_to(record.thread);
        let touched = &self.touched;
        !crossing.is_touched(record, touched)
            && !record.decided.iter().any(|d| d.by().is_some_and(|by| self.deciding.has(by)))
            && !record.restored.iter().any(|restored| {
                let index = (restored.by - record.position) as usize;
                self.stored.mask(slot(record, index), REGISTER) != 0
            })
    }

    /// How much memory is taken.
    fn size(&self) -> usize {
        let reasons = self.reasons.as_ref().map_or(0, |reasons| reasons.size());
        let deciders = size_of_val(self.deciders.0.as_slice());
        let positions = self.slice.size() + self.deciding.size();
        positions + self.touched.memory.size() + self.stored.size() + reasons + deciders
    }

    /// Behind a handler registers are what they were before it.
    fn over_signal(&mut self, signal: &Signal) {
        self.touched.turn_to(signal.thread);
        let touched = self.touched.take_registers();
        let again = match signal.begins {
            true => {
                self.interrupted.insert(signal.handler, touched.clone());
                let told = TOLD.map(|register| cells::of(register).expect("a general register"));
                let is_told = |cell: &Cell| told.iter().any(|cells| cells.contains(cell));
                touched.into_iter().filter(|(cell, _)| !is_told(cell)).collect()
            }
            false => self.interrupted.remove(&signal.handler).unwrap_or_default(),
        };
        for (cell, wanter) in again {
            self.touched.turn_to_wanter(wanter);
            self.touched.want_cells(cell..cell + 1);
        }
    }

    /// Touches what is a source before a position.
    fn begin_sources_before(&mut self, position: Position) {
        while let [source, rest @ ..] = self.sources
            && source.position < position
        {
            self.sources = rest;
            self.touched.turn_to(source.thread);
            self.touched.turn_to_wanter(Wanter::default());
            source.cells.iter().for_each(|cells| self.touched.want_cells(cells.clone()));
            source.memory.iter().for_each(|bytes| self.touched.want_memory(bytes.clone()));
        }
    }

    /// Goes over an instruction. Where its operands were may not be known: then it is passed over.
    fn over_instruction(&mut self, record: &Record, index: usize) {
        let position = record.position + index as Position;
        let mut operands = std::mem::take(&mut self.operands);
        if (self.start..self.end).contains(&position) && record.operands(index, &mut operands) {
            self.over_known(record, index, &operands);
        }
        self.operands = operands;
    }

    fn over_known(&mut self, record: &Record, index: usize, operands: &[Range<u64>]) {
        let insn = &record.unit.instructions[index];
        let position = record.position + index as Position;
        let decided = record.decided(index).filter(|decided| self.deciding.has(*decided));
        let executed = backward::Executed { effects: &insn.effects, operands };
        let decides = self.forward.decides(executed, &self.touched);
        let made = self.forward.of(executed, decided.is_some(), &self.touched);
        if let Some(restored) = record.restored(insn, index) {
            // What was put aside comes back as it was, whoever had it brought back. What only put it
            // aside does not belong to the slice.
            self.forward.spread(&mut self.touched);
            self.bring_back(restored.kept, slot(record, index));
            self.slice.positions.remove(restored.saved);
            return;
        }
        if let Some((kept, operand)) = insn.keeping.stores {
            let at = operands[operand].start;
            self.put_aside(kept, at);
        }
        let belongs = made.is_some() || decides || decided.is_some();
        if belongs {
            let Spread { forward, touched, deciders, reasons, .. } = self;
            let because = || {
                let toucher = forward.toucher(executed, touched);
                let via = match (made, decides || toucher.is_some()) {
                    (_, false) => Via::Decided,
                    (Some(area), true) => Via::Made(area),
                    (None, true) => Via::Tested,
                };
                let decider = || decided.map(|decided| deciders.find(decided));
                (toucher.or_else(decider).unwrap_or_default(), via)
            };
            let wanter = reasons.as_mut().map_or(Wanter::default(), |reasons| {
                let site = record.site(index).filter(|_| !insn.shown);
                reasons.add(insn, site, (record.thread, position), because)
            });
            self.touched.turn_to_wanter(wanter);
            self.slice.positions.add(position);
            if self.lists {
                self.slice.instructions.push((position, insn.address));
            }
            let asks = insn.is_system_call() && (decides || decided.is_some());
            if asks || self.control && may_decide(insn) {
                self.deciding.add(position);
                if self.reasons.is_some() {
                    self.deciders.0.push((position, wanter));
                }
            }
        }
        self.forward.spread(&mut self.touched);
    }
}

/// How many bytes a register has.
const REGISTER: u32 = 8;

/// Where an instruction brings a register back from.
fn slot(record: &Record, index: usize) -> u64 {
    let loads = record.unit.instructions[index].keeping.loads;
    loads.map_or(0, |(_, operand)| record.starts[record.unit.first_access[index] + operand])
}

/// Whether others may be executed because of an instruction: a branch, a call, or what ends calls
/// by moving the stack pointer.
fn may_decide(insn: &Known) -> bool {
    insn.turn != Turn::None || insn.moves_stack
}
