//! What has to be known of a unit, found once for all of its records.

use crate::saves::{Changed, Keeping};
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, Register};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use why_effects::{Effects, Place, cells, effects};
use why_trace::plan::{Plan, Planned};
use why_trace::shape::Shape;

/// Where the ways from a branch meet again.
pub trait Ways {
    /// For the branch at an address; none if they meet at the function's end, or nobody knows.
    fn meet(&self, branch: u64) -> Option<u64>;

    /// Whether the ways from some branch may meet at an address.
    fn may_meet(&self, _address: u64) -> bool {
        true
    }

    /// For a landing pad, to which a call goes on if what it called throws, where the ways from it
    /// and from behind the call meet.
    fn lands(&self, _pad: u64) -> Option<u64> {
        None
    }

    /// Whether the indirect jump at an address decides what comes next. The way that the linker
    /// has made to a function is part of its call.
    fn decides(&self, _jump: u64) -> bool {
        true
    }

    /// Indirect jumps were seen to lead there. Whether the ways of some functions are others now.
    fn learn_targets(&mut self, _seen: &[(u64, u64)]) -> bool {
        false
    }

    /// Whether an address belongs to a function whose ways are others since.
    fn has_changed(&self, _address: u64) -> bool {
        false
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
    /// Those accesses that are made in one piece, as far as other threads can see.
    pub atomics: Vec<usize>,
    pub ends_with_indirect_jump: bool,
    /// It begins with a landing pad, from which the ways meet others there.
    pub lands: Option<u64>,
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
    /// Where the ways from a landing pad meet others.
    pub lands: Option<u64>,
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
    lands: Option<u64>,
}

impl Surrounding {
    pub fn of(insn: &Instruction, ways: &dyn Ways) -> Surrounding {
        let (shown, may_meet) = (ways.is_shown(insn.ip()), ways.may_meet(insn.ip()));
        Surrounding { turn: turn(insn, ways), shown, may_meet, lands: ways.lands(insn.ip()) }
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

    /// Whether no other thread can come between what it reads and what it writes.
    pub fn is_atomic(&self) -> bool {
        // With memory it needs no prefix for that.
        self.insn.has_lock_prefix() || self.insn.mnemonic() == Mnemonic::Xchg
    }

    pub fn surrounding(&self) -> Surrounding {
        let Known { turn, shown, may_meet, lands, .. } = *self;
        Surrounding { turn, shown, may_meet, lands }
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

    /// Looks at the surroundings of instructions again where they have changed: the numbers of
    /// these.
    pub fn renew(&mut self, ways: &dyn Ways) -> FxHashSet<u32> {
        let changed = |known: &&Arc<Known>| ways.has_changed(known.address);
        let numbers = self.all.iter().filter(changed).map(|known| known.number);
        let numbers: FxHashSet<u32> = numbers.collect();
        for number in &numbers {
            let insn = self.numbered(*number).insn;
            let known = self.make(*number, &insn, Surrounding::of(&insn, ways));
            self.all[*number as usize] = Arc::new(known);
        }
        numbers
    }

    pub fn numbered(&self, number: u32) -> Arc<Known> {
        Arc::clone(&self.all[number as usize])
    }

    pub fn add(&mut self, insn: &Instruction, surrounding: Surrounding) -> Arc<Known> {
        let number = self.all.len() as u32;
        let known = self.make(number, insn, surrounding);
        self.by_address.entry(insn.ip()).or_default().push(number);
        self.all.push(Arc::new(known));
        Arc::clone(&self.all[number as usize])
    }

    fn make(&mut self, number: u32, insn: &Instruction, surrounding: Surrounding) -> Known {
        let Surrounding { turn, shown, may_meet, lands } = surrounding;
        let effects = effects(insn, &mut self.factory);
        let keeping = Keeping::of(&effects);
        let (moves_stack, insn, address) = (moves_stack(&effects), *insn, insn.ip());
        Known { number, insn, address, effects, turn, keeping, shown, may_meet, moves_stack, lands }
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
        let lands = instructions.first().and_then(|first| first.lands);
        let jumps = instructions.iter().map(|known| known.jumps_from());
        let jumps_from = std::iter::once(None).chain(jumps).collect();
        let all = plan.accesses.iter().enumerate();
        let is_atomic = |(_, access): &(usize, &Planned)| {
            instructions[usize::from(access.instruction)].is_atomic()
        };
        let atomics = all.filter(is_atomic).map(|(access, _)| access).collect();
        let last = instructions.last().map(|last| last.insn.flow_control());
        let ends_with_indirect_jump = last == Some(FlowControl::IndirectBranch);
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
            atomics,
            ends_with_indirect_jump,
            lands,
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
