//! How a thread came to where it is: the branches and calls that decided it, the last one first.

use crate::control::Position;
use crate::events::{Events, Happened};
use crate::patterns::Book;
use crate::region::{Region, RegionError};
use crate::units::Unit;
use iced_x86::Instruction;
use std::ops::ControlFlow;

/// An instruction that decided that another one was executed.
pub struct Decision {
    pub position: Position,
    pub insn: Instruction,
    /// Where it led to, if that is known.
    pub to: Option<u64>,
    /// What decided over it.
    decided: Option<Position>,
}

impl Region {
    /// Goes up from where a thread is when so many instructions have been executed, about to execute
    /// the one at an address: from each decision to what decided over that, until somebody has
    /// seen enough.
    pub fn each_decision(
        &self,
        (at, thread, address): (Position, u64, u64),
        mut each: impl FnMut(&Decision) -> ControlFlow<()>,
    ) -> Result<(), RegionError> {
        let mut next = self.decided(at, thread, address)?;
        // Most are near each other.
        let mut chunk: Option<(usize, (Events, Book))> = None;
        while let Some(position) = next.take() {
            for number in self.may_hold(position) {
                if chunk.as_ref().is_none_or(|(kept, _)| *kept != number) {
                    chunk = Some((number, self.events(number)?));
                }
                let (_, happened) = chunk.as_ref().expect("it was just read");
                if let Some(decision) = self.decision(happened, position) {
                    let then = each(&decision);
                    next = decision.decided.filter(|_| then.is_continue());
                    break;
                }
            }
        }
        Ok(())
    }

    /// When the instruction at an address was executed last, and by which thread.
    pub fn last_execution(&self, address: u64) -> Result<Option<(Position, u64)>, RegionError> {
        let index = |unit: &Unit| unit.instructions.iter().position(|insn| insn.address == address);
        if self.units.iter().all(|unit| index(unit).is_none()) {
            return Ok(None);
        }
        for number in (0..self.chunks.len()).rev() {
            let ((events, book), mut last) = (self.events(number)?, None);
            events.forwards(&self.units, &book, |happened| {
                if let Happened::Executed(record) = happened
                    && let Some(index) = index(record.unit).filter(|index| *index < record.count)
                {
                    last = Some((record.position + index as Position, record.thread));
                }
            });
            if last.is_some() {
                return Ok(last);
            }
        }
        Ok(None)
    }

    /// The one at a position, if it is among these.
    fn decision(&self, (events, book): &(Events, Book), position: Position) -> Option<Decision> {
        let mut found: Option<(Decision, u64)> = None;
        events.forwards(&self.units, book, |happened| {
            let Happened::Executed(record) = happened else { return };
            let address = |index: usize| {
                record.unit.instructions[..record.count].get(index).map(|insn| insn.address)
            };
            match &mut found {
                None => {
                    let index = position.checked_sub(record.position).map(|index| index as usize);
                    found = index.filter(|index| *index < record.count).map(|index| {
                        let insn = record.unit.instructions[index].insn;
                        let (to, decided) = (address(index + 1), record.decided(index));
                        (Decision { position, insn, to, decided }, record.thread)
                    });
                }
                Some((decision, thread)) if decision.to.is_none() && *thread == record.thread => {
                    decision.to = address(0);
                }
                Some(_) => {}
            }
        });
        found.map(|(decision, _)| decision)
    }
}
