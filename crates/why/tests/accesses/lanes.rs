//! The elements of a vector that a mask lets through.

use iced_x86::Register;

use crate::registers::Registers;

pub struct Lanes {
    active: Vec<bool>,
    /// Of one element, in bytes.
    pub size: u64,
}

impl Lanes {
    /// One bit of a mask register for every element of `size` bytes in `bytes`.
    pub fn of_mask(registers: &Registers, mask: Register, size: u64, bytes: u64) -> Lanes {
        let mask = registers.extended().mask(mask);
        let active = (0..bytes / size).map(|lane| mask >> lane & 1 == 1).collect();
        Lanes { active, size }
    }

    /// The highest bit of every element of a vector register.
    pub fn of_signs(registers: &Registers, mask: Register, size: u64, bytes: u64) -> Lanes {
        let mask = registers.extended().vector(mask);
        let elements = mask[..bytes as usize].chunks(size as usize);
        let active = elements.map(|element| element[element.len() - 1] >= 0x80).collect();
        Lanes { active, size }
    }

    /// Their numbers.
    pub fn active(&self) -> impl Iterator<Item = usize> {
        self.active.iter().enumerate().filter(|(_, active)| **active).map(|(lane, _)| lane)
    }
}
