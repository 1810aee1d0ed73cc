//! With which units a process runs up to where a region begins: it costs no more than to count.
//! The clock tells when the process comes near.

use crate::gait::{FASTEST, WORTH_IT};
use crate::recording::Recorder;
use crate::space::SpaceId;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use std::time::{Duration, Instant};
use why_translate::Tool;

/// How late the supervisor may be, for the fastest of programs; for most, ten times as late.
const LATE: Duration = Duration::from_millis(25);
const NEAR: u64 = FASTEST * LATE.as_micros() as u64;

impl Supervisor {
    /// A thread goes on to a border that is so many instructions away. Whether it may do so
    /// without looking.
    pub(super) fn goes_far(&mut self, tid: Tid, left: u64) -> Outcome<bool> {
        let inside = self.recorder.as_ref().is_some_and(Recorder::is_inside);
        let worth_it = if self.goes_unlooked(tid) { NEAR } else { NEAR + WORTH_IT };
        if inside || left < worth_it {
            self.space_of(tid).look_by = None;
            self.use_tool(tid, Tool::Exact)?;
            return Ok(false);
        }
        self.use_tool(tid, Tool::Count)?;
        let after = Duration::from_micros((left - NEAR) / FASTEST);
        let before = self.space_of(tid).look_by.replace(Instant::now() + after);
        if before.is_none() && !self.timer_running {
            self.idle_timer();
        }
        Ok(true)
    }

    /// A thread goes on, and nothing but what it executes tells where it stops.
    pub(super) fn goes_freely(&mut self, tid: Tid) -> Outcome<()> {
        self.space_of(tid).look_by = None;
        self.use_tool(tid, Tool::Count)
    }

    /// Whether a process may have come near a border.
    pub(crate) fn look_due(&self, space: SpaceId) -> bool {
        self.spaces[&space].look_by.is_some_and(|by| by <= Instant::now())
    }

    /// When the next one may have.
    pub(crate) fn next_look(&self) -> Option<Duration> {
        let next = self.spaces.values().filter_map(|space| space.look_by).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }
}
