//! Threads and address spaces come and go.

use crate::ptrace::{self, Registers, Stop};
use crate::replaying::Replayer;
use crate::report::{Ended, Replayed};
use crate::signals::ActionsRef;
use crate::space::{Space, SpaceId};
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{State, Task, Tid};
use std::collections::VecDeque;
use why_translate::context::{CALLS_IN_PROCESS, TRACE_NEXT};

impl Supervisor {
    /// Registers a thread reported by its creator.
    pub(crate) fn expect(&mut self, task: Task) -> Outcome<()> {
        let tid = task.tid;
        let space = self.spaces.get_mut(&task.space).expect("a space");
        space.users += 1;
        space.stirred = true;
        if let Some(schedule) = &mut space.schedule {
            schedule.begins(tid);
        }
        self.tasks.insert(tid, task);
        if self.early.remove(&tid).is_some() { self.begin(tid) } else { Ok(()) }
    }

    /// A new thread's first stop.
    pub(crate) fn begin(&mut self, tid: Tid) -> Outcome<()> {
        let State::New(registers) = self.task(tid).state else {
            panic!("thread {tid} begins twice");
        };
        if self.replays() {
            return self.begin_replayed_child(tid);
        }
        // Stack and thread pointer are the new thread's own.
        let own = ptrace::registers(tid)?;
        let registers =
            Registers { rsp: own.rsp, fs_base: own.fs_base, gs_base: own.gs_base, ..registers };
        self.task(tid).state = State::Ready(registers);
        self.own_log_of_fork(tid)?;
        if self.space_of(tid).trace.is_none() {
            self.start_trace(tid)?;
        }
        self.becomes_ready(tid)
    }

    pub(crate) fn ended(&mut self, tid: Tid, stop: Stop) -> Outcome<()> {
        let Some(task) = self.tasks.remove(&tid) else {
            return Ok(());
        };
        let ended = match stop {
            Stop::Killed(signal) => Ended::Signal(signal),
            Stop::Exited(status) => Ended::Status(status),
            _ => unreachable!("only ends come here"),
        };
        self.record_thread_end(&task)?;
        if self.spaces[&task.space].users == 1 {
            self.record_end(task.space, ended)?;
        }
        self.leave_space(&task);
        if tid == self.first && !self.replays() {
            self.report.ended = Some(ended);
            self.report.first = tid;
            self.report.region_missed = self.give_up_region();
            if let Some(recorder) = &self.recorder {
                self.report.first = recorder.first_recorded(tid);
                self.report.events = recorder.events;
                self.report.instructions_recorded = recorder.instructions;
                self.report.region_left = recorder.has_left();
                self.report.log_bytes = recorder.bytes;
            }
            self.report.descendants_alive = self.processes_alive();
            (self.options.on_end)(&self.report);
        }
        self.next_in(task.space)
    }

    /// The next thread of a space has its turn, if nobody has.
    pub(crate) fn next_in(&mut self, id: SpaceId) -> Outcome<()> {
        let Some(space) = self.spaces.get_mut(&id) else {
            return Ok(());
        };
        if space.current.is_some() {
            return Ok(());
        }
        if space.schedule.is_some() {
            return self.choose(id);
        }
        match space.ready.pop_front() {
            Some(next) => self.turn(next),
            None => Ok(()),
        }
    }

    /// Takes a thread out of its space, and the space away with the last one.
    pub(crate) fn leave_space(&mut self, task: &Task) {
        let space = self.spaces.get_mut(&task.space).expect("a thread has a space");
        space.ready.retain(|&ready| ready != task.tid);
        if space.current == Some(task.tid) {
            space.current = None;
        }
        space.users -= 1;
        space.stirred = true;
        if let Some(schedule) = &mut space.schedule {
            schedule.ends(task.tid);
        }
        // It will have no turn in which to put this right.
        self.report.instructions = self.report.instructions.wrapping_add_signed(task.recount);
        if space.users == 0 {
            let space = self.spaces.remove(&task.space).expect("just seen");
            let process = self.replayers.get(&task.space).map(Replayer::process);
            let instructions = space.reported;
            let trace_instructions = self.close(space);
            let replayed = |process| Replayed { process, instructions, trace_instructions };
            self.report.replayed.extend(process.map(replayed));
        }
    }

    /// A process is about to end, and with it whatever executes in its memory, unless that
    /// is its parent's.
    pub(crate) fn begin_end(&mut self, tid: Tid) {
        let Task { pid, space, .. } = self.tasks[&tid];
        let guest = self.tasks.values().any(|task| task.space == space && task.pid != pid);
        self.space_of(tid).ending = !guest;
    }

    fn processes_alive(&self) -> u64 {
        let pids: std::collections::BTreeSet<Tid> = self.tasks.values().map(|t| t.pid).collect();
        pids.len() as u64
    }

    /// Takes the final figures of a space whose memory is still there, before it ends.
    pub(crate) fn sample(&mut self, tid: Tid) {
        let space = self.space_of(tid);
        let count = space.take_count();
        let calls = space.read_slot(CALLS_IN_PROCESS);
        space.write_slot(CALLS_IN_PROCESS, 0);
        // Of a process that is gone only what was known before is left.
        if let Ok(next) = space.memory.read_u64(space.context + TRACE_NEXT.0 as u64) {
            space.trace_next = next;
        }
        self.report.instructions = self.report.instructions.wrapping_add(count);
        self.report.calls_in_process += calls;
        self.look_for_executable(tid);
    }

    /// Whoever is still there will be no longer.
    pub(crate) fn sample_all(&mut self) {
        // What copies of a process have executed is that process's own.
        let counted = self.tasks.values().filter(|task| !matches!(task.state, State::Kept));
        let counted: Vec<Tid> = counted.map(|task| task.tid).collect();
        counted.into_iter().for_each(|tid| self.sample(tid));
    }

    /// Adds what a space amounted to; the instructions in its trace, if it has one.
    fn close(&mut self, space: Space) -> Option<u64> {
        let code = space.code;
        self.code_closed(&code);
        // Processes forked from this one may go on with the same code; what has been
        // translated so far is reported once, here.
        self.report.add_code(std::mem::take(&mut code.borrow_mut().statistics));
        let mut trace = space.trace?;
        trace.swap(space.trace_next);
        // As long as the reader is busy, nobody waits for this.
        drop(code);
        let (totals, lost) = trace.finish();
        let report = &mut self.report;
        report.trace_lost = report.trace_lost.or(lost);
        if !self.options.tool.counts() {
            report.instructions = report.instructions.wrapping_add(totals.instructions);
        }
        report.trace_instructions = report.trace_instructions.wrapping_add(totals.instructions);
        report.trace_records += totals.records;
        report.trace_slots += totals.slots;
        Some(totals.instructions)
    }

    /// The run ends where it was not to: the readers get what has been traced up to there.
    pub(crate) fn finish_traces(&mut self) {
        self.sample_all();
        for space in self.spaces.values_mut() {
            if let Some(mut trace) = space.trace.take() {
                trace.swap(space.trace_next);
                trace.finish();
            }
        }
    }

    pub(crate) fn new_task(
        tid: Tid,
        pid: Tid,
        space: SpaceId,
        actions: ActionsRef,
        state: State,
    ) -> Task {
        Task {
            tid,
            pid,
            space,
            actions,
            state,
            pending: VecDeque::new(),
            deaf: None,
            hidden_mask: 0,
            app_gs: 0,
            affinity: None,
            steps_itself: false,
            faulted_call: None,
            recount: 0,
            recorded_call: None,
            frame: None,
            cleared_at_end: 0,
            stops_at: None,
            words_at_end: Vec::new(),
            robust_list: 0,
            in_part: None,
            looked_at: None,
            passing: None,
            returned_to: 0,
            only_handled: 0,
            vectors_at_call: None,
            early: Vec::new(),
            unwatch_at_turn: false,
        }
    }
}
