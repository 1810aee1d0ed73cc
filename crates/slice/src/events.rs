//! What happened in a chunk, to be gone through in either direction.

use crate::calls::Told;
use crate::control::Position;
use crate::course::{Completions, Deciding, Executed, Restored, Room, Signal, Sink, Site, Wrote};
use crate::finder::Finder;
use crate::large;
use crate::patterns::NONE;
use crate::units::{Known, Unit};
use std::collections::BTreeSet;
use std::ops::Range;

/// The position of what was never completed: no trace is so long.
pub const NEVER: Position = 1 << 62;

/// What happened, one behind the other. What belongs to an executed unit is where that of the one
/// before ends.
#[derive(Default)]
pub struct Events {
    all: Vec<Event>,
    /// What happened besides, which is little.
    others: Vec<Other>,
    /// The threads that executed units.
    threads: Vec<u64>,
    /// Of all instructions: there are no gaps.
    positions: Range<Position>,
    of_units: Room,
    /// Where the accesses of the units' plans were; where there are strings among them, behind that
    /// the sizes of all.
    accesses: Vec<u64>,
    pub passed_over: BTreeSet<u64>,
    /// The positions of instructions that were interrupted in the middle.
    pub interrupted: Vec<Position>,
}

/// There are many: they take little room.
#[derive(Clone)]
enum Event {
    Executed(UnitExecuted),
    /// By its number.
    Other(u32),
}

#[derive(Clone)]
enum Other {
    Interrupted(Interrupted),
    Wrote(Wrote),
    Signal(Signal),
    Told(Told),
}

/// A unit, or a part of it.
#[derive(Clone)]
struct UnitExecuted {
    unit: u32,
    pattern: u32,
    /// By its number.
    thread: u32,
    /// How many instructions of it, and how much of what belongs to it.
    count: u16,
    accesses: u16,
    decided: u16,
    sites: u16,
    restored: u16,
}

/// A part of an instruction, the last of so many of a unit.
#[derive(Clone)]
struct Interrupted {
    at: Position,
    /// Where the unit begins if the instruction is where it was completed.
    position: Position,
    thread: u64,
    unit: usize,
    count: usize,
    decided: Vec<Deciding>,
    sites: Vec<Site>,
    starts: Vec<u64>,
    sizes: Vec<u64>,
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

/// Where what belongs to units begins and ends.
#[derive(Clone, Copy, Default)]
struct Cursor {
    position: Position,
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
            position: self.position + Position::from(executed.count),
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
            position: self.position - Position::from(executed.count),
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
        self.others.clear();
        self.threads.clear();
        self.positions = 0..0;
        self.of_units.clear();
        self.accesses.clear();
        self.passed_over.clear();
        self.interrupted.clear();
    }

    /// Room for about as much, to be kept.
    pub fn room_like(&self) -> Events {
        let Room { decided, restored, sites } = &self.of_units;
        Events {
            all: large::room_like(&self.all),
            of_units: Room {
                decided: large::room_like(decided),
                restored: large::room_like(restored),
                sites: large::room_like(sites),
            },
            accesses: large::room_like(&self.accesses),
            ..Events::default()
        }
    }

    /// How much memory that takes.
    pub fn size(&self) -> usize {
        size_of_val(self.all.as_slice())
            + size_of_val(self.others.as_slice())
            + size_of_val(self.accesses.as_slice())
            + size_of_val(self.of_units.decided.as_slice())
            + size_of_val(self.of_units.sites.as_slice())
            + size_of_val(self.of_units.restored.as_slice())
    }

    /// In the order in which it happened.
    #[inline]
    pub fn forwards<'a>(&'a self, units: &'a [Unit]) -> impl Iterator<Item = Happened<'a>> {
        let mut cursor = Cursor { position: self.positions.start, ..Cursor::default() };
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
            position: self.positions.end,
            accesses: self.accesses.len(),
            decided: self.of_units.decided.len(),
            sites: self.of_units.sites.len(),
            restored: self.of_units.restored.len(),
        };
        self.all.iter().rev().map(move |event| {
            if let Event::Executed(executed) = event {
                cursor = cursor.before(executed);
            }
            self.happened(event, units, cursor)
        })
    }

    // A record that is returned would be copied, which takes longer than to look at it.
    #[inline(always)]
    fn happened<'a>(&'a self, event: &'a Event, units: &'a [Unit], at: Cursor) -> Happened<'a> {
        let executed = match event {
            Event::Executed(executed) => executed,
            Event::Other(number) => match &self.others[*number as usize] {
                Other::Interrupted(part) => return part.happened(units),
                Other::Wrote(wrote) => return Happened::Wrote(wrote),
                Other::Signal(signal) => return Happened::Signal(signal),
                Other::Told(told) => return Happened::Told(told),
            },
        };
        let end = at.behind(executed);
        let unit = &units[executed.unit as usize];
        let accesses = &self.accesses[at.accesses..end.accesses];
        let planned = if unit.has_strings { accesses.len() / 2 } else { accesses.len() };
        let (starts, sizes) = accesses.split_at(planned);
        Happened::Executed(Record {
            unit,
            pattern: executed.pattern,
            position: at.position,
            count: executed.count.into(),
            thread: self.threads[executed.thread as usize],
            decided: &self.of_units.decided[at.decided..end.decided],
            sites: &self.of_units.sites[at.sites..end.sites],
            restored: &self.of_units.restored[at.restored..end.restored],
            starts,
            sizes,
        })
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

/// Notes what happens.
pub struct Noting<'a, 'p> {
    pub units: &'a [Unit],
    /// None if nobody asks for patterns.
    pub patterns: Option<&'a mut Finder<'p>>,
    pub completions: &'a Completions,
    pub events: &'a mut Events,
}

impl Events {
    fn add(&mut self, other: Other) {
        self.all.push(Event::Other(self.others.len() as u32));
        self.others.push(other);
    }

    /// The number of a thread.
    #[inline]
    fn thread(&mut self, thread: u64) -> u32 {
        let number = match self.threads.iter().rposition(|other| *other == thread) {
            Some(number) => number,
            None => {
                self.threads.push(thread);
                self.threads.len() - 1
            }
        };
        number as u32
    }

    /// What is known of the units that will be noted.
    pub fn take_room(&mut self) -> Room {
        std::mem::take(&mut self.of_units)
    }

    /// What was known of those that were.
    pub fn put_room(&mut self, room: Room) {
        self.of_units = room;
    }
}

impl Sink for Noting<'_, '_> {
    const DETAILS: bool = true;

    fn executed(&mut self, executed: Executed<'_>) {
        let Executed { unit: number, thread, position, count, values, .. } = executed;
        let unit = &self.units[number];
        let events = &mut *self.events;
        let first = events.accesses.len();
        let planned = &unit.plan.accesses[..unit.first_access[count]];
        match unit.has_strings {
            false => {
                let starts = &unit.starts[..planned.len()];
                events.accesses.extend(starts.iter().map(|start| start.of(values)));
            }
            true => events.accesses.extend(planned.iter().map(|access| access.start(values))),
        }
        let starts = &events.accesses[first..];
        let patterns = self.patterns.as_mut();
        let pattern = patterns.map_or(NONE, |patterns| patterns.find(unit, &executed, starts));
        if unit.has_strings {
            events.accesses.extend(planned.iter().map(|access| access.range(values).1));
        }
        let thread = events.thread(thread);
        if events.positions.is_empty() {
            events.positions = position..position;
        }
        events.positions.end = position + count as Position;
        events.all.push(Event::Executed(UnitExecuted {
            thread,
            unit: number as u32,
            pattern,
            count: count as u16,
            accesses: (events.accesses.len() - first) as u16,
            decided: executed.decided.len() as u16,
            sites: executed.sites.len() as u16,
            restored: executed.restored.len() as u16,
        }));
        for index in unit.plan.unplanned.iter().filter(|index| usize::from(**index) < count) {
            events.passed_over.insert(unit.instructions[usize::from(*index)].address);
        }
    }

    fn interrupted(&mut self, executed: Executed<'_>) {
        let Executed { unit, thread, position, count, decided, sites, values, .. } = executed;
        let before = count as Position - 1;
        let at = position + before;
        let completed = self.completions.find(at, thread);
        let known = &self.units[unit];
        let planned = &known.plan.accesses[..known.first_access[count]];
        self.events.interrupted.push(at);
        self.events.add(Other::Interrupted(Interrupted {
            at,
            position: completed.and_then(|by| by.checked_sub(before)).unwrap_or(NEVER),
            thread,
            unit,
            count,
            decided: decided.to_vec(),
            sites: sites.to_vec(),
            starts: planned.iter().map(|access| access.start(values)).collect(),
            sizes: planned.iter().map(|access| access.range(values).1).collect(),
        }));
    }

    fn signal(&mut self, signal: Signal) {
        self.events.add(Other::Signal(signal));
    }

    fn told(&mut self, told: Told) {
        self.events.add(Other::Told(told));
    }

    fn wrote(&mut self, wrote: Wrote) {
        self.events.add(Other::Wrote(wrote));
    }
}
