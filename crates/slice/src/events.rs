//! What happened in a chunk, to be gone through in either direction.

use crate::control::Position;
use crate::course::{Executed, Restored, Signal, Sink, Wrote};
use crate::units::{Known, Unit};
use std::collections::BTreeSet;
use std::ops::Range;

/// What happened, one behind the other.
pub struct Events<'a> {
    units: &'a [Unit],
    pub all: Vec<Event>,
    /// From which instruction of a unit on who decided.
    decided: Vec<(usize, Option<Position>)>,
    pub accesses: Vec<Range<u64>>,
    /// From which instruction of a unit on which call is shown.
    sites: Vec<(usize, u64)>,
    /// By position.
    restored: Vec<Restored>,
    pub passed_over: BTreeSet<u64>,
}

pub enum Event {
    Executed(UnitExecuted),
    Wrote(Wrote),
    Signal(Signal),
}

pub struct UnitExecuted {
    pub unit: usize,
    pub thread: u64,
    pub position: Position,
    /// How many instructions of it.
    pub count: usize,
    decided: Range<usize>,
    sites: Range<usize>,
    /// Where the accesses begin.
    pub accesses: usize,
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

    /// The register that an instruction brought back, if it did.
    pub fn restored(&self, insn: &Known, position: Position) -> Option<&Restored> {
        insn.keeping.loads?;
        let found = self.restored.binary_search_by_key(&position, |restored| restored.by);
        found.ok().map(|index| &self.restored[index])
    }

    /// What decided over an instruction of a unit.
    pub fn decided(&self, executed: &UnitExecuted, index: usize) -> Option<Position> {
        at(&self.decided[executed.decided.clone()], index).flatten()
    }

    /// The call that is shown instead of an instruction that is not.
    pub fn site(&self, executed: &UnitExecuted, index: usize) -> Option<u64> {
        at(&self.sites[executed.sites.clone()], index).filter(|site| *site != 0)
    }

    /// Where the operands of an instruction were; none if that is not known.
    pub fn operands(&self, executed: &UnitExecuted, index: usize) -> Option<&[Range<u64>]> {
        let unit = &self.units[executed.unit];
        let own = unit.first_access[index]..unit.first_access[index + 1];
        if own.len() != unit.instructions[index].effects.operands.len() {
            return None;
        }
        Some(&self.accesses[executed.accesses + own.start..executed.accesses + own.end])
    }
}

/// The last that holds for an index.
fn at<T: Copy>(from: &[(usize, T)], index: usize) -> Option<T> {
    from.iter().rev().find(|(first, _)| *first <= index).map(|(_, value)| *value)
}

impl Sink for Events<'_> {
    const DETAILS: bool = true;

    fn executed(&mut self, executed: Executed<'_>) {
        let Executed { unit: number, thread, position, count, .. } = executed;
        let unit = &self.units[number];
        let decided = self.decided.len()..self.decided.len() + executed.decided.len();
        self.decided.extend(executed.decided);
        let sites = self.sites.len()..self.sites.len() + executed.sites.len();
        self.sites.extend(executed.sites);
        self.restored.extend(executed.restored);
        let accesses = self.accesses.len();
        let planned = &unit.plan.accesses[..unit.first_access[count]];
        self.accesses.extend(planned.iter().map(|access| access.at(executed.values)));
        for index in unit.plan.unplanned.iter().filter(|index| usize::from(**index) < count) {
            self.passed_over.insert(unit.instructions[usize::from(*index)].address);
        }
        let executed =
            UnitExecuted { unit: number, thread, position, count, decided, sites, accesses };
        self.all.push(Event::Executed(executed));
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
