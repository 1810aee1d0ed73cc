//! The ways in which units were executed, as far as that makes a difference to a slice.
//!
//! Two records of the same instructions differ in where their accesses were, and in little else:
//! which instruction brought back what, what decided over which, which call is shown for them. The
//! second is found when a record is read, and has a number, so that nobody has to look at it again.

use crate::course::{By, Executed, Note, Site, Unfolded};
use crate::events::Record;
use crate::families::{Families, Family, Member};
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
    pub families: Families,
    /// What stands for its accesses if they are apart.
    stand_ins: Vec<u64>,
    /// Writes, and later accesses that may but need not be to the same memory.
    apart: Vec<Apart>,
    /// The same for all together that move with each other: if these are apart, so are those.
    all_apart: Vec<Apart>,
    /// Some of its instructions are not shown: then what is shown for them counts, too.
    pub hides: bool,
}

/// The families of a write and of another access.
#[derive(Clone, Copy)]
struct Apart {
    write: u16,
    access: u16,
    /// What is to be added to how far that of the access begins behind the other,
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
        let families = Families::of(accesses)?;
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
                        let sized = |at: usize| {
                            (families.members[at], accesses[at].fixed_size().unwrap_or(0))
                        };
                        apart.extend(may_be.map(|at| Apart::of(sized(access), sized(at))));
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
        let all_apart = all_apart(&apart, &families.all);
        Some(Crossing { tests, families, stand_ins, apart, all_apart, hides })
    }

    /// Whether no access is to the same memory as an earlier write unless it always is. Families
    /// begin there.
    #[inline]
    pub fn is_apart(&self, bases: &[u64]) -> bool {
        self.all_apart.iter().all(|apart| apart.is_met(bases))
            || self.apart.iter().all(|apart| apart.is_met(bases))
    }
}

impl Crossing {
    /// Which accesses are to the same memory, though they need not be.
    #[cold]
    pub fn describe_overlaps(&self, bases: &[u64], key: &mut Vec<u32>) {
        for (number, apart) in (0..).zip(&self.apart).filter(|(_, apart)| !apart.is_met(bases)) {
            key.extend([number, apart.behind(bases) as u32]);
        }
    }

    /// What stands for accesses: as far away from each other as they are where that is described,
    /// and far away where it is not. What is at one address now may be at two elsewhere.
    pub fn stand_ins(&self, starts: &[u64]) -> Vec<u64> {
        let mut stand_ins = self.stand_ins.clone();
        let bases: Vec<u64> = self.families.bases(starts).collect();
        for apart in self.apart.iter().filter(|apart| !apart.is_met(&bases)) {
            let (write, access) = (usize::from(apart.write), usize::from(apart.access));
            // All that are away from the access as they always are move with it.
            let real = bases[access].wrapping_sub(bases[write]);
            let stand: Vec<u64> = self.families.bases(&stand_ins).collect();
            let stands = stand[access].wrapping_sub(stand[write]);
            let (moved, by) = (neighbourhood(stand[access]), real.wrapping_sub(stands));
            if by != 0 {
                let near = stand_ins.iter_mut().filter(|at| neighbourhood(**at) == moved);
                near.for_each(|at| *at = at.wrapping_add(by));
            }
        }
        stand_ins
    }
}

/// One for all that are of families which move with each other.
fn all_apart(apart: &[Apart], families: &[Family]) -> Vec<Apart> {
    let start = |family: u16| families[usize::from(family)].start;
    let moves_with = |one: u16, other: u16| start(one).value == start(other).value;
    let away = |from: u16, to: u16| start(to).plus.wrapping_sub(start(from).plus);
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
    fn of((write, write_size): (Member, u16), (access, access_size): (Member, u16)) -> Apart {
        let (write_size, access_size) = (u64::from(write_size), u64::from(access_size));
        // From the last byte of the access behind the first one of the write to the other way round.
        let last = access_size.saturating_sub(1);
        let least = if write_size == 0 || access_size == 0 { 0 } else { write_size + last };
        let plus = (last + u64::from(access.offset)).wrapping_sub(write.offset.into());
        Apart { write: write.family, access: access.family, plus, least }
    }

    /// How far the last byte of the access is behind the first one of the write.
    #[inline]
    fn behind(&self, bases: &[u64]) -> u64 {
        let access = bases[usize::from(self.access)].wrapping_add(self.plus);
        access.wrapping_sub(bases[usize::from(self.write)])
    }

    #[inline]
    fn is_met(&self, bases: &[u64]) -> bool {
        self.behind(bases) >= self.least
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
    /// Where its accesses are in families, and how many of these it has.
    pub members: Arc<[Member]>,
    pub families: usize,
    /// From which instruction on who decided,
    pub decided: Box<[(usize, By)]>,
    /// and which instructions brought which register back, and when it was put aside.
    pub restored: Box<[(usize, Kept, By)]>,
    /// From which instruction on which call is shown for those that are not, if any is not.
    pub sites: Box<[Site]>,
    /// How many of those above are told for each record.
    pub told: usize,
}

impl Pattern {
    pub fn of(executed: &Executed, unit: &Unit, crossing: &Crossing) -> Pattern {
        let sites = if crossing.hides { executed.sites } else { &[] };
        Pattern::noted((executed.unit, executed.count), executed.notes, sites, unit, crossing)
    }

    /// Of the first instructions of a unit with a number.
    pub fn noted(
        (number, count): (usize, usize),
        notes: &[Note],
        sites: &[Site],
        unit: &Unit,
        crossing: &Crossing,
    ) -> Pattern {
        let Unfolded { decided, restored } = Unfolded::of(notes, unit, count);
        Pattern {
            unit: number,
            count,
            members: Arc::clone(&crossing.families.members),
            families: crossing.families.all.len(),
            decided: decided.into(),
            restored: restored.into(),
            sites: sites.into(),
            told: notes.iter().filter(|note| note.is_told()).count(),
        }
    }

    /// The family of an access, and how far behind where that begins a byte of it is.
    pub fn place(&self, access: u16, offset: u16) -> Member {
        let member = self.members[usize::from(access)];
        Member { offset: member.offset + offset, ..member }
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
    numbers: FxHashMap<Box<[u32]>, u32>,
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

    /// How they are described, in the order of their numbers.
    pub fn keys(&self) -> Vec<Box<[u32]>> {
        let all = self.all();
        let mut keys: Vec<_> = all.numbers.iter().collect();
        keys.sort_unstable_by_key(|(_, number)| **number);
        keys.into_iter().map(|(key, _)| key.clone()).collect()
    }

    /// The number of what is described so.
    pub fn number(&self, key: &[u32], pattern: impl FnOnce() -> Pattern) -> u32 {
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
    pub families: u16,
    pub told: u16,
}

impl Book {
    /// All that have a number by now.
    pub fn update(&mut self, all: &Patterns) {
        let all = all.all();
        for pattern in &all.patterns[self.patterns.len()..] {
            self.sizes.push(Sizes {
                count: pattern.count as u16,
                families: pattern.families as u16,
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
    use why_trace::plan::Start;

    /// Two accesses that move together and two others, wherever they are: all together are apart
    /// only if each pair is. How often they are apart.
    fn apart_together(away: u64) -> usize {
        let accesses = [
            (Start { value: 0, plus: 0 }, 8),
            (Start { value: 0, plus: away + 11 }, 4),
            (Start { value: 1, plus: 0 }, 1),
            (Start { value: 1, plus: away.wrapping_neg() }, 16),
        ];
        let families = Families::of_fixed(&accesses);
        let member = |access: usize| (families.members[access], accesses[access].1);
        let pair = |write: usize, access: usize| Apart::of(member(write), member(access));
        let apart = [pair(0, 2), pair(0, 3), pair(1, 2), pair(1, 3)];
        let all = all_apart(&apart, &families.all);
        assert_eq!(all.len(), 1);
        let is_apart_at = |at: &u64| {
            let values = [1 << 20, (1 << 20) - 100 + at];
            let starts = accesses
                .map(|(start, _)| values[usize::from(start.value)].wrapping_add(start.plus));
            let overlaps = |write: usize, access: usize| {
                let end = |access: usize| starts[access] + u64::from(accesses[access].1);
                starts[write] < end(access) && starts[access] < end(write)
            };
            let bases: Vec<u64> = families.bases(&starts).collect();
            let expected = [overlaps(0, 2), overlaps(0, 3), overlaps(1, 2), overlaps(1, 3)];
            assert_eq!(apart.map(|apart| !apart.is_met(&bases)), expected, "{away} {at}");
            let is_apart = all[0].is_met(&bases);
            assert!(!is_apart || expected == [false; 4], "{away} {at}");
            is_apart
        };
        (0..20_000).filter(is_apart_at).count()
    }

    #[test]
    fn all_are_apart_only_if_each_is() {
        assert_eq!(apart_together(9), 19_961, "all but where the ranges of both overlap");
        assert_eq!(apart_together(5000), 20_000 - 10_015, "they are four families");
    }
}
