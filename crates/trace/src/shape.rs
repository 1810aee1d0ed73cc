//! What the records of a unit look like: its instructions, and the registers whose
//! values are written before each.

use crate::known::Known;
use crate::register::{RDI, RSI, RSP, by_number, number};
use iced_x86::{
    Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedMemory,
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
    /// What the records of each id are, from [`crate::FIRST_UNIT_ID`] on.
    pub kinds: Vec<Kind>,
    ids: FxHashMap<(usize, usize), u32>,
    units: usize,
    by_address: FxHashMap<u64, Vec<Numbered>>,
}

/// Whoever makes units adds to them while others read.
pub type Shared = Arc<RwLock<Shapes>>;

/// The records of a unit of which so many instructions were executed.
#[derive(Clone, Debug)]
pub struct Kind {
    pub unit: Numbered,
    pub executed: usize,
}

impl Kind {
    /// All that records of this unit can be.
    pub fn all(unit: &Numbered) -> impl Iterator<Item = Kind> {
        let counts = 0..=unit.shape.instructions.len();
        counts.map(|executed| Kind { unit: unit.clone(), executed })
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
        if let Some(known) = there.iter().find(|known| known.shape.is_of(&shape.instructions)) {
            return known.clone();
        }
        let new = Numbered { number: self.units, shape: Arc::new(shape) };
        self.units += 1;
        there.push(new.clone());
        new
    }

    /// The id of the records of a unit that is left after so many instructions.
    pub fn id(&mut self, unit: &Numbered, executed: usize) -> u32 {
        *self.ids.entry((unit.number, executed)).or_insert_with(|| {
            self.kinds.push(Kind { unit: unit.clone(), executed });
            crate::FIRST_UNIT_ID + self.kinds.len() as u32 - 1
        })
    }
}

/// Decides, instruction by instruction, what has to be written.
pub struct Planner {
    shape: Shape,
    known: Known<u64>,
    factory: InstructionInfoFactory,
    pub slots: usize,
}

impl Default for Planner {
    fn default() -> Planner {
        let shape = Shape { instructions: Vec::new(), told: Vec::new() };
        Planner {
            shape,
            known: Known::at_start(0),
            factory: InstructionInfoFactory::new(),
            slots: 0,
        }
    }
}

impl Planner {
    pub fn instruction(&mut self, insn: &Instruction) {
        let mut told = self.at_least();
        let info = self.factory.info(insn);
        for register in needed(insn, info.used_memory()) {
            if !register.is_gpr() {
                told.push(register);
            } else if self.known.value(number(register)).is_none() {
                tell(number(register), &mut self.known, &mut told);
            }
        }
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

/// The registers that an instruction's addresses follow from.
fn needed(insn: &Instruction, memory: &[UsedMemory]) -> Vec<Register> {
    let mut needed = Vec::new();
    for m in memory.iter().filter(|m| is_access(m.access())) {
        let of_interest = |r: &Register| r.is_gpr() || r.is_vector_register();
        needed.extend([m.base(), m.index()].into_iter().filter(of_interest));
        needed.extend(Lanes::of(insn).map(|lanes| lanes.mask));
        needed.extend(bit_offset(insn));
    }
    if matches!(insn.mnemonic(), Mnemonic::Wrfsbase | Mnemonic::Wrgsbase) {
        needed.push(insn.op0_register());
    }
    let mut seen = Vec::new();
    needed.retain(|register| {
        let whole = if register.is_gpr() { register.full_register() } else { *register };
        let new = !seen.contains(&whole);
        seen.push(whole);
        new
    });
    needed
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
        let executed: Vec<usize> = shapes.kinds.iter().map(|kind| kind.executed).collect();
        assert_eq!(executed, [2, 1, 1, 1, 1]);
    }
}
