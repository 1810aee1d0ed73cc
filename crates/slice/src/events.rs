//! What happened in a chunk, to be gone through in either direction.

use crate::control::Position;
use crate::course::{Executed, Restored, Sink, Wrote};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::ops::Range;

/// What happened, one behind the other.
#[derive(Default)]
pub struct Events {
    pub all: Vec<Event>,
    pub decided: Vec<Option<Position>>,
    pub accesses: Vec<Range<u64>>,
    /// From which instruction of a unit on which call is shown.
    pub sites: Vec<(usize, u64)>,
    pub restored: FxHashMap<Position, Restored>,
    pub passed_over: BTreeSet<u64>,
}

pub enum Event {
    Executed(UnitExecuted),
    Wrote(Wrote),
}

pub struct UnitExecuted {
    pub unit: usize,
    pub thread: u64,
    pub position: Position,
    /// What decided over its instructions, which calls are shown for them,
    pub decided: Range<usize>,
    pub sites: Range<usize>,
    /// and where their accesses begin.
    pub accesses: usize,
}

impl Sink for Events {
    fn executed(&mut self, executed: Executed<'_>) {
        let decided = self.decided.len()..self.decided.len() + executed.decided.len();
        self.decided.extend(executed.decided);
        let sites = self.sites.len()..self.sites.len() + executed.sites.len();
        self.sites.extend(executed.sites);
        let Executed { unit, thread, position, .. } = executed;
        self.restored.extend(executed.restored.iter().map(|restored| (restored.by, *restored)));
        let accesses = self.accesses.len();
        self.accesses.extend(executed.accesses.iter().cloned());
        let executed = UnitExecuted { unit, thread, position, decided, sites, accesses };
        self.all.push(Event::Executed(executed));
    }

    fn passed_over(&mut self, address: u64) {
        self.passed_over.insert(address);
    }

    fn wrote(&mut self, wrote: Wrote) {
        self.all.push(Event::Wrote(wrote));
    }
}
