//! A stretch of the code cache: filled from the bottom, executable in the target,
//! writable only here.

use crate::error::Result;
use crate::memory::Address;
use crate::shared::SharedMemory;
use std::ops::Range;

pub const ARENA_BYTES: usize = 64 << 20;

/// Farther than this from its application code a unit may not lie, so that the data
/// which that code addresses relative to RIP is still within reach.
pub const REACH: u64 = 3 << 29;

/// What every arena begins with: `syscall; int3`, and `mov al, [rax]; int3`.
const GLUE: [u8; 6] = [0x0f, 0x05, 0xcc, 0x8a, 0x00, 0xcc];
const LOAD: usize = 3;

pub struct Arena {
    pub memory: SharedMemory,
    pub base: Address,
    used: usize,
    /// Where each item begins, ascending.
    items: Vec<(u32, Item)>,
}

/// What lies at a cache address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    Unit(u32),
    /// An indirect target's entry.
    Link(u32),
    /// The code of an archive; [`crate::code::Code::find`] looks into it.
    Frozen(u32),
    /// Code of the engine's own.
    Glue,
}

impl Arena {
    pub fn new(base: Address) -> Result<Arena> {
        let memory = SharedMemory::new("code cache", ARENA_BYTES)?;
        let mut arena = Arena { memory, base, used: 0, items: Vec::new() };
        arena.clear();
        Ok(arena)
    }

    /// Where the supervisor lets a thread make a system call: `syscall; int3`.
    pub fn gadget(&self) -> Address {
        self.base
    }

    pub fn range(&self) -> Range<Address> {
        self.base..self.base + ARENA_BYTES as u64
    }

    pub fn in_reach(&self, pc: Address) -> bool {
        self.base.abs_diff(pc) < REACH
    }

    pub fn has_room(&self) -> bool {
        self.has_room_for(0)
    }

    /// Room for so many bytes, and then for units still.
    pub fn has_room_for(&self, bytes: usize) -> bool {
        self.used + bytes + (64 << 10) < ARENA_BYTES
    }

    /// The address of the next item.
    pub fn next(&self) -> Address {
        self.base + self.used as u64
    }

    /// Places an item's code at [`Arena::next`].
    pub fn place(&mut self, item: Item, code: &[u8]) -> Address {
        let at = self.next();
        self.items.push((self.used as u32, item));
        self.memory.write(self.used, code);
        self.used = (self.used + code.len()).next_multiple_of(16);
        at
    }

    /// Places an item of which `fill` writes the code.
    pub fn place_with(&mut self, item: Item, size: usize, fill: impl FnOnce(&mut [u8])) -> Address {
        let at = self.next();
        self.items.push((self.used as u32, item));
        self.memory.fill(self.used, size, fill);
        self.used = (self.used + size).next_multiple_of(16);
        at
    }

    /// The item that holds an address, and the offset within it.
    pub fn find(&self, address: Address) -> Option<(Item, u32)> {
        let offset = address.checked_sub(self.base).filter(|&o| o < self.used as u64)? as u32;
        let index = self.items.partition_point(|&(start, _)| start <= offset).checked_sub(1)?;
        let (start, item) = self.items[index];
        Some((item, offset - start))
    }

    pub fn write(&self, address: Address, bytes: &[u8]) {
        self.memory.write((address - self.base) as usize, bytes);
    }

    pub fn clear(&mut self) {
        self.used = 0;
        self.items.clear();
        self.place(Item::Glue, &GLUE);
    }

    /// Where `mov al, [rax]; int3` stands.
    pub fn load_from_rax(&self) -> Address {
        self.base + LOAD as u64
    }
}
