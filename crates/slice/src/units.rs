//! What has to be known of a unit, found once for all of its records.

use crate::saves::{Changed, Keeping};
use crate::wanted::Groups;
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory};
use serde::{Deserialize, Serialize};
use why_effects::{Effects, Place, effects};
use why_trace::plan::Plan;
use why_trace::shape::Shape;

/// Where the ways from a branch meet again.
pub trait Ways {
    /// For the branch at an address; none if they meet at the function's end, or nobody knows.
    fn meet(&self, branch: u64) -> Option<u64>;

    /// Whether the ways from some branch may meet at an address.
    fn may_meet(&self, _address: u64) -> bool {
        true
    }

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
    /// What the course of a run depends on, in order.
    pub steps: Vec<Step>,
    /// What its instructions define, and which accesses they write to.
    pub defines: Groups,
    pub writes: Vec<usize>,
}

pub struct Known {
    pub address: u64,
    pub effects: Effects,
    pub turn: Turn,
    pub keeping: Keeping,
    pub shown: bool,
    pub defines: Groups,
    /// Where its operands are is not all planned.
    pub is_unplanned: bool,
}

impl Known {
    /// Whether it decides what is done, but not what is executed next.
    pub fn is_system_call(&self) -> bool {
        self.turn == Turn::None && !self.effects.decides.is_empty()
    }
}

/// What an instruction means for what is executed next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Turn {
    None,
    Branch { meet: Option<u64> },
    Call,
}

/// Something that happens at an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub index: usize,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Before it the stack pointer may have come back to where it was before a call.
    Unwind,
    /// The ways from a branch may meet there.
    Meet,
    /// It may put a register aside or bring it back.
    Keep,
    /// It writes to memory: which access of the plan.
    Write {
        access: usize,
    },
    /// It changes registers that have to be brought back.
    Change(Changed),
    /// It is a branch.
    Branch { meet: Option<u64> },
    /// It is a call, behind which that is executed.
    Call { back: u64 },
}

/// What was found out about the instructions of a unit when it was executed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Surroundings(Vec<Surrounding>);

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Surrounding {
    turn: Turn,
    shown: bool,
    may_meet: bool,
}

impl Surroundings {
    pub fn of(shape: &Shape, ways: &dyn Ways) -> Surroundings {
        let found = |insn: &Instruction| Surrounding {
            turn: turn(insn, ways),
            shown: ways.is_shown(insn.ip()),
            may_meet: ways.may_meet(insn.ip()),
        };
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
        let accesses = &plan.accesses;
        let first = |index: usize| {
            accesses.partition_point(|access| usize::from(access.instruction) < index)
        };
        let first_access: Vec<usize> = (0..=shape.instructions.len()).map(first).collect();
        let (mut instructions, mut steps): (Vec<Known>, Vec<Step>) = (Vec::new(), Vec::new());
        let mut writes = Vec::new();
        for (index, (insn, surrounding)) in
            shape.instructions.iter().zip(&surroundings.0).enumerate()
        {
            let Surrounding { turn, shown, may_meet } = *surrounding;
            let effects = effects(insn, factory);
            let keeping = Keeping::of(&effects);
            let operands = first_access[index]..first_access[index + 1];
            let is_unplanned = operands.len() != effects.operands.len();
            let mut step = |what| steps.push(Step { index, what });
            if index > 0 && plan.may_raise_stack(index) {
                step(What::Unwind);
            }
            if may_meet {
                step(What::Meet);
            }
            if is_unplanned {
                // What it did is not known.
            } else if keeping.moves() {
                step(What::Keep);
            } else {
                for operand in &keeping.writes {
                    step(What::Write { access: operands.start + operand });
                }
                if !keeping.changes.is_nothing() {
                    step(What::Change(keeping.changes));
                }
            }
            if !is_unplanned {
                writes.extend(keeping.writes.iter().map(|operand| operands.start + operand));
            }
            match turn {
                Turn::None => {}
                Turn::Branch { meet } => step(What::Branch { meet }),
                Turn::Call => step(What::Call { back: insn.next_ip() }),
            }
            let defines = defines(&effects);
            let address = insn.ip();
            let known = Known { address, effects, turn, keeping, shown, defines, is_unplanned };
            instructions.push(known);
        }
        let all = instructions.iter().map(|known| known.defines);
        let defines = all.fold(Groups::default(), Groups::and);
        Unit { instructions, plan, first_access, steps, defines, writes }
    }
}

fn defines(effects: &Effects) -> Groups {
    let cells = effects.parts.iter().filter_map(|part| match &part.to {
        Place::Cells(cells) => Some(Groups::of(cells.clone())),
        _ => None,
    });
    cells.fold(Groups::default(), Groups::and)
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
