//! The check at the entry of a unit whose application code may change unseen: through
//! a file, another process or another view of the same memory.
//!
//! It compares the bytes there with those that were translated. A load may fault: then
//! the code has gone, and the supervisor looks.

use crate::context::{SAVED_RCX, SAVED_RDX};
use crate::emit::{Emitter, Patch, reg};

/// Emits the check of the bytes at `pc`; the jumps taken when they differ.
pub fn check(e: &mut Emitter, pc: u64, bytes: &[u8]) -> Vec<Patch> {
    e.store(SAVED_RCX, reg::RCX);
    e.store(SAVED_RDX, reg::RDX);
    let mut at = 0;
    let mut differs = Vec::new();
    while at < bytes.len() {
        let rest = &bytes[at..];
        let size = [8, 4, 2, 1].into_iter().find(|&size| size <= rest.len()).expect("one fits");
        let mut expected = [0; 8];
        expected[..size].copy_from_slice(&rest[..size]);
        e.load_constant(reg::RCX, pc + at as u64);
        e.bytes(load(size));
        e.load_constant(reg::RDX, u64::from_le_bytes(expected).wrapping_neg());
        e.bytes(&[0x48, 0x8d, 0x0c, 0x11]); // lea rcx, [rcx + rdx]
        let same = e.jrcxz();
        differs.push(e.jmp());
        e.land(same);
        at += size;
    }
    give_back(e);
    differs
}

pub fn give_back(e: &mut Emitter) {
    e.load(reg::RCX, SAVED_RCX);
    e.load(reg::RDX, SAVED_RDX);
}

/// Loads so many bytes from [rcx] into rcx, zero-extended.
fn load(size: usize) -> &'static [u8] {
    match size {
        8 => &[0x48, 0x8b, 0x09],
        4 => &[0x8b, 0x09],
        2 => &[0x0f, 0xb7, 0x09],
        _ => &[0x0f, 0xb6, 0x09],
    }
}
