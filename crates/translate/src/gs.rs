//! Instructions that use the application's own GS base.
//!
//! The hardware's GS base belongs to the engine, so the application's is kept in
//! the context, and an operand relative to it is reached through a borrowed register.

use crate::context::{APP_GS, SAVED_SCRATCH, SAVED_SCRATCH_2, Slot};
use crate::emit::Emitter;
use crate::unit::SpanDetail;
use iced_x86::{Encoder, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};
use why_trace::register::number;

const CANDIDATES: [Register; 8] = [
    Register::RBX,
    Register::RSI,
    Register::RDI,
    Register::RAX,
    Register::RDX,
    Register::RCX,
    Register::R8,
    Register::R9,
];

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
    let (base, index) = (insn.memory_base(), insn.memory_index());
    let whole = |r: Register| r == Register::None || r.is_gpr64();
    let displacement = insn.memory_displacement64() as i32;
    let reaches = i64::from(displacement) == insn.memory_displacement64() as i64;
    if !has_operand || moves_stack || !whole(base) || !whole(index) || !reaches {
        return None;
    }
    let scratch = unused(insn, &[]).next()?;
    let register = number(scratch);
    let mut replaced = *insn;
    replaced.set_segment_prefix(Register::None);
    replaced.set_memory_base(scratch);
    replaced.set_memory_index(Register::None);
    replaced.set_memory_displacement64(0);
    replaced.set_memory_displ_size(0);
    let mut encoder = Encoder::new(64);
    encoder.encode(&replaced, 0).ok()?;

    e.store(SAVED_SCRATCH, register);
    let from = e.offset();
    e.load(register, APP_GS);
    if base != Register::None {
        // The stack pointer can be a base, not an index.
        lea_indexed(e, register, number(base), register, 1);
    }
    if index != Register::None {
        lea_indexed(e, register, register, number(index), insn.memory_index_scale() as u8);
    }
    e.lea(register, register, displacement);
    e.bytes(&encoder.take_buffer());
    e.load(register, SAVED_SCRATCH);
    let loans = [Some((register, SAVED_SCRATCH)), None, None];
    Some(SpanDetail::Borrowed { from, loans })
}

/// Two registers that hold the two GS bases while the application's is in force.
#[derive(Clone, Copy)]
pub struct Switch {
    own: u8,
    application: u8,
}

impl Switch {
    /// Registers for it, which neither the instruction uses nor `taken` names.
    pub fn new(insn: &Instruction, taken: &[Register]) -> Switch {
        let mut unused = unused(insn, taken).map(number);
        let mut next = || unused.next().expect("no instruction uses so many registers");
        Switch { own: next(), application: next() }
    }

    pub fn loans(self) -> [(u8, Slot); 2] {
        [(self.own, SAVED_SCRATCH), (self.application, SAVED_SCRATCH_2)]
    }

    /// Puts the application's GS base in force. The offset from which on both
    /// registers are borrowed.
    pub fn to_application(self, e: &mut Emitter) -> u32 {
        for (register, slot) in self.loans() {
            e.store(slot, register);
        }
        let from = e.offset();
        base_form(e, 1, self.own);
        e.load(self.application, APP_GS);
        base_form(e, 3, self.application);
        from
    }

    /// Puts the engine's back.
    pub fn to_own(self, e: &mut Emitter) {
        base_form(e, 3, self.own);
        for (register, slot) in self.loans() {
            e.load(register, slot);
        }
    }
}

/// `rdgsbase` (1) or `wrgsbase` (3).
fn base_form(e: &mut Emitter, operation: u8, register: u8) {
    let modrm = 0xc0 | operation << 3 | register & 7;
    e.bytes(&[0xf3, 0x48 | register >> 3, 0x0f, 0xae, modrm]);
}

/// Registers that neither the instruction uses nor `taken` names.
pub fn unused(insn: &Instruction, taken: &[Register]) -> impl Iterator<Item = Register> {
    let mut factory = InstructionInfoFactory::new();
    let mut used = taken.to_vec();
    used.extend(factory.info(insn).used_registers().iter().map(|u| u.register().full_register()));
    CANDIDATES.into_iter().filter(move |r| !used.contains(r))
}

/// `lea to, [base + index*scale]`.
pub fn lea_indexed(e: &mut Emitter, to: u8, base: u8, index: u8, scale: u8) {
    let rex = 0x48 | (to >> 3) << 2 | (index >> 3) << 1 | base >> 3;
    let sib = scale.trailing_zeros() as u8;
    e.bytes(&[rex, 0x8d, 0x44 | (to & 7) << 3, sib << 6 | (index & 7) << 3 | base & 7, 0]);
}
