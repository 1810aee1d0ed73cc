//! How effects are told.

use crate::cells::{self, Cell};
use iced_x86::{Instruction, InstructionInfo, OpAccess, OpKind, Register, UsedMemory};
use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effects {
    pub parts: Vec<Part>,
    /// The memory that is accessed, in the order in which places number it.
    pub operands: Vec<Operand>,
    /// What decides where execution goes on, if the instruction is a branch.
    pub decides: Vec<Place>,
}

/// Where a value is, before an instruction or behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Cells(Range<Cell>),
    /// Some bytes of an operand in memory.
    Memory {
        operand: usize,
        bytes: Range<u32>,
    },
    /// All bytes of a string, which is as long as the run tells.
    String {
        operand: usize,
    },
}

/// One thing that an instruction defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub to: Place,
    /// As large as `to`: each lane of `to` depends on the same lane of these.
    pub lanes: Vec<Place>,
    /// The bytes in a lane.
    pub width: u32,
    /// All of `to` depends on these.
    pub whole: Vec<Place>,
    /// It only tells where a frame lies: nobody depends on it.
    pub frame: bool,
}

/// Memory that an instruction accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// What its address is computed from.
    pub address: Vec<Range<Cell>>,
    pub size: Size,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    Bytes(u32),
    /// A string of elements of so many bytes.
    String(u32),
}

impl Effects {
    /// The same, as if there were no vector registers: what is made of them is a constant.
    pub fn without_vectors(mut self) -> Effects {
        self.parts.retain(|part| !part.to.is_vector());
        for part in &mut self.parts {
            part.lanes.retain(|place| !place.is_vector());
            part.whole.retain(|place| !place.is_vector());
        }
        for operand in &mut self.operands {
            operand.address.retain(|cells| !cells::is_vector(cells));
        }
        self
    }
}

impl Place {
    pub fn of(register: Register) -> Option<Place> {
        cells::of(register).map(Place::Cells)
    }

    pub(crate) fn flag(cell: Cell) -> Place {
        Place::Cells(cell..cell + 1)
    }

    /// How many bytes it has; none if only the run tells.
    pub fn size(&self) -> Option<u32> {
        match self {
            Place::Cells(cells) => Some(u32::from(cells.end - cells.start)),
            Place::Memory { bytes, .. } => Some(bytes.end - bytes.start),
            Place::String { .. } => None,
        }
    }

    /// Some of its bytes.
    pub fn bytes(&self, range: Range<u32>) -> Place {
        match self {
            Place::Cells(cells) => {
                Place::Cells(cells.start + range.start as Cell..cells.start + range.end as Cell)
            }
            Place::Memory { operand, bytes } => Place::Memory {
                operand: *operand,
                bytes: bytes.start + range.start..bytes.start + range.end,
            },
            Place::String { operand } => Place::String { operand: *operand },
        }
    }

    fn is_vector(&self) -> bool {
        matches!(self, Place::Cells(cells) if cells::is_vector(cells))
    }

    fn is_stack_pointer(&self) -> bool {
        matches!(self, Place::Cells(cells) if cells::is_stack_pointer(cells))
    }

    fn is_frame_pointer(&self) -> bool {
        matches!(self, Place::Cells(cells) if cells::is_frame_pointer(cells))
    }
}

impl Part {
    /// A constant.
    pub(crate) fn constant(to: Place) -> Part {
        Part { to, lanes: Vec::new(), width: 1, whole: Vec::new(), frame: false }
    }

    /// Something that depends on all of these.
    pub(crate) fn computed(to: Place, whole: Vec<Place>) -> Part {
        Part { whole, ..Part::constant(to) }
    }

    /// Lanes that depend on lanes.
    pub(crate) fn lanes(to: Place, width: u32, lanes: Vec<Place>) -> Part {
        Part { lanes, width, ..Part::constant(to) }
    }

    /// The same bytes elsewhere.
    pub(crate) fn copy(to: Place, from: Place) -> Part {
        Part::lanes(to, 1, vec![from])
    }

    /// What byte `index` of it depends on, apart from addresses.
    pub fn sources(&self, index: u32) -> impl Iterator<Item = Place> {
        let from = index / self.width * self.width;
        let lane = move |place: &Place| {
            let size = place.size().unwrap_or(u32::MAX);
            place.bytes(from..size.min(from + self.width))
        };
        self.lanes.iter().map(lane).chain(self.whole.iter().cloned())
    }

    /// The same, with a stack pointer on which nothing depends.
    pub(crate) fn without_stack_pointer(mut self) -> Part {
        let depended = !(self.lanes.is_empty() && self.whole.is_empty());
        self.lanes.retain(|place| !place.is_stack_pointer());
        self.whole.retain(|place| !place.is_stack_pointer());
        let independent = self.lanes.is_empty() && self.whole.is_empty();
        self.frame =
            self.to.is_stack_pointer() || self.to.is_frame_pointer() && depended && independent;
        if self.to.is_stack_pointer() {
            self.lanes.clear();
            self.whole.clear();
        }
        self
    }
}

/// The memory that is accessed at all.
pub(crate) fn accessed(info: &InstructionInfo) -> impl Iterator<Item = &UsedMemory> {
    let never = [OpAccess::None, OpAccess::NoMemAccess];
    info.used_memory().iter().filter(move |memory| !never.contains(&memory.access()))
}

pub(crate) fn operands(insn: &Instruction, info: &InstructionInfo) -> Vec<Operand> {
    let is_string = crate::strings::repeats(insn);
    let told = |memory: &UsedMemory| {
        let mut address: Vec<Range<Cell>> = Vec::new();
        let registers = [memory.base(), memory.index()].into_iter().filter_map(cells::of);
        address.extend(registers.filter(|cells| !cells::is_stack_pointer(cells)));
        let size = match memory.memory_size().size() as u32 {
            _ if is_string => Size::String(insn.memory_size().size() as u32),
            bytes => Size::Bytes(bytes),
        };
        // Which bit is meant decides which byte is.
        let bit = selects_bit(insn).and_then(cells::of);
        address.extend(bit);
        if is_string {
            // How far a string goes, and in which direction, selects its bytes.
            address.extend(cells::of(Register::RCX));
            address.push(cells::DIRECTION..cells::DIRECTION + 1);
        }
        Operand { address, size }
    };
    accessed(info).map(told).collect()
}

/// The register that selects a bit anywhere in memory.
fn selects_bit(insn: &Instruction) -> Option<Register> {
    use iced_x86::Mnemonic as M;
    let selects = matches!(insn.mnemonic(), M::Bt | M::Bts | M::Btr | M::Btc)
        && insn.op0_kind() == OpKind::Memory
        && insn.op1_kind() == OpKind::Register;
    selects.then(|| insn.op1_register())
}

/// What an operand that is written in the instruction stands for; none if it is a number.
pub(crate) fn place(insn: &Instruction, info: &InstructionInfo, operand: u32) -> Option<Place> {
    match insn.op_kind(operand) {
        OpKind::Register => Place::of(insn.op_register(operand)),
        OpKind::Memory => {
            let operand = explicit(insn, info)?;
            let bytes = 0..insn.memory_size().size() as u32;
            Some(Place::Memory { operand, bytes })
        }
        _ => None,
    }
}

/// Which of the accessed memory is the one that the instruction names, if it names any.
pub(crate) fn explicit(insn: &Instruction, info: &InstructionInfo) -> Option<usize> {
    let names = |memory: &UsedMemory| {
        let base = |register| if register == Register::RIP { Register::None } else { register };
        base(memory.base()) == base(insn.memory_base())
            && memory.index() == insn.memory_index()
            && memory.displacement() == insn.memory_displacement64()
    };
    if !(0..insn.op_count()).any(|operand| insn.op_kind(operand) == OpKind::Memory) {
        return None;
    }
    let all: Vec<&UsedMemory> = accessed(info).collect();
    match all.len() {
        0 => None,
        1 => Some(0),
        _ => all.iter().position(|memory| names(memory)),
    }
}

/// The parts of a register that is written with so many bytes of something: what of it is
/// cleared by that, apart from the part itself.
pub(crate) fn cleared(insn: &Instruction, register: Register) -> Option<Part> {
    let rest = if register.is_gpr32() {
        let low = cells::of(register)?;
        low.end..low.end + 4
    } else if register.is_vector_register() && is_vex(insn) {
        cells::above(register)
    } else {
        return None;
    };
    (!rest.is_empty()).then(|| Part::constant(Place::Cells(rest)))
}

/// Whether vector registers are cleared above what is written.
pub(crate) fn is_vex(insn: &Instruction) -> bool {
    use iced_x86::EncodingKind as E;
    matches!(insn.code().encoding(), E::VEX | E::EVEX | E::XOP)
}
