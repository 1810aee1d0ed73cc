//! Instructions that bring bytes from one place to another, unchanged.

use crate::cells;
use crate::general::{self, read_operands};
use crate::parts::{Part, Place, cleared, is_vex, place};
use iced_x86::{Instruction, InstructionInfo, Mnemonic as M, OpKind, Register};

pub fn parts(insn: &Instruction, info: &InstructionInfo) -> Option<Vec<Part>> {
    let operand = |index: u32| place(insn, info, index);
    match insn.mnemonic() {
        M::Mov
        | M::Movaps
        | M::Movups
        | M::Movapd
        | M::Movupd
        | M::Movdqa
        | M::Movdqu
        | M::Lddqu
        | M::Movnti
        | M::Movntdq
        | M::Movntps
        | M::Movntpd
        | M::Movntdqa
        | M::Vmovaps
        | M::Vmovups
        | M::Vmovapd
        | M::Vmovupd
        | M::Vmovdqa
        | M::Vmovdqu
        | M::Vmovdqu8
        | M::Vmovdqu16
        | M::Vmovdqu32
        | M::Vmovdqu64
        | M::Vmovdqa32
        | M::Vmovdqa64
        | M::Vlddqu
        | M::Vmovntdq
        | M::Vmovntps
        | M::Vmovntpd
        | M::Vmovntdqa => whole(insn, operand(0)?, read_operands(insn, info).pop()),
        M::Movd | M::Vmovd if !is_mmx(insn) => low(insn, operand(0)?, operand(1)?.bytes(0..4)),
        M::Movq | M::Vmovq if !is_mmx(insn) => low(insn, operand(0)?, operand(1)?.bytes(0..8)),
        M::Movss | M::Vmovss => scalar(insn, info, 4),
        M::Movsd | M::Vmovsd => scalar(insn, info, 8),
        M::Movlps | M::Movlpd | M::Vmovlps | M::Vmovlpd if insn.op0_kind() == OpKind::Memory => {
            Some(vec![Part::copy(operand(0)?, operand(1)?.bytes(0..8))])
        }
        M::Movhps | M::Movhpd | M::Vmovhps | M::Vmovhpd if insn.op0_kind() == OpKind::Memory => {
            Some(vec![Part::copy(operand(0)?, operand(1)?.bytes(8..16))])
        }
        M::Movzx => low(insn, operand(0)?, operand(1)?),
        M::Movsx | M::Movsxd => signed(insn, operand(0)?, operand(1)?),
        M::Cbw => extended(insn, Register::AX, Register::AL),
        M::Cwde => extended(insn, Register::EAX, Register::AX),
        M::Cdqe => extended(insn, Register::RAX, Register::EAX),
        M::Cwd => sign_of(insn, Register::DX, Register::AX),
        M::Cdq => sign_of(insn, Register::EDX, Register::EAX),
        M::Cqo => sign_of(insn, Register::RDX, Register::RAX),
        M::Lea => {
            let registers = [insn.memory_base(), insn.memory_index()];
            let sources = registers.into_iter().filter_map(Place::of).collect();
            Some(with_cleared(insn, Part::computed(operand(0)?, sources)))
        }
        M::Bswap => reversed(insn, operand(0)?, operand(0)?),
        M::Movbe => reversed(insn, operand(0)?, operand(1)?),
        M::Xchg => {
            let (one, other) = (operand(0)?, operand(1)?);
            let mut parts = vec![Part::copy(one.clone(), other.clone()), Part::copy(other, one)];
            let registers = (0..2).filter(|i| insn.op_kind(*i) == OpKind::Register);
            parts.extend(registers.filter_map(|i| cleared(insn, insn.op_register(i))));
            Some(parts)
        }
        M::Xadd => {
            let (one, other) = (operand(0)?, operand(1)?);
            let both = vec![one.clone(), other.clone()];
            let mut parts = vec![Part::computed(one.clone(), both.clone()), Part::copy(other, one)];
            let registers = (0..2).filter(|i| insn.op_kind(*i) == OpKind::Register);
            parts.extend(registers.filter_map(|i| cleared(insn, insn.op_register(i))));
            parts.extend(general::flags(insn, &both));
            Some(parts)
        }
        mnemonic if is_conditional_move(mnemonic) => {
            let (to, from) = (operand(0)?, operand(1)?);
            let condition = cells::flags(insn.rflags_read()).map(Place::flag).collect();
            let chosen = Part { whole: condition, ..Part::lanes(to.clone(), 1, vec![from, to]) };
            Some(with_cleared(insn, chosen))
        }
        _ => None,
    }
}

/// All bytes, or a number.
fn whole(insn: &Instruction, to: Place, from: Option<Place>) -> Option<Vec<Part>> {
    let moved = match from {
        Some(from) if from.size() == to.size() => Part::copy(to, from),
        // A segment's register, of which nothing is known.
        Some(_) => return None,
        None => Part::constant(to),
    };
    Some(with_cleared(insn, moved))
}

/// All bytes, the last first.
fn reversed(insn: &Instruction, to: Place, from: Place) -> Option<Vec<Part>> {
    let size = to.size()?;
    let byte = |at: u32| Part::copy(to.bytes(at..at + 1), from.bytes(size - 1 - at..size - at));
    Some((0..size).map(byte).chain(cleared_operand(insn)).collect())
}

/// The low bytes; the rest of a register is cleared.
fn low(insn: &Instruction, to: Place, from: Place) -> Option<Vec<Part>> {
    let (all, given) = (to.size()?, from.size()?);
    let size = all.min(given);
    let mut parts = vec![Part::copy(to.bytes(0..size), from.bytes(0..size))];
    if size < all {
        parts.push(Part::constant(to.bytes(size..all)));
    }
    parts.extend(cleared_operand(insn));
    Some(parts)
}

/// The low bytes, and the sign of the highest of them above.
fn signed(insn: &Instruction, to: Place, from: Place) -> Option<Vec<Part>> {
    let (all, given) = (to.size()?, from.size()?);
    let mut parts = vec![Part::copy(to.bytes(0..given), from.clone())];
    if given < all {
        let sign = from.bytes(given - 1..given);
        parts.push(Part::computed(to.bytes(given..all), vec![sign]));
    }
    parts.extend(cleared_operand(insn));
    Some(parts)
}

/// A register above a part of it.
fn extended(insn: &Instruction, to: Register, from: Register) -> Option<Vec<Part>> {
    let (all, given) = (to.size() as u32, from.size() as u32);
    let (to_place, from) = (Place::of(to)?, Place::of(from)?);
    let sign = from.bytes(given - 1..given);
    let mut parts = vec![Part::computed(to_place.bytes(given..all), vec![sign])];
    parts.extend(cleared(insn, to));
    Some(parts)
}

/// A register that only tells the sign of another.
fn sign_of(insn: &Instruction, to: Register, from: Register) -> Option<Vec<Part>> {
    let size = from.size() as u32;
    let sign = Place::of(from)?.bytes(size - 1..size);
    let mut parts = vec![Part::computed(Place::of(to)?, vec![sign])];
    parts.extend(cleared(insn, to));
    Some(parts)
}

/// One floating point number: a load clears what is above, a move between registers does not.
fn scalar(insn: &Instruction, info: &InstructionInfo, size: u32) -> Option<Vec<Part>> {
    let to = place(insn, info, 0)?;
    if insn.op0_kind() == OpKind::Memory {
        return Some(vec![Part::copy(to, place(insn, info, 1)?.bytes(0..size))]);
    }
    let last = place(insn, info, insn.op_count() - 1)?;
    let low = Part::copy(to.bytes(0..size), last.bytes(0..size));
    let rest = to.bytes(size..16);
    let mut parts = vec![low];
    if insn.op_count() == 3 {
        parts.push(Part::copy(rest, place(insn, info, 1)?.bytes(size..16)));
    } else if insn.op1_kind() == OpKind::Memory {
        parts.push(Part::constant(rest));
    }
    if is_vex(insn) {
        parts.extend(cleared_operand(insn));
    }
    Some(parts)
}

fn with_cleared(insn: &Instruction, part: Part) -> Vec<Part> {
    [part].into_iter().chain(cleared_operand(insn)).collect()
}

/// What is cleared of the first operand, if it is a register.
fn cleared_operand(insn: &Instruction) -> Option<Part> {
    (insn.op0_kind() == OpKind::Register).then(|| cleared(insn, insn.op0_register()))?
}

fn is_mmx(insn: &Instruction) -> bool {
    (0..insn.op_count()).any(|operand| {
        insn.op_kind(operand) == OpKind::Register && insn.op_register(operand).is_mm()
    })
}

fn is_conditional_move(mnemonic: M) -> bool {
    use M::{
        Cmova, Cmovae, Cmovb, Cmovbe, Cmove, Cmovg, Cmovge, Cmovl, Cmovle, Cmovne, Cmovno, Cmovnp,
        Cmovns, Cmovo, Cmovp, Cmovs,
    };
    matches!(
        mnemonic,
        Cmova
            | Cmovae
            | Cmovb
            | Cmovbe
            | Cmove
            | Cmovg
            | Cmovge
            | Cmovl
            | Cmovle
            | Cmovne
            | Cmovno
            | Cmovnp
            | Cmovns
            | Cmovo
            | Cmovp
            | Cmovs
    )
}
