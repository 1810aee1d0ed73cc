//! The course of a run, from the records of its trace.

use crate::calls::{Calls, Creator, Told, What as Meaning};
use crate::control::{Control, Position};
use crate::saves::{Changed, Filter, Keeping, Kept, Slots};
use crate::units::{Unit, What};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use why_trace::plan::{Before, Values};
use why_trace::{
    CALLED, CAME_BACK, ENDED, FIRST_UNIT_ID, FS_BASE, GS_BASE, HANDLER, MOMENT, READ, RECOUNT,
    REPEATED, RETURNED, STACK, THREAD, UNDO, WROTE,
};

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the trace holds a record that nobody knows")]
pub struct Unknown;

/// Where the threads are, between two records.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Course {
    /// The thread that runs, and those that do not.
    number: u64,
    thread: Thread,
    others: FxHashMap<u64, Thread>,
    /// Where all of them have put registers aside.
    #[serde(skip)]
    filter: Filter,
    /// Of the next instruction.
    pub position: Position,
    /// The last unit's record: what comes next may say that not all of it was executed.
    pending: Option<Pending>,
    slots: Vec<u64>,
    /// What has to be known of system calls.
    calls: Calls,
    /// The thread that has ended since any went on.
    ended: Option<u64>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Thread {
    before: Before,
    control: Control,
    /// For each call that is not over.
    calls: Vec<Call>,
    /// Registers that they have put aside.
    slots: Slots,
    /// Of its last instruction.
    last: Position,
    /// The address of that, if it is shown and jumped.
    jumped_from: Option<u64>,
    /// Handlers of signals that are not over: how many calls there were before, and when.
    handlers: Vec<(usize, Position)>,
    /// It has executed something, or is about to.
    has_begun: bool,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Call {
    changed: Changed,
    /// Where what it puts aside begins among all that is.
    first_slot: usize,
    /// The last call up to this one that is shown.
    site: u64,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Pending {
    unit: usize,
    executed: usize,
}

/// A unit that was executed, or a part of it.
pub struct Executed<'a> {
    pub unit: usize,
    pub thread: u64,
    /// Of its first instruction.
    pub position: Position,
    /// How many instructions of it.
    pub count: usize,
    /// From which instruction on who decided.
    pub decided: &'a [Deciding],
    /// From which instruction on which call is shown for those that are not.
    pub sites: &'a [Site],
    /// Where the accesses of the plan were.
    pub values: &'a Values,
    /// Instructions that brought a register back, and where it had been put aside.
    pub restored: &'a [Restored],
}

/// From an instruction of a unit on, what decided over them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deciding(u64);

impl Deciding {
    pub fn new(from: usize, by: Option<Position>) -> Deciding {
        Deciding(by.map_or(0, |by| by + 1) << 16 | from as u64)
    }

    #[inline]
    pub fn from(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    #[inline]
    pub fn by(self) -> Option<Position> {
        (self.0 >> 16).checked_sub(1)
    }
}

/// From an instruction of a unit on, the call that is shown for those that are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site(u64);

impl Site {
    /// Programs have no addresses of more bits than are left.
    pub fn new(from: usize, call: u64) -> Site {
        Site(call << 16 | from as u64)
    }

    pub fn from(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    pub fn call(self) -> u64 {
        self.0 >> 16
    }

    /// Both in one number.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// An instruction that brought a register back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    pub by: Position,
    pub kept: Kept,
    pub saved: Position,
}

/// Where the instruction at a position is in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    pub position: Position,
    pub event: u64,
    pub ticks: u64,
}

/// Somebody else, such as the kernel, wrote to memory.
#[derive(Clone, Debug)]
pub struct Wrote {
    /// How many instructions had been executed then.
    pub at: Position,
    /// The last instruction of the thread that it was done for.
    pub by: Position,
    pub thread: u64,
    /// The one whose end it may have been done for instead.
    pub ended: Option<u64>,
    pub bytes: Range<u64>,
}

/// A handler of a signal begins or is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// How many instructions had been executed then.
    pub at: Position,
    pub thread: u64,
    /// And when the handler began.
    pub handler: Position,
    pub begins: bool,
}

/// Bytes that came from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// How many instructions had been executed then.
    pub at: Position,
    pub thread: u64,
    pub bytes: Range<u64>,
    /// The stream, and from which byte of it on.
    pub stream: u64,
    pub offset: u64,
}

/// Who is told what happened.
pub trait Sink {
    /// Whether it is to be told who decided what, and which calls are shown.
    const DETAILS: bool;

    fn executed(&mut self, _executed: Executed<'_>) {}

    /// The instruction at an address and a position was interrupted in the middle: what it did
    /// before is not known.
    fn interrupted(&mut self, _address: u64, _at: Position) {}

    /// Somebody else wrote to memory.
    fn wrote(&mut self, _wrote: Wrote) {}

    /// A handler of a signal begins or is over.
    fn signal(&mut self, _signal: Signal) {}

    /// What was written last came from outside.
    fn read(&mut self, _input: Input) {}

    /// A thread begins, or a call of one means something to others.
    fn told(&mut self, _told: Told) {}

    /// A thread goes on there, which is a moment of a recording.
    fn moment(&mut self, _moment: Moment) {}
}

/// Room that is used again for each unit.
#[derive(Default)]
pub struct Room {
    values: Values,
    decided: Vec<Deciding>,
    restored: Vec<Restored>,
    sites: Vec<Site>,
}

impl Course {
    /// What was opened is made ready to go on.
    pub fn prepare(&mut self) {
        let mut filter = Filter::default();
        let threads = self.others.values().chain([&self.thread]);
        threads.for_each(|thread| thread.slots.add_to(&mut filter));
        self.filter = filter;
    }

    /// The next record.
    #[inline]
    pub fn read<S: Sink>(
        &mut self,
        id: u64,
        slots: &[u64],
        units: &[(usize, usize)],
        known: &[Unit],
        room: &mut Room,
        sink: &mut S,
    ) -> Result<(), Unknown> {
        let Some(unit) = id.checked_sub(FIRST_UNIT_ID.into()) else {
            return self.special(id as u32, slots, known, room, sink);
        };
        let unit = usize::try_from(unit).ok().and_then(|unit| units.get(unit));
        let (unit, executed) = *unit.ok_or(Unknown)?;
        self.settle(known, room, sink);
        self.pending = Some(Pending { unit, executed });
        self.slots.clear();
        self.slots.extend_from_slice(slots);
        Ok(())
    }

    fn special<S: Sink>(
        &mut self,
        id: u32,
        slots: &[u64],
        known: &[Unit],
        room: &mut Room,
        sink: &mut S,
    ) -> Result<(), Unknown> {
        match (id, slots) {
            (UNDO, [undone]) => {
                let pending = self.pending.as_mut().ok_or(Unknown)?;
                let left = pending.executed.checked_sub(*undone as usize).ok_or(Unknown)?;
                pending.executed = left;
                return Ok(());
            }
            (REPEATED, [_]) => {
                let Pending { unit, executed, .. } = self.pending.as_ref().ok_or(Unknown)?;
                let interrupted = known[*unit].instructions.get(*executed).ok_or(Unknown)?;
                sink.interrupted(interrupted.address, self.position + *executed as Position);
                return Ok(());
            }
            (RECOUNT, [_]) => return Ok(()),
            _ => {}
        }
        self.settle(known, room, sink);
        match (id, slots) {
            (THREAD, [number]) => self.turn_to(*number),
            (STACK, [value]) => {
                self.thread.before.stack = *value;
                if !std::mem::replace(&mut self.thread.has_begun, true) {
                    let begins = self.calls.begins(self.number, *value);
                    self.tell(self.number, [begins], sink);
                }
            }
            (FS_BASE, [value]) => self.thread.before.fs = *value,
            (GS_BASE, [value]) => self.thread.before.gs = *value,
            (WROTE, [at, size]) => {
                let bytes = *at..at.wrapping_add(*size);
                if self.filter.may_hold(&bytes) {
                    self.thread.forget(&mut self.others, &bytes, &mut self.filter);
                }
                let (at, thread, by) = (self.position, self.number, self.thread.last);
                sink.wrote(Wrote { at, by, thread, ended: self.ended, bytes });
            }
            (HANDLER, [stack]) => {
                let position = self.position;
                self.thread.begin_handler(*stack, position);
                sink.signal(Signal {
                    at: position,
                    thread: self.number,
                    handler: position,
                    begins: true,
                });
            }
            (RETURNED, [_]) => {
                if let Some(handler) = self.thread.end_handler() {
                    let (at, thread) = (self.position, self.number);
                    sink.signal(Signal { at, thread, handler, begins: false });
                }
            }
            (READ, [at, size, stream, offset]) => {
                let bytes = *at..at.wrapping_add(*size);
                let (stream, offset) = (*stream, *offset);
                sink.read(Input { at: self.position, thread: self.number, bytes, stream, offset });
            }
            (CALLED, [number, first, second, third, fourth, fifth]) => {
                let caller = Creator { thread: self.number, call: self.thread.last };
                let arguments = [*first, *second, *third, *fourth, *fifth];
                let meaning = self.calls.made(caller, *number, arguments);
                self.tell(self.number, meaning, sink);
            }
            (CAME_BACK, [result, pair @ ..]) => {
                let meaning = self.calls.came_back(self.number, *result, pair.try_into().ok());
                self.tell(self.number, meaning, sink);
            }
            (ENDED, [thread]) => {
                self.ended = Some(*thread);
                let meaning = self.calls.ended(*thread);
                self.tell(*thread, meaning, sink);
                let other = self.others.get_mut(thread).filter(|_| *thread != self.number);
                other.unwrap_or(&mut self.thread).has_begun = false;
            }
            (MOMENT, [event, ticks]) => {
                self.ended = None;
                let (position, event, ticks) = (self.position, *event, *ticks);
                sink.moment(Moment { position, event, ticks });
            }
            _ => return Err(Unknown),
        }
        Ok(())
    }

    fn tell<S: Sink>(&self, thread: u64, meaning: impl IntoIterator<Item = Meaning>, sink: &mut S) {
        let at = self.position;
        meaning.into_iter().for_each(|what| sink.told(Told { at, thread, what }));
    }

    /// Whether there is more than one, or was.
    pub fn has_several_threads(&self) -> bool {
        // Before the first is told of, there is one without a number.
        self.others.keys().any(|number| *number != 0)
    }

    fn turn_to(&mut self, number: u64) {
        if number != self.number {
            let next = self.others.remove(&number).unwrap_or_default();
            let before = std::mem::replace(&mut self.thread, next);
            self.others.insert(std::mem::replace(&mut self.number, number), before);
        }
    }

    /// What decided that a thread comes to an address now.
    pub fn decided(&mut self, thread: u64, address: u64) -> Option<Position> {
        self.turn_to(thread);
        let (stack, last) = (self.thread.before.stack, self.thread.last);
        self.thread.unwound(stack, address, last, &mut self.filter);
        self.thread.control.at(address)
    }

    /// What is pending has happened as it was told.
    pub fn settle<S: Sink>(&mut self, known: &[Unit], room: &mut Room, sink: &mut S) {
        let Some(Pending { unit: number, executed }) = self.pending.take() else {
            return;
        };
        let unit = &known[number];
        let Course { thread, others, filter, position, .. } = self;
        thread.unwound(thread.before.stack, unit.address, thread.last, filter);
        if let Some(meet) = unit.lands {
            thread.control.lands(meet);
        }
        if let Some(from) = thread.jumped_from.take()
            && !unit.is_shown
        {
            thread.leave(from);
        }
        let before = thread.before;
        let values = &mut room.values;
        let stack = unit.plan.compute(before, executed, &self.slots, values);
        room.restored.clear();
        room.sites.clear();
        room.decided.clear();
        if S::DETAILS {
            room.sites.push(Site::new(0, thread.site()));
            room.decided.push(Deciding::new(0, thread.control.now()));
        }
        for step in &unit.steps {
            let index = step.index;
            if index >= executed {
                break;
            }
            let here = *position + index as Position;
            let stack_before = || unit.plan.stack_before(index, values);
            let decides_from = match step.what {
                What::Write { access } => {
                    let bytes = unit.plan.accesses[access].at(values);
                    if filter.may_hold(&bytes) {
                        thread.forget(others, &bytes, filter);
                    }
                    continue;
                }
                What::Change(changes) => {
                    if let Some(call) = thread.calls.last_mut() {
                        call.changed.change(changes);
                    }
                    continue;
                }
                What::Keep => {
                    let keeping = &unit.instructions[index].keeping;
                    let first = unit.first_access[index];
                    let operand = |operand: usize| unit.plan.accesses[first + operand].at(values);
                    let saved = thread.keep(keeping, operand, here, others, filter);
                    let restored = |(kept, saved)| Restored { by: here, kept, saved };
                    room.restored.extend(saved.map(restored));
                    continue;
                }
                What::Unwind { address } => {
                    if let Some(stack) = stack_before()
                        && thread.unwound(stack, address, here - 1, filter)
                    {
                        room.sites.push(Site::new(index, thread.site()));
                    }
                    index
                }
                What::Leave { from } => {
                    thread.leave(from);
                    room.sites.push(Site::new(index, from));
                    continue;
                }
                What::Meet { address } => {
                    thread.control.at(address);
                    index
                }
                What::Branch { meet } => {
                    thread.control.branch(here, meet);
                    index + 1
                }
                What::Call { back } => {
                    let stack = stack_before().unwrap_or(before.stack);
                    thread.control.call(Some(here), stack, Some(back));
                    let insn = &unit.instructions[index];
                    let above = thread.calls.last().map(|call| call.site);
                    let site = above.filter(|_| !insn.shown).unwrap_or(insn.address);
                    let (changed, first_slot) = (Changed::default(), thread.slots.count());
                    thread.calls.push(Call { changed, first_slot, site });
                    room.sites.push(Site::new(index + 1, site));
                    index + 1
                }
            };
            if !S::DETAILS {
                continue;
            }
            let now = thread.control.now();
            if room.decided.last().is_some_and(|decided| decided.by() != now) {
                room.decided.push(Deciding::new(decides_from, now));
            }
        }
        if executed > 0 {
            thread.last = *position + executed as Position - 1;
            thread.jumped_from = unit.jumps_from[executed];
        }
        // Otherwise it is told before the thread goes on.
        thread.before.stack = stack.unwrap_or(0);
        sink.executed(Executed {
            unit: number,
            thread: self.number,
            position: *position,
            count: executed,
            decided: &room.decided,
            sites: &room.sites,
            values: &room.values,
            restored: &room.restored,
        });
        *position += executed as Position;
    }
}

impl Thread {
    /// The stack pointer is there, before the instruction at an address and behind the last
    /// one; whether calls are over because of that.
    #[inline]
    fn unwound(&mut self, stack: u64, address: u64, last: Position, filter: &mut Filter) -> bool {
        self.control.unwound(stack, address, last);
        let is_over = self.control.calls() < self.calls.len();
        if is_over {
            self.end_calls(filter);
        }
        is_over
    }

    fn end_calls(&mut self, filter: &mut Filter) {
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
    fn keep(
        &mut self,
        keeping: &Keeping,
        operand: impl Fn(usize) -> Range<u64>,
        position: Position,
        others: &mut FxHashMap<u64, Thread>,
        filter: &mut Filter,
    ) -> Option<(Kept, Position)> {
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
        saved
    }

    /// Somebody has written to where registers may have been put aside.
    fn forget(
        &mut self,
        others: &mut FxHashMap<u64, Thread>,
        bytes: &Range<u64>,
        filter: &mut Filter,
    ) {
        self.slots.forget(bytes, filter);
        others.values_mut().for_each(|other| other.slots.forget(bytes, filter));
    }

    /// The kernel calls a handler.
    fn begin_handler(&mut self, stack: u64, position: Position) {
        self.handlers.push((self.calls.len(), position));
        self.control.call(None, stack, None);
        let (changed, first_slot, site) = (Changed::default(), self.slots.count(), self.site());
        self.calls.push(Call { changed, first_slot, site });
    }

    /// When the handler began that is over; those that were left by a jump are passed over.
    fn end_handler(&mut self) -> Option<Position> {
        while let Some((calls, position)) = self.handlers.pop() {
            if calls < self.calls.len() {
                return Some(position);
            }
        }
        None
    }

    /// A function goes on in another one that is not shown, as if that jump had called it.
    fn leave(&mut self, from: u64) {
        if let Some(call) = self.calls.last_mut() {
            call.site = from;
        }
    }

    /// The call that is shown for what is not.
    fn site(&self) -> u64 {
        self.calls.last().map_or(0, |call| call.site)
    }
}
