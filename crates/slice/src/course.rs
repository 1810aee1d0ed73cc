//! The course of a run, from the records of its trace.

use crate::control::{Control, Position};
use crate::saves::{Kept, Saves};
use crate::units::{Turn, Unit};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use why_trace::plan::{Before, Values};
use why_trace::{
    FIRST_UNIT_ID, FS_BASE, GS_BASE, MOMENT, RECOUNT, REPEATED, STACK, THREAD, UNDO, WROTE,
};

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the trace holds a record that nobody knows")]
pub struct Unknown;

/// Where the threads are, between two records.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Course {
    threads: FxHashMap<u64, Thread>,
    thread: u64,
    /// Of the next instruction.
    pub position: Position,
    /// The last unit's record: what comes next may say that not all of it was executed.
    pending: Option<Pending>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Thread {
    before: Before,
    control: Control,
    saves: Saves,
    /// For each call that is not over the last one before it that is shown, or itself.
    sites: Vec<u64>,
    /// Of its last instruction.
    last: Position,
}

impl Thread {
    /// The call that is shown for what is not.
    fn site(&self) -> u64 {
        self.sites.last().copied().unwrap_or(0)
    }
}

#[derive(Clone, Serialize, Deserialize)]
struct Pending {
    unit: usize,
    executed: usize,
    slots: Vec<u64>,
}

/// A unit that was executed, or a part of it.
pub struct Executed<'a> {
    pub unit: usize,
    pub thread: u64,
    /// Of its first instruction.
    pub position: Position,
    /// What decided over each of its instructions.
    pub decided: &'a [Option<Position>],
    /// From which instruction on which call is shown for those that are not.
    pub sites: &'a [(usize, u64)],
    /// Where the accesses of the plan were.
    pub accesses: &'a [Range<u64>],
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

/// Who is told what happened.
pub trait Sink {
    fn executed(&mut self, executed: Executed<'_>);

    /// What an instruction did there is not known: it is passed over.
    fn passed_over(&mut self, address: u64);

    /// Somebody else wrote to memory.
    fn wrote(&mut self, wrote: Wrote);

    /// A thread goes on there, which is a moment of a recording.
    fn moment(&mut self, _moment: Moment) {}
}

/// Room that is used again for each unit.
#[derive(Default)]
pub struct Room {
    values: Values,
    decided: Vec<Option<Position>>,
    accesses: Vec<Range<u64>>,
    restored: Vec<Restored>,
    sites: Vec<(usize, u64)>,
}

impl Course {
    /// The next record.
    pub fn read(
        &mut self,
        id: u64,
        slots: &[u64],
        units: &[(usize, usize)],
        known: &[Unit],
        room: &mut Room,
        sink: &mut dyn Sink,
    ) -> Result<(), Unknown> {
        let unit = usize::try_from(id).ok().and_then(|id| id.checked_sub(FIRST_UNIT_ID as usize));
        if let Some(unit) = unit {
            let (unit, executed) = *units.get(unit).ok_or(Unknown)?;
            self.settle(known, room, sink);
            self.pending = Some(Pending { unit, executed, slots: slots.to_vec() });
            return Ok(());
        }
        match (id as u32, slots) {
            (UNDO, [undone]) => {
                let pending = self.pending.as_mut().ok_or(Unknown)?;
                let left = pending.executed.checked_sub(*undone as usize).ok_or(Unknown)?;
                pending.executed = left;
            }
            (REPEATED, [_]) => {
                let Pending { unit, executed, .. } = self.pending.as_ref().ok_or(Unknown)?;
                let interrupted = known[*unit].instructions.get(*executed).ok_or(Unknown)?;
                sink.passed_over(interrupted.address);
            }
            (RECOUNT, [_]) => {}
            (id, slots) => {
                self.settle(known, room, sink);
                let thread = self.threads.entry(self.thread).or_default();
                match (id, slots) {
                    (THREAD, [thread]) => self.thread = *thread,
                    (STACK, [value]) => thread.before.stack = *value,
                    (FS_BASE, [value]) => thread.before.fs = *value,
                    (GS_BASE, [value]) => thread.before.gs = *value,
                    (WROTE, [at, size]) => {
                        let bytes = *at..at.wrapping_add(*size);
                        self.threads.values_mut().for_each(|thread| thread.saves.wrote(&bytes));
                        let by = self.threads.get(&self.thread).map_or(0, |thread| thread.last);
                        sink.wrote(Wrote { at: self.position, by, bytes });
                    }
                    (MOMENT, [event, ticks]) => {
                        let (position, event, ticks) = (self.position, *event, *ticks);
                        sink.moment(Moment { position, event, ticks });
                    }
                    _ => return Err(Unknown),
                }
            }
        }
        Ok(())
    }

    /// What decided that a thread comes to an address now.
    pub fn decided(&mut self, thread: u64, address: u64) -> Option<Position> {
        let Thread { control, before, .. } = self.threads.get_mut(&thread)?;
        control.unwound(before.stack);
        control.at(address)
    }

    /// What is pending has happened as it was told.
    pub fn settle(&mut self, known: &[Unit], room: &mut Room, sink: &mut dyn Sink) {
        let Some(Pending { unit: number, executed, slots }) = self.pending.take() else {
            return;
        };
        let unit = &known[number];
        let several = self.threads.len() > 1;
        let thread = self.threads.entry(self.thread).or_default();
        thread.control.unwound(thread.before.stack);
        thread.sites.truncate(thread.control.calls());
        room.sites.clear();
        room.sites.push((0, thread.site()));
        let Thread { before, control, saves, sites, last } = thread;
        let stack = unit.plan.compute(*before, executed, &slots, &mut room.values);
        let accesses = &unit.plan.accesses[..unit.first_access[executed]];
        room.accesses.clear();
        room.accesses.extend(accesses.iter().map(|access| {
            let (address, size) = access.range(&room.values);
            address..address.wrapping_add(size)
        }));
        room.decided.clear();
        room.restored.clear();
        for (index, insn) in unit.instructions[..executed].iter().enumerate() {
            let stack = unit.plan.stack_before(index, &room.values);
            if let Some(stack) = stack {
                control.unwound(stack);
                saves.calls(control.calls(), stack);
                if control.calls() < sites.len() {
                    sites.truncate(control.calls());
                    room.sites.push((index, sites.last().copied().unwrap_or(0)));
                }
            }
            room.decided.push(control.at(insn.address));
            let position = self.position + index as Position;
            let operands = &room.accesses[unit.first_access[index]..unit.first_access[index + 1]];
            if operands.len() != insn.effects.operands.len() {
                // Which lanes a vector selects is not planned.
                sink.passed_over(insn.address);
            } else if !insn.keeping.is_nothing() {
                let saved = saves.executed(&insn.keeping, operands, position);
                let restored = |(kept, saved)| Restored { by: position, kept, saved };
                room.restored.extend(saved.map(restored));
            }
            match insn.turn {
                Turn::None => {}
                Turn::Branch { meet } => control.branch(position, meet),
                Turn::Call => {
                    control.call(Some(position), stack.unwrap_or(before.stack));
                    let site = sites.last().copied().filter(|_| !insn.shown);
                    sites.push(site.unwrap_or(insn.address));
                    room.sites.push((index + 1, site.unwrap_or(insn.address)));
                }
            }
        }
        if executed > 0 {
            *last = self.position + executed as Position - 1;
        }
        // Otherwise it is told before the thread goes on.
        before.stack = stack.unwrap_or(0);
        // What it wrote to may have been put aside by others.
        for (number, other) in self.threads.iter_mut().filter(|_| several) {
            if *number != self.thread {
                room.accesses.iter().for_each(|bytes| other.saves.wrote(bytes));
            }
        }
        sink.executed(Executed {
            unit: number,
            thread: self.thread,
            position: self.position,
            decided: &room.decided,
            sites: &room.sites,
            accesses: &room.accesses,
            restored: &room.restored,
        });
        self.position += executed as Position;
    }
}
