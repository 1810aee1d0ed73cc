//! What happened in a chunk, to be gone through in either direction.

use crate::control::Position;
use crate::course::{Deciding, Executed, Restored, Signal, Sink, Site, Wrote};
use crate::units::{Known, Unit};
use std::collections::BTreeSet;
use std::ops::Range;

/// What happened, one behind the other.
pub struct Events<'a> {
    units: &'a [Unit],
    pub all: Vec<Event>,
    decided: Vec<Deciding>,
    accesses: Vec<Range<u64>>,
    sites: Vec<Site>,
    restored: Vec<Restored>,
    pub passed_over: BTreeSet<u64>,
}

pub enum Event {
    Executed(UnitExecuted),
    Wrote(Wrote),
    Signal(Signal),
}

/// A unit, or a part of it. What belongs to it begins there among that of all.
pub struct UnitExecuted {
    pub position: Position,
    pub thread: u64,
    pub unit: u32,
    accesses: u32,
    decided: u32,
    sites: u32,
    restored: u32,
    /// How many instructions of it,
    pub count: u16,
    /// and how much of the others.
    decided_count: u16,
    sites_count: u16,
    restored_count: u16,
}

/// One of them, with what is known of it.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    pub unit: &'a Unit,
    /// Which one that is, of so many instructions.
    pub id: usize,
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
    pub accesses: &'a [Range<u64>],
}

impl<'a> Record<'a> {
    /// Where the operands of an instruction were; none if that is not known.
    pub fn operands(&self, index: usize) -> Option<&'a [Range<u64>]> {
        let own = self.unit.first_access[index]..self.unit.first_access[index + 1];
        let is_known = own.len() == self.unit.instructions[index].effects.operands.len();
        is_known.then(|| &self.accesses[own])
    }

    /// What decided over an instruction.
    pub fn decided(&self, index: usize) -> Option<Position> {
        let last = self.decided.iter().rev().find(|decided| usize::from(decided.from) <= index);
        last.and_then(|decided| decided.by)
    }

    /// The call that is shown instead of an instruction that is not.
    pub fn site(&self, index: usize) -> Option<u64> {
        let last = self.sites.iter().rev().find(|site| usize::from(site.from) <= index);
        last.map(|site| site.call).filter(|call| *call != 0)
    }

    /// The register that an instruction brought back, if it did.
    pub fn restored(&self, insn: &Known, index: usize) -> Option<&'a Restored> {
        insn.keeping.loads?;
        let position = self.position + index as Position;
        self.restored.iter().find(|restored| restored.by == position)
    }
}

impl<'a> Events<'a> {
    pub fn of(units: &'a [Unit]) -> Events<'a> {
        Events {
            units,
            all: Vec::new(),
            decided: Vec::new(),
            accesses: Vec::new(),
            sites: Vec::new(),
            restored: Vec::new(),
            passed_over: BTreeSet::new(),
        }
    }

    /// Nothing has happened: room for others.
    pub fn clear(&mut self) {
        self.all.clear();
        self.decided.clear();
        self.accesses.clear();
        self.sites.clear();
        self.restored.clear();
        self.passed_over.clear();
    }

    #[inline]
    pub fn record(&self, executed: &UnitExecuted) -> Record<'_> {
        let unit = &self.units[executed.unit as usize];
        let count = usize::from(executed.count);
        let accesses = executed.accesses as usize;
        Record {
            unit,
            id: unit.first_id + count,
            position: executed.position,
            count,
            thread: executed.thread,
            decided: part(&self.decided, executed.decided, executed.decided_count),
            sites: part(&self.sites, executed.sites, executed.sites_count),
            restored: part(&self.restored, executed.restored, executed.restored_count),
            accesses: &self.accesses[accesses..accesses + unit.first_access[count]],
        }
    }
}

#[inline]
fn part<T>(all: &[T], first: u32, count: u16) -> &[T] {
    &all[first as usize..first as usize + usize::from(count)]
}

impl Sink for Events<'_> {
    const DETAILS: bool = true;

    fn executed(&mut self, executed: Executed<'_>) {
        let Executed { unit: number, thread, position, count, .. } = executed;
        let unit = &self.units[number];
        self.all.push(Event::Executed(UnitExecuted {
            position,
            thread,
            unit: number as u32,
            accesses: self.accesses.len() as u32,
            decided: self.decided.len() as u32,
            sites: self.sites.len() as u32,
            restored: self.restored.len() as u32,
            count: count as u16,
            decided_count: executed.decided.len() as u16,
            sites_count: executed.sites.len() as u16,
            restored_count: executed.restored.len() as u16,
        }));
        self.decided.extend_from_slice(executed.decided);
        self.sites.extend_from_slice(executed.sites);
        self.restored.extend_from_slice(executed.restored);
        let planned = &unit.plan.accesses[..unit.first_access[count]];
        self.accesses.extend(planned.iter().map(|access| access.at(executed.values)));
        for index in unit.plan.unplanned.iter().filter(|index| usize::from(**index) < count) {
            self.passed_over.insert(unit.instructions[usize::from(*index)].address);
        }
    }

    fn passed_over(&mut self, address: u64) {
        self.passed_over.insert(address);
    }

    fn signal(&mut self, signal: Signal) {
        self.all.push(Event::Signal(signal));
    }

    fn wrote(&mut self, wrote: Wrote) {
        self.all.push(Event::Wrote(wrote));
    }
}
