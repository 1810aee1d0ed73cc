//! The ways in which units were executed, as far as that makes a difference to a slice.
//!
//! Two records of the same instructions differ in where their accesses were, and in little else:
//! which instruction brought back what, what decided over which, which call is shown for them. The
//! second is found when a record is read, and has a number, so that nobody has to look at it again.

use crate::control::Position;
use crate::course::Executed;
use crate::events::Record;
use crate::units::Unit;
use crate::wanted::{Wanted, Wanter, cell_words};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};
use why_effects::{Cell, Effects, Place};

/// Instructions have a bit in a mask, and so do the bytes of an access.
pub const MOST: usize = 64;

/// More patterns are not told apart.
const MOST_PATTERNS: u32 = 1 << 22;

/// A record that is unlike others: its instructions are gone over one by one.
pub const NONE: u32 = u32::MAX;

/// A unit, or its first instructions.
pub struct Crossing {
    /// What of it may be wanted.
    pub tests: Vec<Test>,
    /// The cells that it uses or defines, by the word that they are in.
    cells: Vec<(u16, u64)>,
    /// What stands for its accesses: somewhere else what is at one address now may be at two.
    pub stand_ins: Vec<u64>,
    /// A write, and a later access that may but need not be to the same memory.
    apart: Vec<Apart>,
    /// Some of its instructions are not shown: then what is shown for them counts, too.
    hides: bool,
}

struct Apart {
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
        let mut all_cells = Vec::new();
        let mut apart = Vec::new();
        for (index, insn) in instructions.iter().enumerate() {
            let own = unit.first_access[index]..unit.first_access[index + 1];
            if own.len() != insn.effects.operands.len() {
                return None;
            }
            let Effects { parts, operands, decides } = &insn.effects;
            let used = parts.iter().flat_map(|part| part.lanes.iter().chain(&part.whole));
            for place in used.chain(decides).chain(parts.iter().map(|part| &part.to)) {
                if let Place::Cells(used) = place {
                    add_cells(&mut all_cells, used);
                }
            }
            let addresses = operands.iter().flat_map(|operand| &operand.address);
            addresses.for_each(|used| add_cells(&mut all_cells, used));
            for part in parts {
                match &part.to {
                    Place::Cells(to) => add_cells(&mut cells, to),
                    Place::Memory { operand, bytes: to } => {
                        let access = own.start + operand;
                        let (offset, size) = (to.start as u16, (to.end - to.start) as u16);
                        bytes.push(Test::Bytes { access: access as u16, offset, size });
                        let later = own.end..accesses.len();
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
        let cells = cells.into_iter().map(|(word, mask)| Test::Cells { word, mask });
        let tests = cells.chain(bytes).collect();
        let hides = instructions.iter().any(|insn| !insn.shown);
        Some(Crossing { tests, cells: all_cells, stand_ins, apart, hides })
    }

    /// Whether anything that it uses or defines is touched.
    pub fn is_touched(&self, record: &Record, touched: &Wanted) -> bool {
        let cells = &touched.registers.cells;
        let mut bytes = record.starts.iter().zip(&record.unit.plan.accesses);
        self.cells.iter().any(|(word, mask)| cells[usize::from(*word)] & mask != 0)
            || bytes.any(|(start, access)| {
                touched.memory.mask(*start, access.fixed_size().unwrap_or(0).into()) != 0
            })
    }

    /// Whether no access is to the same memory as an earlier write unless it always is.
    #[inline]
    pub fn is_apart(&self, starts: &[u64]) -> bool {
        self.apart.iter().all(|apart| {
            let (write, access) =
                (starts[usize::from(apart.write)], starts[usize::from(apart.access)]);
            access.wrapping_sub(write) >= apart.write_size.into()
                && write.wrapping_sub(access) >= apart.access_size.into()
        })
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

    /// That is wanted no more.
    #[inline]
    pub fn take(&self, found: u64, record: &Record, wanted: &mut Wanted) {
        match *self {
            Test::Cells { word, .. } => wanted.registers.cells[usize::from(word)] &= !found,
            Test::Bytes { access, offset, .. } if found != 0 => {
                let at = record.starts[usize::from(access)];
                wanted.memory.remove(at.wrapping_add(offset.into()), found);
            }
            Test::Bytes { .. } => {}
        }
    }

    /// That is wanted.
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
    crossings: Vec<OnceLock<Option<Box<Crossing>>>>,
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

    fn number(&self, key: &[u64]) -> u32 {
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

/// Finds the patterns of records one after the other.
pub struct Finder<'a> {
    all: &'a Patterns,
    /// By id, the last one and its number.
    last: Vec<(u32, Box<[u64]>)>,
    key: Vec<u64>,
}

impl<'a> Finder<'a> {
    pub fn of(all: &'a Patterns) -> Finder<'a> {
        Finder { all, last: vec![(NONE, Box::default()); all.crossings.len()], key: Vec::new() }
    }

    /// The number of a record's pattern.
    #[inline]
    pub fn find(&mut self, unit: &Unit, executed: &Executed, starts: &[u64]) -> u32 {
        let Some(crossing) = self.all.crossing(unit, executed.count) else { return NONE };
        let id = unit.first_id + executed.count;
        describe(&mut self.key, id, crossing, executed);
        if !crossing.is_apart(starts) {
            describe_overlaps(&mut self.key, unit, starts);
        }
        let (number, key) = &mut self.last[id];
        if !key.iter().eq(&self.key) {
            *number = self.all.number(&self.key);
            *key = self.key.as_slice().into();
        }
        *number
    }
}

/// What makes a difference.
#[inline]
fn describe(key: &mut Vec<u64>, id: usize, crossing: &Crossing, executed: &Executed) {
    const OTHER: u64 = 0xff;
    const NOTHING: u64 = 0x100;
    // Instructions of the unit itself are told by their numbers, others are alike.
    let index = |at: Position| at.checked_sub(executed.position).unwrap_or(OTHER);
    key.clear();
    key.push((id << 32 | executed.restored.len() << 16 | executed.decided.len()) as u64);
    for restored in executed.restored {
        key.push(index(restored.by) << 32 | index(restored.saved));
    }
    for decided in executed.decided {
        key.push((decided.from() as u64) << 32 | decided.by().map_or(NOTHING, index));
    }
    if crossing.hides {
        key.extend(executed.sites.iter().map(|site| site.number()));
    }
}

/// Which accesses are to the same memory, though they need not be.
#[cold]
fn describe_overlaps(key: &mut Vec<u64>, unit: &Unit, starts: &[u64]) {
    let size = |number: usize| u64::from(unit.plan.accesses[number].fixed_size().unwrap_or(0));
    for (number, start) in starts.iter().enumerate() {
        for (earlier, other) in starts[..number].iter().enumerate() {
            let (above, below) = (start.wrapping_sub(*other), other.wrapping_sub(*start));
            if above < size(earlier) || below < size(number) {
                key.push((number as u64) << 48 | (earlier as u64) << 32 | above & 0xffff_ffff);
            }
        }
    }
}
