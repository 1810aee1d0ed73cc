//! Looking at a moment of a replay.

use super::Replayer;
use crate::error::{EngineError, Halt};
use crate::report::Seen;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use std::ops::Range;
use why_record::position::Moment;
use why_record::registers::{RIP, Registers as Recorded};

/// What is to be seen of a replay, and when.
#[derive(Clone, Debug)]
pub struct Look {
    pub at: Moment,
    pub memory: Vec<Range<u64>>,
    /// Nothing of what the program writes is to be seen.
    pub silent: bool,
}

impl Replayer {
    /// If it is to be looked at before the next event: after how many instructions.
    pub(super) fn ticks_to_look(&self, event: u64, instructions: u64) -> Outcome<Option<u64>> {
        let Some(look) = &self.look else {
            return Ok(None);
        };
        match look.at {
            Moment::Start => Ok(Some(0)),
            Moment::End => Ok(None),
            Moment::At(position) if event > position.event => {
                let how = format!("no thread goes on with event {}", position.event);
                Err(EngineError::NoMoment { position: position.to_string(), how }.into())
            }
            Moment::At(position) if event < position.event => Ok(None),
            Moment::At(position) if position.ticks > instructions => {
                let how = format!("only {instructions} instructions follow event {event}");
                Err(EngineError::NoMoment { position: position.to_string(), how }.into())
            }
            Moment::At(position) => Ok(Some(position.ticks)),
        }
    }
}

impl Supervisor {
    /// The moment has come that was asked for.
    pub(super) fn replay_seen(&mut self, tid: Tid, registers: Recorded) -> Outcome<()> {
        let count = self.space_of(tid).count();
        let replayer = self.replayer(tid);
        let look = replayer.look.clone().expect("somebody asked");
        let (event, since) = replayer.resumed;
        let (process, thread) = (replayer.process, replayer.running);
        let pc = registers.0[RIP];
        if let Moment::At(position) = look.at
            && position.pc.is_some_and(|expected| expected != pc)
        {
            let how = format!("the next instruction there is at {pc:#x}");
            return Err(EngineError::NoMoment { position: position.to_string(), how }.into());
        }
        let memory = look.memory.iter().map(|range| {
            let mut bytes = vec![0; (range.end - range.start) as usize];
            let got = self.spaces[&self.tasks[&tid].space].memory.read(range.start, &mut bytes);
            bytes.truncate(got.unwrap_or(0));
            (range.start, bytes)
        });
        let memory = memory.collect();
        let (ticks, registers) = (count - since, registers.0.to_vec());
        self.report.seen = Some(Seen { process, thread, event, ticks, registers, memory });
        for task in self.tasks.values() {
            // SAFETY: plain system call; these are our own tracees.
            unsafe { libc::kill(task.pid, libc::SIGKILL) };
        }
        Err(Halt::Gone)
    }
}
