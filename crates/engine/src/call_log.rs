//! The log of the calls that a recorded process makes without the supervisor, and that a
//! replayed one takes from it.
//!
//! A record is the call's number and the size of what it wrote, four bytes each, its result,
//! when recording its fourth argument, and what it wrote. The target writes records one behind
//! the other; where the next would not fit, it touches a page that is not there. When
//! replaying, a number that no call has ends the log.

use crate::error::Result;
use crate::inject::Part;
use crate::memory::{Address, PAGE};
use crate::ptrace::{self, Registers};
use crate::shared::SharedMemory;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use std::ops::Range;
use why_translate::context::{LOG_HEADER, LOG_NEXT, LOG_ROOM, SMALL_STACK};

/// How much the target can write before somebody reads it.
const LOG_BYTES: usize = 1 << 20;
/// Behind the log there is nothing, as far as a record may reach.
const GUARD: u64 = (LOG_ROOM as u64 + 2 * PAGE).next_multiple_of(PAGE);

/// The end, when replaying.
const NO_CALL: [u8; 4] = u32::MAX.to_le_bytes();

/// What fits into the log when replaying.
pub const MOST_FILLED: usize = LOG_BYTES - NO_CALL.len();
/// The most that one call can have written.
pub const MOST_WRITTEN: usize = LOG_ROOM as usize - LOGGED_HEADER;

const LOGGED_HEADER: usize = LOG_HEADER as usize;
/// The same without the argument, which nobody asks for again.
const HEADER: usize = LOGGED_HEADER - 8;

/// Of the small stack in the context page.
const STACK_TOP: u64 = 0xb00;

/// A call, as it stands in the log when recording.
pub struct Record {
    pub number: u32,
    pub result: u64,
    /// Its fourth argument: for `pread64`, from where it has read.
    pub fourth: u64,
    /// Where in the log there is what it wrote.
    pub bytes: Range<usize>,
}

/// The calls in a log, up to where it makes no sense: the target can write anything there.
pub fn records(log: &[u8]) -> impl Iterator<Item = Record> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let header: &[u8; LOGGED_HEADER] = log.get(start..)?.first_chunk()?;
        let half = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| header[at + i]));
        let whole = |at: usize| u64::from(half(at)) | u64::from(half(at + 4)) << 32;
        let behind = start + LOGGED_HEADER;
        let bytes = behind..behind + half(4) as usize;
        let record = Record { number: half(0), result: whole(8), fourth: whole(16), bytes };
        start = record.bytes.end;
        (start <= log.len()).then_some(record)
    })
}

/// What stands in the log in front of what a call wrote, when replaying.
pub fn header(number: u32, result: u64, written: u32) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&number.to_le_bytes());
    header[4..8].copy_from_slice(&written.to_le_bytes());
    header[8..].copy_from_slice(&result.to_le_bytes());
    header
}

/// A call, as it stands in the log when replaying.
pub struct ReplayedCall<'a> {
    pub number: u32,
    pub result: u64,
    pub written: &'a [u8],
}

impl ReplayedCall<'_> {
    /// What it takes in the log.
    pub fn size(&self) -> usize {
        HEADER + self.written.len()
    }
}

/// The first call in a log.
pub fn replayed(log: &[u8]) -> Option<ReplayedCall<'_>> {
    let (header, rest) = log.split_first_chunk::<HEADER>()?;
    let half = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| header[at + i]));
    let result = u64::from(half(8)) | u64::from(half(12)) << 32;
    let written = rest.get(..half(4) as usize)?;
    Some(ReplayedCall { number: half(0), result, written })
}

pub struct CallLog {
    memory: SharedMemory,
    base: Address,
}

impl CallLog {
    fn new(base: Address) -> Result<CallLog> {
        Ok(CallLog { memory: SharedMemory::new("log", LOG_BYTES)?, base })
    }

    pub fn range(&self) -> Range<Address> {
        self.base..self.base + LOG_BYTES as u64 + GUARD
    }

    fn is_guard(&self, address: Address) -> bool {
        (self.base + LOG_BYTES as u64..self.range().end).contains(&address)
    }
}

impl Supervisor {
    /// Maps a log, if calls are logged.
    pub(crate) fn start_log(&mut self, tid: Tid) -> Outcome<()> {
        if self.recorder.is_none() && !self.replays() {
            return Ok(());
        }
        let hint = if self.replays() { crate::stub::LOG } else { 0 };
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as u64;
        let size = LOG_BYTES as u64 + GUARD;
        let reserve = [hint, size, libc::PROT_NONE as u64, flags, u64::MAX, 0];
        let base = self.must(tid, "reserving room for the log", libc::SYS_mmap, reserve)?;
        self.map_log(tid, base)
    }

    /// A forked process has its parent's log: it gets one of its own in its place.
    pub(crate) fn own_log_of_fork(&mut self, tid: Tid) -> Outcome<()> {
        match self.space_of(tid).parents_log.take() {
            Some(base) => self.map_log(tid, base),
            None => Ok(()),
        }
    }

    fn map_log(&mut self, tid: Tid, base: Address) -> Outcome<()> {
        let log = CallLog::new(base)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let part = Part { at: base, offset: 0, size: LOG_BYTES as u64, times: 1, protection };
        self.map_shared(tid, &log.memory, part)?;
        log.memory.write(0, &NO_CALL);
        let space = self.space_of(tid);
        space.write_slot(LOG_NEXT, base);
        space.write_slot(SMALL_STACK, space.context + STACK_TOP);
        space.log = Some(log);
        Ok(())
    }

    /// Records the calls that have been made since this was last done.
    pub(crate) fn drain_log(&mut self, tid: Tid) -> Outcome<()> {
        let space = self.space_of(tid);
        let Some(log) = &space.log else {
            return Ok(());
        };
        let used = space.read_slot(LOG_NEXT).wrapping_sub(log.base);
        // The target can write anything there.
        if used == 0 || used > LOG_BYTES as u64 {
            return Ok(());
        }
        let mut bytes = vec![0; used as usize];
        log.memory.read(0, &mut bytes);
        space.write_slot(LOG_NEXT, log.base);
        self.record_calls(tid, &bytes)
    }

    /// If the fault is the log's end: empties it and goes on.
    pub(crate) fn log_is_full(
        &mut self,
        tid: Tid,
        registers: &Registers,
        address: Address,
    ) -> Outcome<bool> {
        let Some(log) = &self.space_of(tid).log else {
            return Ok(false);
        };
        if !log.is_guard(address) {
            return Ok(false);
        }
        let base = log.base;
        self.drain_log(tid)?;
        ptrace::set_registers(tid, &Registers { rcx: base, ..*registers })?;
        self.run_on(tid)?;
        Ok(true)
    }

    /// Lets the process find these calls in the log, and then its end.
    pub(crate) fn fill_log(&mut self, tid: Tid, calls: &[u8]) {
        let space = self.space_of(tid);
        if let Some(log) = &space.log {
            let size = calls.len().min(MOST_FILLED);
            log.memory.write(0, &calls[..size]);
            log.memory.write(size, &NO_CALL);
            space.write_slot(LOG_NEXT, log.base);
        }
    }

    /// How many bytes of the log the process has not used yet.
    pub(crate) fn left_in_log(&mut self, tid: Tid, filled: usize) -> u64 {
        let space = self.space_of(tid);
        let base = space.log.as_ref().map_or(0, |log| log.base);
        (filled as u64).wrapping_sub(space.read_slot(LOG_NEXT).wrapping_sub(base))
    }
}
