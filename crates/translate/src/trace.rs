//! Weaves the trace into a unit.
//!
//! A record is an eight-byte header, the id of the unit's exit, and the values from
//! which the unit's addresses follow: a value per base register, or per sum of base
//! and scaled index, anew whenever one of them may have changed. Displacements are
//! constants and are not written. Two registers that the unit does not use hold the
//! place in the buffer and intermediate sums; they are given back on the way out.

use crate::context::{SAVED_TRACE, TRACE_NEXT};
use crate::emit::{Emitter, reg};
use crate::gs::{lea_indexed, number};
use crate::scan::{Flow, Followed, Scanned};
use crate::translate::Request;
use crate::unit::Borrowed;
use iced_x86::{Instruction, InstructionInfoFactory, OpAccess, Register, UsedMemory};

/// A record's header: its id, and how many slots follow it.
pub fn header(id: u32, slots: usize) -> u32 {
    assert!(slots < 1 << SLOT_BITS && id < 1 << (31 - SLOT_BITS), "too many units to trace");
    id << SLOT_BITS | slots as u32
}

/// So many low bits of a header count the slots.
pub const SLOT_BITS: u32 = 7;

/// A record is never longer: the buffer's guard page is touched this far ahead.
pub const GUARD_DISTANCE: i32 = 1024;
const HEADER: i32 = 8;
const MOST_SLOTS: usize = (GUARD_DISTANCE - HEADER) as usize / 8 - 8;

/// A value that the record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Value {
    base: Option<u8>,
    index: Option<(u8, u8)>,
    addr32: bool,
}

/// The registers that a unit borrows.
#[derive(Clone, Copy)]
struct Registers {
    /// Holds the place in the buffer.
    next: u8,
    /// Holds sums, in units that have any.
    sum: Option<u8>,
}

impl Value {
    /// The register that holds the value as it is.
    fn plain_base(self) -> Option<u8> {
        match self {
            Value { base, index: None, addr32: false } => base,
            _ => None,
        }
    }
}

pub struct Tracer {
    id: u32,
    registers: Option<Registers>,
    /// What is written before each instruction.
    values: Vec<Vec<Value>>,
}

impl Tracer {
    /// Decides what to write and which registers to borrow; shortens the unit where
    /// too few registers would be left.
    pub fn plan(scanned: &mut Vec<Scanned>, request: &Request) -> Tracer {
        let mut factory = InstructionInfoFactory::new();
        let mut known: Vec<Value> = Vec::new();
        let mut values = Vec::new();
        let mut used = 1u16 << reg::RSP;
        let mut slots = 0;
        let mut keep = 0;
        for insn in scanned.iter() {
            let info = factory.info(&insn.insn);
            let uses = info
                .used_registers()
                .iter()
                .filter(|u| u.register().is_gpr())
                .fold(used, |set, u| set | 1 << number(u.register()));
            let uses = match insn.followed {
                Some(Followed::Return { .. }) => uses | 1 << reg::RCX | 1 << reg::RDX,
                _ => uses,
            };
            let needed = needed(&insn.insn, info.used_memory(), &mut known);
            if keep > 0 && (uses.count_zeros() < 2 || slots + needed.len() > MOST_SLOTS) {
                break;
            }
            used = uses;
            slots += needed.len();
            values.push(needed);
            keep += 1;
            forget_changed(&insn.insn, info.used_registers(), &mut known);
        }
        scanned.truncate(keep);
        let is_call = scanned[0].flow == Flow::Syscall;
        let registers = (!is_call).then(|| {
            let mut free = (0..16u8).filter(|r| used & 1 << r == 0);
            let next = free.next().expect("a free register");
            let has_sums =
                values.iter().flatten().any(|value: &Value| value.plain_base().is_none());
            Registers { next, sum: has_sums.then(|| free.next().expect("another free register")) }
        });
        Tracer { id: request.trace_id, registers, values }
    }

    pub fn borrows(&self) -> bool {
        self.registers.is_some()
    }

    /// The borrowed registers of a unit that [`Tracer::open`] opens at this offset.
    pub fn borrowed(&self, from: u32) -> Option<Borrowed> {
        let Registers { next, sum } = self.registers?;
        // The first instruction there saves the first register.
        let mut registers = vec![(next, SAVED_TRACE[0])];
        registers.extend(sum.map(|sum| (sum, SAVED_TRACE[1])));
        Some(Borrowed { from, registers })
    }

    pub fn slots_before(&self) -> Vec<u16> {
        let mut total = 0;
        let mut before = vec![0];
        for values in &self.values {
            total += values.len() as u16;
            before.push(total);
        }
        before
    }

    /// Saves the borrowed registers and makes sure that the record has room.
    pub fn open(&self, e: &mut Emitter) {
        let Some(Registers { next, sum }) = self.registers else {
            return;
        };
        e.store(SAVED_TRACE[0], next);
        if let Some(sum) = sum {
            e.store(SAVED_TRACE[1], sum);
        }
        e.load(next, TRACE_NEXT);
        e.store_at(next, GUARD_DISTANCE, next);
    }

    pub fn record(&self, index: usize, e: &mut Emitter) {
        let Some(Registers { next, sum }) = self.registers else {
            return;
        };
        let first: usize = self.values[..index].iter().map(Vec::len).sum();
        for (slot, value) in self.values[index].iter().enumerate() {
            let at = HEADER + 8 * (first + slot) as i32;
            let from = value.plain_base().unwrap_or_else(|| {
                let sum = sum.expect("planned for sums");
                sum_of(e, sum, *value);
                sum
            });
            e.store_at(next, at, from);
        }
    }

    /// Writes the header of a record that ends after `executed` instructions, and
    /// gives the registers back.
    pub fn commit(&self, executed: u32, e: &mut Emitter) {
        let Some(Registers { next, sum }) = self.registers else {
            return;
        };
        let slots: usize = self.values[..executed as usize].iter().map(Vec::len).sum();
        if executed > 0 {
            store_header(e, next, self.header(executed, slots));
            e.lea(next, next, HEADER + 8 * slots as i32);
            e.store(TRACE_NEXT, next);
        }
        e.load(next, SAVED_TRACE[0]);
        if let Some(sum) = sum {
            e.load(sum, SAVED_TRACE[1]);
        }
    }

    /// The same for a system call, which leaves rcx free.
    pub fn commit_through_rcx(&self, e: &mut Emitter) {
        e.load(reg::RCX, TRACE_NEXT);
        store_header(e, reg::RCX, self.header(1, 0));
        e.lea(reg::RCX, reg::RCX, HEADER);
        e.store(TRACE_NEXT, reg::RCX);
    }

    /// Ids are numbered by how many instructions executed, from one on.
    fn header(&self, executed: u32, slots: usize) -> u32 {
        header(self.id + executed - 1, slots)
    }
}

/// `mov qword [register], header`, sign-extended, so headers stay below 2^31.
fn store_header(e: &mut Emitter, register: u8, header: u32) {
    e.bytes(&[0x48 | register >> 3, 0xc7]);
    e.base_displacement(0, register, 0);
    e.imm32(header as i32);
}

/// The values not yet written from which the instruction's addresses follow.
fn needed(insn: &Instruction, memory: &[UsedMemory], known: &mut Vec<Value>) -> Vec<Value> {
    let mut needed = Vec::new();
    let mut want = |value: Value| {
        if (value.base.is_some() || value.index.is_some()) && !known.contains(&value) {
            known.push(value);
            needed.push(value);
        }
    };
    for m in memory {
        if m.access() == OpAccess::NoMemAccess {
            continue;
        }
        let base = m.base().is_gpr().then(|| number(m.base()));
        let index = m.index().is_gpr().then(|| (number(m.index()), m.scale() as u8));
        let addr32 = m.base().is_gpr32() || m.index().is_gpr32();
        want(Value { base, index, addr32 });
    }
    if insn.is_string_instruction() && (insn.has_rep_prefix() || insn.has_repne_prefix()) {
        want(Value { base: Some(reg::RCX), index: None, addr32: false });
    }
    needed
}

/// A value must be written again once a register in it has changed. Pushes and pops
/// move the stack pointer by a constant and do not count.
fn forget_changed(insn: &Instruction, used: &[iced_x86::UsedRegister], known: &mut Vec<Value>) {
    for u in used {
        let writes = !matches!(u.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::None);
        if !writes || !u.register().is_gpr() {
            continue;
        }
        let changed = number(u.register());
        let pops_stack_pointer =
            insn.op_count() > 0 && insn.op0_register().full_register() == Register::RSP;
        if changed == reg::RSP && insn.stack_pointer_increment() != 0 && !pops_stack_pointer {
            continue;
        }
        known.retain(|v| v.base != Some(changed) && v.index.is_none_or(|(i, _)| i != changed));
    }
}

/// `lea sum, [base + index*scale]`, in 32 bits where the instruction does so.
fn sum_of(e: &mut Emitter, sum: u8, value: Value) {
    if value.addr32 {
        e.bytes(&[0x67]);
    }
    match (value.base, value.index) {
        (Some(base), Some((index, scale))) => lea_indexed(e, sum, base, index, scale),
        (Some(base), None) => e.lea(sum, base, 0),
        (None, Some((index, scale))) => {
            // Without a base the form has a four-byte displacement.
            let rex = 0x48 | (sum >> 3) << 2 | (index >> 3) << 1;
            let sib = (scale.trailing_zeros() as u8) << 6 | (index & 7) << 3 | 5;
            e.bytes(&[rex, 0x8d, 0x04 | (sum & 7) << 3, sib]);
            e.imm32(0);
        }
        (None, None) => unreachable!("a value has a register"),
    }
}
