//! Which instructions made a value: a region backwards.

use crate::backward::{self, Backward, Dependences};
use crate::control::Position;
use crate::course::Restored;
use crate::events::{Event, Events};
use crate::region::{Criterion, Options, Region, RegionError, Slice};
use crate::units::Unit;
use crate::wanted::Wanted;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use why_effects::Cell;

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
            slice: Slice::default(),
        };
        for (index, chunk) in self.chunks.iter().enumerate().rev() {
            if chunk.before.position < criterion.position {
                let is_last = index + 1 == self.chunks.len();
                search.over(&self.events(chunk, is_last)?);
            }
        }
        Ok(search.slice)
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
        self.slice.passed_over.extend(&events.passed_over);
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
                // It is passed over.
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
                self.slice.instructions.push((position, insn.address));
                if self.control {
                    self.decided.extend(decided);
                }
            }
        }
    }
}
