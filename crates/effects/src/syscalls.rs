//! System calls: what they return depends on what they are told. So does what the kernel
//! writes to memory, which is not known from an instruction alone.

use crate::cells;
use crate::parts::{Effects, Part, Place};
use iced_x86::{Instruction, Mnemonic, Register};

/// So many registers may be for arguments.
pub const MOST_ARGUMENTS: usize = 6;

/// The number of the call, and what it is given.
const TOLD: [Register; 7] = [
    Register::RAX,
    Register::RDI,
    Register::RSI,
    Register::RDX,
    Register::R10,
    Register::R8,
    Register::R9,
];

/// How many arguments the calls of x86-64 take: a digit for each, from a number on, as the kernel's own
/// events tell (`/sys/kernel/tracing/events/syscalls`).
const ARGUMENTS: [(u64, &str); 2] = [
    (
        0,
        "33312223363214403443321505333333120221304333663323\
         23345550031421334124533211223211221221232233312221\
         14030110020002222333311112224322231122232322311122\
         21003215212101252214221363266466666603555444333222\
         21633121533131665310443421122241443266354155234554\
         53203244345343453433651236444646321442442132155455\
         25453214236653345332535133666421564",
    ),
    (424, "42643525332234345654342125444346444443366545"),
];

/// How many arguments a call takes; as many as there may be if it is not known.
pub fn arguments(number: u64) -> usize {
    let digit = |(first, digits): &(u64, &str)| {
        let index = number.checked_sub(*first)?;
        digits.as_bytes().get(usize::try_from(index).ok()?).map(|digit| usize::from(digit - b'0'))
    };
    ARGUMENTS.iter().find_map(digit).unwrap_or(MOST_ARGUMENTS)
}

pub fn is_one(insn: &Instruction) -> bool {
    insn.mnemonic() == Mnemonic::Syscall
}

/// What a call is told.
pub fn told() -> Vec<Place> {
    TOLD.into_iter().filter_map(Place::of).collect()
}

pub fn parts(insn: &Instruction) -> Option<Vec<Part>> {
    if !is_one(insn) {
        return None;
    }
    // The CPU itself keeps there where the program goes on, and the flags.
    let flags = cells::flags(u32::MAX).map(Place::flag).collect();
    Some(vec![
        Part::computed(Place::of(Register::RAX)?, told()),
        Part::constant(Place::of(Register::RCX)?),
        Part::computed(Place::of(Register::R11)?, flags),
    ])
}

impl Effects {
    /// The same of a call that takes so many arguments.
    pub fn with_arguments(mut self, arguments: usize) -> Effects {
        let others: Vec<Place> = told().into_iter().skip(1 + arguments).collect();
        for part in &mut self.parts {
            part.whole.retain(|place| !others.contains(place));
        }
        self.decides.retain(|place| !others.contains(place));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_take_what_their_manual_pages_say() {
        let known = [
            (libc::SYS_read, 3),
            (libc::SYS_brk, 1),
            (libc::SYS_mmap, 6),
            (libc::SYS_clone, 5),
            (libc::SYS_getpid, 0),
            (libc::SYS_prctl, 5),
            (libc::SYS_exit_group, 1),
            (libc::SYS_statx, 5),
            (libc::SYS_rseq, 4),
            (libc::SYS_pidfd_send_signal, 4),
            (libc::SYS_clone3, 2),
            (libc::SYS_futex_waitv, 5),
            (libc::SYS_mseal, 3),
        ];
        for (number, expected) in known {
            assert_eq!(arguments(number as u64), expected, "{number}");
        }
        assert_eq!([335, 400, 100_000, u64::MAX].map(arguments), [MOST_ARGUMENTS; 4]);
    }
}
