//! String instructions that are interrupted in the middle, and completed later: each is one
//! instance, which has done a part of what it does before.

use super::thread::Thread;
use super::{Course, Executed, Pending, Room, Sink, Site, Unknown};
use crate::control::Position;
use crate::units::Unit;
use serde::{Deserialize, Serialize};

/// One that has begun.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Begun {
    address: u64,
    /// How many instructions had been executed when it was interrupted, and how many handlers were
    /// not over.
    at: Position,
    handlers: usize,
}

/// What was interrupted in a thread when so many instructions had been executed was completed by
/// the one at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Completion {
    at: Position,
    thread: u64,
    by: Position,
}

/// All of them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Completions(Vec<Completion>);

impl Completions {
    pub fn add(&mut self, completion: Completion) {
        self.0.push(completion);
    }

    /// There are no more.
    pub fn finish(&mut self) {
        self.0.sort_unstable();
    }

    pub fn find(&self, at: Position, thread: u64) -> Option<Position> {
        let key = |completion: &Completion| (completion.at, completion.thread);
        let found = self.0.binary_search_by_key(&(at, thread), key);
        found.ok().map(|found| self.0[found].by)
    }
}

impl Course {
    /// The instruction behind what is pending has repeated itself until its pointer was this.
    pub(super) fn interrupt<S: Sink>(
        &mut self,
        pointer: u64,
        known: &[Unit],
        room: &mut Room,
        sink: &mut S,
    ) -> Result<(), Unknown> {
        let Pending { unit: number, executed } = self.pending.ok_or(Unknown)?;
        let unit = &known[number];
        let insn = unit.instructions.get(executed).ok_or(Unknown)?;
        let before = self.thread.before;
        self.settle(known, room, sink);
        let Course { thread, others, filter, position, values, .. } = self;
        unit.plan.compute_interrupted(before, executed, pointer, values);
        for operand in &insn.keeping.writes {
            let access = unit.first_access[executed] + operand;
            let bytes = unit.plan.accesses.get(access).ok_or(Unknown)?.at(values);
            if filter.may_hold(&bytes) {
                thread.forget(others, &bytes, filter);
            }
        }
        let (address, handlers) = (insn.address, thread.handlers.len());
        thread.interrupted.push(Begun { address, at: *position, handlers });
        let first = *position - executed as Position;
        room.begin(first);
        // Nobody asks for those in front of it, and branches among them do not decide over it any more
        // if their ways meet here.
        room.decided(executed, thread.control.at(address));
        room.sites.push(Site::new(0, thread.site()));
        sink.interrupted(Executed {
            unit: number,
            thread: self.number,
            position: first,
            count: executed + 1,
            notes: &room.notes,
            told: &room.told,
            sites: &room.sites,
            values,
        });
        Ok(())
    }
}

impl Thread {
    /// The thread goes on at an address: when it was interrupted there. Whatever else was
    /// interrupted under the same handler is never completed.
    pub(super) fn completes(&mut self, address: u64) -> Vec<Position> {
        let handlers = self.handlers.len();
        let here = |begun: &mut Begun| begun.handlers >= handlers;
        let over: Vec<Begun> = self.interrupted.extract_if(.., here).collect();
        let is_own = |begun: &Begun| (begun.handlers, begun.address) == (handlers, address);
        over.into_iter().filter(is_own).map(|begun| begun.at).collect()
    }
}

impl Completion {
    pub(super) fn new(at: Position, thread: u64, by: Position) -> Completion {
        Completion { at, thread, by }
    }
}
