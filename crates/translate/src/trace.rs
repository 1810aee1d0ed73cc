//! Weaves the trace into a unit.
//!
//! A record is an eight-byte header, the id of the unit's exit, and the values of those
//! registers from which the unit's addresses follow and which the reader does not know
//! yet (see [`crate::known`]). Where the unit leaves the stack pointer where the reader
//! cannot know it, that is written, too. A register that the unit does not use holds the
//! place in the buffer; it is given back on the way out.

use crate::context::{SAVED_TRACE, TRACE_NEXT};
use crate::emit::{Emitter, reg};
use crate::gs::number;
use crate::known::Known;
use crate::scan::{Flow, Followed, Scanned};
use crate::translate::Request;
use crate::unit::Borrowed;
use iced_x86::{Instruction, InstructionInfoFactory, OpAccess, UsedMemory};

/// A record is never longer: the buffer's guard page is touched this far ahead.
const GUARD_DISTANCE: i32 = 1024;
const HEADER: i32 = why_trace::HEADER_BYTES as i32;
/// A unit's next instruction may add some, and the supervisor may write its own records.
const MOST_SLOTS: usize = (GUARD_DISTANCE - HEADER) as usize / 8 - 16;

pub struct Tracer {
    id: u32,
    /// The borrowed register, which holds the place in the buffer.
    next: Option<u8>,
    /// The registers that are written before each instruction, and behind the last.
    values: Vec<Vec<u8>>,
}

impl Tracer {
    /// Decides what to write and which register to borrow; shortens the unit where
    /// none would be left.
    pub fn plan(scanned: &mut Vec<Scanned>, request: &Request) -> Tracer {
        let mut factory = InstructionInfoFactory::new();
        let mut known = Known::at_start();
        let mut values = Vec::new();
        let mut used = 1u16 << reg::RSP;
        let mut slots = 0;
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
            if !values.is_empty() && (uses == u16::MAX || slots > MOST_SLOTS) {
                break;
            }
            used = uses;
            let needed = needed(&insn.insn, info.used_memory(), &mut known);
            slots += needed.len();
            values.push(needed);
            known.execute(&insn.insn, info.used_registers());
        }
        scanned.truncate(values.len());
        values.push(tell(reg::RSP, &mut known).into_iter().collect());
        let is_call = scanned[0].flow == Flow::Syscall;
        let next = (!is_call).then(|| used.trailing_ones() as u8);
        Tracer { id: request.trace_id, next, values }
    }

    pub fn borrows(&self) -> bool {
        self.next.is_some()
    }

    /// What a unit borrows that [`Tracer::open`] opens at this offset.
    pub fn borrowed(&self, from: u32) -> Option<Borrowed> {
        // The first instruction there saves the register.
        Some(Borrowed { from, register: self.next? })
    }

    /// How many slots are written before each instruction, then before the end.
    pub fn slots_before(&self) -> Vec<u16> {
        (0..self.values.len()).map(|index| self.first_slot(index) as u16).collect()
    }

    /// Saves the borrowed register and makes sure that the record has room.
    pub fn open(&self, e: &mut Emitter) {
        if let Some(next) = self.next {
            e.store(SAVED_TRACE, next);
            e.load(next, TRACE_NEXT);
            e.store_at(next, GUARD_DISTANCE, next);
        }
    }

    /// Writes what is written before an instruction, or behind the last.
    pub fn record(&self, index: usize, e: &mut Emitter) {
        let Some(next) = self.next else {
            return;
        };
        let first = self.first_slot(index);
        for (slot, &register) in self.values[index].iter().enumerate() {
            e.store_at(next, HEADER + 8 * (first + slot) as i32, register);
        }
    }

    fn first_slot(&self, index: usize) -> usize {
        self.values[..index].iter().map(Vec::len).sum()
    }

    /// Writes the header of a record that ends after `executed` instructions, and
    /// gives the register back.
    pub fn commit(&self, executed: u32, e: &mut Emitter) {
        let Some(next) = self.next else {
            return;
        };
        let mut slots = self.first_slot(executed as usize);
        if executed as usize + 1 == self.values.len() {
            self.record(executed as usize, e);
            slots = self.first_slot(self.values.len());
        }
        if executed > 0 {
            store_header(e, next, self.header(executed, slots));
            e.lea(next, next, HEADER + 8 * slots as i32);
            e.store(TRACE_NEXT, next);
        }
        e.load(next, SAVED_TRACE);
    }

    /// The same for a system call, which leaves rcx free.
    pub fn commit_through_rcx(&self, e: &mut Emitter) {
        e.load(reg::RCX, TRACE_NEXT);
        store_header(e, reg::RCX, self.header(1, 0));
        e.lea(reg::RCX, reg::RCX, HEADER);
        e.store(TRACE_NEXT, reg::RCX);
    }

    /// Ids are numbered by how many instructions executed, from one on.
    fn header(&self, executed: u32, slots: usize) -> i32 {
        why_trace::header(self.id + executed - 1, slots)
    }
}

/// `mov qword [register], header`.
fn store_header(e: &mut Emitter, register: u8, header: i32) {
    e.bytes(&[0x48 | register >> 3, 0xc7]);
    e.base_displacement(0, register, 0);
    e.imm32(header);
}

/// The registers to be written for an instruction.
fn needed(insn: &Instruction, memory: &[UsedMemory], known: &mut Known) -> Vec<u8> {
    // A way out in the middle must find the stack pointer known.
    let mut needed: Vec<u8> = tell(reg::RSP, known).into_iter().collect();
    for m in memory.iter().filter(|m| m.access() != OpAccess::NoMemAccess) {
        let registers = [m.base(), m.index()].into_iter().filter(|r| r.is_gpr());
        needed.extend(registers.filter_map(|r| tell(number(r), known)));
    }
    if insn.is_string_instruction() && (insn.has_rep_prefix() || insn.has_repne_prefix()) {
        needed.extend(tell(reg::RCX, known));
    }
    needed
}

/// The register, if it must be written to be known.
fn tell(register: u8, known: &mut Known) -> Option<u8> {
    let unknown = !known.is_told(register);
    unknown.then(|| {
        known.tell(register);
        register
    })
}
