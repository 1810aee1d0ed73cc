//! Registers that a function puts aside and brings back.
//!
//! A function that uses a register of its caller's stores it first and loads it again before
//! it returns. What the caller had in it does not depend on the function, and without
//! knowing these pairs it would. A store and a load are a pair if both are of one call, the
//! register had its caller's value when it was stored, and nobody has written there since.

use crate::control::Position;
use crate::wanted::GROUP;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use why_effects::{Cell, Effects, Place, cells};

/// The registers that functions have to bring back: RBX, RBP and R12 to R15.
const KEPT: [u8; 6] = [3, 5, 12, 13, 14, 15];

/// How many bytes each has.
pub const KEPT_SIZE: u16 = 8;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept(u8);

impl Kept {
    pub fn number(self) -> u8 {
        self.0
    }

    /// The one with a number that it has.
    pub fn numbered(number: u8) -> Kept {
        Kept(number)
    }

    pub fn cells(self) -> Range<Cell> {
        cells::of_general(KEPT[usize::from(self.0)])
    }

    /// The group of its cells.
    pub fn group(self) -> usize {
        usize::from(self.cells().start) / GROUP
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
    pub changes: Changed,
    /// The operands that it writes to.
    pub writes: Vec<usize>,
}

/// Which of the registers a function has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed(u8);

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

    /// Whether it stores or loads one of them.
    pub fn moves(&self) -> bool {
        self.stores.is_some() || self.loads.is_some()
    }
}

/// A register that was put aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    kept: Kept,
    at: u64,
    position: Position,
    /// Nobody has written there since.
    is_valid: bool,
}

/// What a thread has put aside: what the last call did is last.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Slots(Vec<Slot>);

impl Slots {
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The last calls are over: only the first slots are left.
    pub fn truncate(&mut self, count: usize, filter: &mut Filter) {
        let over = self.0.drain(count.min(self.0.len())..);
        over.filter(|slot| slot.is_valid).for_each(|slot| filter.remove(slot.at));
    }

    /// Makes a filter know them.
    pub fn add_to(&self, filter: &mut Filter) {
        self.0.iter().filter(|slot| slot.is_valid).for_each(|slot| filter.add(slot.at));
    }

    /// Somebody has written to memory.
    #[cold]
    pub fn forget(&mut self, bytes: &Range<u64>, filter: &mut Filter) {
        let size = bytes.end.wrapping_sub(bytes.start);
        for slot in self.0.iter_mut().filter(|slot| slot.is_valid) {
            if slot.at.wrapping_add(7).wrapping_sub(bytes.start) < size.saturating_add(7) {
                slot.is_valid = false;
                filter.remove(slot.at);
            }
        }
    }

    /// A function whose slots begin there loads a register: where it was put aside, if it was.
    pub fn load(&self, first: usize, kept: Kept, at: u64) -> Option<Position> {
        let own = self.0.get(first..).unwrap_or_default().iter().rev();
        let mut pairs = own.filter(|slot| slot.is_valid && slot.kept == kept && slot.at == at);
        pairs.next().map(|slot| slot.position)
    }

    /// A function whose slots begin there puts a register aside.
    pub fn store(
        &mut self,
        first: usize,
        (kept, at): (Kept, u64),
        position: Position,
        filter: &mut Filter,
    ) {
        // A function that does so again and again needs no more room each time.
        while self.0.len() > first && self.0.last().is_some_and(|slot| !slot.is_valid) {
            self.0.pop();
        }
        filter.add(at);
        self.0.push(Slot { kept, at, position, is_valid: true });
    }
}

impl Changed {
    /// One alone.
    pub fn of(kept: Kept) -> Changed {
        Changed(kept.bit())
    }

    /// Whether a register still has its caller's value.
    pub fn leaves(self, kept: Kept) -> bool {
        self.0 & kept.bit() == 0
    }

    /// An instruction changes some of them.
    pub fn change(&mut self, changes: Changed) {
        self.0 |= changes.0;
    }

    /// One has its caller's value again.
    pub fn bring_back(&mut self, kept: Kept) {
        self.0 &= !kept.bit();
    }

    pub fn is_nothing(self) -> bool {
        self.0 == 0
    }
}

/// Which parts of memory hold anything: eight bytes each, and many share a count. Empty as long
/// as there is nothing.
#[derive(Clone, Debug, Default)]
pub struct Filter(Vec<u8>);

const FILTERED: usize = 1 << 16;

impl Filter {
    /// Those of a register.
    fn counts(at: u64) -> [usize; 2] {
        [at >> 3, at.wrapping_add(7) >> 3].map(|part| part as usize % FILTERED)
    }

    pub fn add(&mut self, at: u64) {
        if self.0.is_empty() {
            self.0.resize(FILTERED, 0);
        }
        for index in Filter::counts(at) {
            // One that is full stays so.
            self.0[index] = self.0[index].saturating_add(1);
        }
    }

    fn remove(&mut self, at: u64) {
        for index in Filter::counts(at) {
            if self.0[index] < u8::MAX {
                self.0[index] -= 1;
            }
        }
    }

    /// Whether anything may be held in some bytes.
    #[inline]
    pub fn may_hold(&self, bytes: &Range<u64>) -> bool {
        let (first, size) = (bytes.start >> 3, bytes.end.wrapping_sub(bytes.start));
        if size == 0 || self.0.is_empty() {
            return false;
        }
        let parts = (bytes.start % 8 + size).div_ceil(8);
        parts >= FILTERED as u64
            || (0..parts).any(|part| self.0[first.wrapping_add(part) as usize % FILTERED] > 0)
    }

    /// The same for bytes that are hardly ever many.
    #[inline]
    pub fn may_hold_few(&self, start: u64, size: u16) -> bool {
        let Ok(counts) = <&[u8; FILTERED]>::try_from(self.0.as_slice()) else { return false };
        match size {
            1..=8 => {
                let last = start.wrapping_add(u64::from(size) - 1);
                let count = |part: u64| counts[part as usize % FILTERED];
                count(start >> 3) | count(last >> 3) > 0
            }
            _ => self.may_hold(&(start..start.wrapping_add(size.into()))),
        }
    }
}
