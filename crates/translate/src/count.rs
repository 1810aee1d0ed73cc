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
    /// Whether it also looks at the sum.
    pub looks: bool,
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

/// Where a unit looks at the sum, it does so once, and before the first way out: else a
/// process could go round without anybody looking.
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
            additions.push(Addition {
                before,
                instructions,
                through: Through::Memory,
                looks: false,
            });
            counted = index + 1;
        } else if looks && additions.is_empty() {
            let instructions = (index + 1) as u32;
            let through = Through::Borrowed;
            additions.push(Addition { before: 0, instructions, through, looks: false });
            counted = index + 1;
        }
        start = index + 1;
    }
    let rest = (scanned.len() - counted) as u32;
    if rest > 0 {
        // Behind the last branch there is no free place. Where something is added already,
        // nothing more can be.
        let free = additions.last().map_or(0, |addition| addition.before + 1);
        let (before, through) = cheapest(scanned, last_segment(scanned).max(free));
        additions.push(Addition { before, instructions: rest, through, looks: false });
    }
    if looks && let Some(first) = additions.first_mut() {
        first.looks = true;
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

/// An indirect branch that need not lead where it is expected to.
fn may_go_elsewhere(scanned: &Scanned) -> bool {
    matches!(scanned.followed, Some(Followed::Expected { certain: false, .. }))
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

    /// Instructions to make programs of; 0xe8 is followed by a distance that is put in.
    const PARTS: [&[u8]; 10] = [
        &[0x48, 0x8d, 0x45, 0xf8],       // lea rax, [rbp-8]
        &[0x48, 0x89, 0xc7],             // mov rdi, rax
        &[0x48, 0x01, 0xd8],             // add rax, rbx
        &[0x55],                         // push rbp
        &[0x5d],                         // pop rbp
        &[0x48, 0x8b, 0x03],             // mov rax, [rbx]
        &[0x11, 0xc0],                   // adc eax, eax
        &[0x74, 0x02],                   // je +2
        &[0xe8, 0x00, 0x00, 0x00, 0x00], // call
        &[0xc3],                         // ret
    ];

    #[test]
    fn all_instructions_are_counted_once_and_each_addition_has_a_place_of_its_own() {
        let mut random = 12345_u64;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize % below
        };
        for _ in 0..20_000 {
            let mut code: Vec<u8> = Vec::new();
            for _ in 0..40 {
                code.extend(PARTS[next(PARTS.len())]);
                let end = code.len();
                if code.ends_with(PARTS[8]) {
                    code[end - 4] = next(60) as u8;
                }
            }
            let mut fetch = |pc: u64, buffer: &mut [u8]| {
                let rest = code.get((pc - 0x1000) as usize..).unwrap_or_default();
                let size = rest.len().min(buffer.len());
                buffer[..size].copy_from_slice(&rest[..size]);
                size
            };
            let limits = Limits {
                instructions: 64,
                branches: 4,
                passes_loops: false,
                taken: &|_, _| false,
                leads_to: &|_, _| None,
                repeated: 16,
            };
            let scanned = scan(0x1000, &mut fetch, &limits);
            if scanned.is_empty() {
                continue;
            }
            for looks in [false, true] {
                let plan = plan(&scanned, looks);
                let sum: u32 = plan.iter().map(|addition| addition.instructions).sum();
                assert_eq!(sum as usize, scanned.len(), "{code:02x?}: {plan:?}");
                let in_order = plan.windows(2).all(|pair| pair[0].before < pair[1].before);
                assert!(in_order, "{code:02x?}: {plan:?}");
            }
        }
    }
}
