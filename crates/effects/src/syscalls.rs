//! System calls: what they return depends on what they are told. So does what the kernel
//! writes to memory, which is not known from an instruction alone.

use crate::cells;
use crate::parts::{Part, Place};
use iced_x86::{Instruction, Mnemonic, Register};

/// The number of the call, and what it is given.
const TOLD: [Register; 7] = [
    Register::RAX,
    Register::RDI,
    Register::RSI,
    Register::RDX,
    Register::R10,
    Register::R8,
    Register::R9,
];

pub fn is_one(insn: &Instruction) -> bool {
    insn.mnemonic() == Mnemonic::Syscall
}

/// What a call is told.
pub fn told() -> Vec<Place> {
    TOLD.into_iter().filter_map(Place::of).collect()
}

pub fn parts(insn: &Instruction) -> Option<Vec<Part>> {
    if !is_one(insn) {
        return None;
    }
    // The CPU itself keeps there where the program goes on, and the flags.
    let flags = cells::flags(u32::MAX).map(Place::flag).collect();
    Some(vec![
        Part::computed(Place::of(Register::RAX)?, told()),
        Part::constant(Place::of(Register::RCX)?),
        Part::computed(Place::of(Register::R11)?, flags),
    ])
}
