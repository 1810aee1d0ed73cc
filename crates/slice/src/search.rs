//! Which instructions made a value: a region backwards.

use crate::backward::{self, Backward, Dependences, Made};
use crate::control::Position;
use crate::events::{Event, Events, UnitExecuted};
use crate::reasons::{Reasons, Via};
use crate::region::{Criterion, Options, Region, RegionError, Slice};
use crate::units::Unit;
use crate::wanted::{Wanted, Wanter};
use rustc_hash::FxHashMap;
use std::ops::Range;
use why_effects::Cell;

impl Region {
    /// Which instructions made a value.
    pub fn slice(&self, criterion: &Criterion, options: Options) -> Result<Slice, RegionError> {
        let mut wanted = Wanted::default();
        if options.reasons {
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
            put_aside: FxHashMap::default(),
            reasons: options.reasons.then(Reasons::default),
            pruned: &criterion.pruned,
            slice: Slice::default(),
        };
        if let Some(address) = criterion.address.filter(|_| search.control) {
            let decided = self.decided(criterion.position, criterion.thread, address)?;
            search
                .decided
                .extend(decided.map(|decided| (decided, (Wanter::default(), Why::Decided))));
        }
        for (index, chunk) in self.chunks.iter().enumerate().rev() {
            let is_before = self
                .chunks
                .get(index + 1)
                .is_some_and(|next| next.before.position <= criterion.from);
            if chunk.before.position < criterion.position && !is_before {
                let is_last = index + 1 == self.chunks.len();
                search.over(&self.events(chunk, is_last)?);
            }
        }
        search.slice.reasons = search.reasons.map(|reasons| reasons.all).unwrap_or_default();
        Ok(search.slice)
    }
}

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
    /// Registers that are wanted again where they were put aside, and by whom.
    put_aside: FxHashMap<Position, Vec<(Cell, Wanter)>>,
    reasons: Option<Reasons>,
    pruned: &'a [Range<u64>],
    slice: Slice,
}

impl Search<'_> {
    fn over(&mut self, events: &Events) {
        self.slice.passed_over.extend(&events.passed_over);
        for event in events.all.iter().rev() {
            match event {
                Event::Wrote(wrote) if wrote.at <= self.end && wrote.at > self.start => {
                    if let Some(byte) = self.wanted.take_any(wrote.bytes.clone()) {
                        let wanter = self.wanted.who_wanted_memory(byte);
                        self.decided.entry(wrote.by).or_insert((wanter, Why::Wrote(byte)));
                    }
                }
                Event::Wrote(_) => {}
                Event::Executed(executed) => {
                    self.wanted.turn_to(executed.thread);
                    self.over_unit(&self.units[executed.unit], executed, events);
                }
            }
        }
    }

    fn over_unit(&mut self, unit: &Unit, executed: &UnitExecuted, events: &Events) {
        let accesses = &events.accesses[executed.accesses..];
        for (index, decided) in events.decided[executed.decided.clone()].iter().enumerate().rev() {
            let position = executed.position + index as Position;
            if position >= self.end || position < self.start {
                continue;
            }
            let insn = &unit.instructions[index];
            let operands = &accesses[unit.first_access[index]..unit.first_access[index + 1]];
            if operands.len() < insn.effects.operands.len() {
                // It is passed over.
                continue;
            }
            if let Some(restored) = events.restored.get(&position) {
                let cells = self.wanted.take_wanted(restored.kept.cells());
                let wanted = &self.wanted;
                let for_whom = cells.into_iter().map(|cell| (cell, wanted.who_wanted_cell(cell)));
                self.put_aside.entry(restored.saved).or_default().extend(for_whom);
            }
            let instruction = backward::Executed { effects: &insn.effects, operands };
            let decides = self.decided.remove(&position);
            let made = self.backward.take(instruction, &mut self.wanted);
            let belongs = made.is_some() || decides.is_some();
            if belongs && self.pruned.iter().any(|code| code.contains(&insn.address)) {
                self.slice.pruned += 1;
                // It is passed over, but not what it was called for.
                if let (Some(for_whom), Some(decided)) = (decides, decided) {
                    self.decided.entry(*decided).or_insert(for_whom);
                }
            } else if belongs {
                let shown = insn.shown.then_some(insn.address);
                let site = || {
                    let sites = &events.sites[executed.sites.clone()];
                    sites.iter().rev().find(|(from, _)| *from <= index).map(|(_, site)| *site)
                };
                let site = if shown.is_some() { None } else { site().filter(|site| *site != 0) };
                let instance = (executed.thread, position);
                let wanter = self.explain(insn.address, site, instance, &made, decides);
                self.wanted.turn_to_wanter(wanter);
                if self.control
                    && let Some(decided) = decided
                {
                    self.decided.entry(*decided).or_insert((wanter, Why::Decided));
                }
                self.slice.instructions.push((position, insn.address));
                if made.is_some() {
                    self.backward.want_sources(instruction, &mut self.wanted);
                }
                if decides.is_some() {
                    self.backward.over_decision(instruction, &mut self.wanted);
                }
            }
            for (cell, wanter) in self.put_aside.remove(&position).into_iter().flatten() {
                self.wanted.turn_to_wanter(wanter);
                self.wanted.want_cells(cell..cell + 1);
            }
        }
    }

    /// Notes why an instruction belongs to the slice: who wants what it is made of.
    fn explain(
        &mut self,
        address: u64,
        site: Option<u64>,
        instance: (u64, Position),
        made: &Option<Made>,
        decides: Option<(Wanter, Why)>,
    ) -> Wanter {
        let Some(reasons) = &mut self.reasons else {
            return Wanter::default();
        };
        match (made, decides) {
            (Some(made), _) => {
                let wanter = made.wanter(&self.wanted);
                reasons.add(address, site, instance, wanter, || Via::Made(made.area.clone()))
            }
            (None, Some((wanter, why))) => {
                reasons.add(address, site, instance, wanter, || match why {
                    Why::Decided => Via::Decided,
                    Why::Wrote(byte) => Via::Wrote(byte),
                })
            }
            (None, None) => Wanter::default(),
        }
    }
}
