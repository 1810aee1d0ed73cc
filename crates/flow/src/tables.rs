//! Tables of jumps, as compilers make them of a `switch`.
//!
//! A table holds addresses, or distances from its own beginning; the jump's register is loaded
//! from it. How long it is, is told by the comparison in front, or else it ends where what it
//! holds leads out of the function.

use crate::Program;
use iced_x86::{Instruction, Mnemonic as M, OpKind, Register};

/// Longer ones are not tables.
const LONGEST: u64 = 4096;

struct Table {
    at: u64,
    entry: Entry,
}

#[derive(Clone, Copy)]
enum Entry {
    Address,
    /// Four bytes with a sign, counted from there.
    Distance {
        from: u64,
    },
}

/// Where the indirect jump that ends a way can lead by a table.
pub fn targets(program: &dyn Program, entry: u64, way: &[Instruction]) -> Vec<u64> {
    let Some(table) = find(way) else {
        return Vec::new();
    };
    let mut targets = Vec::new();
    for index in 0..length(way).unwrap_or(LONGEST) {
        let target = match table.entry {
            Entry::Address => read(program, table.at + 8 * index).map(u64::from_le_bytes),
            Entry::Distance { from } => read(program, table.at + 4 * index)
                .map(|bytes| from.wrapping_add_signed(i32::from_le_bytes(bytes).into())),
        };
        match target.filter(|target| program.is_within(entry, *target)) {
            Some(target) => targets.push(target),
            None => break,
        }
    }
    targets
}

fn find(way: &[Instruction]) -> Option<Table> {
    let (jump, before) = way.split_last()?;
    if jump.op0_kind() == OpKind::Memory {
        // jmp [table + 8 * index]
        return addresses(jump, before);
    }
    let loaded = last_write(before, jump.op0_register())?;
    let (insn, before) = (&before[loaded], &before[..loaded]);
    match insn.mnemonic() {
        M::Mov if insn.op1_kind() == OpKind::Memory => addresses(insn, before),
        M::Add => distances(insn, before),
        _ => None,
    }
}

/// An instruction that uses an entry of addresses.
fn addresses(insn: &Instruction, before: &[Instruction]) -> Option<Table> {
    if insn.memory_index_scale() != 8 || insn.memory_index() == Register::None {
        return None;
    }
    let displacement = insn.memory_displacement64();
    let at = match insn.memory_base() {
        Register::None => displacement,
        base => constant(before, base)?.wrapping_add(displacement),
    };
    Some(Table { at, entry: Entry::Address })
}

/// An addition of a distance and the address that it is counted from.
fn distances(add: &Instruction, before: &[Instruction]) -> Option<Table> {
    let registers = [add.op0_register(), add.op1_register()];
    registers.into_iter().find_map(|register| {
        let loaded = last_write(before, register)?;
        let (load, earlier) = (&before[loaded], &before[..loaded]);
        let is_load = matches!(load.mnemonic(), M::Movsxd | M::Mov)
            && load.op1_kind() == OpKind::Memory
            && load.memory_size().size() == 4;
        let other = registers.into_iter().find(|other| *other != register)?;
        let from = is_load.then(|| constant(before, other))??;
        let parts = [load.memory_base(), load.memory_index()];
        let base = parts.into_iter().find_map(|part| constant(earlier, part))?;
        let at = base.wrapping_add(load.memory_displacement64());
        Some(Table { at, entry: Entry::Distance { from } })
    })
}

/// How many entries a table has, by the comparison that guards the jump.
fn length(way: &[Instruction]) -> Option<u64> {
    let guard = way.iter().rposition(|insn| matches!(insn.mnemonic(), M::Ja | M::Jae))?;
    let compared = way[..guard].iter().rfind(|insn| insn.mnemonic() == M::Cmp)?;
    let is_number = !matches!(compared.op1_kind(), OpKind::Register | OpKind::Memory);
    let more = u64::from(way[guard].mnemonic() == M::Ja);
    let length = is_number.then(|| compared.immediate(1).wrapping_add(more))?;
    (1..=LONGEST).contains(&length).then_some(length)
}

/// The address that a register was given.
fn constant(before: &[Instruction], register: Register) -> Option<u64> {
    if register == Register::None {
        return None;
    }
    let insn = &before[last_write(before, register)?];
    match insn.mnemonic() {
        M::Lea if insn.is_ip_rel_memory_operand() => Some(insn.ip_rel_memory_address()),
        M::Mov if insn.op1_kind() != OpKind::Register && insn.op1_kind() != OpKind::Memory => {
            Some(insn.immediate(1))
        }
        _ => None,
    }
}

/// The last instruction that has this register as its first operand, and is no comparison.
fn last_write(before: &[Instruction], register: Register) -> Option<usize> {
    before.iter().rposition(|insn| {
        insn.op_count() > 0
            && insn.op0_kind() == OpKind::Register
            && insn.op0_register().full_register() == register.full_register()
            && !matches!(insn.mnemonic(), M::Cmp | M::Test | M::Push)
    })
}

fn read<const N: usize>(program: &dyn Program, at: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    (program.read(at, &mut bytes) == N).then_some(bytes)
}
