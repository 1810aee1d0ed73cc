//! Registers that a function puts aside and brings back.
//!
//! A function that uses a register of its caller's stores it first and loads it again before
//! it returns. What the caller had in it does not depend on the function, and without
//! knowing these pairs it would. A store and a load are a pair if both are of one call, the
//! register had its caller's value when it was stored, and nobody has written there since.

use crate::control::Position;
use iced_x86::Register;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
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
    changes: Changed,
    /// The operands that it writes to.
    pub writes: Vec<usize>,
}

/// Which of the registers a function has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed(u8);

impl Changed {
    /// Nobody knows what the function had done that runs when the trace begins.
    pub const UNKNOWN: Changed = Changed(u8::MAX);

    pub fn and(self, other: Changed) -> Changed {
        Changed(self.0 | other.0)
    }
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
                    let bits = all.filter(overlaps).fold(0, |bits, kept| bits | kept.bit());
                    keeping.changes.0 |= bits;
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

/// The number of a call among all.
pub type Activation = u64;

/// What has been put aside, by all threads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Saves {
    /// By address.
    saved: FxHashMap<u64, Saved>,
    /// How many of them there are in a part of memory: most writes are where none is.
    #[serde(skip)]
    filter: Filter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Saved {
    kept: Kept,
    position: Position,
    activation: Activation,
}

/// A function that runs.
pub struct Running<'a> {
    pub activation: Activation,
    pub changed: &'a mut Changed,
}

impl Saves {
    /// What was opened has no filter yet.
    pub fn prepare(&mut self) {
        self.filter = Filter::default();
        self.saved.keys().for_each(|at| self.filter.add(*at));
    }

    /// Calls that are over will bring nothing back.
    pub fn retain(&mut self, mut goes_on: impl FnMut(Activation) -> bool) {
        self.saved.retain(|_, saved| goes_on(saved.activation));
        self.prepare();
    }

    /// Somebody has written to memory.
    #[inline]
    pub fn wrote(&mut self, bytes: Range<u64>) {
        if self.filter.may_hold(&bytes) {
            self.forget(bytes);
        }
    }

    #[cold]
    fn forget(&mut self, bytes: Range<u64>) {
        let size = bytes.end.wrapping_sub(bytes.start);
        if size < 64 {
            let first = bytes.start.wrapping_sub(7);
            for at in (0..size + 7).map(|byte| first.wrapping_add(byte)) {
                if self.saved.remove(&at).is_some() {
                    self.filter.remove(at);
                }
            }
        } else {
            let filter = &mut self.filter;
            self.saved.retain(|at, _| {
                let overlaps = at.wrapping_add(7).wrapping_sub(bytes.start) < size + 7;
                if overlaps {
                    filter.remove(*at);
                }
                !overlaps
            });
        }
    }

    /// An instruction is executed, with its operands there. Where a register was put aside
    /// that it brings back.
    pub fn executed(
        &mut self,
        keeping: &Keeping,
        operand: impl Fn(usize) -> Range<u64>,
        position: Position,
        running: Running<'_>,
    ) -> Option<(Kept, Position)> {
        let Running { activation, changed } = running;
        let saved = keeping.loads.and_then(|(kept, index)| {
            let saved = self.saved.get(&operand(index).start)?;
            let is_pair = saved.kept == kept && saved.activation == activation;
            is_pair.then_some((kept, saved.position))
        });
        for index in &keeping.writes {
            self.wrote(operand(*index));
        }
        if let Some((kept, index)) = keeping.stores
            && changed.0 & kept.bit() == 0
        {
            let at = operand(index).start;
            if self.saved.insert(at, Saved { kept, position, activation }).is_none() {
                self.filter.add(at);
            }
        }
        let brought_back = saved.map_or(0, |(kept, _)| kept.bit());
        if *changed != Changed::UNKNOWN {
            changed.0 = (changed.0 | keeping.changes.0) & !brought_back;
        }
        saved
    }
}

/// Which parts of memory hold anything: eight bytes each, and many share a count. Empty as long
/// as there is nothing.
#[derive(Clone, Debug, Default)]
struct Filter(Vec<u16>);

const FILTERED: usize = 8192;

impl Filter {
    /// Those of a register.
    fn counts(at: u64) -> [usize; 2] {
        [at >> 3, at.wrapping_add(7) >> 3].map(|part| part as usize % FILTERED)
    }

    fn add(&mut self, at: u64) {
        self.0.resize(FILTERED, 0);
        for index in Filter::counts(at) {
            // One that is full stays so.
            self.0[index] = self.0[index].saturating_add(1);
        }
    }

    fn remove(&mut self, at: u64) {
        for index in Filter::counts(at) {
            if self.0[index] < u16::MAX {
                self.0[index] -= 1;
            }
        }
    }

    #[inline]
    fn may_hold(&self, bytes: &Range<u64>) -> bool {
        let (first, size) = (bytes.start >> 3, bytes.end.wrapping_sub(bytes.start));
        if size == 0 || self.0.is_empty() {
            return false;
        }
        let parts = (bytes.start % 8 + size).div_ceil(8);
        parts >= FILTERED as u64
            || (0..parts).any(|part| self.0[first.wrapping_add(part) as usize % FILTERED] > 0)
    }
}
