//! The course of a run, from the records of its trace.

use crate::control::{Control, Position};
use crate::saves::{Activation, Changed, Kept, Running, Saves};
use crate::units::{Unit, What};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use why_trace::plan::{Before, Values};
use why_trace::{
    FIRST_UNIT_ID, FS_BASE, GS_BASE, MOMENT, READ, RECOUNT, REPEATED, STACK, THREAD, UNDO, WROTE,
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
    saves: Saves,
    /// Of the next instruction.
    pub position: Position,
    /// How many calls there were.
    calls: Activation,
    /// The last unit's record: what comes next may say that not all of it was executed.
    pending: Option<Pending>,
    slots: Vec<u64>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Thread {
    before: Before,
    control: Control,
    /// For each call that is not over.
    calls: Vec<Call>,
    /// Of its last instruction.
    last: Position,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Call {
    activation: Activation,
    changed: Changed,
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
    pub decided: &'a [(usize, Option<Position>)],
    /// From which instruction on which call is shown for those that are not.
    pub sites: &'a [(usize, u64)],
    /// Where the accesses of the plan were.
    pub values: &'a Values,
    /// Instructions that brought a register back, and where it had been put aside.
    pub restored: &'a [Restored],
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
pub struct Wrote {
    /// How many instructions had been executed then.
    pub at: Position,
    /// The last instruction of the thread that it was done for.
    pub by: Position,
    pub bytes: Range<u64>,
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
    fn executed(&mut self, _executed: Executed<'_>) {}

    /// What an instruction did there is not known: it is passed over.
    fn passed_over(&mut self, _address: u64) {}

    /// Somebody else wrote to memory.
    fn wrote(&mut self, _wrote: Wrote) {}

    /// What was written last came from outside.
    fn read(&mut self, _input: Input) {}

    /// A thread goes on there, which is a moment of a recording.
    fn moment(&mut self, _moment: Moment) {}
}

/// Room that is used again for each unit.
#[derive(Default)]
pub struct Room {
    values: Values,
    decided: Vec<(usize, Option<Position>)>,
    restored: Vec<Restored>,
    sites: Vec<(usize, u64)>,
}

impl Course {
    /// What was opened is made ready to go on.
    pub fn prepare(&mut self) {
        self.saves.prepare();
    }

    /// Forgets what has no meaning any more.
    pub fn tidy(&mut self) {
        let threads = self.others.values().chain([&self.thread]);
        let calls = threads.flat_map(|thread| thread.calls.iter().map(|call| call.activation));
        let goes_on: rustc_hash::FxHashSet<Activation> = calls.collect();
        self.saves.retain(|activation| goes_on.contains(&activation));
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
                sink.passed_over(interrupted.address);
                return Ok(());
            }
            (RECOUNT, [_]) => return Ok(()),
            _ => {}
        }
        self.settle(known, room, sink);
        match (id, slots) {
            (THREAD, [number]) => self.turn_to(*number),
            (STACK, [value]) => self.thread.before.stack = *value,
            (FS_BASE, [value]) => self.thread.before.fs = *value,
            (GS_BASE, [value]) => self.thread.before.gs = *value,
            (WROTE, [at, size]) => {
                let bytes = *at..at.wrapping_add(*size);
                self.saves.wrote(bytes.clone());
                sink.wrote(Wrote { at: self.position, by: self.thread.last, bytes });
            }
            (READ, [at, size, stream, offset]) => {
                let bytes = *at..at.wrapping_add(*size);
                let (stream, offset) = (*stream, *offset);
                sink.read(Input { at: self.position, thread: self.number, bytes, stream, offset });
            }
            (MOMENT, [event, ticks]) => {
                let (position, event, ticks) = (self.position, *event, *ticks);
                sink.moment(Moment { position, event, ticks });
            }
            _ => return Err(Unknown),
        }
        Ok(())
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
        self.thread.unwound(self.thread.before.stack, address, self.thread.last);
        self.thread.control.at(address)
    }

    /// What is pending has happened as it was told.
    pub fn settle<S: Sink>(&mut self, known: &[Unit], room: &mut Room, sink: &mut S) {
        let Some(Pending { unit: number, executed }) = self.pending.take() else {
            return;
        };
        let unit = &known[number];
        let Course { thread, saves, position, calls, .. } = self;
        if let Some(first) = unit.instructions.first() {
            thread.unwound(thread.before.stack, first.address, thread.last);
        }
        let before = thread.before;
        let values = &mut room.values;
        let stack = unit.plan.compute(before, executed, &self.slots, values);
        room.restored.clear();
        room.sites.clear();
        room.sites.push((0, thread.site()));
        room.decided.clear();
        room.decided.push((0, thread.control.now()));
        for step in &unit.steps {
            let index = step.index;
            if index >= executed {
                break;
            }
            let here = *position + index as Position;
            let stack_before = || unit.plan.stack_before(index, values);
            let decides_from = match step.what {
                What::Keep => {
                    let insn = &unit.instructions[index];
                    let first = unit.first_access[index];
                    let operand = |operand: usize| unit.plan.accesses[first + operand].at(values);
                    let mut outermost = Changed::UNKNOWN;
                    let running = match thread.calls.last_mut() {
                        Some(Call { activation, changed, .. }) => {
                            Running { activation: *activation, changed }
                        }
                        None => Running { activation: 0, changed: &mut outermost },
                    };
                    let saved = saves.executed(&insn.keeping, operand, here, running);
                    let restored = |(kept, saved)| Restored { by: here, kept, saved };
                    room.restored.extend(saved.map(restored));
                    continue;
                }
                What::Unwind => {
                    if let Some(stack) = stack_before()
                        && thread.unwound(stack, unit.instructions[index].address, here - 1)
                    {
                        room.sites.push((index, thread.site()));
                    }
                    index
                }
                What::Meet => {
                    thread.control.at(unit.instructions[index].address);
                    index
                }
                What::Branch { meet } => {
                    thread.control.branch(here, meet);
                    index + 1
                }
                What::Call { back } => {
                    let stack = stack_before().unwrap_or(before.stack);
                    thread.control.call(Some(here), stack, Some(back));
                    *calls += 1;
                    let insn = &unit.instructions[index];
                    let above = thread.calls.last().map(|call| call.site);
                    let site = above.filter(|_| !insn.shown).unwrap_or(insn.address);
                    let changed = Changed::default();
                    thread.calls.push(Call { activation: *calls, changed, site });
                    room.sites.push((index + 1, site));
                    index + 1
                }
            };
            let now = thread.control.now();
            if room.decided.last().is_some_and(|(_, decided)| *decided != now) {
                room.decided.push((decides_from, now));
            }
        }
        if executed > 0 {
            thread.last = *position + executed as Position - 1;
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
    fn unwound(&mut self, stack: u64, address: u64, last: Position) -> bool {
        self.control.unwound(stack, address, last);
        let is_over = self.control.calls() < self.calls.len();
        if is_over {
            // What a call has not brought back its caller does not have any more.
            let over = self.calls.drain(self.control.calls()..);
            let changed = over.fold(Changed::default(), |all, call| all.and(call.changed));
            if let Some(caller) = self.calls.last_mut() {
                caller.changed = caller.changed.and(changed);
            }
        }
        is_over
    }

    /// The call that is shown for what is not.
    fn site(&self) -> u64 {
        self.calls.last().map_or(0, |call| call.site)
    }
}
