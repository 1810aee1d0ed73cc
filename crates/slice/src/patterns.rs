//! The ways in which units were executed, as far as that makes a difference to a slice.
//!
//! Two records of the same instructions differ in where their accesses were, and in little else:
//! which instruction brought back what, what decided over which, which call is shown for them. The
//! second is found when a record is read, and has a number, so that nobody has to look at it again.

use crate::events::Record;
use crate::units::Unit;
use crate::wanted::{Wanted, Wanter, cell_words};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};
use why_effects::{Cell, Place};

/// Instructions have a bit in a mask, and so do the bytes of an access.
pub const MOST: usize = 64;

/// More pairs of accesses are not worth looking at for each record.
const MOST_APART: usize = 1 << 10;

/// More patterns are not told apart.
const MOST_PATTERNS: u32 = 1 << 22;

/// A record that is unlike others: its instructions are gone over one by one.
pub const NONE: u32 = u32::MAX;

/// A unit, or its first instructions.
pub struct Crossing {
    /// What of it may be wanted.
    pub tests: Vec<Test>,
    /// What stands for its accesses: somewhere else what is at one address now may be at two.
    pub stand_ins: Vec<u64>,
    /// A write, and a later access that may but need not be to the same memory.
    pub apart: Vec<Apart>,
    /// Some of its instructions are not shown: then what is shown for them counts, too.
    pub hides: bool,
}

pub struct Apart {
    write: u16,
    access: u16,
    write_size: u16,
    access_size: u16,
}

/// Something that a unit may make.
#[derive(Clone, Copy)]
pub enum Test {
    /// Cells of a word.
    Cells { word: u16, mask: u64 },
    /// Bytes of an access.
    Bytes { access: u16, offset: u16, size: u16 },
}

impl Crossing {
    /// None if it is not so simple.
    fn of(unit: &Unit, count: usize) -> Option<Crossing> {
        let instructions = unit.instructions.get(..count.min(MOST + 1))?;
        if count > MOST {
            return None;
        }
        let accesses = &unit.plan.accesses[..unit.first_access[count]];
        let stand_ins = unit.plan.stand_ins(accesses.len())?;
        if accesses.iter().any(|access| access.fixed_size().is_none_or(|size| size > MOST as u16)) {
            return None;
        }
        let (mut cells, mut bytes) = (Vec::new(), Vec::new());
        let mut apart = Vec::new();
        for (index, insn) in instructions.iter().enumerate() {
            let own = unit.first_access[index]..unit.first_access[index + 1];
            if own.len() != insn.effects.operands.len() {
                return None;
            }
            for part in &insn.effects.parts {
                match &part.to {
                    Place::Cells(to) => add_cells(&mut cells, to),
                    Place::Memory { operand, bytes: to } => {
                        let access = own.start + operand;
                        let (offset, size) = (to.start as u16, (to.end - to.start) as u16);
                        bytes.push(Test::Bytes { access: access as u16, offset, size });
                        // What it writes elsewhere, as a scatter does, may be there, too.
                        let beside = insn.keeping.writes.iter().map(|other| own.start + other);
                        let beside = beside.filter(|at| *at > access);
                        let later = beside.chain(own.end..accesses.len());
                        let may_be =
                            later.filter(|at| !accesses[*at].moves_with(&accesses[access]));
                        let size = |at: usize| accesses[at].fixed_size().unwrap_or(0);
                        apart.extend(may_be.map(|at| Apart {
                            write: access as u16,
                            access: at as u16,
                            write_size: size(access),
                            access_size: size(at),
                        }));
                    }
                    Place::String { .. } => return None,
                }
            }
        }
        if apart.len() > MOST_APART {
            return None;
        }
        let cells = cells.into_iter().map(|(word, mask)| Test::Cells { word, mask });
        let tests = cells.chain(bytes).collect();
        let hides = instructions.iter().any(|insn| !insn.shown);
        Some(Crossing { tests, stand_ins, apart, hides })
    }

    /// Whether no access is to the same memory as an earlier write unless it always is.
    pub fn is_apart(&self, starts: &[u64]) -> bool {
        self.apart.iter().all(|apart| apart.is_met(starts))
    }
}

impl Apart {
    #[inline]
    pub fn is_met(&self, starts: &[u64]) -> bool {
        let (write, access) = (starts[usize::from(self.write)], starts[usize::from(self.access)]);
        access.wrapping_sub(write) >= self.write_size.into()
            && write.wrapping_sub(access) >= self.access_size.into()
    }
}

impl Test {
    /// What of it is wanted.
    #[inline]
    pub fn wanted(&self, record: &Record, wanted: &Wanted) -> u64 {
        match *self {
            Test::Cells { word, mask } => wanted.registers.cells[usize::from(word)] & mask,
            Test::Bytes { access, offset, size } => {
                let at = record.starts[usize::from(access)];
                wanted.memory.mask(at.wrapping_add(offset.into()), size.into())
            }
        }
    }

    /// That is wanted.
    #[inline]
    pub fn want(&self, mask: u64, wanter: Wanter, record: &Record, wanted: &mut Wanted) {
        match *self {
            Test::Cells { word, .. } => wanted.registers.want(usize::from(word), mask, wanter),
            Test::Bytes { access, offset, .. } => {
                let at = record.starts[usize::from(access)];
                wanted.memory.add_some(at.wrapping_add(offset.into()), mask, wanter);
            }
        }
    }
}

/// Adds cells to those of the same words.
fn add_cells(to: &mut Vec<(u16, u64)>, cells: &Range<Cell>) {
    for (word, mask) in cell_words(cells.clone()) {
        match to.iter_mut().find(|(at, _)| usize::from(*at) == word) {
            Some((_, all)) => *all |= mask,
            None => to.push((word as u16, mask)),
        }
    }
}

/// All of a region.
pub struct Patterns {
    /// By the ids of records.
    pub crossings: Vec<OnceLock<Option<Box<Crossing>>>>,
    numbers: Mutex<FxHashMap<Box<[u64]>, u32>>,
}

impl Patterns {
    pub fn of(units: &[Unit]) -> Patterns {
        let ids = units.iter().map(|unit| unit.instructions.len() + 1).sum();
        let mut crossings = Vec::new();
        crossings.resize_with(ids, OnceLock::new);
        Patterns { crossings, numbers: Mutex::default() }
    }

    /// What is the same for all records of an id.
    pub fn crossing(&self, unit: &Unit, count: usize) -> Option<&Crossing> {
        let crossing = self.crossings.get(unit.first_id + count)?;
        crossing.get_or_init(|| Crossing::of(unit, count).map(Box::new)).as_deref()
    }

    /// The number of what is described so.
    pub fn number(&self, key: &[u64]) -> u32 {
        // Nobody panics with the lock, and a map stays one.
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = numbers.get(key) {
            return *number;
        }
        let number = numbers.len() as u32;
        if number >= MOST_PATTERNS {
            return NONE;
        }
        numbers.insert(key.into(), number);
        number
    }
}
