//! What happened in a chunk, to be gone through in either direction.

use crate::calls::Told;
use crate::control::Position;
use crate::course::{By, Deciding, Restored, Signal, Site, Wrote};
use crate::families::Member;
use crate::large;
use crate::patterns::{Book, NONE};
use crate::places::Place;
use crate::units::{Known, Unit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;

/// The position of what was never completed: no trace is so long.
pub const NEVER: Position = 1 << 62;

/// What happened, one behind the other.
#[derive(Default)]
pub struct Events {
    /// Units that have a pattern: its number, the places of the families of their accesses, how far
    /// away what is told of them was, and the number again, for those who come from behind. What else
    /// happened is there by its number alone, with a bit more.
    pub(crate) all: Vec<u32>,
    pub(crate) others: Vec<Other>,
    /// The blocks that places are in.
    pub blocks: Vec<u64>,
    /// Of all instructions: there are no gaps.
    pub(crate) positions: Range<Position>,
    /// The threads that executed the first and the last of them.
    pub(crate) threads: Option<(u64, u64)>,
    /// What is known of units that have no pattern.
    pub(crate) accesses: Vec<u64>,
    pub(crate) decided: Vec<Deciding>,
    pub(crate) sites: Vec<Site>,
    pub(crate) restored: Vec<Restored>,
    pub passed_over: BTreeSet<u64>,
    /// The positions of instructions that were interrupted in the middle.
    pub interrupted: Vec<Position>,
}

/// Numbers of others have this bit, and no pattern's number has.
pub(crate) const OTHER: u32 = 1 << 31;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Other {
    /// Another thread goes on.
    Turn {
        from: u64,
        to: u64,
    },
    Executed(UnitExecuted),
    Interrupted(Interrupted),
    Wrote(Wrote),
    Signal(Signal),
    Told(Told),
}

/// A unit without a pattern, or a part of it: how many instructions, and where what belongs to it
/// is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnitExecuted {
    pub unit: u32,
    pub count: u32,
    /// Where the accesses of the unit's plan were; where there are strings among them, behind that
    /// the sizes of all.
    pub accesses: Range<u32>,
    pub decided: Range<u32>,
    pub sites: Range<u32>,
    pub restored: Range<u32>,
}

/// A part of an instruction, the last of so many of a unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Interrupted {
    pub at: Position,
    /// Where the unit begins if the instruction is where it was completed.
    pub position: Position,
    pub thread: u64,
    pub unit: usize,
    pub count: usize,
    pub decided: Vec<Deciding>,
    pub sites: Vec<Site>,
    pub starts: Vec<u64>,
    pub sizes: Vec<u64>,
}

/// Something that happened.
pub enum Happened<'a> {
    Executed(Record<'a>),
    /// Of the last of these instructions a part, when so many had been executed. The record is of
    /// when it was completed.
    Interrupted(Record<'a>, Position),
    Wrote(&'a Wrote),
    Signal(&'a Signal),
    Told(&'a Told),
}

/// Somebody who goes through events with units that have a pattern as they are kept.
pub trait Visitor {
    fn over_alike(&mut self, alike: &Alike);

    fn over_other(&mut self, happened: Happened);
}

/// A unit that was executed like others were.
#[derive(Clone, Copy)]
pub struct Alike<'a> {
    /// The number of its pattern.
    pub pattern: u32,
    pub position: Position,
    pub count: u32,
    pub thread: u64,
    /// Where the families of its accesses were: places.
    places: &'a [u32],
    /// How far before it was what is told of it.
    told: &'a [u32],
}

impl Alike<'_> {
    /// Where something was.
    #[inline(always)]
    pub fn place(&self, member: Member) -> Place {
        Place(self.places[usize::from(member.family)]).plus(member.offset)
    }

    /// When something was that is told.
    #[inline(always)]
    pub fn told(&self, number: u16) -> Position {
        self.position - Position::from(self.told[usize::from(number)])
    }

    /// Behind its instructions.
    #[inline(always)]
    pub fn end(&self) -> Position {
        self.position + Position::from(self.count)
    }
}

/// A unit that was executed, with what is known of it.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    pub unit: &'a Unit,
    /// The number of its pattern.
    pub pattern: u32,
    pub position: Position,
    pub count: usize,
    pub thread: u64,
    /// From which instruction on who decided.
    pub decided: &'a [Deciding],
    /// From which instruction on which call is shown for those that are not.
    pub sites: &'a [Site],
    /// Instructions that brought a register back.
    pub restored: &'a [Restored],
    /// Where the accesses of the unit's plan were.
    pub starts: &'a [u64],
    /// Their sizes, if not all are always the same.
    pub sizes: &'a [u64],
}

impl<'a> Record<'a> {
    /// Where the operands of an instruction were; false if that is not known.
    pub fn operands(&self, index: usize, operands: &mut Vec<Range<u64>>) -> bool {
        let own = self.unit.first_access[index]..self.unit.first_access[index + 1];
        let accesses = &self.unit.plan.accesses;
        operands.clear();
        operands.extend(own.map(|number| {
            let fixed = accesses[number].fixed_size().map(u64::from);
            let size = fixed.unwrap_or_else(|| self.sizes[number]);
            self.starts[number]..self.starts[number].wrapping_add(size)
        }));
        operands.len() == self.unit.instructions[index].effects.operands.len()
    }

    /// What decided over an instruction.
    pub fn decided(&self, index: usize) -> Option<Position> {
        let last = self.decided.iter().rev().find(|decided| decided.from() <= index);
        last.and_then(|decided| decided.by())
    }

    /// The call that is shown instead of an instruction that is not.
    pub fn site(&self, index: usize) -> Option<u64> {
        let last = self.sites.iter().rev().find(|site| site.from() <= index);
        last.map(|site| site.call()).filter(|call| *call != 0)
    }

    /// The register that an instruction brought back, if it did.
    pub fn restored(&self, insn: &Known, index: usize) -> Option<&'a Restored> {
        insn.keeping.loads?;
        self.restored.iter().find(|restored| restored.by() == index)
    }
}

/// Makes records of units that are kept as their patterns tell: room for what belongs to one.
#[derive(Default)]
pub struct Unfolding {
    starts: Vec<u64>,
    decided: Vec<Deciding>,
    restored: Vec<Restored>,
}

impl Unfolding {
    pub fn record<'a>(
        &'a mut self,
        alike: &Alike,
        blocks: &[u64],
        book: &'a Book,
        units: &'a [Unit],
    ) -> Record<'a> {
        let pattern = &*book.patterns[alike.pattern as usize];
        let when = |by: By| by.position(alike.position, |number| alike.told(number as u16));
        self.starts.clear();
        let members = pattern.members.iter();
        self.starts.extend(members.map(|member| alike.place(*member).address(blocks)));
        self.decided.clear();
        let decided = pattern.decided.iter();
        self.decided.extend(decided.map(|(from, by)| Deciding::new(*from, when(*by))));
        self.restored.clear();
        let restored = pattern.restored.iter();
        self.restored.extend(restored.filter_map(|(index, kept, saved)| {
            when(*saved).map(|saved| Restored::new(*index, *kept, saved))
        }));
        Record {
            unit: &units[pattern.unit],
            pattern: alike.pattern,
            position: alike.position,
            count: pattern.count,
            thread: alike.thread,
            decided: &self.decided,
            sites: &pattern.sites,
            restored: &self.restored,
            starts: &self.starts,
            sizes: &[],
        }
    }
}

impl Events {
    /// Nothing has happened: room for others.
    pub fn clear(&mut self) {
        self.all.clear();
        self.others.clear();
        self.blocks.clear();
        self.positions = 0..0;
        self.threads = None;
        self.accesses.clear();
        self.decided.clear();
        self.sites.clear();
        self.restored.clear();
        self.passed_over.clear();
        self.interrupted.clear();
    }

    /// Room for about as much, to be kept.
    pub fn room_like(&self) -> Events {
        Events { all: large::room_like(&self.all), ..Events::default() }
    }

    /// How much memory that takes.
    pub fn size(&self) -> usize {
        size_of_val(self.all.as_slice())
            + size_of_val(self.others.as_slice())
            + size_of_val(self.blocks.as_slice())
            + size_of_val(self.accesses.as_slice())
            + size_of_val(self.decided.as_slice())
            + size_of_val(self.sites.as_slice())
            + size_of_val(self.restored.as_slice())
    }

    /// In the order in which it happened.
    pub fn forwards(&self, units: &[Unit], book: &Book, mut each: impl FnMut(&Happened)) {
        let mut unfolding = Unfolding::default();
        let (mut position, mut thread) = (self.positions.start, self.threads.map_or(0, |t| t.0));
        let mut at = 0;
        while let Some(number) = self.all.get(at).copied() {
            if number & OTHER != 0 {
                at += 1;
                match &self.others[(number & !OTHER) as usize] {
                    Other::Turn { to, .. } => thread = *to,
                    other => {
                        each(&self.happened(other, units, thread, position));
                        position += other.count();
                    }
                }
                continue;
            }
            let alike = self.alike(number, at, book, thread, position);
            let record = unfolding.record(&alike, &self.blocks, book, units);
            each(&Happened::Executed(record));
            (at, position) = (at + alike.words(), alike.end());
        }
    }

    /// The last first.
    #[inline]
    pub fn backwards(&self, units: &[Unit], book: &Book, visitor: &mut impl Visitor) {
        let (mut position, mut thread) = (self.positions.end, self.threads.map_or(0, |t| t.1));
        let mut end = self.all.len();
        while let Some(last) = end.checked_sub(1) {
            let number = self.all[last];
            if number & OTHER != 0 {
                end = last;
                match &self.others[(number & !OTHER) as usize] {
                    Other::Turn { from, .. } => thread = *from,
                    other => {
                        position -= other.count();
                        visitor.over_other(self.happened(other, units, thread, position));
                    }
                }
                continue;
            }
            let sizes = book.sizes(number);
            end -= 2 + usize::from(sizes.families) + usize::from(sizes.told);
            position -= Position::from(sizes.count);
            visitor.over_alike(&self.alike(number, end, book, thread, position));
        }
    }

    /// The unit with a pattern that is there.
    #[inline(always)]
    fn alike(
        &self,
        pattern: u32,
        at: usize,
        book: &Book,
        thread: u64,
        position: Position,
    ) -> Alike<'_> {
        let sizes = book.sizes(pattern);
        let told = at + 1 + usize::from(sizes.families);
        Alike {
            pattern,
            position,
            count: sizes.count.into(),
            thread,
            places: &self.all[at + 1..told],
            told: &self.all[told..told + usize::from(sizes.told)],
        }
    }

    fn happened<'a>(
        &'a self,
        other: &'a Other,
        units: &'a [Unit],
        thread: u64,
        position: Position,
    ) -> Happened<'a> {
        fn of<'a, T>(list: &'a [T], range: &Range<u32>) -> &'a [T] {
            &list[range.start as usize..range.end as usize]
        }
        let executed = match other {
            Other::Executed(executed) => executed,
            Other::Interrupted(part) => return part.happened(units),
            Other::Wrote(wrote) => return Happened::Wrote(wrote),
            Other::Signal(signal) => return Happened::Signal(signal),
            Other::Told(told) => return Happened::Told(told),
            Other::Turn { .. } => unreachable!("whoever goes through events knows of turns"),
        };
        let unit = &units[executed.unit as usize];
        let accesses = of(&self.accesses, &executed.accesses);
        let planned = if unit.has_strings { accesses.len() / 2 } else { accesses.len() };
        let (starts, sizes) = accesses.split_at(planned);
        Happened::Executed(Record {
            unit,
            pattern: NONE,
            position,
            count: executed.count as usize,
            thread,
            decided: of(&self.decided, &executed.decided),
            sites: of(&self.sites, &executed.sites),
            restored: of(&self.restored, &executed.restored),
            starts,
            sizes,
        })
    }
}

impl Alike<'_> {
    /// How many words are kept of it.
    fn words(&self) -> usize {
        2 + self.places.len() + self.told.len()
    }
}

impl Other {
    /// How many instructions were executed.
    fn count(&self) -> Position {
        match self {
            Other::Executed(executed) => executed.count.into(),
            _ => 0,
        }
    }
}

impl Interrupted {
    fn happened<'a>(&'a self, units: &'a [Unit]) -> Happened<'a> {
        let record = Record {
            unit: &units[self.unit],
            pattern: NONE,
            position: self.position,
            count: self.count,
            thread: self.thread,
            decided: &self.decided,
            sites: &self.sites,
            restored: &[],
            starts: &self.starts,
            sizes: &self.sizes,
        };
        Happened::Interrupted(record, self.at)
    }
}
