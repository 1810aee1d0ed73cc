//! How it is noticed that a run has come to where a region begins or ends.

use super::{Border, MappedCode};
use crate::maps;
use crate::memory::Address;
use crate::memory_calls::KERNELS_OWN;
use crate::ptrace::Registers;
use crate::recording::Recorder;
use crate::shown_maps;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use std::ops::Range;
use std::path::Path;
use why_record::event::Cause;
use why_translate::Calls;
use why_translate::context::CALL_CLASSES;

impl Supervisor {
    /// How few instructions a thread may execute at once, if a border is that near.
    pub(crate) fn instructions_to_border(&mut self, tid: Tid) -> Outcome<Option<usize>> {
        /// A unit may have executed so many before it looks.
        const FEW: u64 = 64;
        let first = self.first;
        let Some(recorder) = &self.recorder else {
            return Ok(None);
        };
        if recorder.wanted.region.is_whole_run() {
            return Ok(None);
        }
        let at = recorder.border_count();
        let space = self.space_of(tid);
        let Some(at) = at.filter(|_| space.process == first) else {
            if self.task(tid).stops_at.take().is_some() {
                self.space_of(tid).stop_nowhere();
            }
            self.goes_freely(tid)?;
            return Ok(None);
        };
        let count = space.count();
        let left = at - count;
        if self.goes_far(tid, left)? {
            self.space_of(tid).stop_nowhere();
            return Ok(None);
        }
        let task = self.task(tid);
        task.stops_at = Some(at);
        let progress = task.looked_at.replace(count) != Some(count);
        if left <= FEW || !progress {
            return Ok(Some(left.min(FEW) as usize));
        }
        self.space_of(tid).look_before(at - FEW);
        Ok(None)
    }

    /// A thread has come to where a recorded program has to be looked at.
    pub(crate) fn stopped_at_border(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        let id = self.tasks[&tid].space;
        if self.border_due(id) {
            self.record_stop(tid, &registers, Cause::Preempted)?;
            return self.enter(tid, registers);
        }
        if !self.spaces[&id].code.borrow().is_watched(registers.rip) {
            return self.enter(tid, registers);
        }
        let here = (registers.rip, registers.rsp);
        // What disturbed it before it had executed the instruction does not make it another
        // execution.
        if self.task(tid).passing.replace(here) != Some(here) {
            let recorder = self.recorder.as_mut().expect("who records watches");
            recorder.progress.executions += 1;
            let executions = recorder.progress.executions;
            if let Some(Border::Execution { number, .. }) = recorder.border()
                && *number == executions
            {
                self.next_phase(tid, &registers)?;
                return self.enter(tid, registers);
            }
        }
        self.enter_few(tid, registers, 1, false)
    }

    /// Starts the cache afresh with calls made in another way, and other addresses watched.
    pub(super) fn renew_code(&mut self, tid: Tid, calls: Calls) -> Outcome<()> {
        self.give_up_code(tid, |code| code.start_afresh(calls))?;
        let code = self.space_of(tid).code.clone();
        let space = self.space_of(tid);
        let classes = code.borrow().call_classes();
        let _ = space.memory.write(space.context + CALL_CLASSES as u64, &classes);
        let shown = shown_maps::mappings(&maps::read(tid)?, &space.regions, &space.own_ranges());
        for mapping in shown.iter().filter(|mapping| mapping.executable && !mapping.writable) {
            if mapping.name == "[vdso]" {
                self.kernel_code_mapped(tid, mapping.range.clone())?;
            } else if !mapping.shared
                && mapping.inode != 0
                && !KERNELS_OWN.contains(&mapping.name.as_str())
            {
                let path = Path::new(&mapping.name);
                self.file_mapped(tid, path, mapping.range.clone(), mapping.offset)?;
            }
        }
        Ok(())
    }

    /// Watches what of the next border's code is in a file that is mapped there.
    pub(crate) fn watch_for_border(
        &mut self,
        tid: Tid,
        path: &Path,
        range: &Range<Address>,
        offset: u64,
    ) {
        let Some(Border::Execution { code, .. }) =
            self.recorder.as_ref().and_then(Recorder::border)
        else {
            return;
        };
        let real = std::fs::read_link(path);
        let name = real.as_deref().unwrap_or(path).display().to_string();
        let mapped = MappedCode { path, name, range: range.clone(), offset };
        let addresses = code.addresses(&mapped);
        self.space_of(tid).code.borrow_mut().watch(&addresses);
    }

    /// What was mapped there is gone.
    pub(crate) fn unwatch_for_border(&mut self, tid: Tid, range: &Range<Address>) {
        if self.recorder.is_some() {
            self.space_of(tid).code.borrow_mut().unwatch(range);
        }
    }
}
