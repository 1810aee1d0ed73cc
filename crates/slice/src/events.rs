//! What happened in a chunk, to be gone through in either direction.

use crate::calls::Told;
use crate::control::Position;
use crate::course::{Deciding, Executed, Restored, Signal, Sink, Site, Wrote};
use crate::patterns::{Finder, NONE};
use crate::units::{Known, Unit};
use std::collections::BTreeSet;
use std::ops::Range;

/// What happened, one behind the other. What belongs to an executed unit is where that of the one
/// before ends.
#[derive(Clone, Default)]
pub struct Events {
    all: Vec<Event>,
    decided: Vec<Deciding>,
    /// Where the accesses of the units' plans were; where there are strings among them, behind that
    /// the sizes of all.
    accesses: Vec<u64>,
    sites: Vec<Site>,
    restored: Vec<Restored>,
    pub passed_over: BTreeSet<u64>,
    /// The positions of instructions that were interrupted in the middle.
    pub interrupted: Vec<Position>,
}

#[derive(Clone)]
enum Event {
    Executed(UnitExecuted),
    Wrote(Wrote),
    Signal(Signal),
    Told(Told),
}

/// A unit, or a part of it.
#[derive(Clone)]
struct UnitExecuted {
    position: Position,
    thread: u64,
    unit: u32,
    pattern: u32,
    /// How many instructions of it, and how much of what belongs to it.
    count: u16,
    accesses: u16,
    decided: u16,
    sites: u16,
    restored: u16,
}

/// Something that happened.
pub enum Happened<'a> {
    Executed(Record<'a>),
    Wrote(&'a Wrote),
    Signal(&'a Signal),
    Told(&'a Told),
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
        let position = self.position + index as Position;
        self.restored.iter().find(|restored| restored.by == position)
    }
}

/// Where what belongs to units begins and ends.
#[derive(Clone, Copy, Default)]
struct Cursor {
    accesses: usize,
    decided: usize,
    sites: usize,
    restored: usize,
}

impl Cursor {
    /// Behind a unit, if this is in front of it.
    #[inline]
    fn behind(self, executed: &UnitExecuted) -> Cursor {
        Cursor {
            accesses: self.accesses + usize::from(executed.accesses),
            decided: self.decided + usize::from(executed.decided),
            sites: self.sites + usize::from(executed.sites),
            restored: self.restored + usize::from(executed.restored),
        }
    }

    /// In front of a unit, if this is behind it.
    #[inline]
    fn before(self, executed: &UnitExecuted) -> Cursor {
        Cursor {
            accesses: self.accesses - usize::from(executed.accesses),
            decided: self.decided - usize::from(executed.decided),
            sites: self.sites - usize::from(executed.sites),
            restored: self.restored - usize::from(executed.restored),
        }
    }
}

impl Events {
    /// Nothing has happened: room for others.
    pub fn clear(&mut self) {
        self.all.clear();
        self.decided.clear();
        self.accesses.clear();
        self.sites.clear();
        self.restored.clear();
        self.passed_over.clear();
        self.interrupted.clear();
    }

    /// How much memory that takes.
    pub fn size(&self) -> usize {
        size_of_val(self.all.as_slice())
            + size_of_val(self.decided.as_slice())
            + size_of_val(self.accesses.as_slice())
            + size_of_val(self.sites.as_slice())
            + size_of_val(self.restored.as_slice())
    }

    /// In the order in which it happened.
    pub fn forwards<'a>(&'a self, units: &'a [Unit]) -> impl Iterator<Item = Happened<'a>> {
        let mut cursor = Cursor::default();
        self.all.iter().map(move |event| {
            let before = cursor;
            if let Event::Executed(executed) = event {
                cursor = before.behind(executed);
            }
            self.happened(event, units, before)
        })
    }

    /// The last first.
    #[inline]
    pub fn backwards<'a>(&'a self, units: &'a [Unit]) -> impl Iterator<Item = Happened<'a>> {
        let mut cursor = Cursor {
            accesses: self.accesses.len(),
            decided: self.decided.len(),
            sites: self.sites.len(),
            restored: self.restored.len(),
        };
        self.all.iter().rev().map(move |event| {
            if let Event::Executed(executed) = event {
                cursor = cursor.before(executed);
            }
            self.happened(event, units, cursor)
        })
    }

    #[inline]
    fn happened<'a>(&'a self, event: &'a Event, units: &'a [Unit], at: Cursor) -> Happened<'a> {
        let executed = match event {
            Event::Executed(executed) => executed,
            Event::Wrote(wrote) => return Happened::Wrote(wrote),
            Event::Signal(signal) => return Happened::Signal(signal),
            Event::Told(told) => return Happened::Told(told),
        };
        let end = at.behind(executed);
        let unit = &units[executed.unit as usize];
        let accesses = &self.accesses[at.accesses..end.accesses];
        let planned = if unit.has_strings { accesses.len() / 2 } else { accesses.len() };
        let (starts, sizes) = accesses.split_at(planned);
        Happened::Executed(Record {
            unit,
            pattern: executed.pattern,
            position: executed.position,
            count: executed.count.into(),
            thread: executed.thread,
            decided: &self.decided[at.decided..end.decided],
            sites: &self.sites[at.sites..end.sites],
            restored: &self.restored[at.restored..end.restored],
            starts,
            sizes,
        })
    }
}

/// Notes what happens.
pub struct Noting<'a, 'p> {
    pub units: &'a [Unit],
    /// None if nobody asks for patterns.
    pub patterns: Option<&'a mut Finder<'p>>,
    pub events: &'a mut Events,
}

impl Sink for Noting<'_, '_> {
    const DETAILS: bool = true;

    fn executed(&mut self, executed: Executed<'_>) {
        let Executed { unit: number, thread, position, count, values, .. } = executed;
        let unit = &self.units[number];
        let events = &mut *self.events;
        let first = events.accesses.len();
        let planned = &unit.plan.accesses[..unit.first_access[count]];
        events.accesses.extend(planned.iter().map(|access| access.start(values)));
        let starts = &events.accesses[first..];
        let patterns = self.patterns.as_mut();
        let pattern = patterns.map_or(NONE, |patterns| patterns.find(unit, &executed, starts));
        if unit.has_strings {
            events.accesses.extend(planned.iter().map(|access| access.range(values).1));
        }
        events.all.push(Event::Executed(UnitExecuted {
            position,
            thread,
            unit: number as u32,
            pattern,
            count: count as u16,
            accesses: (events.accesses.len() - first) as u16,
            decided: executed.decided.len() as u16,
            sites: executed.sites.len() as u16,
            restored: executed.restored.len() as u16,
        }));
        events.decided.extend_from_slice(executed.decided);
        events.sites.extend_from_slice(executed.sites);
        events.restored.extend_from_slice(executed.restored);
        for index in unit.plan.unplanned.iter().filter(|index| usize::from(**index) < count) {
            events.passed_over.insert(unit.instructions[usize::from(*index)].address);
        }
    }

    fn interrupted(&mut self, address: u64, at: Position) {
        self.events.passed_over.insert(address);
        self.events.interrupted.push(at);
    }

    fn signal(&mut self, signal: Signal) {
        self.events.all.push(Event::Signal(signal));
    }

    fn told(&mut self, told: Told) {
        self.events.all.push(Event::Told(told));
    }

    fn wrote(&mut self, wrote: Wrote) {
        self.events.all.push(Event::Wrote(wrote));
    }
}
