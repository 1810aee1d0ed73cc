//! Saving and restoring registers, limited to those that the application is shown.
//!
//! How many registers `xsave` and its like write depends on a bitmap in edx:eax and on the
//! CPU. An application that asked a CPU with fewer of them how much room they take, and
//! then wants all, must not get more.
//!
//! Which of the registers are as they are at first the CPU may know or not, and what is saved
//! says so. That would differ from run to run. So all are saved, and said to be in use.

use crate::context::{APP_GS, SAVED_RDX, SAVED_SCRATCH, SAVED_SCRATCH_2};
use crate::emit::{Emitter, reg};
use crate::gs::{lea_indexed, unused};
use crate::unit::SpanDetail;
use iced_x86::{Code, Encoder, Instruction, MemoryOperand, Mnemonic, Register};
use why_trace::register::number;

/// Whether the instruction takes a bitmap of registers in edx:eax.
pub fn takes_bitmap(insn: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(
        insn.mnemonic(),
        M::Xsave
            | M::Xsave64
            | M::Xsavec
            | M::Xsavec64
            | M::Xsaveopt
            | M::Xsaveopt64
            | M::Xrstor
            | M::Xrstor64
    )
}

/// Emits the instruction with a bitmap of x87, SSE and AVX registers at most, its operand
/// reached through a borrowed register. None if that cannot be encoded.
pub fn limited(
    e: &mut Emitter,
    insn: &Instruction,
    displacements: &mut Vec<u32>,
) -> Option<SpanDetail> {
    // The instruction uses rax and rdx, so this is neither.
    let pointer = unused(insn, &[]).next()?;
    let register = number(pointer);
    let gs = insn.segment_prefix() == Register::GS;
    let mut replaced = *insn;
    if gs {
        replaced.set_segment_prefix(Register::None);
    }
    replaced.set_memory_base(pointer);
    replaced.set_memory_index(Register::None);
    replaced.set_memory_displacement64(0);
    replaced.set_memory_displ_size(0);

    let loans = [(register, SAVED_SCRATCH), (reg::RAX, SAVED_SCRATCH_2), (reg::RDX, SAVED_RDX)];
    for (register, slot) in loans {
        e.store(slot, register);
    }
    let from = e.offset();
    if insn.is_ip_rel_memory_operand() {
        displacements.extend(e.load_address(register, insn.memory_displacement64()));
    } else {
        e.bytes(&encoded(&address_of(insn, pointer)?)?);
    }
    if gs {
        e.load(reg::RDX, APP_GS);
        lea_indexed(e, register, register, reg::RDX, 1);
    }
    e.bytes(&LOWEST_THREE_BITS);
    if let Some(code) = saving_all(insn) {
        replaced.set_code(code);
    }
    e.bytes(&encoded(&replaced)?);
    match insn.mnemonic() {
        Mnemonic::Xrstor | Mnemonic::Xrstor64 => {}
        Mnemonic::Xsavec | Mnemonic::Xsavec64 => say_compact(e, &replaced)?,
        _ => say_in_use(e, &replaced)?,
    }
    for (register, slot) in loans {
        e.load(register, slot);
    }
    Some(SpanDetail::Borrowed { from, loans: loans.map(Some) })
}

/// The instruction that saves the same registers at the same places, and leaves out none. (Of
/// three components at most, the compact form has none anywhere else.)
fn saving_all(insn: &Instruction) -> Option<Code> {
    match insn.mnemonic() {
        Mnemonic::Xsavec | Mnemonic::Xsaveopt => Some(Code::Xsave_mem),
        Mnemonic::Xsavec64 | Mnemonic::Xsaveopt64 => Some(Code::Xsave64_mem),
        _ => None,
    }
}

/// Where the header of a saved area tells which components are in use, and which form it has.
const IN_USE: i64 = 512;
const FORM: i64 = 520;

/// So far behind the operand of an instruction that has saved registers.
fn in_header(saved: &Instruction, offset: i64) -> MemoryOperand {
    let (base, segment) = (saved.memory_base(), saved.segment_prefix());
    MemoryOperand::new(base, Register::None, 1, offset, 1, false, segment)
}

/// Adds the bitmap in eax to the components in use. Spoils rax and rdx; the flags are kept in
/// rax meanwhile.
fn say_in_use(e: &mut Emitter, saved: &Instruction) -> Option<()> {
    e.bytes(&[0x89, 0xc2]); // mov edx, eax
    e.bytes(&[0x9f, 0x0f, 0x90, 0xc0]); // lahf; seto al
    let in_use = in_header(saved, IN_USE);
    e.bytes(&encoded(&Instruction::with2(Code::Or_rm8_r8, in_use, Register::DL).ok()?)?);
    e.bytes(&[0x04, 0x7f, 0x9e]); // add al, 0x7f; sahf
    Some(())
}

/// Says that the area has the compact form, with the components in eax and all of them in use.
/// Spoils rax and rdx.
fn say_compact(e: &mut Emitter, saved: &Instruction) -> Option<()> {
    let store = |offset: i64| {
        Instruction::with2(Code::Mov_rm64_r64, in_header(saved, offset), Register::RAX).ok()
    };
    e.bytes(&encoded(&store(IN_USE)?)?);
    e.bytes(&[0x48, 0xba, 0, 0, 0, 0, 0, 0, 0, 0x80]); // mov rdx, 1 << 63
    e.bytes(&[0x48, 0x8d, 0x04, 0x10]); // lea rax, [rax+rdx]
    e.bytes(&encoded(&store(FORM)?)?);
    Some(())
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

fn encoded(insn: &Instruction) -> Option<Vec<u8>> {
    let mut encoder = Encoder::new(64);
    encoder.encode(insn, 0).ok()?;
    Some(encoder.take_buffer())
}

/// Leaves the lowest three bits of eax, none of edx, and the flags alone: shifts by `lea`,
/// cuts by `movzx`.
const LOWEST_THREE_BITS: [u8; 32] = [
    0x8d, 0x04, 0xc5, 0, 0, 0, 0, // lea eax, [rax*8]
    0x8d, 0x04, 0x85, 0, 0, 0, 0, // lea eax, [rax*4]
    0x0f, 0xb6, 0xc0, // movzx eax, al
    0x8d, 0x04, 0xc5, 0, 0, 0, 0, // lea eax, [rax*8]
    0x0f, 0xb6, 0xc4, // movzx eax, ah
    0xba, 0, 0, 0, 0, // mov edx, 0
];
