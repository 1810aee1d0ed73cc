//! How many arguments the system calls take that are made at an address: the registers for more are of
//! no interest to them.

use crate::units::Unit;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// The most that a call took which was made at an address.
pub type OfCall = (u64, u8);

#[derive(Default)]
pub struct Arguments {
    most: FxHashMap<u64, u8>,
    /// Addresses at which it is more than when this was asked the last time.
    new: Vec<OfCall>,
}

impl Arguments {
    /// The call with this number is made by the last of so many instructions of a unit.
    pub fn called(&mut self, unit: &Unit, count: usize, number: u64) {
        let made = count.checked_sub(1).and_then(|last| unit.instructions.get(last));
        let Some(made) = made.filter(|made| made.is_system_call()) else { return };
        let takes = why_effects::arguments(number) as u8;
        match self.most.entry(made.address) {
            Entry::Occupied(most) if *most.get() >= takes => return,
            Entry::Occupied(mut most) => drop(most.insert(takes)),
            Entry::Vacant(none) => drop(none.insert(takes)),
        }
        self.new.push((made.address, takes));
    }

    pub fn take_new(&mut self) -> Vec<OfCall> {
        std::mem::take(&mut self.new)
    }
}
