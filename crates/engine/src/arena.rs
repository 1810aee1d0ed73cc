//! A stretch of the code cache: filled from the bottom, executable in the target,
//! writable only here.

use crate::error::Result;
use crate::glue::GLUE;
use crate::memory::Address;
use crate::shared::SharedMemory;
use std::ops::Range;

pub const ARENA_BYTES: usize = 64 << 20;

/// Farther than this from its application code a unit may not lie, so that the data
/// which that code addresses relative to RIP is still within reach.
pub const REACH: u64 = 3 << 29;

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
    /// Code of the engine's own.
    Glue,
}

impl Arena {
    /// Memory for an arena that has no place yet.
    pub fn memory() -> Result<SharedMemory> {
        SharedMemory::new("code cache", ARENA_BYTES)
    }

    pub fn new(memory: SharedMemory, base: Address) -> Arena {
        let mut arena = Arena { memory, base, used: 0, items: Vec::new() };
        arena.clear();
        arena
    }

    /// Where to try and map an arena for the code at `near`: in reach, and not where the
    /// application's own mappings are likely to grow. Below is better: a heap grows
    /// upwards.
    pub fn places(near: Address) -> impl Iterator<Item = Address> {
        const STEP: i64 = 128 << 20;
        const LOWEST: Address = 16 << 20;
        const HIGHEST: Address = 0x7fff_ffff_f000 - ARENA_BYTES as u64;
        let below = [8, 9, 10, 7, 6, 5, 4, 3, 11, 2, 1].into_iter().map(|n: i64| -n * STEP);
        let above = [11, 10, 9, 8, 7, 6, 5, 4, 3].into_iter().map(|n: i64| n * STEP);
        below
            .chain(above)
            .filter_map(move |offset| near.checked_add_signed(offset))
            .map(|at| at & !0xf_ffff)
            .filter(|at| (LOWEST..HIGHEST).contains(at))
    }

    pub fn range(&self) -> Range<Address> {
        self.base..self.base + ARENA_BYTES as u64
    }

    pub fn in_reach(&self, pc: Address) -> bool {
        self.base.abs_diff(pc) < REACH
    }

    pub fn has_room(&self) -> bool {
        self.used + (64 << 10) < ARENA_BYTES
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

    /// Prepares for so many bytes more: one request for their pages is cheaper than a
    /// fault for each.
    pub fn expect(&self, bytes: usize) {
        self.memory.populate(self.used, bytes.min(ARENA_BYTES - self.used));
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

    pub fn read(&self, address: Address, buffer: &mut [u8]) {
        self.memory.read((address - self.base) as usize, buffer);
    }

    pub fn clear(&mut self) {
        self.used = 0;
        self.items.clear();
        self.place(Item::Glue, &GLUE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_in_reach_and_within_user_memory() {
        for near in [0x40_0000, 0x5555_5555_4000, 0x7fff_f7fc_0000] {
            assert!(Arena::places(near).count() > 4);
            for place in Arena::places(near) {
                assert!(place.abs_diff(near) < REACH && place + (ARENA_BYTES as u64) < 1 << 47);
            }
        }
    }
}
