//! Records that the supervisor itself writes into the trace.

use crate::code::Placed;
use crate::memory::Address;
use crate::supervisor::Supervisor;
use crate::task::Tid;
use why_trace::{STACK, THREAD, UNDO};
use why_translate::context::TRACE_NEXT;

impl Supervisor {
    /// From here on the records are of this thread.
    pub(crate) fn trace_thread(&mut self, tid: Tid) {
        self.trace_record(tid, THREAD, tid as u64);
    }

    /// A thread enters the cache: from here on the reader follows its stack pointer.
    pub(crate) fn trace_stack(&mut self, tid: Tid, stack_pointer: Address) {
        self.trace_record(tid, STACK, stack_pointer);
    }

    /// The count of the records so far is wrong by so much.
    pub(crate) fn trace_undo(&mut self, tid: Tid, by: i64) {
        self.trace_record(tid, UNDO, by.wrapping_neg() as u64);
    }

    /// A record of the supervisor's own.
    fn trace_record(&mut self, tid: Tid, id: u32, value: u64) {
        let space = self.space_of(tid);
        let Some(trace) = space.trace.as_mut() else {
            return;
        };
        let mut next = space.memory.read_u64(space.context + TRACE_NEXT.0 as u64).unwrap_or(0);
        // Units see to room for themselves, but not for many of these in between.
        if !trace.has_room(next) {
            next = trace.swap(next);
        }
        let words = [header(id, 1), value];
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
        placed: &Placed,
        offset: u32,
        executed: usize,
    ) {
        let unit = &placed.unit;
        if unit.committed_from.is_some_and(|from| offset >= from) {
            let total = unit.instructions() as i64;
            if executed as i64 != total {
                self.trace_undo(tid, executed as i64 - total);
            }
            return;
        }
        if executed == 0 {
            return;
        }
        let slots = usize::from(unit.slots[executed]);
        let header = header(placed.trace_id + executed as u32 - 1, slots);
        let space = self.space_of(tid);
        let next = space.read_slot(TRACE_NEXT);
        if space.memory.write_u64(next, header).is_ok() {
            let size = why_trace::HEADER_BYTES + 8 * slots;
            space.write_slot(TRACE_NEXT, next + size as u64);
        }
    }
}

/// A header as it stands in the buffer.
fn header(id: u32, slots: usize) -> u64 {
    i64::from(why_trace::header(id, slots)) as u64
}
