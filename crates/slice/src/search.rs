//! Which instructions made a value: a region backwards.

use crate::backward::{self, Backward, Dependences, Made};
use crate::control::Position;
use crate::course::Signal;
use crate::events::{Event, Events, UnitExecuted};
use crate::positions::Positions;
use crate::reasons::{Reasons, Via, Why as Reasoned};
use crate::region::{Criterion, Options, Region, RegionError, Slice};
use crate::units::{Known, Unit};
use crate::wanted::{Wanted, Wanter};
use iced_x86::Register;
use rustc_hash::FxHashMap;
use std::collections::BinaryHeap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use why_effects::{Cell, cells};

impl Region {
    /// Which instructions made a value.
    pub fn slice(&self, criterion: &Criterion, options: Options<'_>) -> Result<Slice, RegionError> {
        let mut wanted = Wanted::default();
        if options.reasons != Reasoned::Nothing {
            wanted.remember_wanters();
        }
        wanted.turn_to(criterion.thread);
        criterion.cells.iter().for_each(|cells| wanted.want_cells(cells.clone()));
        criterion.memory.iter().for_each(|bytes| wanted.want_memory(bytes.clone()));
        let mut search = Search {
            units: &self.units,
            backward: Backward::new(Dependences { thin: options.thin }),
            control: !options.data && !options.thin,
            start: criterion.from,
            end: criterion.position,
            wanted,
            decided: FxHashMap::default(),
            last_decided: None,
            put_aside: FxHashMap::default(),
            interrupted: FxHashMap::default(),
            waiting: BinaryHeap::new(),
            reasons: Reasons::of(options.reasons),
            pruned: &criterion.pruned,
            only: options.only,
            lists: !options.count_only,
            slice: Slice::default(),
        };
        if let Some(address) = criterion.address.filter(|_| search.control)
            && let Some(decided) = self.decided(criterion.position, criterion.thread, address)?
        {
            search.decide(decided, (Wanter::default(), Why::Decided));
        }
        let concerned = |index: &usize| {
            let next = self.chunks.get(index + 1);
            let is_before = next.is_some_and(|next| next.before.position <= criterion.from);
            self.chunks[*index].before.position < criterion.position && !is_before
        };
        let chunks: Vec<usize> = (0..self.chunks.len()).rev().filter(concerned).collect();
        self.each_chunk(&chunks, |events| search.over(events))?;
        search.slice.reasons = search.reasons.map(|reasons| reasons.all).unwrap_or_default();
        Ok(search.slice)
    }
}

/// What the kernel tells a handler, or leaves in a register for it.
pub(crate) const TOLD: [Register; 4] = [Register::RDI, Register::RSI, Register::RDX, Register::RAX];

/// Why an instruction belongs to the slice though it made nothing that is wanted.
#[derive(Clone, Copy)]
enum Why {
    Decided,
    /// Somebody else wrote there for it.
    Wrote(u64),
}

struct Search<'a> {
    units: &'a [Unit],
    backward: Backward,
    control: bool,
    start: Position,
    end: Position,
    wanted: Wanted,
    /// What decided over something that is in the slice, or had somebody write to memory; and
    /// for whom.
    decided: FxHashMap<Position, (Wanter, Why)>,
    last_decided: Option<Position>,
    /// Registers that are wanted again where they were put aside, and by whom.
    put_aside: FxHashMap<Position, Vec<(Cell, Wanter)>>,
    /// Registers that are wanted again where a handler began, by when that was.
    interrupted: FxHashMap<Position, Vec<(Cell, Wanter)>>,
    /// The positions of both, the last first.
    waiting: BinaryHeap<Position>,
    reasons: Option<Reasons>,
    pruned: &'a [Range<u64>],
    only: Option<&'a Positions>,
    lists: bool,
    slice: Slice,
}

/// An instruction that was executed.
struct Instance<'a> {
    executed: &'a UnitExecuted,
    index: usize,
    position: Position,
    insn: &'a Known,
    operands: &'a [Range<u64>],
    /// It belongs to the slice whatever it makes, or a register was put aside there.
    is_waiting: bool,
}

impl Search<'_> {
    fn over(&mut self, events: &Events) {
        self.slice.passed_over.extend(&events.passed_over);
        for event in events.all.iter().rev() {
            match event {
                Event::Wrote(wrote) if wrote.at <= self.end && wrote.at > self.start => {
                    if let Some(byte) = self.wanted.take_any(wrote.bytes.clone()) {
                        let wanter = self.wanted.who_wanted_memory(byte);
                        self.decide(wrote.by, (wanter, Why::Wrote(byte)));
                    }
                }
                Event::Signal(signal) if signal.at <= self.end && signal.at > self.start => {
                    self.over_signal(signal);
                }
                Event::Wrote(_) | Event::Signal(_) => {}
                Event::Executed(executed) => {
                    self.wanted.turn_to(executed.thread);
                    let unit = &self.units[executed.unit];
                    if self.concerns(unit, executed, events) {
                        self.over_unit(unit, executed, events);
                    }
                }
            }
        }
    }

    /// What a handler leaves in registers nobody sees: they are what they were before it.
    fn over_signal(&mut self, signal: &Signal) {
        self.wanted.turn_to(signal.thread);
        if !signal.begins {
            let interrupted = self.wanted.take_registers();
            self.interrupted.insert(signal.handler, interrupted);
            return;
        }
        for register in TOLD {
            self.wanted.take_wanted(cells::of(register).expect("a general register"));
        }
        for (cell, wanter) in self.interrupted.remove(&signal.handler).into_iter().flatten() {
            self.wanted.turn_to_wanter(wanter);
            self.wanted.want_cells(cell..cell + 1);
        }
    }

    /// Whether anything of a unit may belong to the slice.
    fn concerns(&self, unit: &Unit, executed: &UnitExecuted, events: &Events) -> bool {
        let end = unit.first_access[executed.count];
        let mut writes = unit.writes.iter().take_while(|write| **write < end);
        self.wanted.may_have(unit.defines)
            || self.is_waiting(executed.position)
            || writes.any(|write| {
                self.wanted.has_memory(events.accesses[executed.accesses + write].clone())
            })
    }

    /// Whether an instruction from there on belongs to the slice whatever it makes.
    fn is_waiting(&self, from: Position) -> bool {
        self.waiting.peek().is_some_and(|waiting| *waiting >= from)
    }

    fn over_unit(&mut self, unit: &Unit, executed: &UnitExecuted, events: &Events) {
        for index in (0..executed.count).rev() {
            let position = executed.position + index as Position;
            if position >= self.end || position < self.start {
                continue;
            }
            let insn = &unit.instructions[index];
            let is_waiting = self.is_waiting(position);
            if !is_waiting && !self.wanted.may_have(insn.defines) && insn.keeping.writes.is_empty()
            {
                continue;
            }
            while self.is_waiting(position) {
                self.waiting.pop();
            }
            // Where its operands were may not be known: it is passed over.
            if let Some(operands) = events.operands(executed, index) {
                let instance = Instance { executed, index, position, insn, operands, is_waiting };
                self.over_instruction(&instance, events);
            }
        }
    }

    fn over_instruction(&mut self, instance: &Instance, events: &Events) {
        let Instance { executed, index, position, insn, operands, is_waiting } = *instance;
        if let Some(restored) = events.restored(insn, position) {
            let cells = self.wanted.take_wanted(restored.kept.cells());
            if !cells.is_empty() {
                let wanted = &self.wanted;
                let for_whom = cells.into_iter().map(|cell| (cell, wanted.who_wanted_cell(cell)));
                self.put_aside.entry(restored.saved).or_default().extend(for_whom);
                self.waiting.push(restored.saved);
            }
        }
        let instruction = backward::Executed { effects: &insn.effects, operands };
        let decides = if is_waiting { self.decided.remove(&position) } else { None };
        let made = self.backward.take(instruction, &mut self.wanted);
        let belongs = made.is_some() || decides.is_some();
        let mut wanter = Wanter::default();
        if belongs && self.pruned.iter().any(|code| code.contains(&insn.address)) {
            self.slice.pruned += 1;
            // It is passed over, but not what it was called for.
            if let (Some(for_whom), Some(decided)) = (decides, events.decided(executed, index)) {
                self.decide(decided, for_whom);
            }
        } else if belongs {
            if self.only.is_none_or(|only| only.has(position)) {
                self.slice.count += 1;
                if self.lists {
                    self.slice.instructions.push((position, insn.address));
                }
                let site = if insn.shown { None } else { events.site(executed, index) };
                wanter = self.explain(instance, site, &made, decides);
            }
            self.wanted.turn_to_wanter(wanter);
            if self.control
                && let Some(decided) = events.decided(executed, index)
            {
                self.decide(decided, (wanter, Why::Decided));
            }
            if made.is_some() {
                self.backward.want_sources(instruction, &mut self.wanted);
            }
            if decides.is_some() {
                self.backward.over_decision(instruction, &mut self.wanted);
            }
        }
        let put_aside = if is_waiting { self.put_aside.remove(&position) } else { None };
        for (cell, wanter) in put_aside.into_iter().flatten() {
            self.wanted.turn_to_wanter(wanter);
            self.wanted.want_cells(cell..cell + 1);
        }
    }

    /// An instruction belongs to the slice whatever it makes.
    fn decide(&mut self, position: Position, why: (Wanter, Why)) {
        // Over one after the other mostly the same one decided.
        if self.last_decided.replace(position) != Some(position)
            && let Entry::Vacant(new) = self.decided.entry(position)
        {
            new.insert(why);
            self.waiting.push(position);
        }
    }

    /// Notes why an instruction belongs to the slice: who wants what it is made of.
    fn explain(
        &mut self,
        instance: &Instance,
        site: Option<u64>,
        made: &Option<Made>,
        decides: Option<(Wanter, Why)>,
    ) -> Wanter {
        let Some(reasons) = &mut self.reasons else {
            return Wanter::default();
        };
        let insn = instance.insn;
        let instance = (instance.executed.thread, instance.position);
        match (made, decides) {
            (Some(made), _) => {
                let wanter = made.wanter(&self.wanted);
                reasons.add(insn, site, instance, wanter, || Via::Made(made.area.clone()))
            }
            (None, Some((wanter, why))) => {
                let via = || match why {
                    Why::Decided => Via::Decided,
                    Why::Wrote(byte) => Via::Wrote(byte),
                };
                reasons.add(insn, site, instance, wanter, via)
            }
            (None, None) => Wanter::default(),
        }
    }
}
