//! What is done again once it is known where indirect jumps led: where the ways of some functions
//! meet is another place, and so is what had decided at the beginning of each chunk.

use crate::course::{Course, Room, Sink};
use crate::region::{Region, RegionError};
use crate::units::{Known, Library, Unit, Ways};
use std::sync::Arc;
use why_trace::shape::Shape;

impl Region {
    /// Some ways are others now.
    pub(crate) fn follow_again(
        &mut self,
        ways: &dyn Ways,
        library: &mut Library,
        shapes: &[Arc<Shape>],
    ) -> Result<(), RegionError> {
        let changed = library.renew(ways);
        for (unit, shape) in self.units.iter_mut().zip(shapes) {
            if unit.instructions.iter().any(|known| changed.contains(&known.number)) {
                let renewed = |known: &Arc<Known>| library.numbered(known.number);
                let instructions = unit.instructions.iter().map(renewed).collect();
                let first_id = unit.first_id;
                *unit = Unit { first_id, ..library.unit(shape, instructions) };
            }
        }
        let (mut course, mut room) = (Course::default(), Room::default());
        for number in 0..self.chunks.len() {
            self.chunks[number].before = course.clone();
            self.follow(number, &mut course, &mut room, &mut Nobody)?;
        }
        Ok(())
    }
}

/// Nobody is told what happens.
struct Nobody;

impl Sink for Nobody {
    const DETAILS: bool = false;
}
