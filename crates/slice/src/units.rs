//! What has to be known of a unit, found once for all of its records.

use crate::arguments::OfCall;
use crate::saves::{Changed, Keeping, Kept};
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, Register};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use why_effects::{Effects, Lanes, MOST_ARGUMENTS, Place, cells, effects};
use why_trace::plan::{Plan, Planned, Start};
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

    /// Indirect jumps were seen to lead there. Where the ways of functions may be others now.
    fn learn_targets(&mut self, _seen: &[(u64, u64)]) -> Vec<u64> {
        Vec::new()
    }

    /// Whether the instruction at an address means something to somebody who looks at a slice.
    /// Instead of others the call is shown that led to them.
    fn is_shown(&self, _address: u64) -> bool {
        true
    }

    /// Whether the instruction at an address is of code behind which the vector registers are what
    /// they were before it: whatever it does to them is nobody else's.
    fn keeps_vectors(&self, _address: u64) -> bool {
        false
    }
}

/// What is needed whenever it is executed is in front, close together.
#[repr(C)]
pub struct Unit {
    /// The address of the first instruction.
    pub address: u64,
    /// What the course of a run depends on, in order, if all of its instructions are executed.
    pub steps: Box<[Step]>,
    /// Where the last instruction is, if it is shown and jumps.
    pub jumps_from: Option<u64>,
    /// It begins with a landing pad, from which the ways meet others there.
    pub lands: Option<u64>,
    /// The first instruction is shown.
    pub is_shown: bool,
    pub ends_with_indirect_jump: bool,
    /// Indirect jumps in the middle, and where they led: with how many instructions executed that is
    /// known.
    pub inner_jumps: Box<[(usize, (u64, u64))]>,
    /// Some of the accesses are to strings.
    pub has_strings: bool,
    /// Some are lanes that a mask may leave out.
    pub has_lanes: bool,
    pub plan: Plan,
    /// Where the accesses begin, unless some are to strings.
    pub starts: Box<[Start]>,
    /// Their sizes; of strings nothing.
    pub sizes: Box<[u16]>,
    pub instructions: Vec<Arc<Known>>,
    /// The same steps if only some are executed: those that can be taken together are not.
    pub single_steps: Box<[Step]>,
    /// What differs then, by how many instructions are executed.
    pub parts: Box<[Part]>,
    /// Where the accesses of each instruction begin among those of the plan.
    pub first_access: Vec<usize>,
    /// The id of a record of it without any instruction.
    pub first_id: usize,
    /// Those accesses that are made in one piece, as far as other threads can see.
    pub atomics: Vec<usize>,
}

/// The first instructions of a unit.
#[derive(Clone, Copy)]
pub struct Part {
    /// How many of the single steps are theirs.
    pub steps: u16,
    /// Where the last one is, if it is shown and jumps.
    pub jumps_from: Option<u64>,
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
    /// Vector registers are not among its effects.
    pub keeps_vectors: bool,
    pub moves_stack: bool,
    /// Where the ways from a landing pad meet others.
    pub lands: Option<u64>,
    /// How many a system call takes.
    arguments: u8,
}

/// All instructions that are known.
pub struct Library {
    pub all: Vec<Arc<Known>>,
    /// By the addresses of system calls.
    arguments: FxHashMap<u64, u8>,
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
    index: u16,
    pub what: What,
}

impl Step {
    #[inline]
    pub fn index(&self) -> usize {
        self.index.into()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Before it the stack pointer, so far behind one of the values of the plan, may have come back
    /// to where it was before a call.
    Unwind { value: u16, plus: u64 },
    /// A jump from code that is shown has led to code that is not.
    Leave { from: u64 },
    /// A landing pad, from which the ways meet others there.
    Land { meet: u64 },
    /// The ways from a branch may meet there.
    Meet { address: u64 },
    /// It may put a register aside or bring it back.
    Keep,
    /// The same of one that only stores a register, so far behind one of the values of the plan;
    Store { kept: Kept, value: u16, plus: u64 },
    /// and of one that only loads it.
    Load { kept: Kept, value: u16, plus: u64 },
    /// It writes so many bytes to memory, so far behind one of the values of the plan.
    Write { value: u16, size: u16, plus: u64 },
    /// It writes to a string: which access of the plan.
    WriteString { access: u16 },
    /// It changes registers that have to be brought back.
    Change(Changed),
    /// It is a branch, whose ways meet there.
    Branch { meet: u64 },
    /// They do at the function's end.
    BranchToEnd,
    /// It is a call, behind which that is executed.
    Call { back: u64 },
}

/// The numbers of instructions whose surroundings have changed.
#[derive(Default)]
pub struct Renewed {
    pub all: FxHashSet<u32>,
    /// Those that decide over others than before. At the rest the ways from these may meet.
    pub deciding: FxHashSet<u32>,
}

/// What was found out about an instruction when it was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surrounding {
    turn: Turn,
    shown: bool,
    may_meet: bool,
    lands: Option<u64>,
    keeps_vectors: bool,
    arguments: u8,
}

impl Surrounding {
    pub fn of(insn: &Instruction, ways: &dyn Ways) -> Surrounding {
        let at = insn.ip();
        Surrounding {
            turn: turn(insn, ways),
            shown: ways.is_shown(at),
            may_meet: ways.may_meet(at),
            lands: ways.lands(at),
            keeps_vectors: ways.keeps_vectors(at),
            arguments: MOST_ARGUMENTS as u8,
        }
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

    /// Whether it may lead to a landing pad: with such jumps what is thrown is sent there.
    fn may_throw(&self) -> bool {
        matches!(self.insn.flow_control(), FlowControl::IndirectBranch | FlowControl::Return)
    }

    /// Whether no other thread can come between what it reads and what it writes.
    pub fn is_atomic(&self) -> bool {
        // With memory it needs no prefix for that.
        self.insn.has_lock_prefix() || self.insn.mnemonic() == Mnemonic::Xchg
    }

    pub fn surrounding(&self) -> Surrounding {
        let Known { turn, shown, may_meet, lands, keeps_vectors, arguments, .. } = *self;
        Surrounding { turn, shown, may_meet, lands, keeps_vectors, arguments }
    }
}

impl Default for Library {
    fn default() -> Library {
        let (all, by_address) = (Vec::new(), FxHashMap::default());
        let arguments = FxHashMap::default();
        Library { all, arguments, by_address, factory: InstructionInfoFactory::new() }
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
            None => {
                let arguments = self.arguments_at(insn.ip());
                self.add(insn, Surrounding { arguments, ..surrounding() })
            }
        }
    }

    fn arguments_at(&self, address: u64) -> u8 {
        self.arguments.get(&address).copied().unwrap_or(MOST_ARGUMENTS as u8)
    }

    /// How many arguments system calls take: which instructions have to be renewed.
    pub fn learn_arguments(&mut self, of_calls: &[OfCall]) -> impl Iterator<Item = u64> {
        self.arguments.extend(of_calls.iter().copied());
        of_calls.iter().map(|(address, _)| *address)
    }

    /// Looks at the surroundings of instructions at some addresses again. Those that have changed
    /// are other instructions now.
    pub fn renew(&mut self, addresses: &[u64], ways: &dyn Ways) -> Renewed {
        let mut renewed = Renewed::default();
        let numbers = addresses.iter().filter_map(|address| self.by_address.get(address));
        for number in numbers.flatten().copied().collect::<Vec<u32>>() {
            let known = self.numbered(number);
            let arguments = self.arguments_at(known.address);
            let now = Surrounding { arguments, ..Surrounding::of(&known.insn, ways) };
            let before = known.surrounding();
            if now != before {
                renewed.all.insert(number);
                if (now.turn, now.lands) != (before.turn, before.lands) {
                    renewed.deciding.insert(number);
                }
                self.all[number as usize] = Arc::new(self.make(number, &known.insn, now));
            }
        }
        renewed
    }

    pub fn numbered(&self, number: u32) -> Arc<Known> {
        Arc::clone(&self.all[number as usize])
    }

    fn add(&mut self, insn: &Instruction, surrounding: Surrounding) -> Arc<Known> {
        let number = self.all.len() as u32;
        let known = self.make(number, insn, surrounding);
        self.by_address.entry(insn.ip()).or_default().push(number);
        self.all.push(Arc::new(known));
        Arc::clone(&self.all[number as usize])
    }

    /// An instruction, whatever is known of others.
    pub fn make(&mut self, number: u32, insn: &Instruction, surrounding: Surrounding) -> Known {
        let Surrounding { turn, shown, may_meet, lands, keeps_vectors, arguments } = surrounding;
        let mut effects = effects(insn, &mut self.factory);
        if usize::from(arguments) < MOST_ARGUMENTS {
            effects = effects.with_arguments(arguments.into());
        }
        if keeps_vectors {
            effects = effects.without_vectors();
        }
        Known {
            number,
            insn: *insn,
            address: insn.ip(),
            turn,
            keeping: Keeping::of(&effects),
            shown,
            may_meet,
            keeps_vectors,
            moves_stack: moves_stack(&effects),
            lands,
            arguments,
            effects,
        }
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
            let mut step = |what| steps.push(Step { index: index as u16, what });
            if index > 0
                && let Some(Start { value, plus }) = plan.raised_stack(index)
            {
                step(What::Unwind { value, plus });
            }
            let before = index.checked_sub(1).map(|before| &instructions[before]);
            if let Some(meet) = known.lands.filter(|_| before.is_some_and(|b| b.may_throw())) {
                step(What::Land { meet });
            }
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
                    step(keep(keeping, &accesses[operands.clone()]));
                } else {
                    own.for_each(|access| step(write(&accesses[access], access)));
                    if !keeping.changes.is_nothing() {
                        step(What::Change(keeping.changes));
                    }
                }
            }
            match known.turn {
                Turn::None => {}
                Turn::Branch { meet: Some(meet) } => step(What::Branch { meet }),
                Turn::Branch { meet: None } => step(What::BranchToEnd),
                Turn::Call => step(What::Call { back: known.insn.next_ip() }),
            }
        }
        let has_strings = plan.accesses.iter().any(|access| access.fixed_size().is_none());
        let (address, is_shown) =
            instructions.first().map_or((0, true), |first| (first.address, first.shown));
        let lands = instructions.first().and_then(|first| first.lands);
        let starts = accesses.iter().map(Planned::fixed_start).collect::<Option<_>>();
        let sizes = accesses.iter().map(|access| access.fixed_size().unwrap_or(0)).collect();
        let all = plan.accesses.iter().enumerate();
        let is_atomic = |(_, access): &(usize, &Planned)| {
            instructions[usize::from(access.instruction)].is_atomic()
        };
        let atomics = all.filter(is_atomic).map(|(access, _)| access).collect();
        let is_indirect_jump =
            |known: &Arc<Known>| known.insn.flow_control() == FlowControl::IndirectBranch;
        let ends_with_indirect_jump = instructions.last().is_some_and(is_indirect_jump);
        let pairs = instructions.windows(2).enumerate();
        let inner_jumps = pairs
            .filter(|(_, pair)| is_indirect_jump(&pair[0]))
            .map(|(index, pair)| (index + 2, (pair[0].address, pair[1].address)));
        let inner_jumps = inner_jumps.collect();
        let part = |executed: usize| Part {
            steps: steps.partition_point(|step| step.index() < executed) as u16,
            jumps_from: executed.checked_sub(1).and_then(|last| instructions[last].jumps_from()),
        };
        let parts: Box<[Part]> = (0..=instructions.len()).map(part).collect();
        Unit {
            address,
            steps: taken_together(&steps),
            jumps_from: parts[instructions.len()].jumps_from,
            lands,
            is_shown,
            ends_with_indirect_jump,
            inner_jumps,
            has_strings,
            has_lanes: instructions.iter().any(|known| Lanes::of(&known.insn).is_some()),
            starts: starts.unwrap_or_default(),
            sizes,
            plan,
            instructions,
            single_steps: steps.into(),
            parts,
            first_access,
            first_id: 0,
            atomics,
        }
    }
}

/// The ids of a unit's records, one behind the other: its number, and how many of so many
/// instructions were executed.
pub fn ids(number: usize, instructions: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..=instructions).map(move |executed| (number, executed))
}

/// What an instruction with these operands does that stores or loads a register.
fn keep(keeping: &Keeping, operands: &[Planned]) -> What {
    let start = |operand: usize| operands[operand].fixed_start();
    match (keeping.stores, keeping.loads, keeping.writes.as_slice()) {
        (Some((kept, operand)), None, [only])
            if *only == operand && keeping.changes.is_nothing() =>
        {
            start(operand).map(|Start { value, plus }| What::Store { kept, value, plus })
        }
        (None, Some((kept, operand)), []) if keeping.changes == Changed::of(kept) => {
            start(operand).map(|Start { value, plus }| What::Load { kept, value, plus })
        }
        _ => None,
    }
    .unwrap_or(What::Keep)
}

fn write(planned: &Planned, access: usize) -> What {
    match (planned.fixed_start(), planned.fixed_size()) {
        (Some(Start { value, plus }), Some(size)) => What::Write { value, size, plus },
        _ => What::WriteString { access: access as u16 },
    }
}

/// Changes of registers that nobody asks for in between are one.
fn taken_together(steps: &[Step]) -> Box<[Step]> {
    let mut together: Vec<Step> = Vec::new();
    let mut last_change: Option<usize> = None;
    for step in steps {
        match (step.what, last_change) {
            (What::Change(more), Some(at)) => {
                if let What::Change(changes) = &mut together[at].what {
                    changes.change(more);
                }
                continue;
            }
            (What::Change(_), None) => last_change = Some(together.len()),
            (
                What::Keep
                | What::Store { .. }
                | What::Load { .. }
                | What::Call { .. }
                | What::Unwind { .. },
                _,
            ) => last_change = None,
            _ => {}
        }
        together.push(*step);
    }
    together.into()
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
