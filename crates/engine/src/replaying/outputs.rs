//! What the processes of a recording write, in the order in which they wrote it.

use crate::memory::Address;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use why_record::event::Stream;

/// What all processes write, in the order in which it was recorded.
pub struct Outputs {
    output: Box<dyn Write>,
    error: Box<dyn Write>,
    /// The number of the write that is next; none if they come from one process alone.
    next: Option<u64>,
    /// The last one that one process alone wrote. Whoever goes back does not write again.
    last: Option<u64>,
    early: BTreeMap<u64, (Stream, Vec<u8>)>,
}

impl Outputs {
    pub fn new(output: Box<dyn Write>, error: Box<dyn Write>) -> Outputs {
        Outputs { output, error, next: Some(0), last: None, early: BTreeMap::new() }
    }

    fn add(&mut self, order: u64, stream: Stream, bytes: Vec<u8>) {
        let Some(mut next) = self.next else {
            if self.last < Some(order) {
                self.last = Some(order);
                self.write(stream, &bytes);
            }
            return;
        };
        if order < next {
            return;
        }
        self.early.insert(order, (stream, bytes));
        while let Some((stream, bytes)) = self.early.remove(&next) {
            self.write(stream, &bytes);
            next += 1;
        }
        self.next = Some(next);
    }

    /// Does not wait for what was written before, or by other processes.
    pub fn begin_anywhere(&mut self) {
        self.next = None;
    }

    fn write(&mut self, stream: Stream, bytes: &[u8]) {
        let to = match stream {
            Stream::Output => &mut self.output,
            Stream::Error => &mut self.error,
        };
        // Whoever reads it may have gone, as in a pipe to `head`.
        let _ = to.write_all(bytes).and_then(|()| to.flush());
    }

    /// Writes what is left when a process of the recording was cut short.
    pub(super) fn finish(&mut self) {
        for (_, (stream, bytes)) in std::mem::take(&mut self.early) {
            self.write(stream, &bytes);
        }
    }
}

impl Supervisor {
    pub(super) fn replay_output(
        &mut self,
        tid: Tid,
        stream: Stream,
        order: u64,
        range: Range<Address>,
    ) -> Outcome<()> {
        /// No write is larger.
        const MOST: u64 = 0x7fff_f000;
        let mut bytes = vec![0; (range.end - range.start).min(MOST) as usize];
        let got = self.space_of(tid).memory.read(range.start, &mut bytes).unwrap_or(0);
        bytes.truncate(got);
        self.replayer(tid).outputs.borrow_mut().add(order, stream, bytes);
        Ok(())
    }
}
