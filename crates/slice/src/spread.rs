//! What was made of a value: a region forwards.

use crate::backward::{self, Dependences};
use crate::control::Position;
use crate::course::Signal;
use crate::events::{Events, Happened, Record};
use crate::forward::Forward;
use crate::patterns::Patterns;
use crate::positions::Positions;
use crate::reasons::{Reasons, Via, Why};
use crate::region::{Criterion, Options, Region, RegionError, Slice};
use crate::search::TOLD;
use crate::units::{Known, Turn, Unit};
use crate::wanted::{Wanted, Wanter};
use rustc_hash::{FxHashMap, FxHashSet};
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
        let touched = Wanted::new(options.reasons != Why::Nothing);
        let start = sources.first().map_or(0, |source| source.position);
        let end = sources.iter().map(|source| source.until).min().unwrap_or(0);
        let mut spread = Spread {
            units: &self.units,
            patterns: self.patterns(),
            operands: Vec::new(),
            forward: Forward::new(Dependences { thin: options.thin }),
            control: !options.data && !options.thin,
            start,
            end,
            sources,
            touched,
            deciding: Positions::up_to(self.length),
            deciders: FxHashMap::default(),
            put_aside: FxHashSet::default(),
            stored: FxHashMap::default(),
            interrupted: FxHashMap::default(),
            reasons: Reasons::of(options.reasons),
            lists: !options.count_only,
            slice: Slice { positions: Positions::up_to(self.length), ..Slice::default() },
        };
        let concerned = |index: &usize| {
            let next = self.chunks.get(index + 1);
            self.chunks[*index].before.position < end
                && next.is_none_or(|next| next.before.position > start)
        };
        let chunks: Vec<usize> = (0..self.chunks.len()).filter(concerned).collect();
        self.each_chunk(&chunks, |events| {
            spread.over(events);
            options.check_memory(spread.size())
        })?;
        let Spread { mut slice, put_aside, reasons, .. } = spread;
        put_aside.iter().for_each(|position| slice.positions.remove(*position));
        let Slice { instructions, positions, .. } = &mut slice;
        instructions.retain(|(position, _)| positions.has(*position));
        instructions.reverse();
        slice.count = slice.positions.count();
        slice.reasons = reasons.map(|reasons| reasons.all).unwrap_or_default();
        Ok(slice)
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
    deciders: FxHashMap<Position, Wanter>,
    /// What only put a register aside for one that brought it back.
    put_aside: FxHashSet<Position>,
    /// What was touched of registers that were stored and might be brought back.
    stored: FxHashMap<Position, Vec<(Cell, Wanter)>>,
    /// What was touched of registers when a handler began, by when that was.
    interrupted: FxHashMap<Position, Vec<(Cell, Wanter)>>,
    reasons: Option<Reasons>,
    lists: bool,
    slice: Slice,
}

impl Spread<'_> {
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
                            let wanter = self.deciders.get(&wrote.by).copied();
                            self.touched.turn_to_wanter(wanter.unwrap_or_default());
                            self.touched.want_memory(wrote.bytes.clone());
                        }
                    }
                }
                Happened::Signal(signal) => {
                    self.begin_sources_before(signal.at);
                    self.over_signal(signal);
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
            && !record.restored.iter().any(|restored| self.stored.contains_key(&restored.saved))
    }

    /// How much memory is taken.
    fn size(&self) -> usize {
        let reasons = self.reasons.as_ref().map_or(0, |reasons| reasons.size());
        let apart = self.deciders.len() + self.put_aside.len() + self.stored.len();
        let positions = self.slice.size() + self.deciding.size();
        positions + self.touched.memory.size() + reasons + 64 * apart
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

    fn over_instruction(&mut self, record: &Record, index: usize) {
        let (insn, position) = (&record.unit.instructions[index], record.position + index as u64);
        if !(self.start..self.end).contains(&position)
            || !record.operands(index, &mut self.operands)
        {
            return;
        }
        let operands = &self.operands;
        let decided = record.decided(index).filter(|decided| self.deciding.has(*decided));
        let executed = backward::Executed { effects: &insn.effects, operands };
        let decides = self.forward.decides(executed, &self.touched);
        let made = self.forward.of(executed, decided.is_some(), &self.touched);
        if let Some(restored) = record.restored(insn, index) {
            // What was put aside comes back as it was, whoever had it brought back.
            self.forward.spread(&mut self.touched);
            self.touched.take_wanted(restored.kept.cells());
            for (cell, wanter) in self.stored.get(&restored.saved).into_iter().flatten() {
                self.touched.turn_to_wanter(*wanter);
                self.touched.want_cells(*cell..cell + 1);
            }
            self.put_aside.insert(restored.saved);
            return;
        }
        if let Some((kept, _)) = insn.keeping.stores {
            let own = kept.cells().filter(|cell| self.touched.has_cells(*cell..cell + 1));
            let touched: Vec<(Cell, Wanter)> =
                own.map(|cell| (cell, self.touched.who_wanted_cell(cell))).collect();
            if !touched.is_empty() {
                self.stored.insert(position, touched);
            }
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
                let decider = || deciders.get(&decided?).copied();
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
                    self.deciders.insert(position, wanter);
                }
            }
        }
        self.forward.spread(&mut self.touched);
    }
}

/// Whether others may be executed because of an instruction: a branch, a call, or what ends calls
/// by moving the stack pointer.
fn may_decide(insn: &Known) -> bool {
    insn.turn != Turn::None || insn.moves_stack
}
