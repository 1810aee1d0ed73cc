//! Threads and processes that end.

use crate::memory::{Address, Memory};
use crate::ptrace::Registers;
use crate::report::Ended;
use crate::space::SpaceId;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{Task, Tid};
use std::time::{Duration, Instant};
use why_record::event::{self, Event};

impl Supervisor {
    /// A thread ends of itself. What the kernel writes then must be there before others go
    /// on, so they wait for its end; the first thread of a process is never seen to end
    /// before the others.
    pub(crate) fn record_exit(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        /// More than it takes, even on a busy machine.
        const PATIENCE: Duration = Duration::from_millis(200);
        let words = self.words_at_end(tid);
        self.task(tid).words_at_end = words.clone();
        let space = self.space_id(tid);
        let is_first = self.tasks[&tid].pid == tid;
        let alone = self.space_of(tid).users == 1;
        self.hold_into(tid, registers)?;
        if !is_first || alone {
            return Ok(());
        }
        let began = Instant::now();
        let cleared = self.tasks[&tid].cleared_at_end;
        let is_cleared =
            |memory: &Memory| memory.read_u64(cleared).is_ok_and(|word| word as u32 == 0);
        while !is_cleared(&self.spaces[&space].memory) && began.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
        self.record_words(space, &words)?;
        self.release(tid)
    }

    /// The words that the kernel writes when a thread ends: the one that tells others so,
    /// and the locks that it holds.
    pub(super) fn words_at_end(&mut self, tid: Tid) -> Vec<Address> {
        /// So many the kernel looks at.
        const MOST: usize = 2048;
        let Task { cleared_at_end, robust_list: head, .. } = self.tasks[&tid];
        let memory = &self.space_of(tid).memory;
        let mut words = vec![cleared_at_end];
        if head != 0 {
            let offset = memory.read_u64(head + 8).unwrap_or(0);
            let pending = memory.read_u64(head + 16).unwrap_or(0) & !1;
            let mut entry = memory.read_u64(head).unwrap_or(head) & !1;
            while entry != head && entry != 0 && words.len() < MOST {
                words.push(entry.wrapping_add(offset));
                entry = memory.read_u64(entry).unwrap_or(head) & !1;
            }
            if pending != 0 {
                words.push(pending.wrapping_add(offset));
            }
        }
        words.retain(|&word| word != 0);
        words
    }

    /// What is in these words now.
    pub(super) fn record_words(&mut self, space: SpaceId, words: &[Address]) -> Outcome<()> {
        let Some(recorder) = &mut self.recorder else {
            return Ok(());
        };
        for &at in words {
            let mut word = [0; 4];
            let memory = self.spaces.get(&space).map(|space| &space.memory);
            if memory.is_some_and(|memory| memory.read_exact(at, &mut word).is_ok()) {
                recorder.add(space, &Event::Wrote { at, bytes: word.to_vec() })?;
            }
        }
        Ok(())
    }

    /// A thread is gone. While another one runs that is not told: only where it stops can
    /// something else happen.
    pub(crate) fn record_thread_end(&mut self, task: &Task) -> Outcome<()> {
        let log = self.recorder.as_mut().and_then(|recorder| recorder.logs.get_mut(&task.space));
        let Some(log) = log else {
            return Ok(());
        };
        let end = (task.tid, task.words_at_end.clone());
        if log.running.is_some_and(|running| running != task.tid) {
            log.ends.push(end);
            return Ok(());
        }
        self.record_ends(task.space, vec![end])
    }

    pub(super) fn record_ends(
        &mut self,
        space: SpaceId,
        ends: Vec<(Tid, Vec<Address>)>,
    ) -> Outcome<()> {
        for (thread, words) in ends {
            self.record_words(space, &words)?;
            if let Some(recorder) = &mut self.recorder {
                recorder.add(space, &Event::ThreadEnded { thread })?;
                if let Some(log) = recorder.logs.get_mut(&space) {
                    // Another one may have its number, here or in another process.
                    log.registers.remove(&thread);
                }
            }
        }
        Ok(())
    }

    /// The process of a space is over.
    pub(crate) fn record_end(&mut self, space: SpaceId, ended: Ended) -> Outcome<()> {
        let Some(recorder) = &mut self.recorder else {
            return Ok(());
        };
        let ended = match ended {
            Ended::Status(status) => event::Ended::Status(status),
            Ended::Signal(signal) => event::Ended::Signal(signal),
        };
        if recorder.has_left() {
            return if recorder.logs.contains_key(&space) { recorder.leave(space) } else { Ok(()) };
        }
        recorder.note_changed_files()?;
        recorder.add(space, &Event::Ended(ended))?;
        recorder.close(space)?;
        self.record_shared_words(space)
    }
}
