//! Registers that a function puts aside and brings back.
//!
//! A function that uses a register of its caller's stores it first and loads it again before
//! it returns. What the caller had in it does not depend on the function, and without
//! knowing these pairs it would. A store and a load are a pair if both are of one call, the
//! register had its caller's value when it was stored, and nobody has written there since.

use crate::control::Position;
use iced_x86::Register;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use why_effects::{Cell, Effects, Place, cells};

/// The registers that functions have to bring back.
const KEPT: [Register; 6] =
    [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept(u8);

impl Kept {
    pub fn cells(self) -> Range<Cell> {
        cells::of(KEPT[usize::from(self.0)]).expect("a general register")
    }

    fn of(place: &Place) -> Option<Kept> {
        let all = (0..KEPT.len() as u8).map(Kept);
        all.into_iter().find(|kept| *place == Place::Cells(kept.cells()))
    }

    fn bit(self) -> u8 {
        1 << self.0
    }
}

/// What an instruction does with registers that have to be brought back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keeping {
    /// A register that it stores as it is, and in which operand.
    pub stores: Option<(Kept, usize)>,
    /// One that it loads.
    pub loads: Option<(Kept, usize)>,
    /// Those that it changes.
    changes: u8,
    /// The operands that it writes to.
    pub writes: Vec<usize>,
}

impl Keeping {
    pub fn of(effects: &Effects) -> Keeping {
        let mut keeping = Keeping::default();
        for part in &effects.parts {
            let only = match part.lanes.as_slice() {
                [only] if part.whole.is_empty() && part.width == 1 => Some(only),
                _ => None,
            };
            match &part.to {
                Place::Memory { operand, .. } | Place::String { operand } => {
                    keeping.writes.push(*operand);
                    let stored = only.and_then(Kept::of);
                    keeping.stores = stored.map(|kept| (kept, *operand)).or(keeping.stores);
                }
                Place::Cells(changed) => {
                    let overlaps = |kept: &Kept| {
                        let cells = kept.cells();
                        changed.start < cells.end && cells.start < changed.end
                    };
                    let all = (0..KEPT.len() as u8).map(Kept);
                    keeping.changes |= all.filter(overlaps).fold(0, |bits, kept| bits | kept.bit());
                    if let (Some(kept), Some(Place::Memory { operand, .. })) =
                        (Kept::of(&part.to), only)
                    {
                        keeping.loads = Some((kept, *operand));
                    }
                }
            }
        }
        keeping
    }

    pub fn is_nothing(&self) -> bool {
        *self == Keeping::default()
    }
}

/// What a thread has put aside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saves {
    /// By address.
    saved: BTreeMap<u64, Saved>,
    /// For each call that is not over the registers that it has changed.
    changed: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Saved {
    kept: Kept,
    position: Position,
    calls: usize,
}

impl Saves {
    /// So many calls are not over, and the stack pointer is there.
    pub fn calls(&mut self, calls: usize, stack: u64) {
        if calls < self.changed.len() {
            self.saved = self.saved.split_off(&stack);
        }
        self.changed.resize(calls, 0);
    }

    /// Somebody has written to memory.
    pub fn wrote(&mut self, bytes: &Range<u64>) {
        let first = bytes.start.saturating_sub(7);
        while let Some((&at, _)) = self.saved.range(first..bytes.end).next() {
            self.saved.remove(&at);
        }
    }

    /// An instruction is executed, with its operands there. Where a register was put aside
    /// that it brings back.
    pub fn executed(
        &mut self,
        keeping: &Keeping,
        operands: &[Range<u64>],
        position: Position,
    ) -> Option<(Kept, Position)> {
        let calls = self.changed.len();
        // Nobody knows what the function had done that runs when the trace begins.
        let before = self.changed.last().copied().unwrap_or(u8::MAX);
        let saved = keeping.loads.and_then(|(kept, operand)| {
            let saved = self.saved.get(&operands[operand].start)?;
            (saved.kept == kept && saved.calls == calls).then_some((kept, saved.position))
        });
        for operand in &keeping.writes {
            self.wrote(&operands[*operand]);
        }
        if let Some((kept, operand)) = keeping.stores
            && before & kept.bit() == 0
        {
            self.saved.insert(operands[operand].start, Saved { kept, position, calls });
        }
        let brought_back = saved.map_or(0, |(kept, _)| kept.bit());
        if let Some(changed) = self.changed.last_mut() {
            *changed = (*changed | keeping.changes) & !brought_back;
        }
        saved
    }
}
