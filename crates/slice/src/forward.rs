//! One instruction forwards: what is made of something.

use crate::backward::{Area, Dependences, Executed, whole_lanes};
use crate::memory::bits;
use crate::wanted::{Role, Wanted as Touched, Wanter};
use std::ops::Range;
use why_effects::{Part, Place};
use why_trace::nowhere::is_nowhere;

/// Goes over instructions in the order in which they were executed. The bytes that something
/// was made into are touched by it.
#[derive(Default)]
pub struct Forward {
    dependences: Dependences,
    /// What becomes of what an instruction defines.
    becomes: Vec<Becomes>,
}

/// Bytes that are defined, and which of them are touched then: a bit for each, or all or none of
/// many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Becomes {
    pub area: Area,
    pub touched: u64,
}

impl Forward {
    pub fn new(dependences: Dependences) -> Forward {
        Forward { dependences, becomes: Vec::new() }
    }

    /// Finds out what the instruction makes of what is touched; where it decided that the
    /// instruction is executed at all, whatever it does. The first thing that it makes of it, from
    /// the first byte on that is touched then.
    pub fn of(&mut self, executed: Executed<'_>, decided: bool, touched: &Touched) -> Option<Area> {
        self.becomes.clear();
        for part in &executed.effects.parts {
            self.of_part(executed, part, decided, touched);
        }
        let made = self.becomes.iter().find(|becomes| becomes.touched != 0)?;
        Some(made.area.clone().without_first(made.touched.trailing_zeros().into()))
    }

    /// What the instruction makes it makes of nothing.
    pub fn of_nothing(&mut self, executed: Executed<'_>) -> Option<Area> {
        self.becomes.clear();
        let areas = executed.effects.parts.iter().map(|part| executed.part(&part.to, None));
        let there =
            areas.filter(|area| !matches!(area, Area::Memory(bytes) if is_nowhere(bytes.start)));
        self.becomes.extend(there.map(|area| Becomes { area, touched: 0 }));
        None
    }

    /// What becomes of all that it makes.
    pub(crate) fn becomes(&self) -> &[Becomes] {
        &self.becomes
    }

    /// What it makes of what is touched is touched, too; what else it makes is so no more.
    pub fn spread(&mut self, touched: &mut Touched) {
        // Where two parts are at the same place, the first one is what is there then.
        for Becomes { area, touched: mask } in self.becomes.drain(..).rev() {
            match area {
                Area::Cells(cells) => {
                    touched.drop_cells(cells.clone());
                    touched.want_some_cells(cells.start, mask);
                }
                Area::Memory(bytes) if size(&bytes) <= 64 => {
                    touched.drop_memory(bytes.clone());
                    touched.want_some_memory(bytes.start, mask);
                }
                Area::Memory(bytes) => {
                    touched.drop_memory(bytes.clone());
                    if mask != 0 {
                        touched.want_memory(bytes);
                    }
                }
            }
        }
    }

    /// Whether where it leads depends on what is touched.
    pub fn decides(&self, executed: Executed<'_>, touched: &Touched) -> bool {
        executed.effects.decides.iter().any(|place| {
            executed.is_touched(place, None, touched) || self.address(executed, place, touched)
        })
    }

    fn of_part(&mut self, executed: Executed<'_>, part: &Part, decided: bool, touched: &Touched) {
        let area = executed.part(&part.to, None);
        if matches!(&area, Area::Memory(bytes) if is_nowhere(bytes.start)) {
            return;
        }
        if part.frame {
            self.becomes.push(Becomes { area, touched: 0 });
            return;
        }
        let mut places = [&part.to].into_iter().chain(&part.lanes).chain(&part.whole);
        let overlaps = |place: &&Place| executed.overlap(&part.to, place);
        let all = decided
            || part.lanes.iter().filter(overlaps).any(|p| executed.is_touched(p, None, touched))
            || part.whole.iter().any(|place| executed.is_touched(place, None, touched))
            || places.any(|place| self.address(executed, place, touched));
        let count = match &area {
            Area::Cells(cells) => u64::from(cells.end - cells.start),
            Area::Memory(bytes) => size(bytes),
        };
        if all || count <= 64 {
            let lanes =
                || part.lanes.iter().fold(0, |all, lane| all | executed.mask(lane, touched));
            let mask = if all { u64::MAX } else { whole_lanes(lanes(), part.width) };
            self.becomes.push(Becomes { area, touched: mask & all_of(count) });
            return;
        }
        let width = u64::from(part.width);
        for first in (0..count).step_by(width as usize) {
            let lane = first..first + width;
            let is_touched = |place: &Place| executed.is_touched(place, Some(&lane), touched);
            let mask = if part.lanes.iter().any(is_touched) { u64::MAX } else { 0 };
            let area = executed.part(&part.to, Some(&(first..count.min(first + width))));
            self.becomes.push(Becomes { area, touched: mask & bits(part.width) });
        }
    }

    fn address(&self, executed: Executed<'_>, place: &Place, touched: &Touched) -> bool {
        !self.dependences.thin
            && executed.address(place).iter().any(|cells| touched.has_cells(cells.clone()))
    }
}

impl Executed<'_> {
    /// Who has touched what the instruction uses, and what it uses that for.
    pub(crate) fn touched_by(&self, touched: &Touched) -> Option<Wanter> {
        let parts = || self.effects.parts.iter().filter(|part| !part.frame);
        let mut values = parts().flat_map(|part| part.lanes.iter().chain(&part.whole));
        let decides = &self.effects.decides;
        let by_value = values.find_map(|place| self.toucher(place, touched));
        let by_condition = || {
            let found = decides.iter().find_map(|place| self.toucher(place, touched));
            found.map(|wanter| wanter.with(Role::Condition))
        };
        let by_address = || {
            let operands = self.effects.operands.iter().flat_map(|operand| &operand.address);
            let mut cells = operands.flat_map(|cells| cells.clone());
            let cell = cells.find(|cell| touched.has_cells(*cell..cell + 1));
            cell.map(|cell| touched.who_wanted_cell(cell).with(Role::Address))
        };
        by_value.or_else(by_condition).or_else(by_address)
    }

    /// Who has touched something there.
    fn toucher(&self, place: &Place, touched: &Touched) -> Option<Wanter> {
        let wanter = match self.part(place, None) {
            Area::Cells(mut cells) => {
                touched.who_wanted_cell(cells.find(|cell| touched.has_cells(*cell..cell + 1))?)
            }
            Area::Memory(bytes) => {
                let size = bytes.end.wrapping_sub(bytes.start);
                let mut all = (0..size).map(|byte| bytes.start.wrapping_add(byte));
                touched.who_wanted_memory(all.find(|at| touched.has_memory(*at..at + 1))?)
            }
        };
        Some(wanter.with(Role::Value))
    }

    /// Which of the first 64 bytes of a place are touched.
    fn mask(&self, place: &Place, touched: &Touched) -> u64 {
        match self.part(place, None) {
            Area::Cells(cells) => touched.cells_mask(cells),
            Area::Memory(bytes) => touched.memory.mask(bytes.start, size(&bytes).min(64) as u32),
        }
    }

    /// Whether a place, or some bytes of it, are touched.
    fn is_touched(&self, place: &Place, bytes: Option<&Range<u64>>, touched: &Touched) -> bool {
        match self.part(place, bytes) {
            Area::Cells(cells) => touched.has_cells(cells),
            Area::Memory(bytes) => touched.has_memory(bytes),
        }
    }
}

impl Becomes {
    /// How many bytes it has.
    pub fn size(&self) -> u64 {
        match &self.area {
            Area::Cells(cells) => u64::from(cells.end - cells.start),
            Area::Memory(bytes) => size(bytes),
        }
    }

    /// Whether a byte of a register or of memory is touched, if it is one of these.
    pub fn has(&self, at: u64) -> Option<bool> {
        let start = match &self.area {
            Area::Cells(cells) => cells.start.into(),
            Area::Memory(bytes) => bytes.start,
        };
        let away = at.wrapping_sub(start);
        // Of more than there are bits for, it is all or nothing.
        let is_touched = || match self.size() {
            0..=64 => self.touched & 1 << away != 0,
            _ => self.touched != 0,
        };
        (away < self.size()).then(is_touched)
    }

    /// Makes one of this and what comes behind it in memory, if all of both is touched or nothing.
    pub fn join(&mut self, next: &Becomes) -> bool {
        let is_nothing = self.touched == 0 && next.touched == 0;
        let is_same = is_nothing || self.is_whole() && next.is_whole();
        match (&mut self.area, &next.area) {
            (Area::Memory(own), Area::Memory(next)) if is_same && own.end == next.start => {
                own.end = next.end;
            }
            _ => return false,
        }
        self.touched = if is_nothing { 0 } else { all_of(self.size()) };
        true
    }

    /// Whether all of it is touched.
    pub fn is_whole(&self) -> bool {
        self.touched == all_of(self.size())
    }
}

/// A bit for each of so many bytes, as far as there are bits.
fn all_of(size: u64) -> u64 {
    bits(size.min(64) as u32)
}

fn size(bytes: &Range<u64>) -> u64 {
    bytes.end.wrapping_sub(bytes.start)
}
