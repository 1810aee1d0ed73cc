//! What a `switch` leads to, read from its table.

use super::image::Image;
use iced_x86::{Instruction, Mnemonic as M, OpKind, Register};
use std::collections::BTreeMap;
use why_flow::Program;

/// So far in front of a jump its table is looked for.
const FAR: usize = 48;
/// Longer ones are not tables.
const LONGEST: u64 = 4096;

/// Where the jump at an address can lead within its function.
pub fn targets(
    image: &Image,
    jump: u64,
    known: &BTreeMap<u64, Instruction>,
    entry: u64,
) -> Vec<u64> {
    let before = in_front(jump, known);
    let insn = known[&jump];
    let Some((table, from)) = table(&insn, &before) else {
        return Vec::new();
    };
    let entries = bound(&before).unwrap_or(LONGEST);
    let target = |index: u64| match from {
        None => word(image, table + 8 * index, 8),
        Some(from) => word(image, table + 4 * index, 4).map(|far| from.wrapping_add(far)),
    };
    let inside = |target: &u64| image.is_within(entry, *target);
    (0..entries).map_while(|index| target(index).filter(inside)).collect()
}

/// The instructions in front of one, the nearest first.
fn in_front(at: u64, known: &BTreeMap<u64, Instruction>) -> Vec<Instruction> {
    let mut all = Vec::new();
    let mut at = at;
    while all.len() < FAR {
        let near = known.range(at.saturating_sub(15)..at).rev();
        let Some((before, insn)) = near.into_iter().find(|(_, insn)| insn.next_ip() == at) else {
            break;
        };
        all.push(*insn);
        at = *before;
    }
    all
}

/// Where a table is, and from where its distances count if it holds no addresses.
fn table(jump: &Instruction, before: &[Instruction]) -> Option<(u64, Option<u64>)> {
    if jump.op0_kind() == OpKind::Memory {
        return Some((base(jump, before)?, None));
    }
    let register = jump.op0_register().full_register();
    let (index, insn) = definition(before, register)?;
    match insn.mnemonic() {
        M::Mov if insn.op1_kind() == OpKind::Memory => {
            Some((base(insn, &before[index + 1..])?, None))
        }
        M::Add if insn.op1_kind() == OpKind::Register => {
            let rest = &before[index + 1..];
            let other = insn.op1_register().full_register();
            // Either may be the distance.
            let distance = |register| {
                let (index, load) = definition(rest, register)?;
                let loads = load.mnemonic() == M::Movsxd && load.op1_kind() == OpKind::Memory;
                loads.then(|| base(load, &rest[index + 1..])).flatten()
            };
            let (table, from) = match distance(register) {
                Some(table) => (table, constant(rest, other)?),
                None => (distance(other)?, constant(rest, register)?),
            };
            Some((table, Some(from)))
        }
        _ => None,
    }
}

/// The nearest instruction that gives a register a value.
fn definition(before: &[Instruction], register: Register) -> Option<(usize, &Instruction)> {
    before.iter().enumerate().find(|(_, insn)| {
        insn.op_count() > 0
            && insn.op0_kind() == OpKind::Register
            && insn.op0_register().full_register() == register
            && !matches!(insn.mnemonic(), M::Cmp | M::Test | M::Push)
    })
}

/// The address that a register was given.
fn constant(before: &[Instruction], register: Register) -> Option<u64> {
    let (_, insn) = definition(before, register)?;
    match (insn.mnemonic(), insn.op1_kind()) {
        (M::Lea, _) if insn.is_ip_rel_memory_operand() => Some(insn.ip_rel_memory_address()),
        (M::Mov, OpKind::Register | OpKind::Memory) => None,
        (M::Mov, _) => Some(insn.immediate(1)),
        _ => None,
    }
}

/// What an operand adds an index to.
fn base(insn: &Instruction, before: &[Instruction]) -> Option<u64> {
    let displacement = insn.memory_displacement64();
    if insn.is_ip_rel_memory_operand() || insn.memory_index() == Register::None {
        return None;
    }
    match insn.memory_base() {
        Register::None => Some(displacement),
        register => Some(constant(before, register.full_register())?.wrapping_add(displacement)),
    }
}

/// How many entries there are, by the comparison that guards the jump.
fn bound(before: &[Instruction]) -> Option<u64> {
    let guards = |pair: &[Instruction]| {
        let [branch, compares] = pair else {
            return None;
        };
        let is_number = matches!(
            compares.op1_kind(),
            OpKind::Immediate8
                | OpKind::Immediate8to16
                | OpKind::Immediate8to32
                | OpKind::Immediate8to64
                | OpKind::Immediate16
                | OpKind::Immediate32
                | OpKind::Immediate32to64
        );
        if compares.mnemonic() != M::Cmp || !is_number {
            return None;
        }
        match branch.mnemonic() {
            M::Ja | M::Jbe => Some(compares.immediate(1) + 1),
            M::Jae | M::Jb => Some(compares.immediate(1)),
            _ => None,
        }
    };
    before.windows(2).find_map(guards)
}

fn word(image: &Image, at: u64, size: usize) -> Option<u64> {
    let mut bytes = [0; 8];
    if image.read(at, &mut bytes[..size]) < size {
        return None;
    }
    let word = u64::from_le_bytes(bytes);
    Some(if size == 4 { i64::from(word as u32 as i32) as u64 } else { word })
}
