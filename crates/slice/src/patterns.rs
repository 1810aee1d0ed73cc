//! The ways in which units were executed, as far as that makes a difference to a slice.
//!
//! Two records of the same instructions differ in where their accesses were, and in little else:
//! which instruction brought back what, what decided over which, which call is shown for them. The
//! second is found when a record is read, and has a number, so that nobody has to look at it again.

use crate::control::Position;
use crate::course::{Executed, Site};
use crate::events::Record;
use crate::saves::Kept;
use crate::units::Unit;
use crate::wanted::{Wanted, Wanter, cell_words};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use why_effects::{Cell, Place};
use why_trace::plan::neighbourhood;

/// Instructions have a bit in a mask, and so do the bytes of an access.
pub const MOST: usize = 64;

/// More pairs of accesses are not worth looking at.
const MOST_APART: usize = 1 << 10;

/// More patterns are not told apart.
const MOST_PATTERNS: u32 = 1 << 22;

/// A record that is unlike others: its instructions are gone over one by one.
pub const NONE: u32 = u32::MAX;

/// A unit, or its first instructions.
pub struct Crossing {
    /// What of it may be wanted.
    pub tests: Vec<Test>,
    /// What stands for its accesses if they are apart.
    stand_ins: Vec<u64>,
    /// Writes, and later accesses that may but need not be to the same memory.
    pub apart: Vec<Apart>,
    /// The same for all together that move with each other: if these are apart, so are those.
    pub all_apart: Vec<Apart>,
    /// Some of its instructions are not shown: then what is shown for them counts, too.
    pub hides: bool,
}

/// A write, and another access.
#[derive(Clone, Copy)]
pub struct Apart {
    write: u16,
    access: u16,
    /// What is to be added to how far the access is behind the write,
    plus: u64,
    /// and what that is at least if they are apart.
    least: u64,
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
                        apart.extend(may_be.map(|at| {
                            Apart::of((access as u16, size(access)), (at as u16, size(at)))
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
        let moves_with = |one: u16, other: u16| {
            accesses[usize::from(one)].moves_with(&accesses[usize::from(other)])
        };
        let all_apart = all_apart(&apart, moves_with, &stand_ins);
        Some(Crossing { tests, stand_ins, apart, all_apart, hides })
    }

    /// Whether no access is to the same memory as an earlier write unless it always is.
    #[inline]
    pub fn is_apart(&self, starts: &[u64]) -> bool {
        self.all_apart.iter().all(|apart| apart.is_met(starts))
            || self.apart.iter().all(|apart| apart.is_met(starts))
    }
}

impl Crossing {
    /// Which accesses are to the same memory, though they need not be.
    #[cold]
    pub fn describe_overlaps(&self, starts: &[u64], key: &mut Vec<u64>) {
        for (number, apart) in (0..).zip(&self.apart).filter(|(_, apart)| !apart.is_met(starts)) {
            key.push(number << 32 | apart.behind(starts) & 0xffff_ffff);
        }
    }

    /// What stands for accesses: as far away from each other as they are where that is described,
    /// and far away where it is not. What is at one address now may be at two elsewhere.
    pub fn stand_ins(&self, starts: &[u64]) -> Vec<u64> {
        let mut stand_ins = self.stand_ins.clone();
        for apart in self.apart.iter().filter(|apart| !apart.is_met(starts)) {
            let (write, access) = (usize::from(apart.write), usize::from(apart.access));
            // All that are away from the access as they always are move with it.
            let real = starts[access].wrapping_sub(starts[write]);
            let stands = stand_ins[access].wrapping_sub(stand_ins[write]);
            let (moved, by) = (neighbourhood(stand_ins[access]), real.wrapping_sub(stands));
            if by != 0 {
                let near = stand_ins.iter_mut().filter(|at| neighbourhood(**at) == moved);
                near.for_each(|at| *at = at.wrapping_add(by));
            }
        }
        stand_ins
    }
}

/// One for all that are of accesses which move with each other.
fn all_apart(
    apart: &[Apart],
    moves_with: impl Fn(u16, u16) -> bool,
    stand_ins: &[u64],
) -> Vec<Apart> {
    // How far two accesses that move with each other are from each other.
    let away =
        |from: u16, to: u16| stand_ins[usize::from(to)].wrapping_sub(stand_ins[usize::from(from)]);
    let mut all: Vec<Apart> = Vec::new();
    for one in apart {
        let same = all.iter_mut().find(|first| {
            moves_with(first.write, one.write) && moves_with(first.access, one.access)
        });
        let Some(first) = same else {
            all.push(*one);
            continue;
        };
        // How far the first access may be behind the first write is a range for each; a range that
        // holds both is for both.
        let moved = away(first.access, one.access).wrapping_sub(away(first.write, one.write));
        let range = |plus: u64, least: u64| (plus as i64, plus.wrapping_sub(least) as i64);
        let (plus, end) = range(first.plus, first.least);
        let (other_plus, other_end) = range(one.plus.wrapping_add(moved), one.least);
        let (plus, end) = (plus.max(other_plus), end.min(other_end));
        (first.plus, first.least) = (plus as u64, plus.wrapping_sub(end) as u64);
    }
    all
}

impl Apart {
    /// A write and an access, each with its size.
    fn of((write, write_size): (u16, u16), (access, access_size): (u16, u16)) -> Apart {
        let (write_size, access_size) = (u64::from(write_size), u64::from(access_size));
        // From the last byte of the access behind the first one of the write to the other way round.
        let plus = access_size.saturating_sub(1);
        let least = if write_size == 0 || access_size == 0 { 0 } else { write_size + plus };
        Apart { write, access, plus, least }
    }

    /// How far the last byte of the access is behind the first one of the write.
    #[inline]
    fn behind(&self, starts: &[u64]) -> u64 {
        let access = starts[usize::from(self.access)].wrapping_add(self.plus);
        access.wrapping_sub(starts[usize::from(self.write)])
    }

    #[inline]
    pub fn is_met(&self, starts: &[u64]) -> bool {
        self.behind(starts) >= self.least
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

/// What all records of a number have in common, so that it need not be told for each.
pub struct Pattern {
    pub unit: usize,
    /// How many of its instructions were executed.
    pub count: usize,
    /// How many accesses they made.
    pub accesses: usize,
    /// From which instruction on who decided,
    pub decided: Box<[(usize, By)]>,
    /// and which instructions brought which register back, and when it was put aside.
    pub restored: Box<[(usize, Kept, By)]>,
    /// From which instruction on which call is shown for those that are not, if any is not.
    pub sites: Box<[Site]>,
    /// How many of those above are told for each record.
    pub told: usize,
}

/// When something was that belongs to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Never,
    /// One of its own instructions.
    Own(usize),
    /// Before it: which of those that are told.
    Told(usize),
}

impl Pattern {
    pub fn of(executed: &Executed, accesses: usize, hides: bool) -> Pattern {
        let mut told = 0;
        let mut by = |at: Option<Position>| match at {
            None => By::Never,
            Some(at) if at >= executed.position => By::Own((at - executed.position) as usize),
            Some(_) => {
                told += 1;
                By::Told(told - 1)
            }
        };
        let decided = executed.decided.iter().map(|d| (d.from(), by(d.by()))).collect();
        let restored = executed.restored.iter();
        let restored = restored.map(|r| (r.by(), r.kept(), by(Some(r.saved())))).collect();
        let sites = if hides { executed.sites } else { &[] };
        let (unit, count) = (executed.unit, executed.count);
        Pattern { unit, count, accesses, decided, restored, sites: sites.into(), told }
    }

    /// How far before a record is what is told of it, in the order of their numbers; false if one
    /// is too far.
    #[inline]
    pub fn tell(executed: &Executed, told: &mut Vec<u32>) -> bool {
        let mut is_near = true;
        let mut tell = |at: Position| {
            if let Some(back) = executed.position.checked_sub(at).filter(|back| *back > 0) {
                is_near &= back <= u32::MAX.into();
                told.push(back as u32);
            }
        };
        executed.decided.iter().filter_map(|decided| decided.by()).for_each(&mut tell);
        executed.restored.iter().for_each(|restored| tell(restored.saved()));
        is_near
    }
}

/// All of a region.
pub struct Patterns {
    /// By the ids of records.
    pub crossings: Vec<OnceLock<Option<Box<Crossing>>>>,
    all: Mutex<All>,
}

#[derive(Default)]
struct All {
    numbers: FxHashMap<Box<[u64]>, u32>,
    patterns: Vec<Arc<Pattern>>,
}

impl Patterns {
    pub fn of(units: &[Unit]) -> Patterns {
        let ids = units.iter().map(|unit| unit.instructions.len() + 1).sum();
        let mut crossings = Vec::new();
        crossings.resize_with(ids, OnceLock::new);
        Patterns { crossings, all: Mutex::default() }
    }

    /// What is the same for all records of an id.
    pub fn crossing(&self, unit: &Unit, count: usize) -> Option<&Crossing> {
        let crossing = self.crossings.get(unit.first_id + count)?;
        crossing.get_or_init(|| Crossing::of(unit, count).map(Box::new)).as_deref()
    }

    fn all(&self) -> MutexGuard<'_, All> {
        // Nobody panics with the lock; and if, what is there is whole.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of what is described so.
    pub fn number(&self, key: &[u64], pattern: impl FnOnce() -> Pattern) -> u32 {
        let mut all = self.all();
        if let Some(number) = all.numbers.get(key) {
            return *number;
        }
        let number = all.patterns.len() as u32;
        if number >= MOST_PATTERNS {
            return NONE;
        }
        all.patterns.push(Arc::new(pattern()));
        all.numbers.insert(key.into(), number);
        number
    }
}

/// Patterns by their numbers, for somebody who goes through records.
#[derive(Default)]
pub struct Book {
    pub patterns: Vec<Arc<Pattern>>,
    sizes: Vec<Sizes>,
}

/// How much there is of a record.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub count: u16,
    pub accesses: u16,
    pub told: u16,
}

impl Book {
    /// All that have a number by now.
    pub fn update(&mut self, all: &Patterns) {
        let all = all.all();
        for pattern in &all.patterns[self.patterns.len()..] {
            self.sizes.push(Sizes {
                count: pattern.count as u16,
                accesses: pattern.accesses as u16,
                told: pattern.told as u16,
            });
            self.patterns.push(Arc::clone(pattern));
        }
    }

    #[inline]
    pub fn sizes(&self, number: u32) -> Sizes {
        self.sizes[number as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two accesses that move together and two others, wherever they are: all together are apart
    /// only if each pair is.
    #[test]
    fn all_are_apart_only_if_each_is() {
        let (sizes, stand_ins) = ([8, 4, 1, 16], [1 << 48, (1 << 48) + 20, 2 << 48, (2 << 48) - 9]);
        let pair = |write: u16, access: u16| {
            Apart::of((write, sizes[usize::from(write)]), (access, sizes[usize::from(access)]))
        };
        let apart = [pair(0, 2), pair(0, 3), pair(1, 2), pair(1, 3)];
        let all = all_apart(&apart, |one, other| one / 2 == other / 2, &stand_ins);
        assert_eq!(all.len(), 1);
        let mut apart_together = 0;
        for away in 0..200 {
            let (one, other) = (0x1000, 0x1000 - 100 + away);
            let starts = [one, one + 20, other, other - 9];
            let overlaps = |write: usize, access: usize| {
                let (write, access) =
                    ((starts[write], sizes[write]), (starts[access], sizes[access]));
                write.0 < access.0 + u64::from(access.1) && access.0 < write.0 + u64::from(write.1)
            };
            let expected = [overlaps(0, 2), overlaps(0, 3), overlaps(1, 2), overlaps(1, 3)];
            assert_eq!(apart.map(|apart| !apart.is_met(&starts)), expected, "{away}");
            if all[0].is_met(&starts) {
                apart_together += 1;
                assert_eq!(expected, [false; 4], "{away}");
            }
        }
        assert_eq!(apart_together, 161, "all but where the ranges of both overlap");
    }
}
