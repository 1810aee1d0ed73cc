//! An address space of the target: the engine's own mappings in it, what counts as
//! executable, and whose turn it is.

use crate::code::Code;
use crate::glue::Glue;
use crate::maps::Mapping;
use crate::memory::{Address, Memory};
use crate::regions::Regions;
use crate::schedule::Schedule;
use crate::stopping::FAR;
use crate::task::Tid;
use crate::tracing::SPAN;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::time::Instant;
use why_translate::context::{COUNT_SLOTS, LOOKED_AT_SLOTS, Slot, TOTAL_BYTES};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpaceId(pub u32);

pub struct Space {
    /// Whose it is: others may be guests in it, as after `vfork`.
    pub process: Tid,
    pub memory: Memory,
    /// The target's GS base.
    pub context: Address,
    pub glue: Glue,
    /// Shared with processes forked from this one until either changes its code.
    pub code: Rc<RefCell<Code>>,
    pub regions: Regions,
    /// Who executes in the cache.
    pub current: Option<Tid>,
    /// Whose values the context page holds.
    pub ran_last: Option<Tid>,
    pub since: Instant,
    /// Who waits for a turn.
    pub ready: VecDeque<Tid>,
    pub others_ready: bool,
    /// The current thread is to stop where it can.
    pub must_stop: bool,
    /// When to look how far it has come, if nothing else tells.
    pub look_by: Option<Instant>,
    /// Every call that may write goes to the supervisor, as if others were ready.
    pub careful: bool,
    /// Who runs when, if that is not a matter of time.
    pub schedule: Option<Schedule>,
    /// Since it was last looked who waits, something has happened that may have woken others.
    pub stirred: bool,
    /// It is being decided whose turn it is.
    pub choosing: bool,
    /// How often still to look for executable memory when the program asks for some.
    pub looks_left: u32,
    /// The process is ending: none of its threads executes anything any more.
    pub ending: bool,
    /// Threads that use this space.
    pub users: usize,
    /// The instructions counted so far, but for those since the slots were last set.
    pub counted: u64,
    /// Where the slots began to count.
    pub slot_starts: [i64; COUNT_SLOTS],
    /// How much those were used that units look at, the longer ago the less that counts.
    pub slot_use: [u64; LOOKED_AT_SLOTS],
    /// Some unit looks before that many instructions were counted.
    pub looks_before: Option<u64>,
    /// How many instructions have been reported.
    pub reported: u64,
    pub log: Option<crate::call_log::CallLog>,
    /// A forked process has its parent's log there still.
    pub parents_log: Option<Address>,
    pub trace: Option<crate::tracing::SpaceTrace>,
    /// A forked process has its parent's buffers there still.
    pub parents_trace: Option<Address>,
    /// Where the trace ended, read when the space was about to end.
    pub trace_next: Address,
}

impl Space {
    /// A space that nobody uses yet and in which nothing is mapped.
    pub fn new(process: Tid, memory: Memory, code: Rc<RefCell<Code>>) -> Space {
        Space {
            process,
            memory,
            context: 0,
            glue: Glue(0),
            code,
            regions: Regions::default(),
            current: None,
            ran_last: None,
            looks_left: LOOKS,
            since: Instant::now(),
            ready: VecDeque::new(),
            others_ready: false,
            must_stop: false,
            look_by: None,
            careful: false,
            schedule: None,
            choosing: false,
            stirred: true,
            ending: false,
            users: 0,
            counted: 0,
            slot_starts: [FAR; COUNT_SLOTS],
            slot_use: [0; LOOKED_AT_SLOTS],
            looks_before: None,
            reported: 0,
            log: None,
            parents_log: None,
            trace: None,
            parents_trace: None,
            trace_next: 0,
        }
    }

    pub fn read_slot(&self, slot: Slot) -> u64 {
        self.memory.read_u64(self.context + slot.0 as u64).unwrap_or(0)
    }

    pub fn write_slot(&self, slot: Slot, value: u64) {
        // Fails only when the process is gone.
        let _ = self.memory.write_u64(self.context + slot.0 as u64, value);
    }

    /// The instructions since this was last asked.
    pub fn take_count(&mut self) -> u64 {
        let count = self.count();
        let new = count.wrapping_sub(self.reported);
        self.reported = count;
        new
    }

    /// Whether a mapping is part of the code cache.
    pub fn is_cache(&self, mapping: &Mapping) -> bool {
        let inside = |range: &Range<Address>| {
            range.start <= mapping.range.start && mapping.range.end <= range.end
        };
        self.code.borrow().ranges().iter().any(inside)
    }

    /// All that the engine has mapped.
    pub fn own_ranges(&self) -> Vec<Range<Address>> {
        let mut ranges = self.code.borrow().ranges();
        ranges.push(self.context..self.context + TOTAL_BYTES as u64);
        ranges.extend(self.log.as_ref().map(|log| log.range()));
        ranges.extend(self.trace.as_ref().map(|trace| trace.base..trace.base + SPAN));
        ranges
    }
}

/// Where in the context page the supervisor leaves arguments for injected calls.
pub const SCRATCH: u64 = 0xc00;

/// How often to look for executable memory in each space.
const LOOKS: u32 = 16;
