//! The entry that an indirect branch comes through.
//!
//! The branch jumps through the table of targets by the low 16 bits of the
//! application's address, with the address itself in rcx. Targets that share those
//! bits form a chain: each link subtracts its own address from rcx and is the right
//! one if nothing remains, else jumps to the next. A link therefore adds the
//! difference between its predecessor's address and its own.

use crate::context::{SAVED_RCX, SAVED_RDX};
use crate::emit::{Emitter, Patch, reg};

/// The code of a link, to be placed at `at`.
pub struct Link {
    pub code: Vec<u8>,
    /// Where the eight-byte difference lies.
    pub difference: u32,
    /// The jump to the unit.
    pub to_unit: Patch,
    /// The stub `int3; jmp rel32` for "not me": at first nobody comes after.
    pub miss: u32,
}

pub fn link(at: u64, difference: u64) -> Link {
    let mut e = Emitter::new(at);
    e.load_constant(reg::RDX, difference);
    let difference = e.offset() - 8;
    e.bytes(&[0x48, 0x8d, 0x0c, 0x11]); // lea rcx, [rcx + rdx]
    let hit = e.jrcxz();
    let miss = e.offset();
    e.bytes(&[0xcc]);
    let _next = e.jmp();
    e.land(hit);
    e.load(reg::RCX, SAVED_RCX);
    e.load(reg::RDX, SAVED_RDX);
    let to_unit = e.jmp();
    Link { code: e.code, difference, to_unit, miss }
}
