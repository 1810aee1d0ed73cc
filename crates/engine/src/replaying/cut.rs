//! Of a recording that was cut short because its recorder was killed: the streams of its processes
//! end anywhere, each where it was written last.
//!
//! Where a process is looked at, it ends where one of its threads stopped last. What is told behind
//! that is half of a step, such as what a call has written before its thread goes on: with it,
//! memory would be that of no moment.

use super::Replayer;
use crate::error::{EngineError, Halt};
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use why_record::Result;
use why_record::event::{Event, Place};
use why_record::stream::Reader;

impl Replayer {
    /// The stream behind that of a program; none if the recorder was killed before it began one.
    pub(super) fn stream_behind(&self, program: u32) -> Result<Option<Reader>> {
        let path = self.recording.stream(self.process, program + 1);
        if self.is_unfinished && !path.exists() {
            return Ok(None);
        }
        Reader::open(&path).map(Some)
    }

    /// The stream of the process where it goes on behind a checkpoint.
    pub(super) fn stream_at(&self, place: &Place) -> Result<Reader> {
        let mut stream = Reader::open(&self.recording.stream(self.process, self.program))?;
        stream.skip(place.chunks, place.bytes)?;
        Ok(stream)
    }

    /// A thread has just stopped: whether nothing more is known of a process that is looked at.
    pub(super) fn is_at_last_moment(&self) -> Result<bool> {
        if !self.is_unfinished || self.look().is_none() {
            return Ok(false);
        }
        self.has_moment_in(self.stream.clone()).map(|has_moment| !has_moment)
    }

    /// Whether the process does anything behind a checkpoint.
    pub(super) fn has_moment_behind(&self, place: &Place) -> Result<bool> {
        Ok(!self.is_unfinished || self.has_moment_in(self.stream_at(place)?)?)
    }

    /// Whether a thread stops once more in the rest of the stream, or the process ends.
    fn has_moment_in(&self, mut stream: Reader) -> Result<bool> {
        let mut program = self.program;
        while let Some(event) = stream.next_event()? {
            match event {
                Event::Stopped { .. } | Event::Ended(_) | Event::Left => return Ok(true),
                Event::Replaced => {
                    let Some(next) = self.stream_behind(program)? else {
                        return Ok(false);
                    };
                    (program, stream) = (program + 1, next);
                }
                _ => {}
            }
        }
        Ok(false)
    }
}

impl Supervisor {
    /// No more is known of the process. Others go on: whoever has a turn behind its own was recorded
    /// when that was over.
    pub(super) fn replay_cut(&mut self, tid: Tid) -> Outcome<()> {
        let replayer = self.replayer(tid);
        // The end of the stream was counted, too.
        let (event, is_unfinished) = (replayer.events.saturating_sub(1), replayer.is_unfinished);
        if !is_unfinished {
            return Err(Halt::Engine(EngineError::CutShort { event }));
        }
        self.end_cut(tid, event)
    }

    /// The turn that these wait for is not in the recording, and so they are cut short there.
    pub(super) fn cut_waiting(&mut self, waiting: Vec<Tid>) -> Outcome<()> {
        for tid in waiting {
            // If all has been seen, they are all ended at once.
            if self.tasks.get(&tid).is_some_and(|task| task.state.is_of_use()) {
                let event = self.replayer(tid).events;
                match self.end_cut(tid, event) {
                    Ok(()) | Err(Halt::Gone) => {}
                    error => return error,
                }
            }
        }
        Ok(())
    }

    fn end_cut(&mut self, tid: Tid, event: u64) -> Outcome<()> {
        if self.cut_short.is_none() || tid == self.first {
            self.cut_short = Some(event);
        }
        self.end_turn(tid);
        self.replayer(tid).is_over = true;
        match self.looked_at_in_the_end(tid) {
            Some(look) => self.replay_over(tid, &look),
            None => self.end_replayed(tid),
        }
    }
}
