//! Weaves the trace into a unit.
//!
//! A record is an eight-byte header, the id of the unit's exit, and the values of those
//! registers from which the unit's addresses follow and which the reader does not know
//! yet (see [`crate::known`]). Where the unit leaves the stack pointer where the reader
//! cannot know it, that is written, too. A register that the unit does not use holds the
//! place in the buffer; it is given back on the way out.

use crate::context::{SAVED_TRACE, TRACE_NEXT};
use crate::emit::{Emitter, reg};
use crate::scan::{Flow, Followed, Scanned};
use crate::translate::Request;
use crate::unit::Borrowed;
use iced_x86::{Code, Encoder, Instruction, InstructionInfoFactory, MemoryOperand, Register};
use why_trace::register::{by_number, number};
use why_trace::shape::{Numbered, Planner, Shape, Shared, slots};

/// A record is never longer: the buffer's guard page is touched this far ahead.
const GUARD_DISTANCE: i32 = 1024;
const HEADER: i32 = why_trace::HEADER_BYTES as i32;
/// A unit's next instruction may add some, of which vectors take the most, and the
/// supervisor may write its own records.
const MOST_SLOTS: usize = (GUARD_DISTANCE - HEADER) as usize / 8 - 32;

pub struct Tracer {
    /// The borrowed register, which holds the place in the buffer.
    next: Option<u8>,
    unit: Numbered,
    /// How many slots come before those of each instruction, and behind the last.
    slots_before: Vec<usize>,
    shapes: Shared,
}

impl Tracer {
    /// Decides what to write and which register to borrow; shortens the unit where
    /// none would be left.
    pub fn plan(scanned: &mut Vec<Scanned>, request: &Request) -> Tracer {
        let mut factory = InstructionInfoFactory::new();
        let mut planner = Planner::default();
        let mut used = 1u16 << reg::RSP;
        let mut kept = 0;
        for insn in scanned.iter() {
            let info = factory.info(&insn.insn);
            let uses = info
                .used_registers()
                .iter()
                .filter(|u| u.register().is_gpr())
                .fold(used, |set, u| set | 1 << number(u.register()));
            let uses = match insn.followed {
                Some(Followed::Expected { .. }) => uses | 1 << reg::RCX | 1 << reg::RDX,
                _ => uses,
            };
            if kept > 0 && (uses == u16::MAX || planner.slots > MOST_SLOTS) {
                break;
            }
            used = uses;
            planner.known_instruction(&insn.insn, info);
            kept += 1;
        }
        scanned.truncate(kept);
        let is_call = scanned[0].flow == Flow::Syscall;
        let next = (!is_call).then(|| used.trailing_ones() as u8);
        let unit = request.shapes.write().expect("no panic").number(planner.finish());
        let mut slots_before = vec![0];
        for told in &unit.shape.told {
            slots_before.extend(slots_before.last().map(|before| before + slots(told)));
        }
        Tracer { next, unit, slots_before, shapes: Shared::clone(request.shapes) }
    }

    pub fn borrows(&self) -> bool {
        self.next.is_some()
    }

    /// What a unit borrows that [`Tracer::open`] opens at this offset.
    pub fn borrowed(&self, from: u32) -> Option<Borrowed> {
        // The first instruction there saves the register.
        Some(Borrowed { from, register: self.next? })
    }

    pub fn into_unit(self) -> Numbered {
        self.unit
    }

    fn shape(&self) -> &Shape {
        &self.unit.shape
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
        let mut slot = self.slots_before[index];
        for &register in &self.shape().told[index] {
            let displacement = HEADER + 8 * slot as i32;
            match register.is_gpr() {
                true => e.store_at(next, displacement, number(register)),
                false => {
                    let place =
                        MemoryOperand::with_base_displ(by_number(next), displacement.into());
                    store_vector(e, place, register, &self.shape().instructions[index]);
                }
            }
            slot += slots(&[register]);
        }
    }

    /// Writes the header of a record that ends after `executed` instructions, and
    /// gives the register back.
    pub fn commit(&self, executed: u32, e: &mut Emitter) {
        let Some(next) = self.next else {
            return;
        };
        let behind = executed as usize;
        let mut slots = self.slots_before[behind];
        if behind == self.shape().instructions.len() {
            self.record(behind, e);
            slots = self.slots_before[behind + 1];
        } else if let Some(pointer) = self.shape().pointer_behind(behind) {
            e.store_at(next, HEADER + 8 * slots as i32, pointer);
            slots += 1;
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

    fn header(&self, executed: u32, slots: usize) -> i32 {
        let mut shapes = self.shapes.write().expect("no panic");
        why_trace::header(shapes.id(&self.unit, executed as usize), slots)
    }
}

/// `mov qword [register], header`.
fn store_header(e: &mut Emitter, register: u8, header: i32) {
    e.bytes(&[0x48 | register >> 3, 0xc7]);
    e.base_displacement(0, register, 0);
    e.imm32(header);
}

/// Stores a vector or mask register that an instruction is about to use.
fn store_vector(e: &mut Emitter, place: MemoryOperand, register: Register, user: &Instruction) {
    let high = register.number() >= 16;
    let code = match register {
        _ if register.is_mm() => Code::Movq_mmm64_mm,
        _ if register.is_xmm() && !high => Code::Movdqu_xmmm128_xmm,
        _ if register.is_ymm() && !high => Code::VEX_Vmovdqu_ymmm256_ymm,
        _ if register.is_xmm() => Code::EVEX_Vmovdqu64_xmmm128_k1z_xmm,
        _ if register.is_ymm() => Code::EVEX_Vmovdqu64_ymmm256_k1z_ymm,
        _ if register.is_zmm() => Code::EVEX_Vmovdqu64_zmmm512_k1z_zmm,
        // Only what has elements of one or two bytes comes with wide masks for certain.
        _ if user.memory_size().element_size() < 4 => Code::VEX_Kmovq_m64_kr,
        _ => {
            encode(e, Instruction::with2(Code::Mov_rm64_imm32, place, 0));
            Code::VEX_Kmovw_m16_kr
        }
    };
    encode(e, Instruction::with2(code, place, register));
}

fn encode(e: &mut Emitter, insn: Result<Instruction, iced_x86::IcedError>) {
    let mut encoder = Encoder::new(64);
    let encoded = insn.and_then(|insn| encoder.encode(&insn, 0));
    encoded.expect("a store to a register and a displacement has an encoding");
    e.bytes(&encoder.take_buffer());
}
