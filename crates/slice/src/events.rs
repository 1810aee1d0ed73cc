//! What happened in a chunk, to be gone through in either direction.

use crate::control::Position;
use crate::course::{Executed, Restored, Sink};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::ops::Range;

/// What happened, one behind the other.
#[derive(Default)]
pub struct Events {
    pub all: Vec<Event>,
    pub decided: Vec<Option<Position>>,
    pub accesses: Vec<Range<u64>>,
    pub restored: FxHashMap<Position, Restored>,
    pub passed_over: BTreeSet<u64>,
}

pub enum Event {
    Executed {
        unit: usize,
        thread: u64,
        position: Position,
        /// What decided over its instructions begins there, and their accesses there.
        decided: Range<usize>,
        accesses: usize,
    },
    Wrote {
        position: Position,
        bytes: Range<u64>,
    },
}

impl Sink for Events {
    fn executed(&mut self, executed: Executed<'_>) {
        let decided = self.decided.len()..self.decided.len() + executed.decided.len();
        self.decided.extend(executed.decided);
        let Executed { unit, thread, position, .. } = executed;
        self.restored.extend(executed.restored.iter().map(|restored| (restored.by, *restored)));
        let accesses = self.accesses.len();
        self.accesses.extend(executed.accesses.iter().cloned());
        self.all.push(Event::Executed { unit, thread, position, decided, accesses });
    }

    fn passed_over(&mut self, address: u64) {
        self.passed_over.insert(address);
    }

    fn wrote(&mut self, position: Position, bytes: Range<u64>) {
        self.all.push(Event::Wrote { position, bytes });
    }
}
