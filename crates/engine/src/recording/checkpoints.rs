//! Checkpoints: now and then the whole state of a process is kept, so that a replay can
//! begin there. They never cost more than a small part of the run, and never take more
//! room than twice what the process has in memory.

use super::Log;
use crate::error::EngineError;
use crate::space::SpaceId;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use why_record::event::{Event, Place};
use why_record::stream::Writer;

/// The run takes at least so much longer than the checkpoints.
const SHARE: u32 = 20;
/// What a second of work is at least: less is done again faster than memory is filled.
const WORTH_IT: f64 = 1e8;
/// What an event costs a replay, in instructions.
const EVENT_COST: u64 = 20_000;

/// The checkpoints of a process, as it executes one program.
pub(super) struct Checkpoints {
    kept: Vec<Kept>,
    began: Instant,
    /// When the last one was finished, and how long it took.
    last: Instant,
    took: Duration,
    /// Events and instructions up to it.
    done: u64,
    /// The time between two of them; none if there are to be none.
    interval: Option<Duration>,
}

struct Kept {
    path: PathBuf,
    bytes: u64,
    /// How long the program had run.
    age: Duration,
}

impl Checkpoints {
    pub(super) fn new(interval: Option<Duration>) -> Checkpoints {
        let now = Instant::now();
        Checkpoints {
            kept: Vec::new(),
            began: now,
            last: now,
            took: Duration::ZERO,
            done: 0,
            interval,
        }
    }

    /// There are to be none, and none of those that there are can be used.
    pub(super) fn give_up(&mut self) {
        self.interval = None;
        for kept in self.kept.drain(..) {
            // One that stays leads to a replay that differs, which is told.
            let _ = std::fs::remove_file(kept.path);
        }
    }

    /// What was done before is not to be done again.
    pub(super) fn begin_after(&mut self, instructions: u64) {
        self.done = instructions;
    }

    /// Whether it is time for another one.
    fn is_due(&self, work: u64) -> bool {
        let Some(interval) = self.interval else {
            return false;
        };
        // None at all means: whenever it is possible. Still the program comes on.
        let share = if interval.is_zero() { 1 } else { SHARE };
        self.last.elapsed() >= interval.max(self.took * share) && self.is_worth(work)
    }

    /// Whether so much has been done since the last one that another one saves time.
    fn is_worth(&self, work: u64) -> bool {
        let enough = |interval: Duration| (WORTH_IT * interval.as_secs_f64()) as u64;
        self.interval.is_some_and(|interval| work.saturating_sub(self.done) >= enough(interval))
    }

    /// The one to do without, if together they are too large: the newest stays, and what
    /// is left is the denser the nearer to it.
    fn superfluous(&self, most: u64) -> Option<usize> {
        let sum: u64 = self.kept.iter().map(|kept| kept.bytes).sum();
        let newest = self.kept.len().checked_sub(1)?;
        if sum <= most || newest == 0 {
            return None;
        }
        let now = self.kept[newest].age;
        (0..newest).min_by(|&a, &b| self.worth(a, now).total_cmp(&self.worth(b, now)))
    }

    /// How much longer the way to what follows becomes without this one, measured by how
    /// long ago it is.
    fn worth(&self, index: usize, now: Duration) -> f64 {
        let before = index.checked_sub(1).map_or(Duration::ZERO, |before| self.kept[before].age);
        let gap = self.kept[index + 1].age.saturating_sub(before);
        let ago = now.saturating_sub(self.kept[index].age);
        gap.as_secs_f64() / ago.as_secs_f64().max(1e-9)
    }
}

impl Log {
    fn work(&self, instructions: u64) -> u64 {
        instructions.saturating_add(self.events.saturating_mul(EVENT_COST))
    }
}

impl Supervisor {
    /// Whether the process should stop soon for a checkpoint.
    pub(crate) fn checkpoint_due(&self, space: SpaceId) -> bool {
        let log = self.recorder.as_ref().and_then(|recorder| recorder.logs.get(&space));
        let Some(log) = log else {
            return false;
        };
        // Counting costs more than looking at the clock.
        log.checkpoints.is_due(u64::MAX)
            && log.checkpoints.is_due(log.work(self.spaces[&space].count()))
    }

    /// Keeps the state of a process that stands between two events, if it is time.
    pub(super) fn checkpoint(&mut self, tid: Tid) -> Outcome<()> {
        if self.checkpoint_due(self.space_id(tid)) { self.take_checkpoint(tid) } else { Ok(()) }
    }

    /// The process is about to end, which is where it is looked at most.
    pub(crate) fn checkpoint_at_end(&mut self, tid: Tid) -> Outcome<()> {
        let space = self.space_id(tid);
        let log = self.recorder.as_ref().and_then(|recorder| recorder.logs.get(&space));
        let work = |log: &Log| log.work(self.spaces[&space].count());
        let due =
            log.is_some_and(|log| log.running.is_none() && log.checkpoints.is_worth(work(log)));
        if due { self.take_checkpoint(tid) } else { Ok(()) }
    }

    fn take_checkpoint(&mut self, tid: Tid) -> Outcome<()> {
        let space = self.space_id(tid);
        let began = Instant::now();
        let instructions = self.spaces[&space].count();
        let recorder = self.recorder.as_mut().expect("recording");
        recorder.write_all()?;
        let log = recorder.logs.get_mut(&space).expect("recording");
        let (chunks, bytes) = log.writer.written();
        let events = log.events;
        let path = recorder.recording.checkpoint(log.process, log.program, events);
        if log.checkpoints.kept.last().is_some_and(|newest| newest.path == path) {
            // No event has been recorded since.
            return Ok(());
        }
        let writer = Writer::create(&path).map_err(EngineError::Recording)?;
        // What is recorded meanwhile belongs to the checkpoint.
        let stream = std::mem::replace(&mut log.writer, writer);
        let place = Place { events, instructions, chunks, bytes, stretch: log.stretch };
        let taken =
            self.record(tid, &Event::Checkpoint(place)).and_then(|()| self.record_snapshot(tid));
        let recorder = self.recorder.as_mut().expect("recording");
        let log = recorder.logs.get_mut(&space).expect("recording");
        let mut writer = std::mem::replace(&mut log.writer, stream);
        log.events = events;
        taken?;
        writer.flush().map_err(EngineError::Recording)?;
        let bytes = writer.bytes_written;
        let work = log.work(instructions);
        let checkpoints = &mut log.checkpoints;
        checkpoints.done = work;
        checkpoints.took = began.elapsed();
        checkpoints.last = Instant::now();
        let age = checkpoints.began.elapsed();
        checkpoints.kept.push(Kept { path, bytes, age });
        while let Some(index) = checkpoints.superfluous(2 * resident(tid)) {
            let superfluous = checkpoints.kept.remove(index);
            // At worst it stays and takes room.
            let _ = std::fs::remove_file(superfluous.path);
        }
        Ok(())
    }
}

/// How much of a process's memory is there.
fn resident(pid: Tid) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * crate::memory::PAGE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_lies_denser_towards_the_end() {
        let mut checkpoints = Checkpoints::new(None);
        for second in 1..=60 {
            let age = Duration::from_secs(second);
            checkpoints.kept.push(Kept { path: PathBuf::new(), bytes: 100, age });
            while let Some(index) = checkpoints.superfluous(800) {
                checkpoints.kept.remove(index);
            }
        }
        let ages: Vec<u64> = checkpoints.kept.iter().map(|kept| kept.age.as_secs()).collect();
        assert_eq!(ages.len(), 8);
        assert_eq!(ages.last(), Some(&60));
        let gaps: Vec<u64> = ages.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.first() > gaps.last(), "{ages:?}");
        // Nowhere is the way to a second longer than what lies behind it.
        assert!(ages.windows(2).all(|pair| pair[1] - pair[0] <= 60 - pair[0]), "{ages:?}");
    }

    #[test]
    fn one_alone_stays_whatever_its_size() {
        let mut checkpoints = Checkpoints::new(None);
        let age = Duration::from_secs(1);
        checkpoints.kept.push(Kept { path: PathBuf::new(), bytes: 100, age });
        assert_eq!(checkpoints.superfluous(10), None);
    }
}
