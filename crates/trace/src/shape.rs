//! What the records of a unit look like: its instructions, and the registers whose
//! values are written before each.

use crate::known::Known;
use crate::register::{RDI, RSI, RSP, by_number, number};
use iced_x86::{
    Instruction, InstructionInfo, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
    UsedMemory,
};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, RwLock};
use why_effects::Lanes;

/// A unit as the reader of its records knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Shape {
    pub instructions: Vec<Instruction>,
    /// The registers that are written before each instruction, and behind the last.
    pub told: Vec<Vec<Register>>,
}

impl Shape {
    /// How many slots come before those of instruction `index`.
    pub fn slots_before(&self, index: usize) -> usize {
        self.told[..index].iter().map(|told| slots(told)).sum()
    }

    /// The register that is told first behind instruction `index`, if that repeats itself:
    /// how often it did, nobody could know otherwise.
    pub fn behind_repetition(&self, index: usize) -> Option<u8> {
        self.instructions.get(index).and_then(repeated_pointer)
    }

    /// The same register for a record that ends after so many instructions.
    pub fn pointer_behind(&self, executed: usize) -> Option<u8> {
        executed.checked_sub(1).and_then(|last| self.behind_repetition(last))
    }

    /// What is told follows from the instructions.
    fn is_of(&self, instructions: &[Instruction]) -> bool {
        let mut pairs = self.instructions.iter().zip(instructions);
        self.instructions.len() == instructions.len() && pairs.all(|(a, b)| a.eq_all_bits(b))
    }
}

/// The slots that these registers take.
pub fn slots(told: &[Register]) -> usize {
    told.iter().map(|register| register.size() / 8).sum()
}

/// The shapes of all units so far, and the ids of their records: one for each number of
/// instructions after which a unit is left, where it has been needed.
#[derive(Default)]
pub struct Shapes {
    /// By the numbers of units.
    pub all: Vec<Arc<Shape>>,
    /// What the records of each id are, from [`crate::FIRST_UNIT_ID`] on.
    pub kinds: Vec<Kind>,
    /// For each unit, the ids of those of its records that there are: after how many instructions
    /// it is left. They are few.
    ids: Vec<Vec<(u16, u32)>>,
    /// The numbers of units that begin there.
    by_address: FxHashMap<u64, Vec<u32>>,
}

/// Whoever makes units adds to them while others read.
pub type Shared = Arc<RwLock<Shapes>>;

/// The records of the unit with a number of which so many instructions were executed.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub unit: u32,
    pub executed: u16,
}

impl Kind {
    /// All that records of this unit can be.
    pub fn all(unit: usize, shape: &Shape) -> Vec<Kind> {
        let counts = 0..=shape.instructions.len() as u16;
        counts.map(|executed| Kind { unit: unit as u32, executed }).collect()
    }

    pub fn unit(self) -> usize {
        self.unit as usize
    }

    pub fn executed(self) -> usize {
        self.executed.into()
    }
}

/// A shape, and how many there were before it.
#[derive(Clone, Debug)]
pub struct Numbered {
    pub number: usize,
    pub shape: Arc<Shape>,
}

impl Shapes {
    /// Units of the same instructions are the same: there are not so many ids that each could
    /// have its own which is made for a few instructions and never entered again.
    pub fn number(&mut self, shape: Shape) -> Numbered {
        let address = shape.instructions.first().map_or(0, Instruction::ip);
        let there = self.by_address.entry(address).or_default();
        for number in there.iter().map(|number| *number as usize) {
            let known = &self.all[number];
            if known.is_of(&shape.instructions) {
                return Numbered { number, shape: Arc::clone(known) };
            }
        }
        let (number, shape) = (self.all.len(), Arc::new(shape));
        there.push(number as u32);
        self.all.push(Arc::clone(&shape));
        self.ids.push(Vec::new());
        Numbered { number, shape }
    }

    /// The id of the records of a unit that is left after so many instructions.
    pub fn id(&mut self, unit: &Numbered, executed: usize) -> u32 {
        let (ids, executed) = (&mut self.ids[unit.number], executed as u16);
        if let Some((_, id)) = ids.iter().find(|(after, _)| *after == executed) {
            return *id;
        }
        let id = crate::FIRST_UNIT_ID + self.kinds.len() as u32;
        ids.push((executed, id));
        self.kinds.push(Kind { unit: unit.number as u32, executed });
        id
    }
}

/// Decides, instruction by instruction, what has to be written.
pub struct Planner {
    shape: Shape,
    known: Known<u64>,
    pub slots: usize,
}

impl Default for Planner {
    fn default() -> Planner {
        let shape = Shape { instructions: Vec::new(), told: Vec::new() };
        Planner { shape, known: Known::at_start(0), slots: 0 }
    }
}

impl Planner {
    pub fn instruction(&mut self, insn: &Instruction) {
        self.known_instruction(insn, InstructionInfoFactory::new().info(insn));
    }

    /// The same for one of which somebody knows what it uses.
    pub fn known_instruction(&mut self, insn: &Instruction, info: &InstructionInfo) {
        let mut told = self.at_least();
        let Planner { known, .. } = self;
        each_needed(insn, info.used_memory(), |register| {
            if register.is_gpr() {
                if known.value(number(register)).is_none() {
                    tell(number(register), known, &mut told);
                }
            } else if !told.contains(&register) {
                told.push(register);
            }
        });
        self.known.execute(insn, info.used_registers());
        self.slots += slots(&told);
        self.shape.told.push(told);
        self.shape.instructions.push(*insn);
    }

    /// What must be told whatever comes next. A way out in the middle must find the stack
    /// pointer known.
    fn at_least(&mut self) -> Vec<Register> {
        let mut told = Vec::new();
        let before = self.shape.instructions.len().checked_sub(1);
        let pointer = before.and_then(|before| self.shape.behind_repetition(before));
        if let Some(pointer) = pointer {
            tell(pointer, &mut self.known, &mut told);
        }
        if self.known.value(RSP).is_none() {
            tell(RSP, &mut self.known, &mut told);
        }
        told
    }

    pub fn finish(mut self) -> Shape {
        let told = self.at_least();
        self.shape.told.push(told);
        self.shape
    }
}

fn tell(register: u8, known: &mut Known<u64>, told: &mut Vec<Register>) {
    // While planning, values mean nothing.
    known.tell(register, 0);
    told.push(by_number(register));
}

/// The registers that an instruction's addresses follow from; some more than once.
fn each_needed(insn: &Instruction, memory: &[UsedMemory], mut each: impl FnMut(Register)) {
    for m in memory.iter().filter(|m| is_access(m.access())) {
        let of_interest = |r: &Register| r.is_gpr() || r.is_vector_register();
        [m.base(), m.index()].into_iter().filter(of_interest).for_each(&mut each);
        Lanes::of(insn).map(|lanes| lanes.mask).into_iter().for_each(&mut each);
        bit_offset(insn).into_iter().for_each(&mut each);
    }
    if matches!(insn.mnemonic(), Mnemonic::Wrfsbase | Mnemonic::Wrgsbase) {
        each(insn.op0_register());
    }
}

pub fn is_access(access: OpAccess) -> bool {
    !matches!(access, OpAccess::None | OpAccess::NoMemAccess)
}

/// The pointer that a repeated string instruction moves; where it uses both, the
/// destination's.
pub fn repeated_pointer(insn: &Instruction) -> Option<u8> {
    let repeats =
        insn.is_string_instruction() && (insn.has_rep_prefix() || insn.has_repne_prefix());
    if !repeats {
        return None;
    }
    let to = |kind| (0..insn.op_count()).any(|op| insn.op_kind(op) == kind);
    let destination = [OpKind::MemoryESRDI, OpKind::MemoryESEDI].into_iter().any(to);
    Some(if destination { RDI } else { RSI })
}

/// The register whose value selects a bit, and so an element, far from the operand.
pub fn bit_offset(insn: &Instruction) -> Option<Register> {
    use Mnemonic as M;
    let tests = matches!(insn.mnemonic(), M::Bt | M::Bts | M::Btr | M::Btc);
    let selects = insn.op0_kind() == OpKind::Memory && insn.op1_kind() == OpKind::Register;
    (tests && selects).then(|| insn.op1_register())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn shape(at: u64, code: &[u8]) -> Shape {
        let mut planner = Planner::default();
        let decoder = Decoder::with_ip(64, code, at, DecoderOptions::NONE);
        decoder.into_iter().for_each(|insn| planner.instruction(&insn));
        planner.finish()
    }

    #[test]
    fn only_units_of_the_same_instructions_share_their_ids() {
        const MOVES: &[u8] = &[0x48, 0x8b, 0x07, 0x48, 0x8b, 0x06]; // mov rax, [rdi]; mov rax, [rsi]
        let mut shapes = Shapes::default();
        let mut id = |at, code: &[u8], executed| {
            let unit = shapes.number(shape(at, code));
            shapes.id(&unit, executed)
        };
        let first = id(0x1000, MOVES, 2);
        assert_eq!(id(0x1000, MOVES, 1), first + 1);
        assert_eq!(id(0x1000, &MOVES[..3], 1), first + 2);
        assert_eq!(id(0x2000, MOVES, 1), first + 3);
        // A longer encoding of the same, then what was there before.
        assert_eq!(id(0x1000, &[0x3e, 0x48, 0x8b, 0x07], 1), first + 4);
        assert_eq!(id(0x1000, MOVES, 2), first);
        let executed: Vec<usize> = shapes.kinds.iter().map(|kind| kind.executed()).collect();
        assert_eq!(executed, [2, 1, 1, 1, 1]);
    }
}
