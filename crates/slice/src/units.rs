//! What has to be known of a unit, found once for all of its records.

use crate::saves::{Changed, Keeping};
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Register};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use why_effects::{Effects, Place, cells, effects};
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
    pub instructions: Vec<Arc<Known>>,
    /// The address of the first, and whether it is shown.
    pub address: u64,
    pub is_shown: bool,
    /// For each number of instructions, where the last of them is, if it is shown and jumps.
    pub jumps_from: Vec<Option<u64>>,
    pub plan: Plan,
    /// Where the accesses of each instruction begin among those of the plan.
    pub first_access: Vec<usize>,
    /// What the course of a run depends on, in order.
    pub steps: Vec<Step>,
    /// Some of the accesses are to strings.
    pub has_strings: bool,
    /// The id of a record of it without any instruction.
    pub first_id: usize,
}

/// An instruction, which many units may have.
pub struct Known {
    /// Among all.
    pub number: u32,
    pub insn: Instruction,
    pub address: u64,
    pub effects: Effects,
    pub turn: Turn,
    pub keeping: Keeping,
    pub shown: bool,
    pub may_meet: bool,
    pub moves_stack: bool,
}

/// All instructions that are known.
pub struct Library {
    pub all: Vec<Arc<Known>>,
    by_address: FxHashMap<u64, Vec<u32>>,
    factory: InstructionInfoFactory,
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
    Unwind { address: u64 },
    /// A jump from code that is shown has led to code that is not.
    Leave { from: u64 },
    /// The ways from a branch may meet there.
    Meet { address: u64 },
    /// It may put a register aside or bring it back.
    Keep,
    /// It writes to memory: which access of the plan.
    Write { access: usize },
    /// It changes registers that have to be brought back.
    Change(Changed),
    /// It is a branch.
    Branch { meet: Option<u64> },
    /// It is a call, behind which that is executed.
    Call { back: u64 },
}

/// What was found out about an instruction when it was executed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Surrounding {
    turn: Turn,
    shown: bool,
    may_meet: bool,
}

impl Surrounding {
    pub fn of(insn: &Instruction, ways: &dyn Ways) -> Surrounding {
        let (shown, may_meet) = (ways.is_shown(insn.ip()), ways.may_meet(insn.ip()));
        Surrounding { turn: turn(insn, ways), shown, may_meet }
    }
}

impl Known {
    /// Its address, if it is shown and jumps to where nothing is: that stands for a call then.
    pub fn leaves_to(&self, next: &Known) -> Option<u64> {
        self.jumps_from().filter(|_| !next.shown)
    }

    /// Its address, if it is shown and jumps.
    pub fn jumps_from(&self) -> Option<u64> {
        let jumps = matches!(
            self.insn.flow_control(),
            FlowControl::UnconditionalBranch
                | FlowControl::IndirectBranch
                | FlowControl::ConditionalBranch
        );
        (self.shown && jumps).then_some(self.address)
    }

    pub fn surrounding(&self) -> Surrounding {
        let Known { turn, shown, may_meet, .. } = *self;
        Surrounding { turn, shown, may_meet }
    }
}

impl Default for Library {
    fn default() -> Library {
        let (all, by_address) = (Vec::new(), FxHashMap::default());
        Library { all, by_address, factory: InstructionInfoFactory::new() }
    }
}

impl Library {
    /// An instruction; if it is new, with its surroundings.
    pub fn known(
        &mut self,
        insn: &Instruction,
        surrounding: impl FnOnce() -> Surrounding,
    ) -> Arc<Known> {
        let there = self.by_address.get(&insn.ip()).into_iter().flatten();
        let mut there = there.map(|number| &self.all[*number as usize]);
        match there.find(|known| known.insn.eq_all_bits(insn)) {
            Some(known) => Arc::clone(known),
            None => self.add(insn, surrounding()),
        }
    }

    pub fn add(&mut self, insn: &Instruction, surrounding: Surrounding) -> Arc<Known> {
        let number = self.all.len() as u32;
        let Surrounding { turn, shown, may_meet } = surrounding;
        let effects = effects(insn, &mut self.factory);
        let keeping = Keeping::of(&effects);
        let (moves_stack, insn, address) = (moves_stack(&effects), *insn, insn.ip());
        let known =
            Known { number, insn, address, effects, turn, keeping, shown, may_meet, moves_stack };
        self.by_address.entry(address).or_default().push(number);
        self.all.push(Arc::new(known));
        Arc::clone(&self.all[number as usize])
    }

    /// A unit of instructions that are known.
    pub fn unit(&mut self, shape: &Shape, instructions: Vec<Arc<Known>>) -> Unit {
        let plan = Plan::of(shape, &mut self.factory);
        let accesses = &plan.accesses;
        let first = |index: usize| {
            accesses.partition_point(|access| usize::from(access.instruction) < index)
        };
        let first_access: Vec<usize> = (0..=instructions.len()).map(first).collect();
        let mut steps = Vec::new();
        for (index, known) in instructions.iter().enumerate() {
            let keeping = &known.keeping;
            let operands = first_access[index]..first_access[index + 1];
            let mut step = |what| steps.push(Step { index, what });
            if index > 0 && plan.may_raise_stack(index) {
                step(What::Unwind { address: known.address });
            }
            let before = index.checked_sub(1).map(|before| &instructions[before]);
            if let Some(from) = before.and_then(|before| before.leaves_to(known)) {
                step(What::Leave { from });
            }
            if known.may_meet {
                step(What::Meet { address: known.address });
            }
            // Otherwise it is not known what it does.
            if operands.len() == known.effects.operands.len() {
                let own = keeping.writes.iter().map(|operand| operands.start + operand);
                if keeping.moves() {
                    step(What::Keep);
                } else {
                    own.for_each(|access| step(What::Write { access }));
                    if !keeping.changes.is_nothing() {
                        step(What::Change(keeping.changes));
                    }
                }
            }
            match known.turn {
                Turn::None => {}
                Turn::Branch { meet } => step(What::Branch { meet }),
                Turn::Call => step(What::Call { back: known.insn.next_ip() }),
            }
        }
        let has_strings = plan.accesses.iter().any(|access| access.fixed_size().is_none());
        let (address, is_shown) =
            instructions.first().map_or((0, true), |first| (first.address, first.shown));
        let jumps = instructions.iter().map(|known| known.jumps_from());
        let jumps_from = std::iter::once(None).chain(jumps).collect();
        Unit {
            instructions,
            address,
            is_shown,
            jumps_from,
            plan,
            first_access,
            steps,
            has_strings,
            first_id: 0,
        }
    }
}

fn moves_stack(effects: &Effects) -> bool {
    let stack = cells::of(Register::RSP).expect("a general register");
    effects.parts.iter().any(|part| match &part.to {
        Place::Cells(cells) => cells.start < stack.end && stack.start < cells.end,
        _ => false,
    })
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
