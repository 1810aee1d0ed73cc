//! The whole state of a process, as events that lead to it.

use super::KERNELS;
use super::memory::is_of_lost_file;
use crate::cpu::vectors;
use crate::maps;
use crate::memory::{Address, Memory, PAGE};
use crate::pages::Pages;
use crate::ptrace;
use crate::shown_maps;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{State, Tid};
use std::ops::Range;
use why_record::event::{Event, Source};
use why_record::registers::Registers as Recorded;

/// So much memory goes into one event.
const PART: u64 = 1 << 20;

impl Supervisor {
    /// Records all memory and all threads of the process that this thread, which is
    /// stopped, belongs to.
    pub(super) fn record_snapshot(&mut self, tid: Tid) -> Outcome<()> {
        let space = self.space_of(tid);
        let shown = shown_maps::mappings(&maps::read(tid)?, &space.regions, &space.own_ranges());
        let pages = Pages::open(tid)?;
        for mapping in shown.iter().filter(|m| !KERNELS.contains(&m.name.as_str())) {
            let source = self.record_fresh_mapping(tid, mapping)?;
            if mapping.shared || is_of_lost_file(mapping, &source) {
                self.record_filled(tid, mapping.range.clone(), true)?;
                continue;
            }
            let empty = matches!(source, Source::Zero | Source::Stack);
            for part in pages.own(mapping.range.clone())? {
                self.record_filled(tid, part, empty)?;
            }
        }
        self.record_threads(tid)
    }

    /// Records what is in this memory, but for zeroes where they are there anyway.
    fn record_filled(&mut self, tid: Tid, range: Range<Address>, empty: bool) -> Outcome<()> {
        for part in parts(range) {
            let events = filled(&self.space_of(tid).memory, part, empty).collect::<Vec<_>>();
            events.iter().try_for_each(|event| self.record(tid, event))?;
        }
        Ok(())
    }

    /// While others run, a thread that is in a call cannot be asked for its registers.
    /// There may be others only because of this call, too.
    pub(crate) fn keep_vectors(&mut self, tid: Tid, call: u32) -> Outcome<()> {
        const CREATES: [i64; 3] = [libc::SYS_vfork, libc::SYS_clone, libc::SYS_clone3];
        let others = self.space_of(tid).users > 1 || CREATES.contains(&call.into());
        if self.recorder.is_some() && others {
            self.task(tid).vectors_at_call = Some(ptrace::vectors(tid)?);
        }
        Ok(())
    }

    fn record_threads(&mut self, tid: Tid) -> Outcome<()> {
        let Some(log) = self.log(tid) else {
            return Ok(());
        };
        let mut threads: Vec<(Tid, Recorded)> =
            log.registers.iter().map(|(thread, registers)| (*thread, *registers)).collect();
        // The one that stopped last is told last.
        threads.sort_by_key(|(thread, _)| (*thread == tid, *thread));
        for (thread, registers) in threads {
            let Some(task) = self.tasks.get(&thread) else {
                continue;
            };
            let vectors = match (&task.state, &task.vectors_at_call) {
                (State::InCall(_), Some(vectors)) => vectors.clone(),
                _ => ptrace::vectors(thread)?,
            };
            let vectors = vectors::recorded(&vectors, self.view.limited);
            self.record(tid, &Event::Vectors(vectors))?;
            let registers = registers.changed_from(&Recorded::default());
            self.record(tid, &Event::Thread { thread, registers })?;
        }
        Ok(())
    }
}

fn parts(range: Range<Address>) -> impl Iterator<Item = Range<Address>> {
    let end = range.end;
    range.step_by(PART as usize).map(move |at| at..end.min(at.saturating_add(PART)))
}

/// What is in this memory, but for zeroes where they are there anyway.
pub(crate) fn filled(
    memory: &Memory,
    range: Range<Address>,
    empty: bool,
) -> impl Iterator<Item = Event> {
    parts(range).flat_map(move |part| {
        let mut bytes = vec![0; (part.end - part.start) as usize];
        let got = memory.read(part.start, &mut bytes).unwrap_or(0);
        let is_filled = |page: &[u8]| !empty || page.iter().any(|&byte| byte != 0);
        let (mut start, mut events) = (None, Vec::new());
        // Pages that follow each other go together.
        for offset in (0..got + PAGE as usize).step_by(PAGE as usize) {
            let page = &bytes[offset.min(got)..got.min(offset + PAGE as usize)];
            let filled = !page.is_empty() && is_filled(page);
            match (start, filled) {
                (None, true) => start = Some(offset),
                (Some(begin), false) => {
                    let bytes = bytes[begin..offset.min(got)].to_vec();
                    events.push(Event::Wrote { at: part.start + begin as u64, bytes });
                    start = None;
                }
                _ => {}
            }
        }
        events
    })
}
