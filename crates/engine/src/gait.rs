//! How a process runs: with units that look at the count of instructions, or with faster ones
//! that do not.
//!
//! Only where nothing but the count tells where a thread stops must units look at it. Far from
//! there a timer tells when it comes near: `replaying::gait` has one of CPU time,
//! `recording::region::gait` one of the clock's.

use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use why_translate::Tool;

/// No CPU executes more of a program's instructions in a microsecond, translated as they are.
/// (The most that was seen is 18,400.)
pub(crate) const FASTEST: u64 = 40_000;

/// The other units are worth the change for so many instructions.
pub(crate) const WORTH_IT: u64 = 1 << 30;

impl Supervisor {
    /// Whether the process runs with units that do not look.
    pub(crate) fn goes_unlooked(&mut self, tid: Tid) -> bool {
        self.space_of(tid).code.borrow().tool() == Tool::Count
    }

    pub(crate) fn use_tool(&mut self, tid: Tid, tool: Tool) -> Outcome<()> {
        let now = self.space_of(tid).code.borrow().tool();
        if now == tool {
            return Ok(());
        }
        self.report.gait_changes += 1;
        self.change_tool(tid, tool)
    }
}
