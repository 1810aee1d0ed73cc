//! Instructions whose result does not depend on their operands.

use crate::cells::CARRY;
use crate::general;
use crate::parts::{Part, Place, cleared};
use iced_x86::{Instruction, InstructionInfo, Mnemonic as M, OpKind, Register};

pub fn parts(insn: &Instruction, _info: &InstructionInfo) -> Option<Vec<Part>> {
    let sources = sources(insn)?;
    let register = insn.op0_register();
    let mut parts = vec![Part::computed(Place::of(register)?, sources.clone())];
    parts.extend(cleared(insn, register));
    parts.extend(general::flags(insn, &sources));
    Some(parts)
}

/// What the result depends on after all, if it is one of these instructions.
fn sources(insn: &Instruction) -> Option<Vec<Place>> {
    if insn.op_count() == 0 || insn.op0_kind() != OpKind::Register {
        return None;
    }
    let register = insn.op0_register();
    match insn.mnemonic() {
        M::Xor
        | M::Sub
        | M::Pxor
        | M::Xorps
        | M::Xorpd
        | M::Psubb
        | M::Psubw
        | M::Psubd
        | M::Psubq
        | M::Pandn
        | M::Andnps
        | M::Andnpd
        | M::Pcmpeqb
        | M::Pcmpeqw
        | M::Pcmpeqd
        | M::Pcmpeqq
        | M::Pcmpgtb
        | M::Pcmpgtw
        | M::Pcmpgtd
        | M::Pcmpgtq
            if is_twice(insn, 0) && !register.is_mm() =>
        {
            Some(Vec::new())
        }
        M::Vpxor
        | M::Vpxord
        | M::Vpxorq
        | M::Vxorps
        | M::Vxorpd
        | M::Vpsubb
        | M::Vpsubw
        | M::Vpsubd
        | M::Vpsubq
        | M::Vpandn
        | M::Vandnps
        | M::Vandnpd
        | M::Vpcmpeqb
        | M::Vpcmpeqw
        | M::Vpcmpeqd
        | M::Vpcmpeqq
        | M::Vpcmpgtb
        | M::Vpcmpgtw
        | M::Vpcmpgtd
        | M::Vpcmpgtq
            if is_twice(insn, 1) && register.is_vector_register() =>
        {
            Some(Vec::new())
        }
        M::Sbb if is_twice(insn, 0) => Some(vec![Place::flag(CARRY)]),
        M::And if is_number(insn, 0) => Some(Vec::new()),
        M::Or if is_number(insn, u64::MAX) => Some(Vec::new()),
        _ => None,
    }
}

/// Whether an operand and the next one are the same register.
fn is_twice(insn: &Instruction, first: u32) -> bool {
    insn.op_kind(first) == OpKind::Register
        && insn.op_kind(first + 1) == OpKind::Register
        && insn.op_register(first) == insn.op_register(first + 1)
        && insn.op_register(first) != Register::None
}

/// Whether the second operand is this number, in the size of the first.
fn is_number(insn: &Instruction, number: u64) -> bool {
    let size = insn.op0_register().size() as u32;
    let mask = u64::MAX >> (64 - 8 * size);
    insn.op1_kind() != OpKind::Register
        && insn.op1_kind() != OpKind::Memory
        && insn.immediate(1) & mask == number & mask
}
