//! The memory that an instruction accesses, from the registers it uses.

use crate::register::{RDI, RSI, number, part};
use crate::shape::{bit_offset, is_access};
use iced_x86::{Instruction, OpAccess, Register, UsedMemory};
use std::fmt;
use why_effects::{Lanes, Order};

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
        if let Some(lanes) = Lanes::of(insn) {
            let places = selected_lanes(&lanes, m, registers);
            pieces.extend(places.into_iter().map(|(address, size)| (address, size, kind)));
            continue;
        }
        let start = address(m, 0, registers);
        let start = match bit_offset(insn) {
            Some(register) => selected(start, size, register, registers),
            None => start,
        };
        pieces.push((start, size, kind));
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

/// Where the lanes are that take part, and how large; those that lie side by side are one.
fn selected_lanes(lanes: &Lanes, m: &UsedMemory, registers: &dyn Registers) -> Vec<(u64, u64)> {
    let size = u64::from(lanes.size);
    let active: Vec<u64> =
        (0..u64::from(lanes.count)).filter(|lane| is_active(lanes, registers, *lane)).collect();
    let start = || address(m, 0, registers);
    match lanes.order {
        Order::Indexed => {
            active.iter().map(|lane| (address(m, *lane as usize, registers), size)).collect()
        }
        Order::Packed if active.is_empty() => Vec::new(),
        Order::Packed => vec![(start(), active.len() as u64 * size)],
        Order::Each => {
            let runs = active.chunk_by(|one, next| one + 1 == *next);
            let place = |run: &[u64]| (start() + run[0] * size, run.len() as u64 * size);
            runs.map(place).collect()
        }
    }
}

/// Whether a lane takes part, by the mask.
fn is_active(lanes: &Lanes, registers: &dyn Registers, lane: u64) -> bool {
    let bits = registers.vector(lanes.mask);
    if lanes.mask.is_k() {
        bits[0] >> lane & 1 == 1
    } else {
        element(bits, lane as usize, lanes.size as usize) >> (8 * lanes.size - 1) & 1 == 1
    }
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
