//! Runs a recorded process again.
//!
//! All that comes from outside is in the stream, so one kernel thread is enough, whatever
//! the number of threads recorded: it is given the registers of whoever is to go on. It
//! runs until it stops of itself, or until it has executed as many instructions as the
//! recorded one had when something came from outside.

mod calls;
mod copies;
mod copying;
mod cut;
mod descriptors;
mod gait;
mod inputs;
mod look;
mod memory;
mod modules;
mod objects;
mod outputs;
mod reach;
mod room;
mod session;
mod shared;
mod snapshot;
mod turns;

pub(crate) use gait::TIMER_SIGNAL;
pub use inputs::Known as InputStream;
pub(crate) use inputs::Read;
pub use look::{Look, Observer, Scene, Then};
pub(crate) use memory::Move;
pub use modules::Module;
pub use outputs::Outputs;
pub(crate) use session::Session;

use crate::cpu::vectors;
use crate::error::{EngineError, Halt};
use crate::hashing::first_difference;
use crate::maps::Mapping;
use crate::memory::Address;
use crate::memory_calls::FOR_FORKS;
use crate::ptrace::{self, Registers};
use crate::recording::{recorded, settled_at};
use crate::report::Ended;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{State, Tid};
use calls::Calls;
use iced_x86::Code;
use inputs::{Inputs, Mapped};
use modules::Modules;
use rustc_hash::FxHashMap;
use shared::Held;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::rc::Rc;
use turns::Turns;
use why_record::RecordError;
use why_record::event::{self, Cause, Event, Place, Thread};
use why_record::files::Files;
use why_record::position::{Moment, Position};
use why_record::registers::{Changed, FLAGS, R11, RCX, RIP, RSP, Registers as Recorded};
use why_record::store::Recording;
use why_record::stream::Reader;
use why_translate::context::APP_GS;

/// Memory that may be mapped several times, in several processes.
type Objects = Rc<RefCell<FxHashMap<u32, File>>>;

#[derive(Clone)]
pub struct Replayer {
    recording: Recording,
    process: Thread,
    /// Which of its programs the process is now.
    program: u32,
    stream: Reader,
    /// While a checkpoint is read: where the process's own stream goes on.
    goes_on: Option<Place>,
    /// How many instructions are in front of the checkpoint that it began with.
    before: u64,
    /// Other processes are not of interest.
    alone: bool,
    /// The recording was never finished: streams end where its recorder was killed.
    is_unfinished: bool,
    /// What else the stream says leads to no other moment.
    is_over: bool,
    /// Other processes that were there when the recording began.
    pub beside: Vec<Thread>,
    files: Files,
    /// Each thread while it does not run.
    threads: FxHashMap<Thread, Saved>,
    running: Thread,
    /// The registers with which a thread stopped last.
    last: Option<Recorded>,
    /// Calls that the running thread makes, in parts; and the part that is in the log.
    calls: VecDeque<Calls>,
    log: Rc<Vec<u8>>,
    /// How much of that part a traced process has used.
    taken: usize,
    /// What was written to memory that the trace does not tell of yet, what was mapped of files, and
    /// what was moved.
    untold_writes: Vec<Range<Address>>,
    untold_maps: Vec<Mapped>,
    untold_moves: Vec<Move>,
    /// What shared memory held when others went on, if the trace is to tell what they write there;
    /// and what they have written that it does not tell of yet.
    shared: Option<Held>,
    others_wrote: Vec<Range<Address>>,
    inputs: Inputs,
    /// How the kernel had the running thread go on elsewhere, if it did and the trace does not
    /// tell yet.
    turned: Option<Turned>,
    /// What the running thread will stop for.
    next: Option<Stop>,
    /// Vector registers for the thread that is resumed next.
    vectors: Option<Vec<u8>>,
    objects: Objects,
    /// Whose turn it is, of processes that share memory, and which one this one has.
    turns: Rc<RefCell<Turns>>,
    turn: Option<u64>,
    /// Where objects have been mapped, and from which offset on.
    views: Vec<(Range<Address>, u32, u64)>,
    /// Objects have been mapped privately, too.
    has_private_views: bool,
    /// Application memory that is mapped.
    mapped: Vec<Range<Address>>,
    /// Of which forks may not have what is there.
    withheld: Vec<Range<Address>>,
    /// What of it was mapped from files.
    modules: Modules,
    pub events: u64,
    /// Compare memory wherever the recording tells what it held.
    pub verify: bool,
    /// What is to be seen, of this process or of one that descends from it.
    pub look: Option<Rc<Look>>,
    /// The event with which the running thread went on, and the process's count then.
    resumed: (u64, u64),
    /// Of an excerpt: where the thread that is resumed next is in the whole recording, and with
    /// how many ticks the running one went on there.
    skipped: Option<(u64, u64)>,
    skipped_ticks: Option<u64>,
    /// The count of instructions at which it is to be looked at.
    look_at: Option<u64>,
    /// The count of instructions up to which units had to look at it.
    looked: u64,
    /// Where the output of all processes goes.
    outputs: Rc<RefCell<Outputs>>,
}

#[derive(Clone)]
struct Saved {
    /// What it stopped for.
    cause: Cause,
    registers: Recorded,
    vectors: Option<Vec<u8>>,
}

#[derive(Clone)]
struct Stop {
    /// The process's count of instructions there.
    at: u64,
    cause: Cause,
    registers: Recorded,
}

/// How the kernel has a thread go on elsewhere.
#[derive(Clone, Copy)]
pub(crate) enum Turned {
    /// It calls a handler of a signal; the stack pointer was that before.
    ToHandler { stack: u64 },
    /// The handler is over.
    Back,
}

impl Turned {
    fn of(before: &Saved, start: &Recorded) -> Option<Turned> {
        const RETURN: u32 = libc::SYS_rt_sigreturn as u32;
        const EXECUTE: [u32; 2] = [libc::SYS_execve as u32, libc::SYS_execveat as u32];
        let (from, to) = (before.registers.0[RIP], start.0[RIP]);
        // A call that a signal has interrupted may be made again.
        let goes_on = to == from || to == from.wrapping_sub(2);
        match before.cause {
            Cause::Call(RETURN) => Some(Turned::Back),
            Cause::Call(number) if EXECUTE.contains(&number) => None,
            Cause::Begins | Cause::Instruction => None,
            _ if goes_on => None,
            _ => Some(Turned::ToHandler { stack: before.registers.0[RSP] }),
        }
    }
}

const NO_SUCH_REGISTER: &str = "registers are told that there are not";

/// Flags that an addition to the count may leave behind where the program does not look.
const ARITHMETIC_FLAGS: u64 = 0x8d5;

impl Replayer {
    pub fn new(
        recording: &Recording,
        process: Thread,
        outputs: Rc<RefCell<Outputs>>,
    ) -> Result<Replayer, EngineError> {
        let path = recording.stream(process, 1);
        let stream = Reader::open(&path).map_err(EngineError::Recording)?;
        Ok(Replayer {
            recording: Recording::open(&recording.path),
            process,
            program: 1,
            stream,
            goes_on: None,
            before: 0,
            alone: false,
            is_unfinished: false,
            is_over: false,
            beside: Vec::new(),
            files: recording.files(),
            threads: FxHashMap::default(),
            running: 0,
            last: None,
            calls: VecDeque::new(),
            log: Rc::default(),
            taken: 0,
            untold_writes: Vec::new(),
            untold_maps: Vec::new(),
            untold_moves: Vec::new(),
            shared: None,
            others_wrote: Vec::new(),
            inputs: Inputs::default(),
            turned: None,
            next: None,
            vectors: None,
            objects: Objects::default(),
            turns: Rc::default(),
            turn: None,
            views: Vec::new(),
            has_private_views: false,
            mapped: Vec::new(),
            withheld: Vec::new(),
            modules: Modules::default(),
            events: 0,
            verify: false,
            look: None,
            resumed: (0, 0),
            skipped: None,
            skipped_ticks: None,
            look_at: None,
            looked: 0,
            outputs,
        })
    }

    /// The process alone, from its last checkpoint that is not behind so many events, or behind
    /// the last moment that is known; none if there is no such checkpoint.
    pub fn from_checkpoint(
        recording: &Recording,
        process: Thread,
        events: u64,
        is_unfinished: bool,
        outputs: &Rc<RefCell<Outputs>>,
    ) -> Result<Option<Replayer>, EngineError> {
        let Some((program, events)) = recording.last_checkpoint(process, events) else {
            return Ok(None);
        };
        let path = recording.checkpoint(process, program, events);
        let damaged = |how| EngineError::Recording(RecordError::damaged(path.display(), how));
        let mut stream = Reader::open(&path).map_err(EngineError::Recording)?;
        let place = match stream.next_event().map_err(EngineError::Recording)? {
            Some(Event::Checkpoint(place)) if place.events == events => place,
            _ => return Err(damaged("it does not begin as a checkpoint")),
        };
        let replayer = Replayer::new(recording, process, Rc::clone(outputs))?;
        let (event, ticks) = place.stretch;
        let resumed = (event, 0_u64.wrapping_sub(ticks));
        let (goes_on, before, alone) = (Some(place), place.instructions, true);
        let replayer = Replayer { program, stream, goes_on, before, resumed, alone, ..replayer };
        let replayer = Replayer { is_unfinished, ..replayer };
        if replayer.has_moment_behind(&place).map_err(EngineError::Recording)? {
            return Ok(Some(replayer));
        }
        let Some(earlier) = events.checked_sub(1) else {
            return Ok(None);
        };
        Replayer::from_checkpoint(recording, process, earlier, is_unfinished, outputs)
    }

    /// The process's number when it was recorded.
    pub fn process(&self) -> Thread {
        self.process
    }

    /// Goes on with the next program that the process executed, if the recording has it.
    fn next_program(&mut self) -> Outcome<bool> {
        let Some(stream) = self.stream_behind(self.program).map_err(EngineError::Recording)? else {
            return Ok(false);
        };
        self.program += 1;
        self.stream = stream;
        self.threads.clear();
        Ok(true)
    }

    fn next_event(&mut self) -> Outcome<Option<Event>> {
        let event = match self.is_over {
            true => None,
            false => self.stream.next_event().map_err(EngineError::Recording)?,
        };
        if event.is_none()
            && !self.stream.cut_off
            && let Some(place) = self.goes_on.take()
        {
            self.stream = self.stream_at(&place).map_err(EngineError::Recording)?;
            self.events = place.events;
            return self.next_event();
        }
        self.events += 1;
        if let Some(Event::Stopped { .. }) = event {
            self.is_over = self.is_at_last_moment().map_err(EngineError::Recording)?;
        }
        Ok(event)
    }
}

impl Supervisor {
    pub(crate) fn replays(&self) -> bool {
        !self.replayers.is_empty()
    }

    fn replayer(&mut self, tid: Tid) -> &mut Replayer {
        let space = self.tasks[&tid].space;
        self.replayers.get_mut(&space).expect("every process of a replay has a stream")
    }

    /// The recorded process that this one is.
    pub(crate) fn recorded_process(&self, tid: Tid) -> Option<Thread> {
        self.replayers.get(&self.tasks[&tid].space).map(Replayer::process)
    }

    /// The recorded thread that runs now, of those that this one stands for.
    pub(crate) fn recorded_thread(&self, tid: Tid) -> Option<Thread> {
        self.replayers.get(&self.tasks[&tid].space).map(|replayer| replayer.running)
    }

    /// Where the replay is, if this is one.
    pub(crate) fn recorded_moment(&mut self, tid: Tid) -> Option<(u64, u64)> {
        self.replays().then(|| self.when(tid))
    }

    /// How the thread that runs now was turned elsewhere, if the trace does not tell yet.
    pub(crate) fn turned(&mut self, tid: Tid) -> Option<Turned> {
        self.replayer(tid).turned.take()
    }

    /// What the trace is to tell was written to shared memory by other processes.
    pub(crate) fn untold_of_others(&mut self, tid: Tid) -> Vec<Range<Address>> {
        std::mem::take(&mut self.replayer(tid).others_wrote)
    }

    /// What the trace is to tell was moved.
    pub(crate) fn untold_moves(&mut self, tid: Tid) -> Vec<Move> {
        std::mem::take(&mut self.replayer(tid).untold_moves)
    }

    /// What the trace is to tell was written to memory, and what of that was read from somewhere,
    /// when a thread goes on with this as the result of its call, if it has made one.
    pub(crate) fn untold_writes(
        &mut self,
        tid: Tid,
        result: u64,
    ) -> (Vec<Range<Address>>, Vec<Read>) {
        let writes = std::mem::take(&mut self.replayer(tid).untold_writes);
        let maps = std::mem::take(&mut self.replayer(tid).untold_maps);
        let reads = self.inputs_read(tid, result, &writes, maps);
        (writes, reads)
    }

    /// Takes from a new process all that is not the engine's, and begins.
    pub(crate) fn begin_replay(&mut self, tid: Tid, maps: &[Mapping]) -> Outcome<()> {
        for mapping in maps.iter().filter(|m| m.name != "[vsyscall]") {
            let size = mapping.range.end - mapping.range.start;
            self.call(tid, libc::SYS_munmap, [mapping.range.start, size, 0, 0, 0, 0])?;
        }
        self.hide_beginning(tid)?;
        self.confine(tid)?;
        self.keep_origin(tid)?;
        self.space_of(tid).current = Some(tid);
        self.space_of(tid).ran_last = Some(tid);
        let beside = std::mem::take(&mut self.replayer(tid).beside);
        self.begin_process(tid, beside)?;
        self.replay_on(tid)
    }

    /// The thread has stopped; what is recorded is done, and the next one goes on.
    pub(crate) fn replay_stop(&mut self, tid: Tid, at: &Registers, cause: Cause) -> Outcome<()> {
        if let Cause::Call(_) = cause {
            self.note_call(tid, at);
        }
        let at = &settled_at(at, cause);
        // Where they differ, nobody looks; what follows is told by the recorded ones.
        let registers = self.check_stop(tid, at, cause)?;
        self.task(tid).stops_at = None;
        self.cut(tid, registers);
        if cause == Cause::Instruction {
            // It is not executed here, but it was.
            self.count_told(tid, at);
        }
        let saved = Saved { cause, registers, vectors: Some(ptrace::vectors(tid)?) };
        let replayer = self.replayer(tid);
        let running = replayer.running;
        replayer.last = Some(saved.registers);
        replayer.threads.insert(running, saved);
        self.replay_on(tid)
    }

    /// The recorded registers, if it has stopped where the recorded one did.
    fn check_stop(&mut self, tid: Tid, at: &Registers, cause: Cause) -> Outcome<Recorded> {
        let space = self.space_of(tid);
        let (count, gs_base) = (space.count(), space.read_slot(APP_GS));
        let replayer = self.replayer(tid);
        let event = replayer.events;
        let left = !replayer.calls.is_empty();
        let left = left || self.has_calls_in_log(tid);
        let replayer = self.replayer(tid);
        if left {
            let (process, program) = (replayer.process, replayer.program);
            let next = replayer.next.as_ref().map(|stop| stop.cause);
            let how = format!(
                "program {program} of process {process} has not made all recorded calls before \
                 {next:?}; here: {cause:?} after {count} instructions"
            );
            return Err(diverged(event, how));
        }
        let Some(expected) = replayer.next.take() else {
            return Err(diverged(event, "the recording has no more events".to_owned()));
        };
        if expected.cause != cause || expected.at != count {
            let place = self.place(tid, count, at.rip);
            return Err(diverged(
                event,
                format!(
                    "{place}: recorded: {:?} after {} instructions; here: {cause:?} after {count}",
                    expected.cause, expected.at
                ),
            ));
        }
        let (mut here, mut there) = (recorded(at, gs_base), expected.registers);
        let other_vendor = self.view.other_vendor.is_some();
        for registers in [&mut here, &mut there] {
            if !cause.is_own() || other_vendor {
                registers.0[FLAGS] &= !ARITHMETIC_FLAGS;
            }
            if other_vendor {
                // A call leaves the flags there.
                registers.0[R11] &= !ARITHMETIC_FLAGS;
            }
        }
        if !cause.is_own() && self.instruction_at(tid, at.rip).code() == Code::Syscall {
            // It overwrites them, so they were free.
            there.0[RCX] = here.0[RCX];
            there.0[R11] = here.0[R11];
        }
        if let Some((name, here, there)) = here.differences(&there).first() {
            let place = self.place(tid, count, at.rip);
            return Err(diverged(
                event,
                format!("{place}: {name} is {here:#x} and was {there:#x}"),
            ));
        }
        Ok(expected.registers)
    }

    /// The process, the thread and the position, for a message.
    fn place(&mut self, tid: Tid, count: u64, pc: Address) -> String {
        let replayer = self.replayer(tid);
        let (process, thread) = (replayer.process, replayer.running);
        let (event, base) = replayer.resumed;
        let position = Position { event, ticks: count.wrapping_sub(base), pc: Some(pc) };
        format!("process {process}, thread {thread}, position {position}")
    }

    /// Whether memory holds what it did.
    fn compare_hashes(
        &mut self,
        tid: Tid,
        there: &[(u64, u64)],
        left_out: &[(u64, u64)],
    ) -> Outcome<()> {
        if !self.replayer(tid).verify {
            return Ok(());
        }
        let mut left_out: Vec<Range<Address>> =
            left_out.iter().map(|(start, end)| *start..*end).collect();
        let here = self.hash_memory(tid, &mut left_out)?;
        let Some(page) = first_difference(&here, there) else {
            return Ok(());
        };
        let count = self.space_of(tid).count();
        let replayer = self.replayer(tid);
        let event = replayer.events;
        let pc = replayer.last.map_or(0, |registers| registers.0[RIP]);
        let place = self.place(tid, count, pc);
        Err(diverged(event, format!("{place}: the page at {page:#x} differs")))
    }

    /// Does what the stream says up to where a thread goes on.
    pub(crate) fn replay_on(&mut self, tid: Tid) -> Outcome<()> {
        self.compare_shared(tid);
        loop {
            match self.replayer(tid).next_event()? {
                Some(Event::Resumed { thread, registers }) => {
                    return self.replay_resume(tid, thread, &registers);
                }
                Some(Event::Ended(ended)) => return self.replay_end(tid, Some(ended)),
                Some(Event::Left) => return self.replay_end(tid, None),
                Some(Event::Replaced) => {
                    if !self.replayer(tid).next_program()? {
                        return self.replay_cut(tid);
                    }
                }
                Some(Event::Turn { order }) => {
                    if self.waits_for_turn(tid, order)? {
                        return Ok(());
                    }
                }
                Some(event) => self.replay_event(tid, event)?,
                None => return self.replay_cut(tid),
            }
        }
    }

    fn replay_resume(&mut self, tid: Tid, thread: Thread, registers: &Changed) -> Outcome<()> {
        let replayer = self.replayer(tid);
        let event = replayer.events;
        let skipped = replayer.skipped.take();
        let before = replayer.threads.remove(&thread);
        let told = replayer.vectors.take();
        let before_registers = before.as_ref().map(|saved| saved.registers).unwrap_or_default();
        let Some(start) = before_registers.apply(registers) else {
            return Err(diverged(event, NO_SUCH_REGISTER.to_owned()));
        };
        let goes_on = before.as_ref().filter(|_| skipped.is_none());
        replayer.turned = goes_on.and_then(|before| Turned::of(before, &start));
        let vectors = told.or(before.and_then(|saved| saved.vectors));
        replayer.running = thread;
        let next = loop {
            match replayer.next_event()?.map(Calls::told) {
                Some(Ok(calls)) => replayer.calls.push_back(calls),
                Some(Err(other)) => break Some(other),
                None => break None,
            }
        };
        let stop = match next {
            Some(Event::Stopped { instructions, cause, registers }) => {
                let Some(registers) = start.apply(&registers) else {
                    return Err(diverged(event, NO_SUCH_REGISTER.to_owned()));
                };
                (instructions, cause, registers)
            }
            None => return self.replay_cut(tid),
            // It was killed while it ran, by something that leaves no time to look where.
            Some(Event::Ended(ended)) => return self.replay_end(tid, Some(ended)),
            Some(Event::Left) => return self.replay_end(tid, None),
            Some(other) => {
                self.replay_event(tid, other)?;
                return self.replay_on(tid);
            }
        };
        if let Some(vectors) = vectors {
            self.set_told_vectors(tid, &vectors)?;
        }
        self.next_calls(tid)?;
        let count = self.space_of(tid).count();
        let (instructions, cause, registers) = stop;
        let at = count.wrapping_add(instructions);
        let replayer = self.replayer(tid);
        replayer.next = Some(Stop { at, cause, registers });
        let (event, ticks) = skipped.unwrap_or((event, 0));
        replayer.resumed = (event, count.wrapping_sub(ticks));
        replayer.skipped_ticks = skipped.map(|(_, ticks)| ticks);
        let application = self.application_registers(tid, &start)?;
        self.go_on(tid, application)
    }

    fn set_told_vectors(&mut self, tid: Tid, vectors: &[u8]) -> Outcome<()> {
        if ptrace::set_vectors(tid, vectors)? {
            return Ok(());
        }
        let how = "this CPU refuses the vector registers that are told".to_owned();
        Err(diverged(self.replayer(tid).events, how))
    }

    /// Registers as the engine has them.
    fn application_registers(&mut self, tid: Tid, recorded: &Recorded) -> Outcome<Registers> {
        let base = ptrace::registers(tid)?;
        let r = recorded.0;
        self.space_of(tid).write_slot(APP_GS, r[19]);
        Ok(Registers {
            rax: r[0],
            rcx: r[1],
            rdx: r[2],
            rbx: r[3],
            rsp: r[4],
            rbp: r[5],
            rsi: r[6],
            rdi: r[7],
            r8: r[8],
            r9: r[9],
            r10: r[10],
            r11: r[11],
            r12: r[12],
            r13: r[13],
            r14: r[14],
            r15: r[15],
            rip: r[16],
            eflags: r[17],
            fs_base: r[18],
            gs_base: self.space_of(tid).context,
            orig_rax: u64::MAX,
            ..base
        })
    }

    fn replay_event(&mut self, tid: Tid, event: Event) -> Outcome<()> {
        match event {
            Event::Vectors(vectors) => {
                let size = ptrace::vectors(tid)?.len();
                let event = self.replayer(tid).events;
                let area = vectors::area(&vectors, size).map_err(|how| diverged(event, how))?;
                self.replayer(tid).vectors = Some(area);
            }
            Event::Wrote { at, bytes } => self.replay_write(tid, at, &bytes)?,
            Event::Copied { at, size, hash, offset } => {
                self.replay_copy(tid, at, size, hash, offset)?;
            }
            Event::Mapped { at, size, access, source } => {
                self.replay_map(tid, at, size, access, &source)?;
            }
            Event::Unmapped { at, size } => self.replay_unmap(tid, at..at + size)?,
            Event::Protected { at, size, access } => {
                self.set_access(tid, at..at + size, access)?;
            }
            Event::Inherited { at, size, advice } if FOR_FORKS.contains(&advice) => {
                self.replay_inherited(tid, at..at.saturating_add(size), advice)?;
            }
            Event::Moved { from, size, to, new_size, stays } => {
                self.replay_move(tid, from..from + size, to..to + new_size, stays)?;
            }
            Event::Executed { .. } => {
                for range in std::mem::take(&mut self.replayer(tid).mapped) {
                    self.replay_unmap(tid, range)?;
                }
                self.start_cache_afresh(tid)?;
                self.forget_modules(tid, &(0..Address::MAX));
                self.replayer(tid).inputs.execute();
            }
            Event::Output { stream, order, at, size } => {
                self.replay_output(tid, stream, order, at..at.saturating_add(size))?;
            }
            Event::Forked { child } => self.replay_fork(tid, child)?,
            Event::Hashes { pages, left_out } => self.compare_hashes(tid, &pages, &left_out)?,
            Event::Thread { thread, registers } => {
                let replayer = self.replayer(tid);
                let vectors = replayer.vectors.take();
                let Some(registers) = Recorded::default().apply(&registers) else {
                    return Err(diverged(replayer.events, NO_SUCH_REGISTER.to_owned()));
                };
                replayer.last = Some(registers);
                replayer.running = thread;
                // The last one that is told of may be looked at before it goes on.
                if let Some(vectors) = &vectors {
                    self.set_told_vectors(tid, vectors)?;
                }
                let cause = Cause::Begins;
                self.replayer(tid).threads.insert(thread, Saved { cause, registers, vectors });
            }
            Event::Offset { descriptor, offset } => {
                self.replayer(tid).inputs.others_moved(descriptor, offset);
            }
            Event::Skipped { event, ticks } => {
                self.replayer(tid).skipped = Some((event, ticks));
            }
            Event::ThreadEnded { thread } => {
                self.replayer(tid).threads.remove(&thread);
                self.trace_ended(tid, thread);
            }
            Event::Stopped { .. }
            | Event::Resumed { .. }
            | Event::Calls(_)
            | Event::CallFromFile { .. }
            | Event::Turn { .. }
            | Event::Inherited { .. }
            | Event::Checkpoint(_)
            | Event::Ended(_)
            | Event::Left
            | Event::Replaced => {
                let event_number = self.replayer(tid).events;
                return Err(diverged(event_number, "a thread stops that did not run".to_owned()));
            }
        }
        Ok(())
    }

    /// A process of the recording begins, as a copy of this one.
    fn replay_fork(&mut self, tid: Tid, child: Thread) -> Outcome<()> {
        let replayer = self.replayer(tid);
        if replayer.alone {
            return Ok(());
        }
        let outputs = Rc::clone(&replayer.outputs);
        let mut forked = match Replayer::new(&replayer.recording, child, outputs) {
            Ok(forked) => forked,
            Err(error) => {
                return match replayer.is_unfinished {
                    false => Err(error.into()),
                    // It was cut short before anything of it was written.
                    true => Ok(()),
                };
            }
        };
        forked.is_unfinished = replayer.is_unfinished;
        forked.files = replayer.files.clone();
        forked.mapped = replayer.mapped.clone();
        forked.withheld = replayer.withheld.clone();
        forked.views = replayer.views.clone();
        forked.has_private_views = replayer.has_private_views;
        forked.objects = Rc::clone(&replayer.objects);
        forked.turns = Rc::clone(&replayer.turns);
        forked.modules = replayer.modules.clone();
        forked.inputs = replayer.inputs.of_child(child);
        forked.look = replayer.look.clone();
        forked.verify = replayer.verify;
        if self.options.tool.traces() && forked.look().is_some() {
            forked.shared = Some(self.shared_memory(tid)?);
        }
        let process = self.must(tid, "creating a process", libc::SYS_fork, [0; 6])? as Tid;
        let parent = self.tasks[&tid].space;
        let space = self.fork_space(parent, process)?;
        self.spaces.get_mut(&space).expect("just added").begin_count();
        self.replayers.insert(space, forked);
        let actions = self.tasks[&tid].actions.clone();
        let registers = ptrace::registers(tid)?;
        let task = Supervisor::new_task(process, process, space, actions, State::New(registers));
        self.report.processes += 1;
        self.expect(task)
    }

    /// The first stop of a process that was created by [`Supervisor::replay_fork`].
    pub(crate) fn begin_replayed_child(&mut self, tid: Tid) -> Outcome<()> {
        self.space_of(tid).current = Some(tid);
        self.space_of(tid).ran_last = Some(tid);
        self.task(tid).state = State::Running;
        self.own_log_of_fork(tid)?;
        self.start_trace(tid)?;
        for module in self.replayer(tid).modules.list().to_vec() {
            self.watch_module(tid, &module);
        }
        self.leave_others(tid)?;
        self.replay_on(tid)
    }

    /// The recorded process ended here, or no more of it was recorded.
    fn replay_end(&mut self, tid: Tid, ended: Option<event::Ended>) -> Outcome<()> {
        self.end_turn(tid);
        if let Some(look) = self.looked_at_in_the_end(tid) {
            return self.replay_over(tid, &look);
        }
        if tid == self.first {
            self.report.region_left = ended.is_none();
            self.report.ended = ended.map(|ended| match ended {
                event::Ended::Status(status) => Ended::Status(status),
                event::Ended::Signal(signal) => Ended::Signal(signal),
            });
        }
        self.end_replayed(tid)
    }

    /// Who wants to see the process where it ends.
    fn looked_at_in_the_end(&mut self, tid: Tid) -> Option<Rc<Look>> {
        self.replayer(tid).look().filter(|look| look.to.get() != Moment::Start)
    }

    /// The process does nothing more.
    fn end_replayed(&mut self, tid: Tid) -> Outcome<()> {
        self.sample(tid);
        let events = self.replayer(tid).events;
        self.report.events += events;
        self.task(tid).state = State::Dying;
        // SAFETY: plain system call; it is our own tracee.
        unsafe { libc::kill(tid, libc::SIGKILL) };
        Err(Halt::Gone)
    }

    /// All processes have come to their ends, or as far as the recording goes.
    pub(crate) fn finish_replay(&mut self) -> Result<(), EngineError> {
        for replayer in self.replayers.values() {
            replayer.outputs.borrow_mut().finish();
        }
        match self.cut_short {
            // What was to be seen may have come all the same.
            Some(event) if self.report.answer.is_none() => Err(EngineError::CutShort { event }),
            _ => {
                (self.options.on_end)(&self.report);
                Ok(())
            }
        }
    }
}

fn diverged(event: u64, how: String) -> Halt {
    Halt::Engine(EngineError::Diverged { event, how })
}
