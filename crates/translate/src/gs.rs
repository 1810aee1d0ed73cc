//! Instructions that use the application's own GS base.
//!
//! The hardware's GS base belongs to the engine, so the application's is kept in
//! the context, and an operand relative to it is reached through a borrowed register.

use crate::context::{APP_GS, SAVED_SCRATCH, Slot};
use crate::emit::Emitter;
use crate::unit::SpanDetail;
use iced_x86::{Encoder, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};

const CANDIDATES: [Register; 6] =
    [Register::RBX, Register::RSI, Register::RDI, Register::RAX, Register::RDX, Register::RCX];

pub fn touches_memory(insn: &Instruction) -> bool {
    insn.mnemonic() != Mnemonic::Lea
        && (0..insn.op_count()).any(|op| {
            !matches!(
                insn.op_kind(op),
                OpKind::Register
                    | OpKind::Immediate8
                    | OpKind::Immediate16
                    | OpKind::Immediate32
                    | OpKind::Immediate64
                    | OpKind::Immediate8to16
                    | OpKind::Immediate8to32
                    | OpKind::Immediate8to64
                    | OpKind::Immediate32to64
            )
        })
}

pub fn read_base(e: &mut Emitter, insn: &Instruction, slot: Slot) {
    let to = number(insn.op0_register());
    e.load(to, slot);
    if insn.op0_register().is_gpr32() {
        // mov r32, r32 clears the upper half.
        e.bytes(&[0x40 | (to >> 3) << 2 | to >> 3, 0x89, 0xc0 | (to & 7) << 3 | to & 7]);
    }
}

pub fn write_base(e: &mut Emitter, insn: &Instruction, slot: Slot) {
    let from = number(insn.op0_register());
    e.store(slot, from);
    if insn.op0_register().is_gpr32() {
        // mov dword gs:[slot + 4], 0
        e.bytes(&[0x65, 0xc7, 0x04, 0x25]);
        e.imm32(slot.0 + 4);
        e.imm32(0);
    }
}

/// The instruction with its memory operand reached through a borrowed register;
/// none for string instructions and the like, whose operand cannot be replaced.
pub fn through_scratch(e: &mut Emitter, insn: &Instruction) -> Option<SpanDetail> {
    let has_operand = (0..insn.op_count()).any(|op| insn.op_kind(op) == OpKind::Memory);
    let moves_stack = insn.stack_pointer_increment() != 0;
    if !has_operand || moves_stack || insn.memory_base().size() == 4 || insn.is_vsib() {
        return None;
    }
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(insn).used_registers();
    let free = |r: &Register| used.iter().all(|u| u.register().full_register() != *r);
    let scratch = CANDIDATES.into_iter().find(free)?;
    let register = number(scratch);

    e.store(SAVED_SCRATCH, register);
    let from = e.offset();
    e.load(register, APP_GS);
    let (base, index) = (insn.memory_base(), insn.memory_index());
    if base != Register::None {
        lea_indexed(e, register, register, number(base), 1);
    }
    if index != Register::None {
        lea_indexed(e, register, register, number(index), insn.memory_index_scale() as u8);
    }
    e.lea(register, register, insn.memory_displacement64() as i32);
    let mut replaced = *insn;
    replaced.set_segment_prefix(Register::None);
    replaced.set_memory_base(scratch);
    replaced.set_memory_index(Register::None);
    replaced.set_memory_displacement64(0);
    replaced.set_memory_displ_size(0);
    let mut encoder = Encoder::new(64);
    encoder.encode(&replaced, e.here()).ok()?;
    e.bytes(&encoder.take_buffer());
    e.load(register, SAVED_SCRATCH);
    Some(SpanDetail::Borrowed { from, register, slot: SAVED_SCRATCH })
}

/// `lea to, [base + index*scale]`.
pub fn lea_indexed(e: &mut Emitter, to: u8, base: u8, index: u8, scale: u8) {
    let rex = 0x48 | (to >> 3) << 2 | (index >> 3) << 1 | base >> 3;
    let sib = scale.trailing_zeros() as u8;
    e.bytes(&[rex, 0x8d, 0x44 | (to & 7) << 3, sib << 6 | (index & 7) << 3 | base & 7, 0]);
}

pub fn number(register: Register) -> u8 {
    register.full_register().number() as u8
}
