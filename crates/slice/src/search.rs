//! Which instructions made a value: a region backwards.

use crate::backward::{Area, Dependences, Made};
use crate::binding::{Binding, End};
use crate::births::{Births, Inherited};
use crate::control::Position;
use crate::course::{Restored, Signal};
use crate::events::{Alike, Events, Happened, Record, Unfolding, Visitor};
use crate::learnt::{Kind, Learnt};
use crate::over::{Instance, Notes, Over};
use crate::partly::{Partly, Share};
use crate::patterns::Book;
use crate::positions::Positions;
use crate::reasons::{Reasons, UNTOLD, Via, Why};
use crate::region::{Criterion, Only, Options, Region, RegionError, Slice};
use crate::shortcuts::{Met, Shortcuts};
use crate::units::{Known, Unit};
use crate::waiting::{Aside, Waiting};
use crate::wanted::{Role, Wanted, Wanter};
use iced_x86::Register;
use rustc_hash::FxHashMap;
use std::ops::Range;
use why_effects::{Cell, cells};

impl Region {
    /// Which instructions made a value.
    pub fn slice(&self, criterion: &Criterion, options: Options<'_>) -> Result<Slice, RegionError> {
        let mut wanted = Wanted::new(options.reasons != Why::Nothing);
        wanted.turn_to(criterion.thread);
        criterion.cells.iter().for_each(|cells| wanted.want_cells(cells.clone()));
        criterion.memory.iter().for_each(|bytes| wanted.want_memory(bytes.clone()));
        criterion.inherited.iter().for_each(|inherited| inherited.want(&mut wanted));
        if !options.thin {
            wanted.turn_to_wanter(Wanter::default().with(Role::Address));
            criterion.addresses.iter().for_each(|area| match area {
                Area::Cells(cells) => wanted.want_cells(cells.clone()),
                Area::Memory(bytes) => wanted.want_memory(bytes.clone()),
            });
            wanted.turn_to_wanter(Wanter::default());
        }
        let (start, end) = (criterion.from, criterion.position);
        let dependences = Dependences { thin: options.thin };
        let mut noted = Noted {
            control: !options.data && !options.thin,
            waiting: Waiting::between(start, end.min(self.length)),
            decision: None,
            reasons: Reasons::of(options.reasons),
            pruned: &criterion.pruned,
            only: options.only,
            lists: !options.count_only,
            slice: Slice { positions: Positions::up_to(end.min(self.length)), ..Slice::default() },
        };
        if let Some(address) = criterion.address.filter(|_| noted.control)
            && let Some(decided) = self.decided(criterion.position, criterion.thread, address)?
        {
            noted.waiting.decide(decided, Wanter::default());
        }
        if let Some(decision) = criterion.decision.filter(|_| noted.control) {
            noted.waiting.decide(decision, Wanter::default());
        }
        if let Some(predicate) = criterion.predicate {
            noted.waiting.decide(predicate, Wanter::default());
        }
        let is_own = noted.partly().is_some_and(|partly| !partly.is_empty());
        // Reasons of instances are all different.
        let shortcuts = (options.reasons != Why::Instances).then(|| {
            let kind = Kind {
                dependences,
                control: noted.control,
                asks: noted.reasons.is_some(),
                pruned: criterion.pruned.clone(),
                goes_on: options.only.map(|only| only.goes_on),
            };
            // What shapes there are is no other slice's business.
            let learnt = match is_own {
                true => Learnt::nothing(kind),
                false => self.lessons.take(kind),
            };
            Shortcuts::new(&self.units, self.patterns(), learnt, noted.reasons.as_mut())
        });
        let over = Over::new(dependences, wanted);
        let interrupted = FxHashMap::default();
        let units = &self.units;
        let (births, binding) = (Births::default(), Binding::new(&criterion.binding));
        let unfolding = Unfolding::default();
        let mut search = Search {
            units,
            unfolding,
            over,
            noted,
            shortcuts,
            interrupted,
            births,
            binding,
            start,
            end,
        };
        let concerned = |index: &usize| {
            let next = self.chunks.get(index + 1);
            let is_before = next.is_some_and(|next| next.before.position <= criterion.from);
            self.chunks[*index].before.position < criterion.position && !is_before
        };
        let chunks: Vec<usize> = (0..self.chunks.len()).rev().filter(concerned).collect();
        self.each_chunk(&chunks, |events, book| {
            search.over(events, book);
            options.tell(criterion.position.saturating_sub(events.positions.start));
            options.check_memory(search.size() + self.kept_size())
        })?;
        let (slice, learnt) = search.finish(options.inherited_by);
        if let Some(learnt) = learnt.filter(|_| !is_own) {
            self.keep_learnt(learnt);
        }
        Ok(slice)
    }
}

/// What the kernel tells a handler, or leaves in a register for it.
pub(crate) const TOLD: [Register; 4] = [Register::RDI, Register::RSI, Register::RDX, Register::RAX];

/// A search in a chunk.
struct Visit<'v, 'a> {
    search: &'v mut Search<'a>,
    blocks: &'v [u64],
    book: &'v Book,
}

impl Visitor for Visit<'_, '_> {
    #[inline(always)]
    fn over_alike(&mut self, alike: &Alike) {
        self.search.over_alike(alike, self.blocks, self.book);
    }

    fn over_other(&mut self, happened: Happened) {
        self.search.over_other(happened);
    }
}

struct Search<'a> {
    units: &'a [Unit],
    unfolding: Unfolding,
    over: Over,
    noted: Noted<'a>,
    shortcuts: Option<Shortcuts<'a>>,
    /// Registers that are wanted again where a handler began, by when that was.
    interrupted: FxHashMap<Position, Vec<(Cell, Wanter)>>,
    /// Registers that new threads have of their creators.
    births: Births,
    binding: Binding<'a>,
    start: Position,
    end: Position,
}

impl Search<'_> {
    fn over(&mut self, events: &Events, book: &Book) {
        self.noted.slice.passed_over.extend(&events.passed_over);
        self.over.wanted.memory.turn_to_blocks(&events.blocks);
        let mut visit = Visit { search: self, blocks: &events.blocks, book };
        events.backwards(visit.search.units, book, &mut visit);
    }

    fn over_other(&mut self, happened: Happened) {
        match happened {
            Happened::Wrote(wrote) if wrote.at <= self.end && wrote.is_behind(self.start) => {
                if let Some(moved) = wrote.moved {
                    self.over.wanted.move_back(wrote.bytes.clone(), moved);
                    return;
                }
                if let Some(byte) = self.over.wanted.take_any(wrote.bytes.clone()) {
                    let wanter = self.over.wanted.who_wanted_memory(byte);
                    match wrote.by {
                        Some(by) => self.noted.waiting.decide_writing(by, wanter, byte),
                        None => self.noted.slice.others_wrote += 1,
                    }
                }
            }
            Happened::Signal(signal) if signal.at <= self.end && signal.at > self.start => {
                self.over_signal(signal);
            }
            Happened::Told(told) if told.at <= self.end && told.at > self.start => {
                self.births.back_over(told, &mut self.over.wanted);
            }
            Happened::Wrote(_) | Happened::Signal(_) | Happened::Told(_) => {}
            Happened::Executed(record) => {
                self.come_to(record.thread, record.position + record.count as Position);
                self.over_instructions(&record);
            }
            Happened::Interrupted(record, at) if at <= self.end && at >= self.start => {
                self.over_interrupted(&record, at);
            }
            Happened::Interrupted(..) => {}
        }
    }

    /// What a handler leaves in registers nobody sees: they are what they were before it.
    fn over_signal(&mut self, signal: &Signal) {
        let wanted = &mut self.over.wanted;
        wanted.turn_to(signal.thread);
        if !signal.begins {
            let interrupted = wanted.take_registers();
            self.interrupted.insert(signal.handler, interrupted);
            return;
        }
        for register in TOLD {
            wanted.take_wanted(cells::of(register).expect("a general register"));
        }
        for (cell, wanter) in self.interrupted.remove(&signal.handler).into_iter().flatten() {
            wanted.turn_to_wanter(wanter);
            wanted.want_cells(cell..cell + 1);
        }
    }

    /// A thread has executed a unit that ends there.
    #[inline(always)]
    fn come_to(&mut self, thread: u64, end: Position) {
        let wanted = &mut self.over.wanted;
        wanted.turn_to(thread);
        self.births.back_to(end, wanted);
        self.noted.waiting.pass(end);
    }

    #[inline(always)]
    fn over_alike(&mut self, alike: &Alike, blocks: &[u64], book: &Book) {
        self.come_to(alike.thread, alike.end());
        let Search { over: Over { wanted, .. }, noted, shortcuts, .. } = self;
        let is_whole = alike.position >= self.start && alike.end() <= self.end;
        if !is_whole && (alike.position >= self.end || alike.end() <= self.start) {
            return;
        }
        let has_other = |partly: &Partly| partly.has_other(alike.position, alike.count as usize);
        let is_known = is_whole && !noted.partly().is_some_and(has_other);
        let met = match shortcuts.as_mut().filter(|_| is_known) {
            Some(shortcuts) => shortcuts.over(alike, book, wanted, noted),
            None => Met::Unknown,
        };
        if met != Met::Gone {
            self.over_unknown(alike, met, blocks, book);
        }
    }

    /// Goes over a unit of which no way is known.
    #[cold]
    fn over_unknown(&mut self, alike: &Alike, met: Met, blocks: &[u64], book: &Book) {
        // It is taken out while it is used, so that what is made of it lives no longer.
        let mut room = std::mem::take(&mut self.unfolding);
        let record = room.record(alike, blocks, book, self.units);
        let Search { over: Over { wanted, .. }, noted, shortcuts, .. } = self;
        let is_found = match shortcuts {
            Some(shortcuts) => shortcuts.find(met, (alike, &record), book, wanted, noted),
            None => false,
        };
        if !is_found {
            self.over_instructions(&record);
        }
        self.unfolding = room;
    }

    fn over_instructions(&mut self, record: &Record) {
        for index in (0..record.count).rev() {
            let position = record.position + index as Position;
            if (self.start..self.end).contains(&position) {
                let end = self.binding.end(&record.unit.instructions[index]);
                if end == Some(End::Last) {
                    self.binding.come(record.thread, &mut self.over.wanted);
                }
                self.over.instruction(record, index, &mut self.noted);
                if end == Some(End::First) {
                    self.binding.leave(record.thread, &mut self.over.wanted);
                }
            }
        }
    }

    /// A part of an instruction, which was gone over where it was completed. Of the count, which it
    /// did not bring to an end, depends where its pointers are.
    fn over_interrupted(&mut self, record: &Record, at: Position) {
        let index = record.count - 1;
        let position = record.position + index as Position;
        if position >= self.end {
            // If nothing was executed in between, it has not begun yet.
            if position > at {
                self.noted.slice.passed_over.insert(record.unit.instructions[index].address);
            }
            return;
        }
        self.over.wanted.turn_to(record.thread);
        let slice = &self.noted.slice;
        let (belonged, count, told) =
            (slice.positions.has(position), slice.count, slice.instructions.len());
        self.over.instruction(record, index, &mut self.noted);
        let slice = &mut self.noted.slice;
        if belonged {
            // It is one instance.
            slice.count = count;
            slice.instructions.truncate(told);
        } else if let Some(one) = slice.instructions.get(told).copied() {
            slice.instructions.truncate(told);
            let behind = slice.instructions.partition_point(|other| other.0 > position);
            slice.instructions.insert(behind, one);
        }
    }

    /// How much memory is taken.
    fn size(&self) -> usize {
        let Noted { waiting, slice, reasons, .. } = &self.noted;
        let shortcuts = self.shortcuts.as_ref().map_or(0, |shortcuts| shortcuts.size());
        let reasons = reasons.as_ref().map_or(0, |reasons| reasons.size());
        slice.size() + waiting.size() + self.over.wanted.memory.size() + shortcuts + reasons
    }

    fn finish(mut self, inherited_by: Option<u64>) -> (Slice, Option<Learnt>) {
        let learnt = self.shortcuts.map(|shortcuts| shortcuts.finish(&mut self.noted));
        let Noted { mut slice, reasons, .. } = self.noted;
        slice.reasons = reasons.map(Reasons::told).unwrap_or_default();
        if let Some(thread) = inherited_by {
            slice.inherited = Inherited::still_wanted(thread, &mut self.over.wanted);
        }
        (slice, learnt)
    }
}

/// What is done with an instruction that belongs to a slice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// It is told of.
    Told,
    /// What it was made of is wanted.
    Passed,
    /// It is as if it had been made of nothing.
    Left,
}

/// What was found so far.
pub struct Noted<'a> {
    control: bool,
    pub waiting: Waiting,
    /// Why the instruction that is gone over belongs to the slice whatever it makes.
    decision: Option<(Wanter, Option<u64>)>,
    pub reasons: Option<Reasons>,
    pruned: &'a [Range<u64>],
    pub only: Option<Only<'a>>,
    pub lists: bool,
    pub slice: Slice,
}

impl<'a> Noted<'a> {
    /// What is to be done with an instruction that belongs to the slice.
    pub fn manner(&self, position: Position, insn: &Known) -> Manner {
        match self.only {
            Some(only) if !only.told.has(position) => match only.goes_on {
                // It may only have put it aside, which nobody is told of, either.
                false if insn.keeping.stores.is_none() => Manner::Left,
                _ => Manner::Passed,
            },
            _ => Manner::Told,
        }
    }

    /// What of the instructions counts that are told of, where that is not all.
    #[inline(always)]
    pub fn partly(&self) -> Option<&'a Partly> {
        self.only.and_then(|only| only.partly)
    }

    /// Whether code is not looked into.
    pub fn is_pruned(&self, address: u64) -> bool {
        self.pruned.iter().any(|code| code.contains(&address))
    }
}

impl Notes for Noted<'_> {
    fn decides(&mut self, instance: &Instance) -> bool {
        self.decision = self.waiting.decision(instance.position);
        self.decision.is_some()
    }

    fn depending(&self, position: Position) -> Option<Share<'_>> {
        self.only?.partly?.of(position)
    }

    fn belongs(
        &mut self,
        instance: &Instance,
        made: Option<&Made>,
        wanted: &Wanted,
    ) -> Option<Wanter> {
        let Instance { record, index, position, insn, .. } = *instance;
        if self.is_pruned(insn.address) {
            self.slice.pruned += 1;
            // It is passed over, but not what it was called for. What it had somebody write is made
            // of nothing, like all that it makes.
            if let (Some((for_whom, None)), Some(decided)) = (self.decision, record.decided(index))
                && self.control
            {
                self.waiting.decide(decided, for_whom);
            }
            return None;
        }
        let manner = self.manner(position, insn);
        match manner {
            Manner::Left => return None,
            Manner::Passed => {}
            Manner::Told => {
                self.slice.count += 1;
                self.slice.positions.add(position);
                if self.lists {
                    self.slice.instructions.push((position, insn.address));
                }
            }
        }
        let Some(reasons) = &mut self.reasons else {
            return Some(Wanter::default());
        };
        let because = || match (made, self.decision) {
            (Some(made), _) => (made.wanter(wanted), Via::Made(made.area.clone())),
            (None, Some((wanter, Some(byte)))) => (wanter, Via::Wrote(byte)),
            (None, decision) => (decision.unwrap_or_default().0, Via::Decided),
        };
        let site = match manner {
            Manner::Told => record.site(index).filter(|_| !insn.shown),
            _ => Some(UNTOLD),
        };
        Some(reasons.add(insn, site, (record.thread, position), because))
    }

    fn is_decided(&mut self, instance: &Instance, wanter: Wanter) {
        if self.control
            && let Some(decided) = instance.record.decided(instance.index)
        {
            self.waiting.decide(decided, wanter);
        }
    }

    fn put_aside(&mut self, restored: &Restored, aside: &Aside) {
        self.waiting.put_aside(restored.saved(), aside);
    }

    fn brought_back(&mut self, instance: &Instance) -> Option<Aside> {
        self.waiting.take_aside(instance.position)
    }
}
