//! The memory that an instruction accesses, from the registers it uses.

use crate::register::{RDI, RSI, number, part};
use crate::shape::{bit_offset, is_access, is_gather_or_scatter, lane_mask, packs_lanes};
use iced_x86::{Instruction, OpAccess, OpKind, Register, UsedMemory};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Read and written.
    Modified,
    Read,
    Written,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub thread: u64,
    /// The instruction.
    pub pc: u64,
    pub kind: Kind,
    pub address: u64,
    /// In bytes; 0 where it depends on the CPU's own state, as for `xsave`.
    pub size: u64,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Access { thread, pc, kind, address, size } = self;
        let kind = match kind {
            Kind::Read => 'r',
            Kind::Written => 'w',
            Kind::Modified => 'm',
        };
        write!(f, "{thread} {pc:#x} {kind} {address:#x} {size}")
    }
}

/// Where the values of registers come from.
pub trait Registers {
    /// A whole general purpose register, or the base of a segment.
    fn value(&self, register: Register) -> u64;

    /// A vector or mask register that was told before the instruction.
    fn vector(&self, register: Register) -> &[u64];
}

/// A piece of memory: address, size and what is done to it.
type Piece = (u64, u64, Kind);

/// What an instruction accesses, in order of addresses; not for one that repeats itself.
pub fn accesses(
    insn: &Instruction,
    memory: &[UsedMemory],
    registers: &dyn Registers,
) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for m in memory.iter().filter(|m| is_access(m.access())) {
        let kind = kind(m.access());
        let size = m.memory_size().size() as u64;
        let element = m.memory_size().element_size() as u64;
        if is_gather_or_scatter(insn) {
            let lanes = vector_lanes(insn, m, element);
            let active = (0..lanes).filter(|&lane| is_active(insn, registers, lane, element));
            pieces.extend(active.map(|lane| (address(m, lane, registers), element, kind)));
            continue;
        }
        let start = address(m, 0, registers);
        if let Some(register) = bit_offset(insn) {
            pieces.push((selected(start, size, register, registers), size, kind));
        } else if lane_mask(insn).is_some() {
            // Where lanes are bytes, they are so by the instruction and not by its operand.
            let element =
                if insn.op_mask() == Register::None && is_byte_masked(insn) { 1 } else { element };
            let active = |lane: &u64| is_active(insn, registers, *lane as usize, element);
            let lanes: Vec<u64> = (0..size / element).filter(active).collect();
            if packs_lanes(insn) {
                let packed = lanes.len() as u64 * element;
                pieces.extend((packed > 0).then_some((start, packed, kind)));
            } else {
                let runs = lanes.chunk_by(|one, next| one + 1 == *next);
                pieces.extend(
                    runs.map(|run| (start + run[0] * element, run.len() as u64 * element, kind)),
                );
            }
        } else {
            pieces.push((start, size, kind));
        }
    }
    pieces.sort_unstable_by_key(|&(address, size, kind)| (address, size, kind));
    pieces
}

fn kind(access: OpAccess) -> Kind {
    match access {
        OpAccess::Write | OpAccess::CondWrite => Kind::Written,
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => Kind::Modified,
        _ => Kind::Read,
    }
}

fn address(m: &UsedMemory, lane: usize, registers: &dyn Registers) -> u64 {
    let value = |register: Register, lane: usize, size: usize| {
        Some(if register.is_vector_register() {
            element(registers.vector(register), lane, size)
        } else if register.is_gpr() {
            part(register, registers.value(register.full_register()))
        } else {
            registers.value(register)
        })
    };
    m.virtual_address(lane, value).expect("every register has a value")
}

fn element(vector: &[u64], index: usize, size: usize) -> u64 {
    let bit = 8 * size * index;
    let word = vector[bit / 64] >> (bit % 64);
    if size == 8 { word } else { word & ((1 << (8 * size)) - 1) }
}

/// How many elements a gather or scatter has.
fn vector_lanes(insn: &Instruction, m: &UsedMemory, element: u64) -> usize {
    let data =
        if insn.op0_kind() == OpKind::Register { insn.op0_register() } else { insn.op1_register() };
    let indices = m.index().size() / m.vsib_size() as usize;
    indices.min(data.size() / element as usize)
}

/// Whether a lane takes part, by the mask.
fn is_active(insn: &Instruction, registers: &dyn Registers, lane: usize, size: u64) -> bool {
    let Some(mask) = lane_mask(insn) else {
        return true;
    };
    let bits = registers.vector(mask);
    if mask.is_k() {
        bits[0] >> lane & 1 == 1
    } else {
        element(bits, lane, size as usize) >> (8 * size - 1) & 1 == 1
    }
}

fn is_byte_masked(insn: &Instruction) -> bool {
    use iced_x86::Mnemonic as M;
    matches!(insn.mnemonic(), M::Maskmovq | M::Maskmovdqu | M::Vmaskmovdqu)
}

/// The address of the element that holds the selected bit.
fn selected(start: u64, size: u64, register: Register, registers: &dyn Registers) -> u64 {
    let offset = part(register, registers.value(register.full_register()));
    let unused = 64 - 8 * size as u32;
    let offset = (offset << unused) as i64 >> unused;
    start.wrapping_add((offset.div_euclid(8 * size as i64) * size as i64) as u64)
}

/// A repeated string instruction on its way.
#[derive(Clone)]
pub struct Repetition {
    pub pc: u64,
    /// The register whose value behind it tells how often it repeated itself.
    pub pointer: u8,
    parts: Vec<Part>,
}

/// One of the strings.
#[derive(Clone)]
struct Part {
    register: u8,
    /// Where it begins; the upper half is not part of a short pointer.
    start: u64,
    segment: u64,
    short: bool,
    element: u64,
    kind: Kind,
}

impl Repetition {
    /// Before the instruction begins.
    pub fn new(
        insn: &Instruction,
        pointer: u8,
        memory: &[UsedMemory],
        registers: &dyn Registers,
    ) -> Repetition {
        let strings = memory.iter().filter(|m| is_access(m.access()));
        let parts = strings.filter(|m| [RSI, RDI].contains(&number(m.base()))).map(|m| Part {
            register: number(m.base()),
            start: part(m.base(), registers.value(m.base().full_register())),
            segment: registers.value(m.segment()),
            short: m.base().is_gpr32(),
            // Of the operand of a repeated instruction only the instruction knows the size.
            element: insn.memory_size().size() as u64,
            kind: kind(m.access()),
        });
        Repetition { pc: insn.ip(), pointer, parts: parts.collect() }
    }

    /// What was accessed when the pointer has become this, in order of addresses.
    pub fn accesses(&self, pointer: u64) -> Vec<Piece> {
        let Some(leading) = self.parts.iter().find(|part| part.register == self.pointer) else {
            return Vec::new();
        };
        let moved = pointer.wrapping_sub(leading.start);
        let moved = if leading.short { i64::from(moved as i32) } else { moved as i64 };
        let bytes = moved.unsigned_abs();
        let mut pieces: Vec<Piece> = Vec::new();
        for part in self.parts.iter().filter(|_| bytes > 0) {
            let start =
                if moved > 0 { part.start } else { part.start.wrapping_sub(bytes - part.element) };
            pieces.push((part.segment.wrapping_add(start), bytes, part.kind));
        }
        pieces.sort_unstable_by_key(|&(address, size, kind)| (address, size, kind));
        pieces
    }
}
