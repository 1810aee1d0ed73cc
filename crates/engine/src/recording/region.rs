//! A part of a run that is recorded: where it begins, and where it ends.
//!
//! Outside of it nothing is written down, and calls are made as when nothing is recorded. A
//! process is recorded from where one of its threads first goes on within the region, with a
//! snapshot of its memory. Threads that are in calls then are told when they return.

mod begin;
mod gait;
mod watch;

use super::Recorder;
use crate::error::{EngineError, Halt};
use crate::memory::Address;
use crate::ptrace::{self, Registers};
use crate::report::Missed;
use crate::space::SpaceId;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{State, Tid};
use std::fmt::Debug;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use why_record::event::Cause;
use why_record::manifest::Manifest;
use why_translate::Calls;

/// What of a run is to be recorded; all of it if nothing else is said.
#[derive(Clone, Debug, Default)]
pub struct Region {
    pub from: Option<Border>,
    pub until: Option<Border>,
}

/// Where a region begins or ends.
#[derive(Clone, Debug)]
pub enum Border {
    /// When the first process has executed so many instructions.
    Count(u64),
    /// Before the execution of some code that has this number, from one on, counted over all
    /// processes: from the program's start, or from the region's where it ends.
    Execution { code: Rc<dyn Landmark>, number: u64 },
}

/// Code that can be found in files.
pub trait Landmark: Debug {
    /// Where it is in code that has been mapped.
    fn addresses(&self, mapped: &MappedCode) -> Vec<Address>;

    /// Why there was no execution of this number, but only so many.
    fn missed(&self, number: u64, times: u64) -> String;
}

/// Code of a file, where a process has mapped it.
pub struct MappedCode<'a> {
    /// From which the file can be read.
    pub path: &'a Path,
    /// What it is called.
    pub name: String,
    pub range: Range<Address>,
    /// Where in the file it begins.
    pub offset: u64,
}

/// How far a run has come.
pub(super) struct Progress {
    phase: Phase,
    /// The executions of the next border's code.
    executions: u64,
    /// What the first process had executed when it began with its present program.
    earlier: u64,
    /// The processes that were there when the region began, as they are recorded.
    processes: Vec<Tid>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Before,
    Inside,
    After,
}

impl Region {
    fn is_whole_run(&self) -> bool {
        self.from.is_none() && self.until.is_none()
    }
}

impl Progress {
    pub(super) fn new(region: &Region) -> Progress {
        let phase = if region.from.is_some() { Phase::Before } else { Phase::Inside };
        Progress { phase, executions: 0, earlier: 0, processes: Vec::new() }
    }
}

impl Recorder {
    /// Whether what happens is to be recorded.
    pub(super) fn is_inside(&self) -> bool {
        self.progress.phase == Phase::Inside
    }

    /// What the run has still to come to.
    fn border(&self) -> Option<&Border> {
        let Region { from, until } = &self.wanted.region;
        match self.progress.phase {
            Phase::Before => from.as_ref(),
            Phase::Inside => until.as_ref(),
            Phase::After => None,
        }
    }

    /// The count of the first process's present program at which the next border is.
    fn border_count(&self) -> Option<u64> {
        match self.border() {
            Some(Border::Count(at)) => Some(at.saturating_sub(self.progress.earlier)),
            _ => None,
        }
    }

    /// Whether a space is recorded and should not be, or the other way round.
    fn is_astray(&self, space: SpaceId) -> bool {
        match self.progress.phase {
            Phase::Before => false,
            Phase::Inside => !self.logs.contains_key(&space),
            Phase::After => self.logs.contains_key(&space),
        }
    }

    /// Whether the region was left before the program ended.
    pub fn has_left(&self) -> bool {
        self.progress.phase == Phase::After
    }

    /// The process with which a replay begins.
    pub fn first_recorded(&self, first: Tid) -> Tid {
        let processes = &self.progress.processes;
        if processes.contains(&first) { first } else { *processes.first().unwrap_or(&first) }
    }

    /// The first process has executed so many instructions and goes on as another program.
    pub(super) fn counted_before(&mut self, instructions: u64) {
        self.progress.earlier += instructions;
    }

    /// A process that no event tells of is recorded from here on.
    pub(super) fn begins_unannounced(&mut self, process: Tid) -> Outcome<()> {
        if self.wanted.region.is_whole_run() || !self.announced.insert(process) {
            return Ok(());
        }
        self.progress.processes.push(process);
        let changed = Manifest::change(&self.recording.path, |manifest| {
            manifest.region.get_or_insert_default().processes.push(process);
        });
        Ok(changed.map_err(EngineError::Recording)?)
    }
}

impl Supervisor {
    /// How calls are made by a program that begins.
    pub(crate) fn calls_of_new_program(&self) -> Calls {
        match &self.recorder {
            _ if self.replays() => Calls::Replayed,
            Some(recorder) if recorder.is_inside() => Calls::Logged,
            Some(_) => Calls::NotYetLogged,
            None => Calls::Made,
        }
    }

    /// Whether the process should stop soon because a region has begun or ended.
    pub(crate) fn border_due(&self, space: SpaceId) -> bool {
        self.recorder.as_ref().is_some_and(|recorder| recorder.is_astray(space))
    }

    /// A thread is about to go on with these registers: if a region has begun or ended, its
    /// process is recorded from here on, or no more.
    pub(crate) fn cross_border(&mut self, tid: Tid, registers: &Registers) -> Outcome<()> {
        let id = self.tasks[&tid].space;
        let first = self.first;
        let Some(recorder) = &self.recorder else {
            return Ok(());
        };
        if recorder.wanted.region.is_whole_run() || self.spaces[&id].ending {
            return Ok(());
        }
        while let Some(at) = self.recorder.as_ref().and_then(Recorder::border_count)
            && self.spaces[&id].process == first
            && let Some(late) = self.spaces[&id].count().checked_sub(at)
        {
            if self.goes_unlooked(tid) {
                self.report.region_late = late;
            }
            self.next_phase(tid, registers)?;
        }
        let recorder = self.recorder.as_ref().expect("just seen");
        if recorder.is_inside() && !recorder.logs.contains_key(&id) {
            self.record_from_here(tid, registers)?;
        }
        let is_recorded =
            self.recorder.as_ref().is_some_and(|recorder| recorder.logs.contains_key(&id));
        let calls = if is_recorded { Calls::Logged } else { Calls::NotYetLogged };
        if self.spaces[&id].code.borrow().calls != calls {
            self.renew_code(tid, calls)?;
        }
        Ok(())
    }

    /// The run has come to a border, with this thread. Nobody executes anything on the other
    /// side of it before all have been stopped: they may share memory.
    fn next_phase(&mut self, tid: Tid, registers: &Registers) -> Outcome<()> {
        self.space_of(tid).stop_nowhere();
        let recorder = self.recorder.as_mut().expect("recording");
        let before = recorder.progress.phase == Phase::Before;
        recorder.progress.phase = if before { Phase::Inside } else { Phase::After };
        recorder.progress.executions = 0;
        if !before {
            // What comes of a call that was made within the region belongs to it.
            self.record_results(tid, registers)?;
            self.record_stop(tid, registers, Cause::Preempted)?;
        }
        self.stop_others(tid)?;
        if !before {
            let recorder = self.recorder.as_mut().expect("recording");
            for space in recorder.logs.keys().copied().collect::<Vec<_>>() {
                recorder.leave(space)?;
            }
        }
        for space in self.spaces.keys().copied().collect::<Vec<_>>() {
            self.next_in(space)?;
        }
        Ok(())
    }

    /// Stops what other processes execute. They go on when [`Supervisor::next_in`] lets them.
    fn stop_others(&mut self, tid: Tid) -> Outcome<()> {
        let own = self.tasks[&tid].space;
        self.stops_all = true;
        let others: Vec<SpaceId> = self.spaces.keys().copied().filter(|id| *id != own).collect();
        let stopped = others.into_iter().try_for_each(|other| self.stop_other(other));
        self.stops_all = false;
        stopped
    }

    fn stop_other(&mut self, space: SpaceId) -> Outcome<()> {
        let runs = |supervisor: &Supervisor| {
            let current = supervisor.spaces.get(&space)?.current?;
            matches!(supervisor.tasks.get(&current)?.state, State::Running).then_some(current)
        };
        while let Some(current) = runs(self) {
            self.space_of(current).must_stop = true;
            let Ok(stop) = ptrace::interrupt(current)
                .map_err(drop)
                .and_then(|()| self.wait_for(current).map_err(drop))
            else {
                // It is ending; that will be told.
                return Ok(());
            };
            match self.handle(current, stop) {
                Ok(()) | Err(Halt::Gone) => {}
                error => return error,
            }
        }
        Ok(())
    }

    /// The first process has ended: a region that has not begun never will. Why nothing is
    /// recorded, if that is so.
    pub(crate) fn give_up_region(&mut self) -> Option<Missed> {
        let executed = self.report.instructions;
        let recorder = self.recorder.as_mut()?;
        let Progress { phase, executions, .. } = recorder.progress;
        if phase == Phase::After && recorder.programs.is_empty() {
            return Some(Missed::Empty);
        }
        if phase != Phase::Before {
            return None;
        }
        recorder.progress.phase = Phase::After;
        Some(Missed::Start(match &recorder.wanted.region.from {
            Some(Border::Execution { code, number }) => code.missed(*number, executions),
            _ => format!("only {executed} instructions were executed"),
        }))
    }
}
