//! Vector instructions that bring lanes elsewhere, as a number in the instruction says.

use crate::parts::{Part, Place, cleared, is_vex, place};
use iced_x86::{Instruction, InstructionInfo, Mnemonic as M, OpKind};

/// Where a lane of the result comes from.
#[derive(Clone, Copy)]
enum From {
    /// This lane of an operand.
    Operand(u32, u32),
    Zero,
}

pub fn parts(insn: &Instruction, info: &InstructionInfo) -> Option<Vec<Part>> {
    if insn.op_count() < 2 || insn.op0_kind() != OpKind::Register {
        return None;
    }
    let to = place(insn, info, 0)?;
    if !insn.op0_register().is_vector_register() {
        return extracted(insn, info, to);
    }
    let (width, lanes) = lanes(insn, to.size()?)?;
    let mut parts = Vec::new();
    for (lane, from) in (0..).zip(lanes) {
        let to = to.bytes(lane * width..(lane + 1) * width);
        parts.push(match from {
            From::Zero => Part::constant(to),
            From::Operand(operand, lane) => {
                let from = place(insn, info, operand)?;
                let bytes = lane * width..(lane + 1) * width;
                if from.size()? < bytes.end {
                    return None;
                }
                Part::copy(to, from.bytes(bytes))
            }
        });
    }
    parts.extend(cleared(insn, insn.op0_register()));
    Some(parts)
}

/// A lane that goes to a general register.
fn extracted(insn: &Instruction, info: &InstructionInfo, to: Place) -> Option<Vec<Part>> {
    let width = match insn.mnemonic() {
        M::Pextrb | M::Vpextrb => 1,
        M::Pextrw | M::Vpextrw => 2,
        M::Pextrd | M::Vpextrd | M::Extractps | M::Vextractps => 4,
        M::Pextrq | M::Vpextrq => 8,
        _ => return None,
    };
    let from = place(insn, info, 1)?;
    let lane = u32::from(insn.immediate8()) % (from.size()? / width);
    let mut parts =
        vec![Part::copy(to.bytes(0..width), from.bytes(lane * width..(lane + 1) * width))];
    if width < to.size()? {
        parts.push(Part::constant(to.bytes(width..to.size()?)));
    }
    parts.extend(cleared(insn, insn.op0_register()));
    Some(parts)
}

/// The width of lanes and where each comes from, for a result of so many bytes.
fn lanes(insn: &Instruction, size: u32) -> Option<(u32, Vec<From>)> {
    let by = || u32::from(insn.immediate8());
    // The two operands that are read: the first is also the result where there are only two.
    let (one, other) = if is_vex(insn) { (1, 2) } else { (0, 1) };
    let blocks = size / 16;
    let in_blocks = |width: u32, from: &dyn Fn(u32) -> From| {
        let count = 16 / width;
        let moved = |block: u32, from: From| match from {
            From::Operand(operand, lane) => From::Operand(operand, block * count + lane),
            From::Zero => From::Zero,
        };
        let lanes =
            (0..blocks).flat_map(|block| (0..count).map(move |lane| moved(block, from(lane))));
        Some((width, lanes.collect()))
    };
    let unpacked = |width: u32, high: u32| {
        let half = 8 / width;
        in_blocks(width, &|lane| {
            From::Operand(if lane % 2 == 0 { one } else { other }, high * half + lane / 2)
        })
    };
    match insn.mnemonic() {
        M::Pshufd | M::Vpshufd => in_blocks(4, &|lane| From::Operand(1, by() >> (2 * lane) & 3)),
        M::Vpermilps if has_number(insn) => {
            in_blocks(4, &|lane| From::Operand(1, by() >> (2 * lane) & 3))
        }
        M::Pshuflw | M::Vpshuflw => in_blocks(2, &|lane| match lane {
            0..4 => From::Operand(1, by() >> (2 * lane) & 3),
            _ => From::Operand(1, lane),
        }),
        M::Pshufhw | M::Vpshufhw => in_blocks(2, &|lane| match lane {
            0..4 => From::Operand(1, lane),
            _ => From::Operand(1, 4 + (by() >> (2 * (lane - 4)) & 3)),
        }),
        M::Shufps | M::Vshufps => in_blocks(4, &|lane| {
            From::Operand(if lane < 2 { one } else { other }, by() >> (2 * lane) & 3)
        }),
        M::Shufpd | M::Vshufpd if size == 16 => in_blocks(8, &|lane| {
            From::Operand(if lane == 0 { one } else { other }, by() >> lane & 1)
        }),
        M::Punpcklbw | M::Vpunpcklbw => unpacked(1, 0),
        M::Punpcklwd | M::Vpunpcklwd => unpacked(2, 0),
        M::Punpckldq | M::Vpunpckldq | M::Unpcklps | M::Vunpcklps => unpacked(4, 0),
        M::Punpcklqdq | M::Vpunpcklqdq | M::Unpcklpd | M::Vunpcklpd => unpacked(8, 0),
        M::Punpckhbw | M::Vpunpckhbw => unpacked(1, 1),
        M::Punpckhwd | M::Vpunpckhwd => unpacked(2, 1),
        M::Punpckhdq | M::Vpunpckhdq | M::Unpckhps | M::Vunpckhps => unpacked(4, 1),
        M::Punpckhqdq | M::Vpunpckhqdq | M::Unpckhpd | M::Vunpckhpd => unpacked(8, 1),
        M::Movlhps | M::Vmovlhps => {
            in_blocks(8, &|lane| From::Operand(if lane == 0 { one } else { other }, 0))
        }
        M::Movhlps | M::Vmovhlps => {
            in_blocks(8, &|lane| From::Operand(if lane == 0 { other } else { one }, 1))
        }
        M::Movlps | M::Movlpd | M::Vmovlps | M::Vmovlpd => in_blocks(8, &|lane| {
            if lane == 0 { From::Operand(other, 0) } else { From::Operand(one, 1) }
        }),
        M::Movhps | M::Movhpd | M::Vmovhps | M::Vmovhpd => {
            in_blocks(8, &|lane| From::Operand(if lane == 0 { one } else { other }, 0))
        }
        M::Movddup | M::Vmovddup if size == 16 => in_blocks(8, &|_| From::Operand(1, 0)),
        M::Movsldup | M::Vmovsldup => in_blocks(4, &|lane| From::Operand(1, lane & !1)),
        M::Movshdup | M::Vmovshdup => in_blocks(4, &|lane| From::Operand(1, lane | 1)),
        M::Pslldq | M::Vpslldq => in_blocks(1, &|lane| match lane.checked_sub(by()) {
            Some(from) => From::Operand(one.min(insn.op_count() - 2), from),
            None => From::Zero,
        }),
        M::Psrldq | M::Vpsrldq => in_blocks(1, &|lane| match lane + by() {
            from @ 0..16 => From::Operand(one.min(insn.op_count() - 2), from),
            _ => From::Zero,
        }),
        M::Palignr | M::Vpalignr => in_blocks(1, &|lane| match lane + by() {
            from @ 0..16 => From::Operand(other, from),
            from @ 16..32 => From::Operand(one, from - 16),
            _ => From::Zero,
        }),
        M::Pinsrb | M::Vpinsrb => inserted(insn, 1, one, other),
        M::Pinsrw | M::Vpinsrw => inserted(insn, 2, one, other),
        M::Pinsrd | M::Vpinsrd => inserted(insn, 4, one, other),
        M::Pinsrq | M::Vpinsrq => inserted(insn, 8, one, other),
        M::Blendps | M::Vblendps | M::Vpblendd => blended(insn, size, 4, one, other),
        M::Blendpd | M::Vblendpd => blended(insn, size, 8, one, other),
        M::Pblendw | M::Vpblendw => in_blocks(2, &|lane| {
            From::Operand(if by() >> lane & 1 == 0 { one } else { other }, lane)
        }),
        M::Vpbroadcastb => broadcast(insn, size, 1),
        M::Vpbroadcastw => broadcast(insn, size, 2),
        M::Vpbroadcastd | M::Vbroadcastss => broadcast(insn, size, 4),
        M::Vpbroadcastq | M::Vbroadcastsd => broadcast(insn, size, 8),
        M::Vbroadcastf128 | M::Vbroadcasti128 => broadcast(insn, size, 16),
        M::Vinsertf128 | M::Vinserti128 => {
            Some((
                16,
                (0..2)
                    .map(|lane| {
                        if lane == by() & 1 { From::Operand(2, 0) } else { From::Operand(1, lane) }
                    })
                    .collect(),
            ))
        }
        M::Vextractf128 | M::Vextracti128 => Some((16, vec![From::Operand(1, by() & 1)])),
        M::Vperm2f128 | M::Vperm2i128 => {
            let half = |control: u32| match control {
                _ if control & 8 != 0 => From::Zero,
                _ => From::Operand(1 + (control >> 1 & 1), control & 1),
            };
            Some((16, vec![half(by() & 15), half(by() >> 4)]))
        }
        M::Vpermq | M::Vpermpd if has_number(insn) && size == 32 => {
            Some((8, (0..4).map(|lane| From::Operand(1, by() >> (2 * lane) & 3)).collect()))
        }
        _ => None,
    }
}

fn has_number(insn: &Instruction) -> bool {
    insn.op_kind(insn.op_count() - 1) == OpKind::Immediate8
}

fn inserted(insn: &Instruction, width: u32, one: u32, other: u32) -> Option<(u32, Vec<From>)> {
    let lanes = 16 / width;
    let at = u32::from(insn.immediate8()) % lanes;
    let from = |lane| if lane == at { From::Operand(other, 0) } else { From::Operand(one, lane) };
    Some((width, (0..lanes).map(from).collect()))
}

fn blended(
    insn: &Instruction,
    size: u32,
    width: u32,
    one: u32,
    other: u32,
) -> Option<(u32, Vec<From>)> {
    let chosen = u32::from(insn.immediate8());
    let from = |lane: u32| From::Operand(if chosen >> lane & 1 == 0 { one } else { other }, lane);
    Some((width, (0..size / width).map(from).collect()))
}

fn broadcast(insn: &Instruction, size: u32, width: u32) -> Option<(u32, Vec<From>)> {
    (insn.op1_register().is_vector_register() || insn.op1_kind() == OpKind::Memory)
        .then(|| (width, (0..size / width).map(|_| From::Operand(1, 0)).collect()))
}
