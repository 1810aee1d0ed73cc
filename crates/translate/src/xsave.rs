//! Saving and restoring registers, limited to those that the application is shown.
//!
//! How many registers `xsave` and its like write depends on a bitmap in edx:eax and on the
//! CPU. An application that asked a CPU with fewer of them how much room they take, and
//! then wants all, must not get more.
//!
//! Which of the registers are as they are at first the CPU may know or not, and what is saved
//! says so. That would differ from run to run. So all are saved, and said to be in use.

use crate::context::{SAVED_RDX, SAVED_SCRATCH, SAVED_SCRATCH_2};
use crate::emit::{Emitter, reg};
use crate::gs::unused;
use crate::operand::{behind, encoded, through};
use crate::unit::SpanDetail;
use crate::x87;
use iced_x86::{Code, Instruction, Mnemonic, Register};
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
    let loans = [(register, SAVED_SCRATCH), (reg::RAX, SAVED_SCRATCH_2), (reg::RDX, SAVED_RDX)];
    for (register, slot) in loans {
        e.store(slot, register);
    }
    let from = e.offset();
    let mut replaced = through(e, insn, pointer, reg::RDX, displacements)?;
    e.bytes(&LOWEST_THREE_BITS);
    if let Some(code) = saving_all(insn) {
        replaced.set_code(code);
    }
    e.bytes(&encoded(&replaced)?);
    if !matches!(insn.mnemonic(), Mnemonic::Xrstor | Mnemonic::Xrstor64) {
        forget_address(e, &replaced)?;
    }
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

/// `mov edx, eax; lahf; seto al`, and `add al, 0x7f; sahf`.
const BITMAP_TO_EDX_FLAGS_TO_RAX: [u8; 6] = [0x89, 0xc2, 0x9f, 0x0f, 0x90, 0xc0];
const FLAGS_FROM_RAX: [u8; 3] = [0x04, 0x7f, 0x9e];

/// Clears the address of the last x87 instruction, which is one of the cache, if the bitmap in eax
/// says that it was saved. Spoils rdx.
fn forget_address(e: &mut Emitter, saved: &Instruction) -> Option<()> {
    let clear = Instruction::with2(x87::CLEAR, behind(saved, x87::SAVED_ADDRESS), 0).ok()?;
    let clear = encoded(&clear)?;
    e.bytes(&BITMAP_TO_EDX_FLAGS_TO_RAX);
    e.bytes(&[0xf6, 0xc2, 1]); // test dl, 1
    e.bytes(&[0x74, clear.len() as u8]); // jz behind what clears
    e.bytes(&clear);
    e.bytes(&FLAGS_FROM_RAX);
    e.bytes(&[0x89, 0xd0]); // mov eax, edx
    Some(())
}

/// Adds the bitmap in eax to the components in use. Spoils rax and rdx; the flags are kept in
/// rax meanwhile.
fn say_in_use(e: &mut Emitter, saved: &Instruction) -> Option<()> {
    e.bytes(&BITMAP_TO_EDX_FLAGS_TO_RAX);
    let in_use = behind(saved, IN_USE);
    e.bytes(&encoded(&Instruction::with2(Code::Or_rm8_r8, in_use, Register::DL).ok()?)?);
    e.bytes(&FLAGS_FROM_RAX);
    Some(())
}

/// Says that the area has the compact form, with the components in eax and all of them in use.
/// Spoils rax and rdx.
fn say_compact(e: &mut Emitter, saved: &Instruction) -> Option<()> {
    let store = |offset: i64| {
        Instruction::with2(Code::Mov_rm64_r64, behind(saved, offset), Register::RAX).ok()
    };
    e.bytes(&encoded(&store(IN_USE)?)?);
    e.bytes(&[0x48, 0xba, 0, 0, 0, 0, 0, 0, 0, 0x80]); // mov rdx, 1 << 63
    e.bytes(&[0x48, 0x8d, 0x04, 0x10]); // lea rax, [rax+rdx]
    e.bytes(&encoded(&store(FORM)?)?);
    Some(())
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
