//! The course of a run, from the records of its trace.

mod interrupted;
mod notes;
mod sink;
mod thread;

use crate::calls::{Calls, Creator, Told, What as Meaning};
use crate::control::{Control, Position};
use crate::saves::{Changed, Filter, KEPT_SIZE};
use crate::units::{Part, Unit, What};
pub use interrupted::{Completion, Completions};
pub use notes::{By, Deciding, Note, Restored, Room, Unfolded};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
pub use sink::*;
use std::ops::Range;
use thread::{Call, Thread};
use why_trace::plan::{Start, Values};
use why_trace::{
    CALLED, CAME_BACK, ENDED, FIRST_UNIT_ID, FS_BASE, GS_BASE, HANDLER, MOMENT, MOVED,
    OTHERS_WROTE, READ, RECOUNT, REPEATED, RETURNED, STACK, THREAD, UNDO, WROTE,
};

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the trace that was kept holds a record that nobody knows")]
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
    /// What it has told.
    values: Values,
    /// What has to be known of system calls.
    calls: Calls,
    /// The thread that has ended since any went on.
    ended: Option<u64>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Pending {
    unit: usize,
    executed: usize,
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
        self.values.tell(slots);
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
            (REPEATED, [pointer]) => return self.interrupt(*pointer, known, room, sink),
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
            (WROTE | OTHERS_WROTE, [at, size]) => {
                let by = (id == WROTE).then_some(self.thread.last);
                self.wrote(by, *at..at.wrapping_add(*size), None, sink);
            }
            (MOVED, [from, size, to, new_size]) => {
                self.forget(&(*from..from.wrapping_add(*size)));
                let moved = Some(Moved { from: *from, size: *size.min(new_size) });
                let by = Some(self.thread.last);
                self.wrote(by, *to..to.wrapping_add(*new_size), moved, sink);
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
                sink.called(*number);
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

    fn wrote<S: Sink>(
        &mut self,
        by: Option<Position>,
        bytes: Range<u64>,
        moved: Option<Moved>,
        sink: &mut S,
    ) {
        self.forget(&bytes);
        let (at, thread) = (self.position, self.number);
        sink.wrote(Wrote { at, by, thread, ended: self.ended, bytes, moved });
    }

    /// What was put aside there is gone.
    fn forget(&mut self, bytes: &Range<u64>) {
        if self.filter.may_hold(bytes) {
            self.thread.forget(&mut self.others, bytes, &mut self.filter);
        }
    }

    fn tell<S: Sink>(&self, thread: u64, meaning: impl IntoIterator<Item = Meaning>, sink: &mut S) {
        let at = self.position;
        meaning.into_iter().for_each(|what| sink.told(Told { at, thread, what }));
    }

    /// The unit that may be told more of.
    pub fn pending(&self) -> Option<usize> {
        self.pending.map(|pending| pending.unit)
    }

    /// This, to be kept: what can be prepared is left out.
    pub fn at_rest(&self) -> Course {
        Course { filter: Filter::default(), ..self.clone() }
    }

    /// A chunk begins.
    pub fn begin_chunk(&mut self) {
        let threads = self.others.values_mut().chain([&mut self.thread]);
        threads.for_each(|thread| thread.control.begin_chunk());
    }

    /// Whether all that has been decided in each thread was decided by the same as in another
    /// course of the same run.
    pub fn is_decided_as(&self, other: &Course) -> bool {
        let mut threads = self.threads();
        threads.all(|(number, control)| other.control(number) == Some(control))
    }

    /// This is where a chunk led to that began so. Where it leads to if it began otherwise; none
    /// if that has to be followed.
    pub fn led_to_by(&self, began: &Course, otherwise: &Course) -> Option<Course> {
        let mut led = self.clone();
        for (number, control) in self.threads() {
            let before = (began.control(number), otherwise.control(number));
            if let (Some(began), Some(otherwise)) = before {
                let thread = if number == self.number { Some(&mut led.thread) } else { None };
                let thread = thread.or_else(|| led.others.get_mut(&number));
                thread?.control = control.led_to_by(began, otherwise)?;
            }
        }
        Some(led)
    }

    fn threads(&self) -> impl Iterator<Item = (u64, &Control)> {
        let others = self.others.iter().map(|(number, thread)| (*number, &thread.control));
        others.chain([(self.number, &self.thread.control)])
    }

    fn control(&self, thread: u64) -> Option<&Control> {
        self.threads().find(|(number, _)| *number == thread).map(|(_, control)| control)
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
        let Course { thread, others, filter, position, values, .. } = self;
        let first = *position;
        if executed > 0 && !thread.interrupted.is_empty() {
            for at in thread.completes(unit.address) {
                sink.completed(Completion::new(at, self.number, first));
            }
        }
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
        let (stack, steps, jumps_from) = match executed == unit.instructions.len() {
            true => (unit.plan.compute(before, values), &*unit.steps, unit.jumps_from),
            false => {
                let Part { steps, jumps_from } = unit.parts[executed];
                let steps = &unit.single_steps[..usize::from(steps)];
                (unit.plan.compute_part(before, executed, values), steps, jumps_from)
            }
        };
        room.begin(first);
        if S::DETAILS {
            room.sites.push(Site::new(0, thread.site()));
            room.decided(0, thread.control.now());
        }
        for step in steps {
            let index = step.index();
            let here = first + index as Position;
            match step.what {
                What::Write { value, size, plus } => {
                    let start = Start { value, plus }.of(values);
                    if filter.may_hold_few(start, size) {
                        let bytes = start..start.wrapping_add(size.into());
                        thread.forget(others, &bytes, filter);
                    }
                }
                What::WriteString { access } => {
                    let bytes = unit.plan.accesses[usize::from(access)].at(values);
                    if filter.may_hold(&bytes) {
                        thread.forget(others, &bytes, filter);
                    }
                }
                What::Change(changes) => {
                    if let Some(call) = thread.calls.last_mut() {
                        call.changed.change(changes);
                    }
                }
                What::Keep => {
                    let keeping = &unit.instructions[index].keeping;
                    let first = unit.first_access[index];
                    let operand = |operand: usize| unit.plan.accesses[first + operand].at(values);
                    let saved = thread.keep(keeping, operand, here, others, filter);
                    if let Some(saved) = saved.filter(|_| S::DETAILS) {
                        room.restored(index, saved);
                    }
                }
                What::Store { kept, value, plus } => {
                    let at = Start { value, plus }.of(values);
                    if filter.may_hold_few(at, KEPT_SIZE) {
                        thread.forget(others, &(at..at.wrapping_add(KEPT_SIZE.into())), filter);
                    }
                    thread.store(kept, at, here, filter);
                }
                What::Load { kept, value, plus } => {
                    let saved = thread.load(kept, Start { value, plus }.of(values), filter);
                    if let Some(saved) = saved.filter(|_| S::DETAILS) {
                        room.restored(index, saved);
                    }
                }
                What::Unwind { value, plus } => {
                    let stack = Start { value, plus }.of(values);
                    let address = || unit.instructions[index].address;
                    if thread.control.is_over(stack)
                        && thread.unwound(stack, address(), here - 1, filter)
                        && S::DETAILS
                    {
                        room.sites.push(Site::new(index, thread.site()));
                        room.decided(index, thread.control.now());
                    }
                }
                What::Leave { from } => {
                    thread.leave(from);
                    room.sites.push(Site::new(index, from));
                }
                What::Land { meet } => thread.control.lands(meet),
                What::Meet { address } => {
                    if thread.control.meets(address) && S::DETAILS {
                        room.decided(index, thread.control.now());
                    }
                }
                What::Branch { meet } => thread.control.branch(here, Some(meet)),
                What::BranchToEnd => thread.control.branch(here, None),
                What::Call { back } => {
                    let stack = unit.plan.stack_before(index, values).unwrap_or(before.stack);
                    thread.control.call(Some(here), stack, Some(back));
                    let insn = &unit.instructions[index];
                    let above = thread.calls.last().map(|call| call.site);
                    let site = above.filter(|_| !insn.shown).unwrap_or(insn.address);
                    let (changed, first_slot) = (Changed::default(), thread.slots.count());
                    thread.calls.push(Call { changed, first_slot, site });
                    room.sites.push(Site::new(index + 1, site));
                }
            }
        }
        if executed > 0 {
            thread.last = first + executed as Position - 1;
            thread.jumped_from = jumps_from;
        }
        // Otherwise it is told before the thread goes on.
        thread.before.stack = stack.unwrap_or(0);
        *position = first + executed as Position;
        sink.executed(Executed {
            unit: number,
            thread: self.number,
            position: first,
            count: executed,
            notes: &room.notes,
            told: &room.told,
            sites: &room.sites,
            values,
        });
    }
}
