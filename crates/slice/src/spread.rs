//! What was made of a value: a region forwards.

use crate::backward::{self, Dependences};
use crate::control::Position;
use crate::course::Restored;
use crate::events::{Event, Events, UnitExecuted};
use crate::forward::Forward;
use crate::region::{Criterion, Options, Region, RegionError, Slice};
use crate::units::{Known, Turn, Unit};
use crate::wanted::Wanted;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use why_effects::Cell;

impl Region {
    /// What was made of a value, and what was only done because of it.
    pub fn forward(&self, source: &Criterion, options: Options) -> Result<Slice, RegionError> {
        let mut touched = Wanted::default();
        touched.turn_to(source.thread);
        source.cells.iter().for_each(|cells| touched.want_cells(cells.clone()));
        source.memory.iter().for_each(|bytes| touched.want_memory(bytes.clone()));
        let mut spread = Spread {
            units: &self.units,
            forward: Forward::new(Dependences { thin: options.thin }),
            control: !options.data && !options.thin,
            start: source.position,
            touched,
            deciding: FxHashSet::default(),
            put_aside: FxHashSet::default(),
            stored: FxHashMap::default(),
            slice: Slice::default(),
        };
        let concerned = |index: &usize| {
            let next = self.chunks.get(index + 1);
            !next.is_some_and(|next| next.before.position <= source.position)
        };
        let chunks: Vec<usize> = (0..self.chunks.len()).filter(concerned).collect();
        self.each_chunk(&chunks, |events| spread.over(events))?;
        let Spread { mut slice, put_aside, .. } = spread;
        slice.instructions.retain(|(position, _)| !put_aside.contains(position));
        slice.instructions.reverse();
        Ok(slice)
    }
}

/// The instructions that a value spreads to.
struct Spread<'a> {
    units: &'a [Unit],
    forward: Forward,
    control: bool,
    start: Position,
    touched: Wanted,
    /// Branches and calls of the slice.
    deciding: FxHashSet<Position>,
    /// What only put a register aside for one that brought it back.
    put_aside: FxHashSet<Position>,
    /// What was touched of registers that were stored and might be brought back.
    stored: FxHashMap<Position, Vec<Cell>>,
    slice: Slice,
}

impl Spread<'_> {
    fn over(&mut self, events: &Events) {
        self.slice.passed_over.extend(&events.passed_over);
        for event in &events.all {
            match event {
                Event::Wrote(wrote) => {
                    if wrote.at > self.start {
                        self.touched.take_any(wrote.bytes.clone());
                    }
                }
                Event::Executed(executed) => {
                    let UnitExecuted { unit, thread, position, count, .. } = executed;
                    self.touched.turn_to(*thread);
                    let unit = &self.units[*unit];
                    for index in 0..*count {
                        let position = position + index as Position;
                        let insn = &unit.instructions[index];
                        if position >= self.start
                            && let Some(operands) = events.operands(executed, index)
                        {
                            let restored = events.restored(insn, position);
                            let decided = events.decided(executed, index);
                            self.over_instruction(insn, position, decided, operands, restored);
                        }
                    }
                }
            }
        }
    }

    fn over_instruction(
        &mut self,
        insn: &Known,
        position: Position,
        decided: Option<Position>,
        operands: &[Range<u64>],
        restored: Option<&Restored>,
    ) {
        let decided = decided.is_some_and(|decided| self.deciding.contains(&decided));
        let executed = backward::Executed { effects: &insn.effects, operands };
        let decides = self.forward.decides(executed, &self.touched);
        if let Some(restored) = restored {
            // What was put aside comes back as it was, whoever had it brought back.
            self.forward.over(executed, decided, &mut self.touched);
            self.touched.take_wanted(restored.kept.cells());
            for cell in self.stored.get(&restored.saved).into_iter().flatten() {
                self.touched.want_cells(*cell..cell + 1);
            }
            self.put_aside.insert(restored.saved);
            return;
        }
        if let Some((kept, _)) = insn.keeping.stores {
            let touched: Vec<Cell> =
                kept.cells().filter(|cell| self.touched.has_cells(*cell..cell + 1)).collect();
            if !touched.is_empty() {
                self.stored.insert(position, touched);
            }
        }
        let touched = self.forward.over(executed, decided, &mut self.touched);
        if touched || decides || decided {
            self.slice.instructions.push((position, insn.address));
            if self.control && insn.turn != Turn::None {
                self.deciding.insert(position);
            }
        }
    }
}
