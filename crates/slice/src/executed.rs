//! Which code was executed at all.

use crate::events::Happened;
use crate::region::{Region, RegionError};
use iced_x86::OpKind;
use rustc_hash::FxHashMap;

impl Region {
    /// The addresses of all instructions that were executed; one that several units have is told
    /// for each.
    pub fn executed(&self) -> Result<Vec<u64>, RegionError> {
        // A unit is executed from its first instruction on.
        let mut executed: FxHashMap<*const _, usize> = FxHashMap::default();
        let chunks: Vec<usize> = (0..self.chunks.len()).collect();
        self.each_chunk(&chunks, |events, book| {
            events.forwards(&self.units, book, |happened| {
                if let Happened::Executed(record) = happened {
                    let most = executed.entry(std::ptr::from_ref(record.unit)).or_default();
                    *most = record.count.max(*most);
                }
            });
            Ok(())
        })?;
        let instructions = self.units.iter().flat_map(|unit| {
            let count = executed.get(&std::ptr::from_ref(unit)).copied().unwrap_or(0);
            &unit.instructions[..count]
        });
        Ok(instructions.map(|insn| insn.address).collect())
    }

    /// The jumps of code that is shown, as far as it was executed, each with where it may lead, if the
    /// instruction says that.
    pub fn jumps(&self) -> impl Iterator<Item = (u64, u64)> {
        let all = self.units.iter().flat_map(|unit| &unit.instructions);
        let jumps = all.filter_map(|known| Some((known.jumps_from()?, &known.insn)));
        let direct = jumps.filter(|(_, insn)| insn.op0_kind() == OpKind::NearBranch64);
        direct.map(|(from, insn)| (from, insn.near_branch_target()))
    }
}
