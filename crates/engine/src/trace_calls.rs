//! Records that the supervisor itself writes into the trace.

use crate::ptrace::Registers;
use crate::recording::recorded;
use crate::replaying::{Move, Read, Turned};
use crate::supervisor::Supervisor;
use crate::task::Tid;
use std::sync::Arc;
use why_trace::register::{RDI, number};
use why_trace::shape::{Numbered, Planner};
use why_trace::{
    CALLED, CAME_BACK, ENDED, FS_BASE, GS_BASE, HANDLER, MOMENT, MOVED, OTHERS_WROTE, READ,
    RECOUNT, REPEATED, RETURNED, STACK, THREAD, UNDO, WROTE,
};
use why_translate::context::{APP_GS, TRACE_NEXT};
use why_translate::{SpanDetail, Unit};

impl Supervisor {
    /// A thread enters the cache: from here on the records are its own, and the reader
    /// follows its stack pointer, and the bases of its segments.
    pub(crate) fn trace_entry(&mut self, tid: Tid, registers: &Registers) {
        // In a replay one thread stands for all.
        let thread = self.recorded_thread(tid).unwrap_or(tid);
        let space = self.space_of(tid);
        let Some(trace) = space.trace.as_mut() else {
            return;
        };
        let gs_base = space.memory.read_u64(space.context + APP_GS.0 as u64).unwrap_or(0);
        let bases = (registers.fs_base, gs_base);
        let is_other = trace.thread.replace(thread) != Some(thread);
        let have_changed = trace.bases.insert(thread, bases) != Some(bases);
        if is_other {
            self.trace_record(tid, THREAD, thread as u64);
        }
        self.trace_record(tid, STACK, registers.rsp);
        if have_changed {
            self.trace_record(tid, FS_BASE, bases.0);
            self.trace_record(tid, GS_BASE, bases.1);
        }
        if let Some((event, ticks)) = self.recorded_moment(tid) {
            match self.turned(tid) {
                Some(Turned::ToHandler { stack }) => self.trace_record(tid, HANDLER, stack),
                Some(Turned::Back) => self.trace_record(tid, RETURNED, 0),
                None => {}
            }
            for range in self.untold_of_others(tid) {
                self.trace_words(tid, OTHERS_WROTE, &[range.start, range.end - range.start]);
            }
            // What was written was so where it is now.
            for Move { from, to } in self.untold_moves(tid) {
                let sizes = [from.end - from.start, to.end - to.start];
                self.trace_words(tid, MOVED, &[from.start, sizes[0], to.start, sizes[1]]);
            }
            let result = self.call_result(tid, registers.rax);
            let (writes, reads) = self.untold_writes(tid, registers.rax);
            for range in writes {
                self.trace_words(tid, WROTE, &[range.start, range.end - range.start]);
            }
            if let Some(result) = result {
                self.trace_words(tid, CAME_BACK, &result);
            }
            for Read { bytes, stream, offset } in reads {
                let size = bytes.end - bytes.start;
                self.trace_words(tid, READ, &[bytes.start, size, stream, offset]);
            }
            self.trace_words(tid, MOMENT, &[event, ticks]);
        }
    }

    /// An instruction that is told rather than executed has its record as well. These are
    /// the registers before it.
    pub(crate) fn trace_told(&mut self, tid: Tid, registers: &Registers) {
        if self.space_of(tid).trace.is_none() {
            return;
        }
        let mut planner = Planner::default();
        planner.instruction(&self.instruction_at(tid, registers.rip));
        let shapes = Arc::clone(&self.space_of(tid).code.borrow().shapes);
        // Nobody may hold them who waits for the reader, as whoever writes records may.
        let (unit, id) = {
            let mut shapes = shapes.write().expect("no panic");
            let unit = shapes.number(planner.finish());
            let id = shapes.id(&unit, 1);
            (unit, id)
        };
        let values = recorded(registers, 0).0;
        let needed = unit.shape.told.iter().flatten();
        let slots: Vec<u64> =
            needed.map(|register| values[usize::from(number(*register))]).collect();
        self.trace_record(tid, STACK, registers.rsp);
        self.trace_words(tid, id, &slots);
    }

    /// The thread that runs makes a call: its number and arguments.
    pub(crate) fn trace_call(&mut self, tid: Tid, number: u64, arguments: [u64; 5]) {
        let [first, second, third, fourth, fifth] = arguments;
        self.trace_words(tid, CALLED, &[number, first, second, third, fourth, fifth]);
    }

    /// A recorded thread has ended.
    pub(crate) fn trace_ended(&mut self, tid: Tid, thread: Tid) {
        self.trace_record(tid, ENDED, thread as u64);
    }

    /// So many calls that were recorded are made again.
    pub(crate) fn trace_recount(&mut self, tid: Tid, by: i64) {
        self.trace_record(tid, RECOUNT, by.wrapping_neg() as u64);
    }

    /// A record of the supervisor's own.
    fn trace_record(&mut self, tid: Tid, id: u32, value: u64) {
        self.trace_words(tid, id, &[value]);
    }

    fn trace_words(&mut self, tid: Tid, id: u32, slots: &[u64]) {
        let space = self.space_of(tid);
        let Some(trace) = space.trace.as_mut() else {
            return;
        };
        let mut next = space.memory.read_u64(space.context + TRACE_NEXT.0 as u64).unwrap_or(0);
        // Units see to room for themselves, but not for many of these in between.
        if !trace.has_room(next) {
            next = trace.swap(next);
        }
        let words = [&[header(id, slots.len())], slots].concat();
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        if space.memory.write(next, &bytes).is_ok() {
            space.write_slot(TRACE_NEXT, next + bytes.len() as u64);
        }
    }

    /// A unit was left in the middle: its addresses are in the buffer already, and
    /// only the header is missing; or the whole record is there, and too much.
    pub(crate) fn trace_partial(
        &mut self,
        tid: Tid,
        unit: &Unit,
        offset: u32,
        executed: usize,
        id: &dyn Fn(&Numbered) -> u32,
        registers: &Registers,
    ) {
        if unit.committed_from.is_some_and(|from| offset >= from) {
            let undone = unit.instructions() as usize - executed;
            if undone > 0 {
                self.trace_record(tid, UNDO, undone as u64);
            }
            return;
        }
        let traced = unit.traced.as_ref().expect("the unit is traced");
        let shape = &traced.shape;
        let interrupted = shape.behind_repetition(executed).filter(
            |_| matches!(unit.spans[executed].detail, SpanDetail::Repeats { at } if at == offset),
        );
        if executed == 0 && interrupted.is_none() {
            return;
        }
        let (slots, behind) = match (interrupted, shape.pointer_behind(executed)) {
            (Some(_), _) => (shape.slots_before(executed + 1), None),
            (None, pointer) => (shape.slots_before(executed), pointer),
        };
        let pointer = |register| if register == RDI { registers.rdi } else { registers.rsi };
        let header = header(id(traced), slots + behind.iter().len());
        let space = self.space_of(tid);
        let next = space.read_slot(TRACE_NEXT);
        let behind_slots = next + (why_trace::HEADER_BYTES + 8 * slots) as u64;
        let mut end = behind_slots;
        if let Some(register) = behind {
            let _ = space.memory.write_u64(behind_slots, pointer(register));
            end += 8;
        }
        if space.memory.write_u64(next, header).is_ok() {
            space.write_slot(TRACE_NEXT, end);
        }
        if let Some(register) = interrupted {
            self.trace_record(tid, REPEATED, pointer(register));
        }
    }
}

/// A header as it stands in the buffer.
fn header(id: u32, slots: usize) -> u64 {
    i64::from(why_trace::header(id, slots)) as u64
}
