//! One memory access, and its line in the file of `--accesses`.

use std::fmt;

use iced_x86::OpAccess;

/// Ordered as the accesses of one instruction are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    pub pc: u64,
    pub address: u64,
    pub size: u64,
    pub kind: Kind,
}

/// Ordered by their letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Read and written.
    Modified,
    Read,
    Written,
}

impl Kind {
    /// None: memory is named, not accessed.
    pub fn of(access: OpAccess) -> Option<Kind> {
        match access {
            OpAccess::Read | OpAccess::CondRead => Some(Kind::Read),
            OpAccess::Write | OpAccess::CondWrite => Some(Kind::Written),
            OpAccess::ReadWrite | OpAccess::ReadCondWrite => Some(Kind::Modified),
            _ => None,
        }
    }

    pub fn from_letter(letter: &str) -> Option<Kind> {
        match letter {
            "m" => Some(Kind::Modified),
            "r" => Some(Kind::Read),
            "w" => Some(Kind::Written),
            _ => None,
        }
    }

    fn letter(self) -> char {
        match self {
            Kind::Modified => 'm',
            Kind::Read => 'r',
            Kind::Written => 'w',
        }
    }
}

/// Without the thread, which is another one in every run.
impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:#x} {} {:#x} {}", self.pc, self.kind.letter(), self.address, self.size)
    }
}

/// `TID PC KIND ADDRESS SIZE`.
pub fn parse(line: &str) -> Result<Access, String> {
    let access = || {
        let fields: Vec<&str> = line.split(' ').collect();
        let [thread, pc, kind, address, size] = fields[..] else {
            return None;
        };
        thread.parse::<u32>().ok()?;
        Some(Access {
            pc: hexadecimal(pc)?,
            address: hexadecimal(address)?,
            size: size.parse().ok()?,
            kind: Kind::from_letter(kind)?,
        })
    };
    access().ok_or_else(|| format!("not `TID PC KIND ADDRESS SIZE`: {line:?}"))
}

fn hexadecimal(digits: &str) -> Option<u64> {
    let number = u64::from_str_radix(digits.strip_prefix("0x")?, 16).ok()?;
    (digits == format!("{number:#x}")).then_some(number)
}
