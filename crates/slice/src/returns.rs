//! When threads come back from calls.

use crate::control::Position;
use crate::events::Happened;
use crate::region::{Region, RegionError};
use crate::units::Unit;
use iced_x86::FlowControl;
use rustc_hash::FxHashMap;

/// A thread is in a call, which the instruction at an address made, at a position.
pub struct Called {
    pub call: u64,
    pub thread: u64,
    pub position: Position,
}

/// Who has not come back after so many instructions is not waited for.
const MOST: Position = 1 << 24;

impl Region {
    /// For each of some calls when its thread has come back from it, about to execute what is behind
    /// it. None if it does not before that call is made once more, as where an exception leaves it.
    pub fn returns(&self, calls: &[Called]) -> Result<Vec<Option<Position>>, RegionError> {
        let mut returns = vec![None; calls.len()];
        let behind = self.behind(calls);
        let turns = self.turns(&behind);
        let mut open: Vec<usize> =
            (0..calls.len()).filter(|number| behind.contains_key(&calls[*number].call)).collect();
        let first = |number: &usize| self.may_hold(calls[*number].position).start;
        let begin = open.iter().map(first).min().unwrap_or(self.chunks.len());
        for number in begin..self.chunks.len() {
            let begun = self.chunks[number].before.position;
            open.retain(|of| calls[*of].position + MOST > begun);
            if open.is_empty() {
                break;
            }
            if open.iter().all(|of| first(of) > number) {
                continue;
            }
            let (events, book) = self.events(number)?;
            events.forwards(&self.units, &book, |happened| {
                let Happened::Executed(record) = happened else { return };
                let Some(turns) = turns.get(&std::ptr::from_ref(record.unit)) else { return };
                for (index, address) in turns.iter().filter(|(index, _)| *index < record.count) {
                    let here = record.position + *index as Position;
                    open.retain(|of| {
                        let Called { call, thread, position } = calls[*of];
                        let is_behind = behind[&call] == *address;
                        let is_over = thread == record.thread
                            && position < here
                            && (is_behind || call == *address);
                        if is_over && is_behind {
                            returns[*of] = Some(here);
                        }
                        !is_over
                    });
                }
            });
        }
        Ok(returns)
    }

    /// What is behind each of the instructions that are calls.
    fn behind(&self, calls: &[Called]) -> FxHashMap<u64, u64> {
        let wanted: Vec<u64> = calls.iter().map(|called| called.call).collect();
        let all = self.units.iter().flat_map(|unit| &unit.instructions);
        let known = all.filter(|known| wanted.contains(&known.address));
        let calls = known.filter(|known| {
            matches!(known.insn.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
        });
        calls.map(|known| (known.address, known.insn.next_ip())).collect()
    }

    /// The units that have one of the calls or what is behind it, and where.
    fn turns(&self, behind: &FxHashMap<u64, u64>) -> FxHashMap<*const Unit, Vec<(usize, u64)>> {
        let wanted: Vec<u64> = behind.iter().flat_map(|(call, back)| [*call, *back]).collect();
        let turns = |unit: &Unit| {
            let addresses = unit.instructions.iter().map(|known| known.address).enumerate();
            let found: Vec<_> = addresses.filter(|(_, at)| wanted.contains(at)).collect();
            (!found.is_empty()).then_some((std::ptr::from_ref(unit), found))
        };
        self.units.iter().filter_map(turns).collect()
    }
}
