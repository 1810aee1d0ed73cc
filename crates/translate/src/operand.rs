//! The memory operand of an instruction, reached through a register that is borrowed for it.

use crate::context::APP_GS;
use crate::emit::Emitter;
use crate::gs::lea_indexed;
use iced_x86::{Code, Encoder, Instruction, MemoryOperand, Register};
use why_trace::register::number;

/// Lets the register point to the operand, and returns the instruction that uses it. Where the
/// operand is behind GS, another register is spoilt. None if that cannot be encoded.
pub fn through(
    e: &mut Emitter,
    insn: &Instruction,
    pointer: Register,
    spare: u8,
    displacements: &mut Vec<u32>,
) -> Option<Instruction> {
    let register = number(pointer);
    if insn.is_ip_rel_memory_operand() {
        displacements.extend(e.load_address(register, insn.memory_displacement64()));
    } else {
        e.bytes(&encoded(&address_of(insn, pointer)?)?);
    }
    let mut replaced = *insn;
    if insn.segment_prefix() == Register::GS {
        e.load(spare, APP_GS);
        lea_indexed(e, register, register, spare, 1);
        replaced.set_segment_prefix(Register::None);
    }
    replaced.set_memory_base(pointer);
    replaced.set_memory_index(Register::None);
    replaced.set_memory_displacement64(0);
    replaced.set_memory_displ_size(0);
    Some(replaced)
}

/// So far behind the operand of an instruction that [`through`] has returned.
pub fn behind(insn: &Instruction, offset: i64) -> MemoryOperand {
    let (base, segment) = (insn.memory_base(), insn.segment_prefix());
    MemoryOperand::new(base, Register::None, 1, offset, 1, false, segment)
}

/// `lea` of the instruction's operand.
fn address_of(insn: &Instruction, to: Register) -> Option<Instruction> {
    let operand = MemoryOperand::new(
        insn.memory_base(),
        insn.memory_index(),
        insn.memory_index_scale(),
        insn.memory_displacement64() as i64,
        insn.memory_displ_size(),
        false,
        Register::None,
    );
    Instruction::with2(Code::Lea_r64_m, to, operand).ok()
}

pub fn encoded(insn: &Instruction) -> Option<Vec<u8>> {
    let mut encoder = Encoder::new(64);
    encoder.encode(insn, 0).ok()?;
    Some(encoder.take_buffer())
}
