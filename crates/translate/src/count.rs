//! Where a unit adds to the count of executed instructions.
//!
//! A plain addition to memory overwrites the flags, so it is put just before an
//! instruction that overwrites them, too, and cannot fault: then no state that the
//! application could see is ever wrong. Each way out of the unit should find that all
//! instructions up to it have been counted, because else it must correct the count on
//! the way, at several times the cost.

use crate::scan::{Flow, Scanned, frees_flags};

/// So many instructions are added before one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addition {
    pub before: usize,
    pub instructions: u32,
    /// The flags may be overwritten there.
    pub flags_free: bool,
}

pub fn plan(scanned: &[Scanned]) -> Vec<Addition> {
    let mut additions: Vec<Addition> = Vec::new();
    let (mut start, mut counted) = (0, 0);
    for (index, insn) in scanned.iter().enumerate() {
        let last = index + 1 == scanned.len();
        if !last && !may_leave(insn.flow) {
            continue;
        }
        let place = (start..=index).rev().find(|&i| frees_flags(&scanned[i].insn));
        if let Some(before) = place {
            let instructions = (index + 1 - counted) as u32;
            additions.push(Addition { before, instructions, flags_free: true });
            counted = index + 1;
        }
        start = index + 1;
    }
    let rest = (scanned.len() - counted) as u32;
    if rest > 0 {
        // Behind the last branch there is no free place. The first instruction there
        // pays for the rest.
        let before = last_segment(scanned);
        additions.push(Addition { before, instructions: rest, flags_free: false });
    }
    additions
}

/// A call that goes wrong is rare; what it costs then does not matter.
fn may_leave(flow: Flow) -> bool {
    matches!(flow, Flow::Conditional(..) | Flow::Counted(_))
}

/// The first instruction behind the last branch that does not end the unit.
fn last_segment(scanned: &[Scanned]) -> usize {
    let body = &scanned[..scanned.len() - 1];
    body.iter().rposition(|s| may_leave(s.flow)).map_or(0, |branch| branch + 1)
}
