//! What has to be known of a unit, found once for all of its records.

use crate::saves::Keeping;
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory};
use serde::{Deserialize, Serialize};
use why_effects::{Effects, effects};
use why_trace::plan::Plan;
use why_trace::shape::Shape;

/// Where the ways from a branch meet again.
pub trait Ways {
    /// For the branch at an address; none if they meet at the function's end, or nobody knows.
    fn meet(&self, branch: u64) -> Option<u64>;

    /// Whether the indirect jump at an address decides what comes next. The way that the linker
    /// has made to a function is part of its call.
    fn decides(&self, _jump: u64) -> bool {
        true
    }

    /// Whether the instruction at an address means something to somebody who looks at a slice.
    /// Instead of others the call is shown that led to them.
    fn is_shown(&self, _address: u64) -> bool {
        true
    }
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
    pub shown: bool,
}

/// What an instruction means for what is executed next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Turn {
    None,
    Branch { meet: Option<u64> },
    Call,
}

/// What was found out about the instructions of a unit when it was executed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Surroundings(Vec<(Turn, bool)>);

impl Surroundings {
    pub fn of(shape: &Shape, ways: &dyn Ways) -> Surroundings {
        let found = |insn: &Instruction| (turn(insn, ways), ways.is_shown(insn.ip()));
        Surroundings(shape.instructions.iter().map(found).collect())
    }
}

impl Unit {
    pub fn of(
        shape: &Shape,
        surroundings: &Surroundings,
        factory: &mut InstructionInfoFactory,
    ) -> Unit {
        let plan = Plan::of(shape, factory);
        let known = |(insn, (turn, shown)): (&Instruction, &(Turn, bool))| {
            let effects = effects(insn, factory);
            let keeping = Keeping::of(&effects);
            Known { address: insn.ip(), effects, turn: *turn, keeping, shown: *shown }
        };
        let all = shape.instructions.iter().zip(&surroundings.0);
        let instructions: Vec<Known> = all.map(known).collect();
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
        FlowControl::IndirectBranch if !ways.decides(insn.ip()) => Turn::None,
        FlowControl::ConditionalBranch | FlowControl::IndirectBranch => {
            Turn::Branch { meet: ways.meet(insn.ip()) }
        }
        FlowControl::IndirectCall => Turn::Call,
        FlowControl::Call if insn.is_call_near() => Turn::Call,
        _ => Turn::None,
    }
}
