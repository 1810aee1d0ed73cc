//! Where a unit adds to the count of executed instructions.
//!
//! A plain addition to memory overwrites the flags, so it is put just before an
//! instruction that overwrites them, too, and cannot fault: then no state that the
//! application could see is ever wrong. Each way out of the unit should find that all
//! instructions up to it have been counted, because else it must correct the count on
//! the way, at several times the cost.
//!
//! Where no such instruction is, the sum is formed in a register: best in one that the
//! application is about to overwrite.

use crate::scan::{Flow, Followed, Scanned, frees_flags};
use iced_x86::{InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use why_trace::register::number;

/// So many instructions are added before one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addition {
    pub before: usize,
    pub instructions: u32,
    pub through: Through,
}

/// How an addition goes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// In memory: the flags may be overwritten there.
    Memory,
    /// In a register that the instruction overwrites and does not read. If it may fault,
    /// the register's value is needed until it has not.
    Overwritten { register: u8, may_fault: bool },
    /// In a register that the indirect branch borrows anyway.
    Branch,
    /// In a register that is borrowed for it.
    Borrowed,
}

/// Where additions look at the sum, one must come before the first way out: else a process
/// could go round without anybody looking.
pub fn plan(scanned: &[Scanned], looks: bool) -> Vec<Addition> {
    let mut additions: Vec<Addition> = Vec::new();
    let (mut start, mut counted) = (0, 0);
    for (index, insn) in scanned.iter().enumerate() {
        let last = index + 1 == scanned.len();
        let goes_elsewhere = looks && additions.is_empty() && may_go_elsewhere(insn);
        if !last && !may_leave(insn.flow) && !goes_elsewhere {
            continue;
        }
        let place = (start..=index).rev().find(|&i| frees_flags(&scanned[i].insn));
        if let Some(before) = place {
            let instructions = (index + 1 - counted) as u32;
            additions.push(Addition { before, instructions, through: Through::Memory });
            counted = index + 1;
        } else if looks && additions.is_empty() {
            let instructions = (index + 1) as u32;
            additions.push(Addition { before: 0, instructions, through: Through::Borrowed });
            counted = index + 1;
        }
        start = index + 1;
    }
    let rest = (scanned.len() - counted) as u32;
    if rest > 0 {
        // Behind the last branch there is no free place; and before what has been counted,
        // there may be an addition already.
        let (before, through) = cheapest(scanned, last_segment(scanned).max(counted));
        additions.push(Addition { before, instructions: rest, through });
    }
    additions
}

/// Where to count, from an instruction on, when the flags are nowhere free.
fn cheapest(scanned: &[Scanned], from: usize) -> (usize, Through) {
    let overwritten = |may: bool| {
        (from..scanned.len()).find_map(|index| {
            let through = overwrites(&scanned[index])?;
            matches!(through, Through::Overwritten { may_fault, .. } if may_fault == may)
                .then_some((index, through))
        })
    };
    let last = scanned.len() - 1;
    let branch = scanned[last].flow.is_indirect().then_some((last, Through::Branch));
    overwritten(false).or(branch).or_else(|| overwritten(true)).unwrap_or((from, Through::Borrowed))
}

/// The register that the instruction overwrites without reading it.
fn overwrites(scanned: &Scanned) -> Option<Through> {
    use Mnemonic as M;
    let insn = &scanned.insn;
    let written = insn.op0_register();
    let plain = matches!(insn.mnemonic(), M::Mov | M::Movzx | M::Movsx | M::Movsxd | M::Lea)
        && insn.op0_kind() == OpKind::Register
        && (written.is_gpr32() || written.is_gpr64())
        && written.full_register() != Register::RSP
        && insn.segment_prefix() != Register::GS;
    if !plain {
        return None;
    }
    let mut factory = InstructionInfoFactory::new();
    let same = |r: Register| r.full_register() == written.full_register();
    let reads = factory
        .info(insn)
        .used_registers()
        .iter()
        .any(|u| same(u.register()) && u.access() != OpAccess::Write);
    let source = insn.op1_register();
    let may_fault = match insn.op1_kind() {
        OpKind::Memory => insn.mnemonic() != M::Lea,
        OpKind::Register => !source.is_gpr(),
        _ => false,
    };
    (!reads).then(|| Through::Overwritten { register: number(written), may_fault })
}

/// A return that need not find the address of the call that it belongs to.
fn may_go_elsewhere(scanned: &Scanned) -> bool {
    matches!(scanned.followed, Some(Followed::Return { certain: false, .. }))
}

/// A call that goes wrong is rare; what it costs then does not matter.
fn may_leave(flow: Flow) -> bool {
    matches!(flow, Flow::Conditional(..) | Flow::Counted(_))
}

/// The first instruction behind the last branch that does not end the unit.
fn last_segment(scanned: &[Scanned]) -> usize {
    let body = &scanned[..scanned.len() - 1];
    body.iter().rposition(|s| may_leave(s.flow)).map_or(0, |branch| branch + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::{Limits, scan};

    /// A call of a function that may overwrite its return address, and what follows.
    const CALL_AND_RETURN: &[u8] = &[
        0xe8, 0x12, 0, 0, 0,    // call f
        0x53, // push rbx
        0x53, // push rbx
        0xe9, 0, 0, 0x10, 0, // jmp out of what can be read
        0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, //
        0x48, 0x89, 0x37, // f: mov [rdi], rsi
        0xc3, // ret
        0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
    ];

    #[test]
    fn every_instruction_is_counted_once_wherever_an_addition_looks() {
        let pc = 0x1000;
        let fetch = &mut |at: u64, buffer: &mut [u8]| {
            let from = CALL_AND_RETURN.get((at - pc) as usize..).unwrap_or_default();
            let length = from.len().min(buffer.len());
            buffer[..length].copy_from_slice(&from[..length]);
            length
        };
        let limits = Limits { instructions: 64, branches: 4, repeated: 0 };
        let scanned = scan(pc, fetch, &limits);
        assert_eq!(scanned.len(), 6, "the call and the return are followed");
        for looks in [false, true] {
            let additions = plan(&scanned, looks);
            let total: u32 = additions.iter().map(|addition| addition.instructions).sum();
            assert_eq!(total, 6);
            // Of two at the same place, only one would be made.
            let mut places: Vec<usize> = additions.iter().map(|a| a.before).collect();
            places.dedup();
            assert_eq!(places.len(), additions.len(), "{additions:?}");
        }
    }
}
