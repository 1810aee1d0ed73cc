//! Where a thread is: its calls, what decided over them, and what they have put aside.

use super::interrupted::Begun;
use crate::control::{Control, Position};
use crate::saves::{Changed, Filter, KEPT_SIZE, Keeping, Kept, Slots};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use why_trace::plan::Before;

#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Thread {
    pub before: Before,
    pub control: Control,
    /// For each call that is not over.
    pub calls: Vec<Call>,
    /// Registers that they have put aside.
    pub slots: Slots,
    /// Of its last instruction.
    pub last: Position,
    /// The address of that, if it is shown and jumped.
    pub jumped_from: Option<u64>,
    /// Handlers of signals that are not over: how many calls there were before, and when.
    pub handlers: Vec<(usize, Position)>,
    /// String instructions that have begun and are not completed.
    pub interrupted: Vec<Begun>,
    /// It has executed something, or is about to.
    pub has_begun: bool,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Call {
    pub changed: Changed,
    /// Where what it puts aside begins among all that is.
    pub first_slot: usize,
    /// The last call up to this one that is shown.
    pub site: u64,
}

impl Thread {
    /// The stack pointer is there, before the instruction at an address and behind the last
    /// one; whether calls are over because of that.
    #[inline]
    pub fn unwound(
        &mut self,
        stack: u64,
        address: u64,
        last: Position,
        filter: &mut Filter,
    ) -> bool {
        let is_over = self.control.is_over(stack);
        if is_over {
            self.control.unwound(stack, address, last);
            self.end_calls(filter);
        }
        is_over
    }

    pub fn end_calls(&mut self, filter: &mut Filter) {
        // What a call has not brought back its caller does not have any more.
        let mut changed = Changed::default();
        for call in self.calls.drain(self.control.calls()..).rev() {
            changed.change(call.changed);
            self.slots.truncate(call.first_slot, filter);
        }
        if let Some(caller) = self.calls.last_mut() {
            caller.changed.change(changed);
        }
    }

    /// An instruction stores or loads a register. Where one was put aside that it brings back.
    pub fn keep(
        &mut self,
        keeping: &Keeping,
        operand: impl Fn(usize) -> Range<u64>,
        position: Position,
        others: &mut FxHashMap<u64, Thread>,
        filter: &mut Filter,
    ) -> Option<Position> {
        let first = self.calls.last().map_or(usize::MAX, |call| call.first_slot);
        let saved = keeping.loads.and_then(|(kept, index)| {
            Some((kept, self.slots.load(first, kept, operand(index).start)?))
        });
        for index in &keeping.writes {
            let bytes = operand(*index);
            if filter.may_hold(&bytes) {
                self.forget(others, &bytes, filter);
            }
        }
        // Nobody knows what the function had done that runs when the trace begins.
        let call = self.calls.last_mut()?;
        if let Some((kept, index)) = keeping.stores
            && call.changed.leaves(kept)
        {
            self.slots.store(first, (kept, operand(index).start), position, filter);
        }
        call.changed.change(keeping.changes);
        if let Some((kept, _)) = saved {
            call.changed.bring_back(kept);
        }
        saved.map(|(_, position)| position)
    }

    /// An instruction stores a register, and nothing else; that nobody has put anything aside there
    /// any more is known.
    #[inline]
    pub fn store(&mut self, kept: Kept, at: u64, position: Position, filter: &mut Filter) {
        // Nobody knows what the function had done that runs when the trace begins.
        if let Some(call) = self.calls.last().filter(|call| call.changed.leaves(kept)) {
            self.slots.store(call.first_slot, (kept, at), position, filter);
        }
    }

    /// An instruction loads a register, and nothing else. Where that was put aside, if it was.
    #[inline]
    pub fn load(&mut self, kept: Kept, at: u64, filter: &Filter) -> Option<Position> {
        let call = self.calls.last_mut()?;
        call.changed.change(Changed::of(kept));
        if !filter.may_hold_few(at, KEPT_SIZE) {
            return None;
        }
        let saved = self.slots.load(call.first_slot, kept, at);
        if saved.is_some() {
            call.changed.bring_back(kept);
        }
        saved
    }

    /// Somebody has written to where registers may have been put aside.
    pub fn forget(
        &mut self,
        others: &mut FxHashMap<u64, Thread>,
        bytes: &Range<u64>,
        filter: &mut Filter,
    ) {
        self.slots.forget(bytes, filter);
        others.values_mut().for_each(|other| other.slots.forget(bytes, filter));
    }

    /// The kernel calls a handler.
    pub fn begin_handler(&mut self, stack: u64, position: Position) {
        self.handlers.push((self.calls.len(), position));
        self.control.call(None, stack, None);
        let (changed, first_slot, site) = (Changed::default(), self.slots.count(), self.site());
        self.calls.push(Call { changed, first_slot, site });
    }

    /// When the handler began that is over; those that were left by a jump are passed over.
    pub fn end_handler(&mut self) -> Option<Position> {
        while let Some((calls, position)) = self.handlers.pop() {
            if calls < self.calls.len() {
                return Some(position);
            }
        }
        None
    }

    /// A function goes on in another one that is not shown, as if that jump had called it.
    pub fn leave(&mut self, from: u64) {
        if let Some(call) = self.calls.last_mut() {
            call.site = from;
        }
    }

    /// The call that is shown for what is not.
    pub fn site(&self) -> u64 {
        self.calls.last().map_or(0, |call| call.site)
    }
}
