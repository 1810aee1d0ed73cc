//! What a run amounted to.

use crate::code::Statistics;
use serde::{Deserialize, Serialize};
use why_record::manifest::Stuck;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    Status(i32),
    Signal(i32),
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    pub ended: Option<Ended>,
    /// Why the engine has ended it.
    pub stuck: Option<Stuck>,
    pub instructions: u64,
    pub trace_instructions: u64,
    pub trace_records: u64,
    pub trace_slots: u64,
    /// Why not all that was wanted of the trace could be kept: an error of the system.
    pub trace_lost: Option<i32>,
    pub units: u64,
    /// Units that an earlier run translated.
    pub reused: u64,
    pub cache_bytes: u64,
    pub translation_ns: u64,
    pub calls_in_process: u64,
    pub calls_supervised: u64,
    pub stops: u64,
    pub processes: u64,
    pub threads: u64,
    pub flushes: u64,
    pub executable_outside_cache: u64,
    pub descendants_alive: u64,
    /// The processes of a replay, in the order in which they ended.
    pub replayed: Vec<Replayed>,
    /// The process that was started.
    pub first: i32,
    /// Events that were recorded or replayed.
    pub events: u64,
    pub instructions_recorded: u64,
    pub log_bytes: u64,
    /// Why nothing was recorded.
    pub region_missed: Option<Missed>,
    /// By how many instructions a region began too late.
    pub region_late: u64,
    /// The program went on when all was recorded that was wanted.
    pub region_left: bool,
    /// How often a process went over to units that do not look at the count, or back.
    pub gait_changes: u64,
    /// Of a replay in which somebody went to and fro: how often it began again or went back
    /// to a copy, and how many of those were made.
    pub beginnings: u64,
    pub rewinds: u64,
    pub copies: u64,
    /// What was found by who looked at a replay.
    pub answer: Option<serde_json::Value>,
}

/// What a replayed process amounted to.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Replayed {
    /// Its number when it was recorded.
    pub process: i32,
    pub instructions: u64,
    /// The same, as the trace has it.
    pub trace_instructions: Option<u64>,
}

/// Why there is nothing of a region.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Missed {
    /// The program ended before it began, because of this.
    Start(String),
    /// Where it was to begin, it was over.
    Empty,
}

impl Report {
    pub fn add_code(&mut self, statistics: Statistics) {
        self.units += statistics.units;
        self.reused += statistics.thawed;
        self.cache_bytes += statistics.bytes;
        self.translation_ns += statistics.nanoseconds;
    }
}
