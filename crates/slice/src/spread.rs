//! What was made of a value: a region forwards.

use crate::across::{Across, Cause, Notes, is_whole};
use crate::backward::Dependences;
use crate::binding::{Binding, End};
use crate::births::{Births, Inherited};
use crate::control::Position;
use crate::course::{Restored, Signal};
use crate::deciders::Deciders;
use crate::events::{Happened, NEVER, Record};
use crate::forward::Becomes;
use crate::over::Instance;
use crate::own::Own;
use crate::partly::Partly;
use crate::passages::{Met, Passages};
use crate::positions::Positions;
use crate::reasons::{Reasons, Why};
use crate::region::{Criterion, Options, Region, RegionError, Slice};
use crate::search::TOLD;
use crate::units::{Known, Unit};
use crate::wanted::Wanter;
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
        let mut slices = self.forward_each(&[sources], options)?;
        Ok(slices.pop().expect("one was asked for"))
    }

    /// Several slices forwards, each of several values, in one go through the trace.
    pub fn forward_each<'a>(
        &'a self,
        all: &[&'a [Criterion]],
        options: Options<'a>,
    ) -> Result<Vec<Slice>, RegionError> {
        let pruned = Pruned::of(self, all.iter().flat_map(|sources| sources.first()).next());
        let new = |sources: &&'a [Criterion]| Spread::new(self, sources, &pruned, options);
        let mut spreads: Vec<Spread> = all.iter().map(new).collect();
        let start = spreads.iter().map(|spread| spread.start).min().unwrap_or(0);
        let end = spreads.iter().map(|spread| spread.end).max().unwrap_or(0);
        let concerned = |index: &usize| {
            let next = self.chunks.get(index + 1);
            self.chunks[*index].before.position < end
                && next.is_none_or(|next| next.before.position > start)
        };
        let chunks: Vec<usize> = (0..self.chunks.len()).filter(concerned).collect();
        let mut passages =
            Passages::new(self.patterns(), Dependences { thin: options.thin }, options.decides());
        self.each_chunk(&chunks, |events, book| {
            for spread in &mut spreads {
                spread.noted.slice.passed_over.extend(&events.passed_over);
            }
            events.forwards(&self.units, book, |happened| {
                spreads.iter_mut().for_each(|spread| spread.over(happened, &mut passages));
            });
            options.tell(events.positions.end.saturating_sub(start));
            let taken: usize = spreads.iter().map(Spread::size).sum();
            options.check_memory(taken + passages.size() + self.kept_size())
        })?;
        Ok(spreads.into_iter().map(Spread::finish).collect())
    }
}

/// Code that is not looked into, the same for all that is asked for at once.
struct Pruned {
    code: Vec<Range<u64>>,
    /// What of it binds functions.
    binding: Vec<Range<u64>>,
    /// Units that have some of it, by their first numbers.
    units: FxHashSet<usize>,
}

impl Pruned {
    fn of(region: &Region, source: Option<&Criterion>) -> Pruned {
        let (code, binding) = source
            .map(|source| (source.pruned.clone(), source.binding.clone()))
            .unwrap_or_default();
        let mut pruned = Pruned { code, binding, units: FxHashSet::default() };
        let has_some = |unit: &&Unit| unit.instructions.iter().any(|insn| pruned.has(insn.address));
        let units: FxHashSet<usize> = match pruned.code.is_empty() {
            true => FxHashSet::default(),
            false => region.units.iter().filter(has_some).map(|unit| unit.first_id).collect(),
        };
        pruned.units = units;
        pruned
    }

    fn has(&self, address: u64) -> bool {
        self.code.iter().any(|code| code.contains(&address))
    }

    fn has_some_of(&self, unit: &Unit) -> bool {
        !self.units.is_empty() && self.units.contains(&unit.first_id)
    }
}

/// The instructions that values spread to.
struct Spread<'a> {
    across: Across,
    noted: Noted<'a>,
    /// What it knows of ways over units.
    own: Own,
    start: Position,
    end: Position,
    /// Those that are still to come.
    sources: &'a [Criterion],
    /// What was touched of registers when a handler began, by when that was.
    interrupted: FxHashMap<Position, Vec<(Cell, Wanter)>>,
    /// What was touched of registers that new threads have of their creators.
    births: Births,
    binding: Binding<'a>,
    /// The thread whose registers somebody asks for in the end, with memory.
    inherited_by: Option<u64>,
}

impl<'a> Spread<'a> {
    /// Nothing has been executed.
    fn new(
        region: &Region,
        sources: &'a [Criterion],
        pruned: &'a Pruned,
        options: Options<'a>,
    ) -> Spread<'a> {
        let asks = options.reasons != Why::Nothing;
        Spread {
            across: Across::new(Dependences { thin: options.thin }, options.decides(), asks),
            noted: Noted {
                deciding: Positions::up_to(region.length),
                deciders: Deciders::default(),
                undecided: false,
                pruned,
                reasons: Reasons::of(options.reasons),
                lists: !options.count_only,
                noting: options.noting,
                slice: Slice {
                    positions: Positions::up_to(region.length),
                    partly: options
                        .noting
                        .map_or_else(Partly::default, |_| Partly::up_to(region.length)),
                    ..Slice::default()
                },
            },
            // Reasons of instances are all different.
            own: Own::new(options.reasons != Why::Instances),
            start: sources.first().map_or(0, |source| source.position),
            end: sources.iter().map(|source| source.until).min().unwrap_or(0),
            sources,
            interrupted: FxHashMap::default(),
            births: Births::default(),
            binding: Binding::new(&pruned.binding),
            inherited_by: options.inherited_by,
        }
    }

    /// All has been executed.
    fn finish(mut self) -> Slice {
        self.own.count(&mut self.noted);
        let Noted { mut slice, reasons, .. } = self.noted;
        if let Some(thread) = self.inherited_by {
            slice.inherited = Inherited::still_wanted(thread, &mut self.across.touched);
        }
        let Slice { instructions, positions, .. } = &mut slice;
        instructions.retain(|(position, _)| positions.has(*position));
        // What was interrupted comes when it begins, and again when it is completed.
        instructions.sort_unstable_by(|one, other| other.cmp(one));
        instructions.dedup();
        slice.count = slice.positions.count();
        slice.reasons = reasons.map(|reasons| reasons.all).unwrap_or_default();
        slice
    }

    #[inline]
    fn over(&mut self, happened: &Happened, passages: &mut Passages) {
        match *happened {
            Happened::Executed(ref record) => self.over_unit(record, passages),
            Happened::Wrote(wrote) => {
                // What is read is written first.
                self.begin_sources_before(wrote.at);
                if wrote.at > self.start
                    && let Some(moved) = wrote.moved
                {
                    self.across.touched.move_on(wrote.bytes.clone(), moved);
                } else if wrote.at > self.start {
                    let touched = &mut self.across.touched;
                    touched.take_any(wrote.bytes.clone());
                    if let Some(by) = wrote.by.filter(|by| self.noted.deciding.has(*by)) {
                        touched.turn_to_wanter(self.noted.decider(by));
                        touched.want_memory(wrote.bytes.clone());
                    }
                }
            }
            Happened::Signal(signal) => {
                self.begin_sources_before(signal.at);
                self.over_signal(signal);
            }
            Happened::Told(told) => {
                self.begin_sources_before(told.at);
                self.births.over(told, &mut self.across.touched);
            }
            Happened::Interrupted(ref record, at) => {
                self.begin_sources_before(at + 1);
                if at >= self.start && at < self.end {
                    self.over_interrupted(record);
                }
            }
        }
    }

    /// A part of an instruction, which comes again where it is completed.
    fn over_interrupted(&mut self, record: &Record) {
        let index = record.count - 1;
        if record.position + index as Position >= self.end.min(NEVER) {
            self.noted.slice.passed_over.insert(record.unit.instructions[index].address);
            return;
        }
        self.across.touched.turn_to(record.thread);
        self.across.instruction(record, index, &mut self.noted);
    }

    #[inline]
    fn over_unit(&mut self, record: &Record, passages: &mut Passages) {
        let end = record.position + record.count as Position;
        if end <= self.start || record.position >= self.end {
            return;
        }
        // Whether a lane takes part is no part of a pattern, nor what nobody decided.
        let is_whole = record.position >= self.start
            && end <= self.end
            && !record.unit.has_lanes
            && !self.noted.pruned.has_some_of(record.unit)
            && !self.noted.undecided
            && self.sources.first().is_none_or(|source| source.position >= end);
        let Spread { across, noted, own, .. } = self;
        across.touched.turn_to(record.thread);
        let met = match is_whole {
            true => passages.over(record, across, noted, own),
            false => Met::Unknown,
        };
        if met != Met::Passed {
            self.over_instructions(record, met, passages);
        }
    }

    fn over_instructions(&mut self, record: &Record, met: Met, passages: &mut Passages) {
        for index in 0..record.count {
            let position = record.position + index as Position;
            self.begin_sources_before(position + 1);
            if (self.start..self.end).contains(&position) {
                self.across.touched.turn_to(record.thread);
                let end = self.binding.end(&record.unit.instructions[index]);
                if end == Some(End::First) {
                    self.binding.come(record.thread, &mut self.across.touched);
                }
                self.across.instruction(record, index, &mut self.noted);
                if end == Some(End::Last) {
                    self.binding.leave(record.thread, &mut self.across.touched);
                }
            }
        }
        passages.learn(met, record, &mut self.noted, &mut self.own);
    }

    /// How much memory is taken.
    fn size(&self) -> usize {
        self.across.size() + self.noted.size() + self.own.size()
    }

    /// Behind a handler registers are what they were before it.
    fn over_signal(&mut self, signal: &Signal) {
        let touched = &mut self.across.touched;
        touched.turn_to(signal.thread);
        let registers = touched.take_registers();
        let again = match signal.begins {
            true => {
                self.interrupted.insert(signal.handler, registers.clone());
                let told = TOLD.map(|register| cells::of(register).expect("a general register"));
                let is_told = |cell: &Cell| told.iter().any(|cells| cells.contains(cell));
                registers.into_iter().filter(|(cell, _)| !is_told(cell)).collect()
            }
            false => self.interrupted.remove(&signal.handler).unwrap_or_default(),
        };
        for (cell, wanter) in again {
            touched.turn_to_wanter(wanter);
            touched.want_cells(cell..cell + 1);
        }
    }

    /// Touches what is a source before a position.
    fn begin_sources_before(&mut self, position: Position) {
        while let [source, rest @ ..] = self.sources
            && source.position < position
        {
            self.sources = rest;
            let touched = &mut self.across.touched;
            touched.turn_to(source.thread);
            touched.turn_to_wanter(Wanter::default());
            source.cells.iter().for_each(|cells| touched.want_cells(cells.clone()));
            source.memory.iter().for_each(|bytes| touched.want_memory(bytes.clone()));
            source.inherited.iter().for_each(|inherited| inherited.want(touched));
            self.noted.undecided |= source.undecided;
        }
    }
}

/// What was found so far.
pub struct Noted<'a> {
    /// Branches and calls of the slice, those of the system too; and who they are, if anybody asks.
    pub deciding: Positions,
    deciders: Deciders,
    /// What nobody decided belongs to the slice, too.
    undecided: bool,
    pruned: &'a Pruned,
    pub reasons: Option<Reasons>,
    pub lists: bool,
    /// Those of which it is noted what of them is touched.
    pub noting: Option<&'a Positions>,
    pub slice: Slice,
}

impl Noted<'_> {
    /// Those of the next instructions decide that have a bit.
    #[inline]
    pub fn decide(&mut self, position: Position, mask: u64, wanters: &[Wanter]) {
        self.deciding.add_mask(position, mask);
        if self.reasons.is_some() {
            self.deciders.add_mask(position, mask, wanters);
        }
    }

    /// Of which of a unit's instructions something is to be noted.
    #[inline]
    pub fn to_note(&self, record: &Record) -> u64 {
        self.noting.map_or(0, |noting| noting.mask(record.position, record.count as u32))
    }

    /// Who one is that decides.
    fn decider(&self, position: Position) -> Wanter {
        self.deciders.find(position, &self.deciding)
    }

    fn size(&self) -> usize {
        let reasons = self.reasons.as_ref().map_or(0, |reasons| reasons.size());
        self.slice.size() + self.deciding.size() + self.deciders.size() + reasons
    }
}

impl Notes for Noted<'_> {
    fn is_decided(&self, instance: &Instance) -> bool {
        let decided = instance.record.decided(instance.index);
        decided.map_or(self.undecided, |decided| self.deciding.has(decided))
    }

    fn is_pruned(&self, insn: &Known) -> bool {
        self.pruned.has(insn.address)
    }

    fn hands_on(&mut self, instance: &Instance) {
        self.slice.pruned += 1;
        let decided = instance.record.decided(instance.index);
        let wanter = decided.map_or_else(Wanter::default, |decided| self.decider(decided));
        self.decides(instance, wanter);
    }

    fn belongs(&mut self, instance: &Instance, cause: Cause) -> Wanter {
        let Instance { record, index, position, insn } = *instance;
        self.slice.positions.add(position);
        if self.lists {
            self.slice.instructions.push((position, insn.address));
        }
        let Noted { deciding, deciders, reasons, .. } = self;
        let Some(reasons) = reasons else { return Wanter::default() };
        let because = || {
            let (toucher, via) = cause.tell();
            let decided = record.decided(index).filter(|decided| deciding.has(*decided));
            let decider = || decided.map(|decided| deciders.find(decided, deciding));
            (toucher.or_else(decider).unwrap_or_default(), via)
        };
        let site = record.site(index).filter(|_| !insn.shown);
        reasons.add(insn, site, (record.thread, position), because)
    }

    fn becomes(&mut self, instance: &Instance, made: &[Becomes], decides: bool) {
        if self.noting.is_some_and(|noting| noting.has(instance.position))
            && !is_whole(instance, made, decides)
        {
            self.slice.partly.add(instance.position, &instance.insn.effects, made, decides);
        }
    }

    fn decides(&mut self, instance: &Instance, wanter: Wanter) {
        self.deciding.add(instance.position);
        if self.reasons.is_some() {
            self.deciders.add(instance.position, wanter);
        }
    }

    fn brought_back(&mut self, restored: &Restored) {
        self.slice.positions.remove(restored.saved());
    }
}
