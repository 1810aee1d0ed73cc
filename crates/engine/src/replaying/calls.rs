//! The calls that a thread makes without the supervisor: their results are in the log, a part
//! of them at a time.

use super::Replayer;
use crate::call_log::{self, MOST_FILLED, MOST_WRITTEN};
use crate::error::EngineError;
use crate::ptrace::Registers;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use why_record::RecordError;
use why_record::event::{Cause, Event};
use why_record::files::Hash;

/// Calls that follow each other.
#[derive(Clone)]
pub(super) enum Calls {
    /// As they stand in the log.
    Logged(Rc<[u8]>),
    /// One call, which wrote what is in a file.
    FromFile { number: u32, result: u64, size: u32, hash: Hash, offset: u64 },
}

impl Calls {
    /// The calls that an event tells of, if it does.
    pub(super) fn told(event: Event) -> Result<Calls, Event> {
        match event {
            Event::Calls(calls) => Ok(Calls::Logged(calls.into())),
            Event::CallFromFile { number, result, hash, offset, size } => {
                Ok(Calls::FromFile { number, result, size, hash, offset })
            }
            other => Err(other),
        }
    }

    /// What they take in the log.
    fn size(&self) -> usize {
        match self {
            Calls::Logged(calls) => calls.len(),
            Calls::FromFile { size, .. } => call_log::header(0, 0, 0).len() + *size as usize,
        }
    }
}

impl Replayer {
    /// The calls as they stand in the log.
    fn logged(&self, calls: Calls) -> Outcome<Rc<[u8]>> {
        let (number, result, size, hash, offset) = match calls {
            Calls::Logged(calls) => return Ok(calls),
            Calls::FromFile { number, result, size, hash, offset } => {
                (number, result, size, hash, offset)
            }
        };
        if size as usize > MOST_WRITTEN {
            let stream = self.recording.stream(self.process, self.program);
            let how = "a call has read more than a call of its kind can";
            let damaged = RecordError::damaged(stream.display(), how);
            return Err(EngineError::Recording(damaged).into());
        }
        let file = self.kept_part(hash, offset, size.into())?;
        let mut written = vec![0; size as usize];
        self.read_kept(&file, hash, offset, &mut written)?;
        Ok([&call_log::header(number, result, size)[..], &written].concat().into())
    }

    /// A kept file, if it has so many bytes from an offset on.
    pub(super) fn kept_part(&self, hash: Hash, offset: u64, size: u64) -> Outcome<File> {
        let file = self.files.open(hash).map_err(EngineError::Recording)?;
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        if offset.checked_add(size).is_some_and(|end| end <= length) {
            return Ok(file);
        }
        let how = "more was read from it than it holds";
        let damaged = RecordError::damaged(self.files.path(hash).display(), how);
        Err(EngineError::Recording(damaged).into())
    }

    pub(super) fn read_kept(
        &self,
        file: &File,
        hash: Hash,
        offset: u64,
        bytes: &mut [u8],
    ) -> Outcome<()> {
        let what = format!("cannot read {}", self.files.path(hash).display());
        let reading = |error| EngineError::Recording(RecordError::system(what)(error));
        Ok(file.read_exact_at(bytes, offset).map_err(reading)?)
    }
}

impl Supervisor {
    /// Puts the next recorded calls into the log, as many as it can hold.
    pub(super) fn next_calls(&mut self, tid: Tid) -> Outcome<()> {
        let replayer = self.replayer(tid);
        let mut log = Vec::new();
        while let Some(calls) = replayer.calls.front()
            && (log.is_empty() || log.len() + calls.size() <= MOST_FILLED)
        {
            let calls = replayer.calls.pop_front().expect("just seen");
            log.extend_from_slice(&replayer.logged(calls)?);
        }
        let log = Rc::new(log);
        (replayer.log, replayer.taken) = (Rc::clone(&log), 0);
        // A traced process takes none of them by itself: what they write belongs to the trace.
        let shown = if self.options.tool.traces() { &[][..] } else { &log[..] };
        self.fill_log(tid, shown);
        Ok(())
    }

    /// Whether the process has not made all calls that are in the log.
    pub(super) fn has_calls_in_log(&mut self, tid: Tid) -> bool {
        let replayer = self.replayer(tid);
        let (filled, taken) = (replayer.log.len(), replayer.taken);
        match self.options.tool.traces() {
            true => taken < filled,
            false => self.left_in_log(tid, filled) != 0,
        }
    }

    /// A thread makes a call that is not the next one in the log.
    pub(crate) fn replay_call(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        if self.options.tool.traces() {
            return self.replay_traced_call(tid, registers);
        }
        let used_up = !self.has_calls_in_log(tid);
        if used_up && !self.replayer(tid).calls.is_empty() {
            // It may be in the next part.
            self.next_calls(tid)?;
            self.adjust_count(tid, -1);
            return self.stopped_on_the_way(tid, Registers { rip: registers.rip - 2, ..registers });
        }
        self.replay_stop(tid, &registers, Cause::Call(registers.rax as u32))
    }

    /// A thread of a traced process makes a call, which may be the next one in the log.
    fn replay_traced_call(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        /// The one call that fills what rdi points to.
        const GETTIMEOFDAY: u32 = libc::SYS_gettimeofday as u32;
        if !self.has_calls_in_log(tid) && !self.replayer(tid).calls.is_empty() {
            self.next_calls(tid)?;
        }
        let replayer = self.replayer(tid);
        let log = Rc::clone(&replayer.log);
        let next = call_log::replayed(&log[replayer.taken..]);
        let Some(call) = next.filter(|call| u64::from(call.number) == registers.rax) else {
            return self.replay_stop(tid, &registers, Cause::Call(registers.rax as u32));
        };
        replayer.taken += call.size();
        self.note_call(tid, &registers);
        if !call.written.is_empty() {
            let at = if call.number == GETTIMEOFDAY { registers.rdi } else { registers.rsi };
            self.replay_write(tid, at, call.written)?;
        }
        let (rcx, r11) = (registers.rip, registers.eflags);
        let behind = Registers { rax: call.result, rcx, r11, ..registers };
        self.stopped_on_the_way(tid, behind)
    }
}
