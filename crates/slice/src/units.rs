//! What has to be known of a unit, found once for all of its records.

use crate::saves::Keeping;
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory};
use std::sync::Arc;
use why_effects::{Effects, effects};
use why_trace::plan::Plan;
use why_trace::shape::Shape;

/// Where the ways from a branch meet again.
pub trait Ways {
    /// For the branch at an address; none if they meet at the function's end, or nobody knows.
    fn meet(&self, branch: u64) -> Option<u64>;
}

pub struct Unit {
    pub instructions: Vec<Known>,
    pub plan: Plan,
    /// Where the accesses of each instruction begin among those of the plan.
    pub first_access: Vec<usize>,
}

pub struct Known {
    pub address: u64,
    pub effects: Effects,
    pub turn: Turn,
    pub keeping: Keeping,
}

/// What an instruction means for what is executed next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    None,
    Branch { meet: Option<u64> },
    Call,
}

impl Unit {
    pub fn of(shape: &Arc<Shape>, ways: &dyn Ways, factory: &mut InstructionInfoFactory) -> Unit {
        let plan = Plan::of(shape, factory);
        let known = |insn: &Instruction| {
            let effects = effects(insn, factory);
            let (turn, keeping) = (turn(insn, ways), Keeping::of(&effects));
            Known { address: insn.ip(), effects, turn, keeping }
        };
        let instructions: Vec<Known> = shape.instructions.iter().map(known).collect();
        let accesses = &plan.accesses;
        let first = |index: usize| {
            accesses.partition_point(|access| usize::from(access.instruction) < index)
        };
        let first_access = (0..=instructions.len()).map(first).collect();
        Unit { instructions, plan, first_access }
    }
}

fn turn(insn: &Instruction, ways: &dyn Ways) -> Turn {
    match insn.flow_control() {
        FlowControl::ConditionalBranch | FlowControl::IndirectBranch => {
            Turn::Branch { meet: ways.meet(insn.ip()) }
        }
        FlowControl::IndirectCall => Turn::Call,
        FlowControl::Call if insn.is_call_near() => Turn::Call,
        _ => Turn::None,
    }
}
