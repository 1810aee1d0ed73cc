//! One instruction forwards: what is made of something.

use crate::backward::{Area, Dependences, Executed};
use crate::wanted::{Role, Wanted as Touched, Wanter};
use std::ops::Range;
use why_effects::{Part, Place};

/// Goes over instructions in the order in which they were executed. The bytes that something
/// was made into are touched by it.
#[derive(Default)]
pub struct Forward {
    dependences: Dependences,
    /// What becomes of the places that an instruction defines.
    becomes: Vec<(Place, Range<u64>, bool)>,
}

impl Forward {
    pub fn new(dependences: Dependences) -> Forward {
        Forward { dependences, becomes: Vec::new() }
    }

    /// Finds out what the instruction makes of what is touched; where it decided that the
    /// instruction is executed at all, whatever it does. The first thing that it makes of it.
    pub fn of(&mut self, executed: Executed<'_>, decided: bool, touched: &Touched) -> Option<Area> {
        self.becomes.clear();
        for part in &executed.effects.parts {
            self.of_part(executed, part, decided, touched);
        }
        let (place, ..) = self.becomes.iter().find(|(_, _, is_touched)| *is_touched)?;
        Some(executed.part(place, None))
    }

    /// What it makes of what is touched is touched, too; what else it makes is so no more.
    pub fn spread(&mut self, executed: Executed<'_>, touched: &mut Touched) {
        for (place, bytes, is_touched) in self.becomes.drain(..) {
            executed.touch(&place, &bytes, is_touched, touched);
        }
    }

    /// Who has touched what the instruction uses, and what it uses that for.
    pub fn toucher(&self, executed: Executed<'_>, touched: &Touched) -> Option<Wanter> {
        let parts = || executed.effects.parts.iter().filter(|part| !part.frame);
        let mut values = parts().flat_map(|part| part.lanes.iter().chain(&part.whole));
        let decides = &executed.effects.decides;
        let by_value = values.find_map(|place| executed.toucher(place, touched));
        let by_condition = || {
            let found = decides.iter().find_map(|place| executed.toucher(place, touched));
            found.map(|wanter| wanter.with(Role::Condition))
        };
        let by_address = || {
            let operands = executed.effects.operands.iter().flat_map(|operand| &operand.address);
            let mut cells = operands.flat_map(|cells| cells.clone());
            let cell = cells.find(|cell| touched.has_cells(*cell..cell + 1));
            cell.map(|cell| touched.who_wanted_cell(cell).with(Role::Address))
        };
        by_value.or_else(by_condition).or_else(by_address)
    }

    /// Whether where it leads depends on what is touched.
    pub fn decides(&self, executed: Executed<'_>, touched: &Touched) -> bool {
        executed.effects.decides.iter().any(|place| {
            executed.is_touched(place, None, touched) || self.address(executed, place, touched)
        })
    }

    fn of_part(&mut self, executed: Executed<'_>, part: &Part, decided: bool, touched: &Touched) {
        let size = executed.size(&part.to);
        if part.frame {
            self.becomes.push((part.to.clone(), 0..size, false));
            return;
        }
        let mut places = [&part.to].into_iter().chain(&part.lanes).chain(&part.whole);
        let overlaps = |place: &&Place| executed.overlap(&part.to, place);
        let all = decided
            || part.lanes.iter().filter(overlaps).any(|p| executed.is_touched(p, None, touched))
            || part.whole.iter().any(|place| executed.is_touched(place, None, touched))
            || places.any(|place| self.address(executed, place, touched));
        let width = u64::from(part.width);
        for first in (0..size).step_by(width as usize) {
            let bytes = first..size.min(first + width);
            let lane = all
                || part.lanes.iter().any(|place| {
                    executed.is_touched(place, Some(&(first..first + width)), touched)
                });
            self.becomes.push((part.to.clone(), bytes, lane));
        }
    }

    fn address(&self, executed: Executed<'_>, place: &Place, touched: &Touched) -> bool {
        !self.dependences.thin
            && executed.address(place).iter().any(|cells| touched.has_cells(cells.clone()))
    }
}

impl Executed<'_> {
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

    fn size(&self, place: &Place) -> u64 {
        match place {
            Place::Cells(cells) => (cells.end - cells.start).into(),
            _ => {
                let bytes = self.memory(place);
                bytes.end.wrapping_sub(bytes.start)
            }
        }
    }

    /// Whether a place, or some bytes of it, are touched.
    fn is_touched(&self, place: &Place, bytes: Option<&Range<u64>>, touched: &Touched) -> bool {
        match self.part(place, bytes) {
            Area::Cells(cells) => touched.has_cells(cells),
            Area::Memory(bytes) => touched.has_memory(bytes),
        }
    }

    fn touch(&self, place: &Place, bytes: &Range<u64>, is_touched: bool, touched: &mut Touched) {
        match (self.part(place, Some(bytes)), is_touched) {
            (Area::Cells(cells), true) => touched.want_cells(cells),
            (Area::Cells(cells), false) => drop(touched.take_wanted(cells)),
            (Area::Memory(bytes), true) => touched.want_memory(bytes),
            (Area::Memory(bytes), false) => drop(touched.take_any(bytes)),
        }
    }
}
