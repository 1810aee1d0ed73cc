//! Storing the state of the x87 unit without an address of the cache.
//!
//! The CPU remembers where the last x87 instruction was: in the cache, and so elsewhere in each
//! run. A program that stores that gets zero, which is also what `fxsave` stores on many CPUs. (What
//! `xsave` stores, [`crate::xsave`] sees to.)

use crate::context::{SAVED_SCRATCH, SAVED_SCRATCH_2};
use crate::emit::Emitter;
use crate::gs::unused;
use crate::operand::{behind, encoded, through};
use crate::unit::SpanDetail;
use iced_x86::{Code, Instruction};
use why_trace::register::number;

/// Where the areas of `fxsave` and `xsave` hold the address, and what clears it.
pub const SAVED_ADDRESS: i64 = 8;
pub const CLEAR: Code = Code::Mov_rm64_imm32;

/// Whether the instruction stores the address of another one.
pub fn stores_address(insn: &Instruction) -> bool {
    place_of_address(insn).is_some()
}

/// Where in the operand the address is, and what clears it there.
fn place_of_address(insn: &Instruction) -> Option<(i64, Code)> {
    match insn.code() {
        Code::Fnstenv_m14byte | Code::Fnsave_m94byte => Some((6, Code::Mov_rm16_imm16)),
        Code::Fnstenv_m28byte | Code::Fnsave_m108byte => Some((12, Code::Mov_rm32_imm32)),
        Code::Fxsave_m512byte | Code::Fxsave64_m512byte => Some((SAVED_ADDRESS, CLEAR)),
        _ => None,
    }
}

/// Emits the instruction, its operand reached through a borrowed register, and clears the
/// address. None if that cannot be encoded.
pub fn without_address(
    e: &mut Emitter,
    insn: &Instruction,
    displacements: &mut Vec<u32>,
) -> Option<SpanDetail> {
    let (place, clearing) = place_of_address(insn)?;
    let mut free = unused(insn, &[]);
    let (pointer, spare) = (free.next()?, free.next()?);
    let loans = [(number(pointer), SAVED_SCRATCH), (number(spare), SAVED_SCRATCH_2)];
    for (register, slot) in loans {
        e.store(slot, register);
    }
    let from = e.offset();
    let stored = through(e, insn, pointer, number(spare), displacements)?;
    e.bytes(&encoded(&stored)?);
    let clear = Instruction::with2(clearing, behind(&stored, place), 0).ok()?;
    e.bytes(&encoded(&clear)?);
    for (register, slot) in loans {
        e.load(register, slot);
    }
    let [pointer, spare] = loans.map(Some);
    Some(SpanDetail::Borrowed { from, loans: [pointer, spare, None] })
}
