//! One instruction backwards.

use crate::memory::bits;
use crate::partly::Share;
use crate::wanted::{Role, Taken, Wanted, Wanter};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use why_effects::{Cell, Effects, Part, Place};

/// What counts as a dependence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependences {
    /// What selected the address of a value does not.
    pub thin: bool,
}

/// Goes back over an instruction.
#[derive(Default)]
pub struct Backward {
    pub dependences: Dependences,
    taken: Vec<Taken>,
}

/// An instruction that was executed.
#[derive(Clone, Copy)]
pub struct Executed<'a> {
    pub effects: &'a Effects,
    /// Where its operands were in memory.
    pub operands: &'a [Range<u64>],
}

/// Something that an instruction has made, from the first byte of it that was wanted on.
pub(crate) struct Made {
    pub area: Area,
}

impl Made {
    /// Who wanted it.
    pub(crate) fn wanter(&self, wanted: &Wanted) -> Wanter {
        match &self.area {
            Area::Cells(cells) => wanted.who_wanted_cell(cells.start),
            Area::Memory(bytes) => wanted.who_wanted_memory(bytes.start),
        }
    }
}

/// Bytes of registers or of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Area {
    Cells(Range<Cell>),
    Memory(Range<u64>),
}

impl Area {
    /// Without so many bytes in front.
    pub(crate) fn without_first(self, first: u64) -> Area {
        match self {
            Area::Cells(cells) => Area::Cells(cells.start + first as Cell..cells.end),
            Area::Memory(bytes) => Area::Memory(bytes.start.wrapping_add(first)..bytes.end),
        }
    }
}

impl Area {
    pub(crate) fn overlaps(&self, other: &Area) -> bool {
        match (self, other) {
            (Area::Cells(one), Area::Cells(other)) => {
                one.start < other.end && other.start < one.end
            }
            (Area::Memory(one), Area::Memory(other)) => {
                one.start < other.end && other.start < one.end
            }
            _ => false,
        }
    }
}

impl Backward {
    pub fn new(dependences: Dependences) -> Backward {
        Backward { dependences, taken: Vec::new() }
    }

    /// Whether the instruction has made something that is wanted; what it made that of is
    /// wanted then instead.
    pub fn over(&mut self, executed: Executed<'_>, wanted: &mut Wanted) -> bool {
        let made = self.take(executed, wanted);
        if made.is_some() {
            self.want_sources(executed, wanted);
        }
        made.is_some()
    }

    /// What the instruction has made that is wanted: it is so no more.
    pub(crate) fn take(&mut self, executed: Executed<'_>, wanted: &mut Wanted) -> Option<Made> {
        let parts = &executed.effects.parts;
        if self.taken.len() < parts.len() {
            self.taken.resize_with(parts.len(), Taken::default);
        }
        // All parts are computed from what was there before any of them.
        for (part, taken) in parts.iter().zip(&mut self.taken) {
            executed.take(&part.to, wanted, taken);
        }
        self.made(executed)
    }

    /// Of that, only what depends on a source. The rest is wanted no more, either.
    pub(crate) fn keep(&mut self, executed: Executed<'_>, share: &Share) -> Option<Made> {
        let parts = executed.effects.parts.iter().zip(&mut self.taken);
        match share {
            Share::Shape(shape) => {
                for ((_, taken), mask) in parts.zip(shape.parts()) {
                    taken.retain(|byte| mask >> byte & 1 == 1);
                }
            }
            Share::Other(depending) => {
                for (part, taken) in parts {
                    let area = executed.part(&part.to, None);
                    taken.retain(|byte| depending.has(&area, byte));
                }
            }
        }
        self.made(executed)
    }

    /// What was taken first of all.
    fn made(&self, executed: Executed<'_>) -> Option<Made> {
        let mut found = executed.effects.parts.iter().zip(&self.taken);
        let (part, taken) = found.find(|(part, taken)| !taken.is_empty() && !part.frame)?;
        Some(Made { area: executed.part(&part.to, None).without_first(taken.bytes().next()?) })
    }

    /// Wants what that was made of.
    pub(crate) fn want_sources(&mut self, executed: Executed<'_>, wanted: &mut Wanted) {
        for (part, taken) in executed.effects.parts.iter().zip(&self.taken) {
            if !taken.is_empty() && !part.frame {
                executed.want_sources(part, taken, wanted, self.dependences);
            }
        }
    }

    /// The instruction belongs to the slice because of where it led: what decided that is
    /// wanted.
    pub fn over_decision(&mut self, executed: Executed<'_>, wanted: &mut Wanted) {
        for place in &executed.effects.decides {
            wanted.turn_to_role(Role::Condition);
            executed.want(place, None, wanted);
            executed.want_address(place, wanted, self.dependences);
        }
    }
}

/// The bits of all lanes of so many bytes of which one has a bit.
pub(crate) fn whole_lanes(mask: u64, width: u32) -> u64 {
    if width == 1 || mask == 0 {
        return mask;
    }
    let lanes = (0..64).step_by(width as usize).map(|first| bits(width) << first);
    lanes.filter(|lane| mask & lane != 0).fold(0, |all, lane| all | lane)
}

impl Executed<'_> {
    fn take(&self, place: &Place, wanted: &mut Wanted, taken: &mut Taken) {
        match place {
            Place::Cells(cells) => wanted.take_cells(cells.clone(), taken),
            _ => wanted.take_memory(self.memory(place), taken),
        }
    }

    fn want_sources(
        &self,
        part: &Part,
        taken: &Taken,
        wanted: &mut Wanted,
        dependences: Dependences,
    ) {
        wanted.turn_to_role(Role::Value);
        let width = u64::from(part.width);
        part.lanes.iter().filter(|place| self.overlap(&part.to, place)).for_each(|place| {
            self.want(place, None, wanted);
        });
        if let Some(mask) = taken.mask() {
            let mask = whole_lanes(mask, part.width);
            part.lanes.iter().for_each(|place| self.want_some(place, mask, wanted));
        } else {
            let mut last = None;
            for lane in taken.bytes().map(|byte| byte / width) {
                // Bytes of the same lane come one behind the other.
                if last.replace(lane) != Some(lane) {
                    let bytes = lane * width..(lane + 1) * width;
                    part.lanes.iter().for_each(|place| self.want(place, Some(&bytes), wanted));
                }
            }
        }
        part.whole.iter().for_each(|place| self.want(place, None, wanted));
        let places = [&part.to].into_iter().chain(&part.lanes).chain(&part.whole);
        places.for_each(|place| self.want_address(place, wanted, dependences));
    }

    /// Whether a string is copied to where a part of it is, so that what is copied may have
    /// been written by the same instruction.
    pub(crate) fn overlap(&self, to: &Place, from: &Place) -> bool {
        let (Place::String { .. }, Place::String { .. }) = (to, from) else {
            return false;
        };
        let (to, from) = (self.memory(to), self.memory(from));
        to != from && to.start < from.end && from.start < to.end
    }

    /// Wants what the address of a place was computed from, if it is in memory.
    fn want_address(&self, place: &Place, wanted: &mut Wanted, dependences: Dependences) {
        if !dependences.thin {
            wanted.turn_to_role(Role::Address);
            self.address(place).iter().for_each(|cells| wanted.want_cells(cells.clone()));
        }
    }

    /// What the address of a place was computed from.
    pub(crate) fn address(&self, place: &Place) -> &[Range<Cell>] {
        match place {
            Place::Memory { operand, .. } | Place::String { operand } => {
                &self.effects.operands[*operand].address
            }
            Place::Cells(_) => &[],
        }
    }

    /// Wants those bytes of a place that have a bit, as far as it has them.
    fn want_some(&self, place: &Place, mask: u64, wanted: &mut Wanted) {
        match place {
            Place::Cells(cells) => {
                let own = bits((cells.end - cells.start).into());
                wanted.want_some_cells(cells.start, mask & own);
            }
            _ => {
                let bytes = self.memory(place);
                let size = bytes.end.wrapping_sub(bytes.start).min(64);
                wanted.want_some_memory(bytes.start, mask & bits(size as u32));
            }
        }
    }

    /// Wants a place, or some bytes of it.
    fn want(&self, place: &Place, bytes: Option<&Range<u64>>, wanted: &mut Wanted) {
        match self.part(place, bytes) {
            Area::Cells(cells) => wanted.want_cells(cells),
            Area::Memory(bytes) => wanted.want_memory(bytes),
        }
    }

    /// Where a place is, or some bytes of it, as far as it has them.
    pub(crate) fn part(&self, place: &Place, bytes: Option<&Range<u64>>) -> Area {
        match place {
            Place::Cells(cells) => {
                let size = u64::from(cells.end - cells.start);
                let bytes = bytes.cloned().unwrap_or(0..size);
                let at = |byte: u64| cells.start + byte.min(size) as Cell;
                Area::Cells(at(bytes.start)..at(bytes.end))
            }
            _ => {
                let all = self.memory(place);
                let size = all.end.wrapping_sub(all.start);
                let bytes = bytes.cloned().unwrap_or(0..size);
                let at = |byte: u64| all.start.wrapping_add(byte.min(size));
                Area::Memory(at(bytes.start)..at(bytes.end))
            }
        }
    }

    /// Where a place in memory is.
    pub(crate) fn memory(&self, place: &Place) -> Range<u64> {
        match place {
            Place::Memory { operand, bytes } => {
                let start = self.operands[*operand].start;
                start.wrapping_add(bytes.start.into())..start.wrapping_add(bytes.end.into())
            }
            Place::String { operand } => self.operands[*operand].clone(),
            Place::Cells(_) => 0..0,
        }
    }
}
