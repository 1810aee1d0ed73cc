//! The registers of a thread, and how they are told when little has changed.

use serde::{Deserialize, Serialize};

/// The names of the registers, in the order of their values.
pub const NAMES: [&str; COUNT] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15", "rip", "eflags", "fs_base", "gs_base",
];

pub const COUNT: usize = 20;
pub const RAX: usize = 0;
pub const RCX: usize = 1;
pub const RSP: usize = 4;
pub const R11: usize = 11;
pub const RIP: usize = 16;
pub const FLAGS: usize = 17;
pub const FS_BASE: usize = 18;
pub const GS_BASE: usize = 19;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers(pub [u64; COUNT]);

/// The registers that differ from an earlier set: which, and their values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    which: u32,
    values: Vec<u64>,
}

impl Registers {
    pub fn changed_from(&self, before: &Registers) -> Changed {
        let mut changed = Changed::default();
        for (index, (now, before)) in self.0.iter().zip(before.0).enumerate() {
            if *now != before {
                changed.which |= 1 << index;
                changed.values.push(*now);
            }
        }
        changed
    }

    /// None if the change is not one of registers.
    pub fn apply(&self, changed: &Changed) -> Option<Registers> {
        let mut registers = *self;
        let mut values = changed.values.iter();
        for (index, register) in registers.0.iter_mut().enumerate() {
            if changed.which >> index & 1 == 1 {
                *register = *values.next()?;
            }
        }
        (values.next().is_none() && changed.which >> COUNT == 0).then_some(registers)
    }

    /// The names and values of registers that differ: here, there.
    pub fn differences(&self, other: &Registers) -> Vec<(&'static str, u64, u64)> {
        let values = self.0.iter().zip(other.0);
        let named = NAMES.iter().zip(values).filter(|(_, (here, there))| **here != *there);
        named.map(|(name, (here, there))| (*name, *here, there)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_applied_gives_the_registers_back() {
        let before = Registers(std::array::from_fn(|i| i as u64));
        let mut after = before;
        after.0[0] = 77;
        after.0[RIP] = 0x401000;
        let changed = after.changed_from(&before);
        assert_eq!(changed.values.len(), 2);
        assert_eq!(before.apply(&changed), Some(after));
        assert_eq!(before.differences(&after), vec![("rax", 0, 77), ("rip", 16, 0x401000)]);
    }

    #[test]
    fn what_is_no_change_is_refused() {
        let before = Registers::default();
        assert_eq!(before.apply(&Changed { which: 1 << COUNT, values: vec![1] }), None);
        assert_eq!(before.apply(&Changed { which: 3, values: vec![1] }), None);
        assert_eq!(before.apply(&Changed { which: 1, values: vec![1, 2] }), None);
    }
}
