//! Looking at a replay: at moments, and whenever a thread comes to a watched address.
//!
//! Who looks is an [`Observer`]. It lives in the supervisor's process, which has the replayed
//! memory, and says where to go next; what it found goes to `why` as its answer.

use super::copies::When;
use super::modules::Module;
use super::{InputStream, Replayer};
use crate::cpu::vectors;
use crate::error::{EngineError, Halt};
use crate::maps;
use crate::memory::Address;
use crate::ptrace::{self, Registers};
use crate::recording::recorded;
use crate::shown_maps;
use crate::space::Space;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{State, Tid};
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::ops::Range;
use std::rc::Rc;
use why_record::event::{Cause, Thread};
use why_record::position::{Moment, Position};
use why_record::registers::{RIP, Registers as Recorded};
use why_record::vectors::Vectors;
use why_translate::context::APP_GS;

/// What is to be seen of a replay, and up to where it goes on.
pub struct Look {
    pub process: Thread,
    /// The moment that comes next.
    pub(super) to: Cell<Moment>,
    /// Nothing of what the program writes is to be seen.
    pub silent: bool,
    /// How far copies of the process are apart at least, in instructions: none if nobody ever
    /// goes back.
    pub distance: Option<u64>,
    observer: RefCell<Box<dyn Observer>>,
}

/// Why an excerpt lacks a position.
const LEFT_OUT: &str =
    "what was executed there is not in this excerpt; ask the recording that it was made from";

/// So much is replayed in about the time that it takes to make a few copies.
const DISTANCE: u64 = 4_000_000;

impl Look {
    /// A session: the observer can go to and fro.
    pub fn session(process: Thread, to: Moment, observer: Box<dyn Observer>) -> Look {
        Look { silent: true, distance: Some(DISTANCE), ..Look::once(process, to, observer) }
    }

    /// The replay goes forward only, and nothing is to be seen of it.
    pub fn silently(process: Thread, to: Moment, observer: Box<dyn Observer>) -> Look {
        Look { silent: true, ..Look::once(process, to, observer) }
    }

    /// The replay goes forward only, with all its processes.
    pub fn once(process: Thread, to: Moment, observer: Box<dyn Observer>) -> Look {
        let (to, observer) = (Cell::new(to), RefCell::new(observer));
        Look { process, to, silent: false, distance: None, observer }
    }
}

pub trait Observer {
    /// Code of a file has been mapped: the addresses in it that are to be watched.
    fn mapped(&mut self, _module: &Module) -> Vec<Address> {
        Vec::new()
    }

    /// The replay is over: the streams that the trace tells of, by their numbers.
    fn streams(&mut self, _streams: &[InputStream]) {}

    /// A thread is about to execute the instruction at a watched address. Whoever goes back
    /// sees it again.
    fn reached(&mut self, _scene: &Scene) -> Then {
        Then::GoOn
    }

    /// What the thread executes next is left out of this excerpt.
    fn cut(&mut self, _scene: &Scene) {}

    /// The moment has come up to which the replay was to go.
    fn arrived(&mut self, _scene: &Scene) -> Then {
        Then::Enough
    }

    /// There is no such moment, because of this. None if that is the end of it all.
    fn missed(&mut self, _why: &str) -> Option<Then> {
        None
    }

    /// What was found, once the replay is over.
    fn answer(&mut self) -> serde_json::Value {
        serde_json::Value::Null
    }
}

/// Nobody looks.
impl Observer for () {}

/// What comes after a look.
pub enum Then {
    /// Go on: from a moment, up to the end.
    GoOn,
    /// Watch these addresses as well, and go on.
    Watch(Vec<Address>),
    /// Go on, but only up to this moment.
    Until(Moment),
    /// Go to this moment, wherever it is. What lies between need not be seen.
    GoTo(Moment),
    /// All has been seen.
    Enough,
}

/// A replayed process at a moment.
pub struct Scene<'a> {
    pub process: Thread,
    /// The thread that is to go on.
    pub thread: Thread,
    pub position: Position,
    pub registers: Recorded,
    pub modules: &'a [Module],
    /// Where shared memory is mapped: which object, and from which offset on.
    pub(super) views: &'a [(Range<Address>, u32, u64)],
    pub(super) space: &'a Space,
    /// The kernel thread that stands for it.
    pub(super) tid: Tid,
    /// The program was shown a CPU of a known level only.
    limited: bool,
}

impl Scene<'_> {
    /// Reads memory; how much of it could be read.
    pub fn read(&self, at: Address, buffer: &mut [u8]) -> usize {
        self.space.memory.read(at, buffer).unwrap_or(0)
    }

    /// What the program has mapped and can read.
    pub fn readable(&self) -> Vec<Range<Address>> {
        let maps = maps::read(self.tid).unwrap_or_default();
        let own = self.space.own_ranges();
        let shown = shown_maps::mappings(&maps, &self.space.regions, &own);
        shown.into_iter().filter(|mapping| mapping.readable).map(|m| m.range).collect()
    }

    /// The vector registers, as XSAVE lays them out.
    pub fn vectors(&self) -> Option<Vec<u8>> {
        ptrace::vectors(self.tid).ok()
    }

    /// The same as they are recorded.
    pub fn recorded_vectors(&self) -> Option<Vectors> {
        self.vectors().map(|area| vectors::recorded(&area, self.limited))
    }
}

impl Replayer {
    /// What is to be seen of this process.
    pub(super) fn look(&self) -> Option<Rc<Look>> {
        self.look.clone().filter(|look| look.process == self.process)
    }

    /// If it is to be looked at before the next event: after how many instructions.
    pub(super) fn ticks_to_look(
        &self,
        event: u64,
        instructions: u64,
    ) -> Result<Option<u64>, (Position, String)> {
        let Some(look) = self.look() else {
            return Ok(None);
        };
        match look.to.get() {
            Moment::Start => Ok(Some(0)),
            Moment::End => Ok(None),
            Moment::At(position) if self.skipped_ticks.is_some() => {
                self.ticks_to_look_in_excerpt(position, event, instructions)
            }
            Moment::At(position) if event > position.event => {
                Err((position, format!("no thread goes on with event {}", position.event)))
            }
            Moment::At(position) if event < position.event => Ok(None),
            Moment::At(position) if position.ticks > instructions => {
                Err((position, format!("only {instructions} instructions follow event {event}")))
            }
            Moment::At(position) => Ok(Some(position.ticks)),
        }
    }

    /// The same where only some of the instructions behind an event are executed, in several
    /// stretches.
    fn ticks_to_look_in_excerpt(
        &self,
        position: Position,
        event: u64,
        last: u64,
    ) -> Result<Option<u64>, (Position, String)> {
        let first = self.skipped_ticks.unwrap_or(0);
        if (position.event, position.ticks) < (event, first) {
            return Err((position, LEFT_OUT.to_owned()));
        }
        let is_here = position.event == event && position.ticks <= last;
        Ok(is_here.then_some(position.ticks))
    }
}

/// Where a process is when it is looked at.
enum Here<'a> {
    At(&'a Recorded),
    /// Behind its last instruction, with the last registers that are known.
    Over(Option<&'a Recorded>),
}

impl Here<'_> {
    fn registers(&self) -> Option<&Recorded> {
        match self {
            Here::At(registers) => Some(registers),
            Here::Over(registers) => *registers,
        }
    }

    /// Whether a moment is still to come.
    fn order(&self, (event, ticks): When, moment: Moment) -> Ordering {
        match (self, moment) {
            (_, Moment::Start) => Ordering::Less,
            (Here::At(_), Moment::At(to)) => (to.event, to.ticks).cmp(&(event, ticks)),
            (Here::At(_), Moment::End) => Ordering::Greater,
            (Here::Over(_), Moment::At(_)) => Ordering::Less,
            (Here::Over(_), Moment::End) => Ordering::Equal,
        }
    }
}

impl Supervisor {
    /// Asks which addresses of a new module are to be watched.
    pub(super) fn watch_module(&mut self, tid: Tid, module: &Module) {
        if !module.executable {
            return;
        }
        let Some(look) = self.replayer(tid).look() else {
            return;
        };
        let addresses = look.observer.borrow_mut().mapped(module);
        self.space_of(tid).code.borrow_mut().watch(&addresses);
    }

    /// Something else is there now, or nothing.
    pub(super) fn forget_modules(&mut self, tid: Tid, range: &Range<Address>) {
        self.replayer(tid).modules.remove(range);
        self.space_of(tid).code.borrow_mut().unwatch(range);
    }

    pub(super) fn is_watched(&mut self, tid: Tid, pc: Address) -> bool {
        self.space_of(tid).code.borrow().is_watched(pc)
    }

    /// A thread is about to execute the instruction at a watched address.
    pub(super) fn reached(&mut self, tid: Tid, registers: &Registers) -> Outcome<()> {
        let Some(look) = self.replayer(tid).look() else {
            return Ok(());
        };
        let gs_base = self.space_of(tid).read_slot(APP_GS);
        let here = recorded(registers, gs_base);
        let scene = self.scene(tid, here);
        let then = look.observer.borrow_mut().reached(&scene);
        let goes_elsewhere = matches!(then, Then::Until(_) | Then::GoTo(_));
        self.follow(tid, Here::At(&here), then)?;
        if goes_elsewhere {
            self.task(tid).stops_at = self.aim(tid, registers)?;
        }
        Ok(())
    }

    /// A thread of an excerpt has stopped: what it goes on with is a stretch of its own.
    pub(super) fn cut(&mut self, tid: Tid, here: Recorded) {
        let replayer = self.replayer(tid);
        let in_excerpt = replayer.skipped_ticks.is_some();
        if let Some(look) = replayer.look().filter(|_| in_excerpt) {
            let scene = self.scene(tid, here);
            look.observer.borrow_mut().cut(&scene);
        }
    }

    /// Whether a thread at a watched address has come to execute it, though it is to stop
    /// before: it faults there.
    pub(super) fn reaches_to_fault(&mut self, tid: Tid, pc: Address) -> bool {
        let next = self.replayer(tid).next.as_ref().map(|stop| stop.cause);
        matches!(next, Some(Cause::Fault(_))) && self.is_watched(tid, pc)
    }

    /// The moment has come that was asked for.
    pub(super) fn replay_arrived(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        let gs_base = self.space_of(tid).read_slot(APP_GS);
        let here = recorded(&registers, gs_base);
        let then = self.arrive(tid, here)?;
        self.follow(tid, Here::At(&here), then)?;
        self.go_on(tid, registers)
    }

    /// The process that is looked at has ended, or no more of it was recorded.
    pub(super) fn replay_over(&mut self, tid: Tid, look: &Look) -> Outcome<()> {
        let when = self.when(tid);
        let replayer = self.replayer(tid);
        let (last, is_over) = (replayer.last, replayer.is_over);
        let is_last = |to: Position| is_over && (to.event, to.ticks) == when;
        let then = match (look.to.get(), last) {
            // The last moment that is known of a process that went on is no end of it.
            (Moment::At(position), Some(here)) if is_last(position) => self.arrive(tid, here)?,
            (Moment::At(position), _) => {
                let how = self.how_it_is_over(tid);
                self.miss(tid, &position, how)?
            }
            (_, Some(here)) => self.arrive(tid, here)?,
            // It never executed anything.
            (_, None) => Then::Enough,
        };
        self.follow(tid, Here::Over(last.as_ref()), then)?;
        // There is nothing to go on with.
        self.end_look(tid, look)
    }

    /// Why there is no moment behind this one.
    fn how_it_is_over(&mut self, tid: Tid) -> String {
        let (event, ticks) = self.when(tid);
        let replayer = self.replayer(tid);
        match (replayer.skipped_ticks, replayer.last) {
            (Some(_), _) => LEFT_OUT.to_owned(),
            (None, Some(last)) if replayer.is_over => {
                let last = Position { event, ticks, pc: Some(last.0[RIP]) };
                format!("it was cut short, and the last one of the process is {last}")
            }
            (None, None) if replayer.is_over => {
                "it was cut short before the process had executed anything".to_owned()
            }
            _ => format!("the process ended with event {}", replayer.events),
        }
    }

    /// Looks at a moment, if it is the one that was meant.
    fn arrive(&mut self, tid: Tid, registers: Recorded) -> Outcome<Then> {
        let look = self.replayer(tid).look().expect("somebody asked");
        let pc = registers.0[RIP];
        if let Moment::At(position) = look.to.get()
            && position.pc.is_some_and(|expected| expected != pc)
        {
            return self.miss(tid, &position, format!("the next instruction there is at {pc:#x}"));
        }
        look.to.set(Moment::End);
        let scene = self.scene(tid, registers);
        Ok(look.observer.borrow_mut().arrived(&scene))
    }

    /// There is no such position.
    fn miss(&mut self, tid: Tid, position: &Position, how: String) -> Outcome<Then> {
        let look = self.replayer(tid).look().expect("somebody asked");
        let error = EngineError::NoMoment { position: position.to_string(), how };
        look.to.set(Moment::End);
        let then = look.observer.borrow_mut().missed(&error.to_string());
        then.ok_or_else(|| error.into())
    }

    /// Does what an observer wants. If that is to go on from here, it is left to the caller.
    fn follow(&mut self, tid: Tid, here: Here, mut then: Then) -> Outcome<()> {
        let look = self.replayer(tid).look().expect("somebody asked");
        loop {
            let (to, jumps) = match then {
                Then::GoOn => return Ok(()),
                Then::Watch(addresses) => {
                    self.space_of(tid).code.borrow_mut().watch(&addresses);
                    return Ok(());
                }
                Then::Enough => return self.end_look(tid, &look),
                Then::Until(to) => (to, false),
                Then::GoTo(to) => (to, true),
            };
            look.to.set(to);
            let is_session = self.session.is_some();
            let order = here.order(self.when(tid), to);
            match (order, here.registers()) {
                (Ordering::Equal, Some(registers)) => then = self.arrive(tid, *registers)?,
                (Ordering::Greater, _) if !jumps || !self.has_shorter_way(tid, to) => {
                    return Ok(());
                }
                _ if is_session => return self.go_to(tid, to),
                // It goes forward only.
                _ => return self.end_look(tid, &look),
            }
        }
    }

    /// Lets the running thread go on from here: to where it is to be looked at, to where it is
    /// to be copied, or to what it stops for.
    pub(super) fn go_on(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        self.keep_copy(tid, &registers)?;
        self.task(tid).looked_at = None;
        let at = self.aim(tid, &registers)?;
        self.task(tid).stops_at = at;
        match at {
            Some(at) => self.run_up_to(tid, registers, at),
            None => {
                self.run_unlooked(tid)?;
                self.space_of(tid).stop_nowhere();
                self.enter(tid, registers)
            }
        }
    }

    /// The count of instructions at which the thread is to stop next, if only that tells.
    fn aim(&mut self, tid: Tid, registers: &Registers) -> Outcome<Option<u64>> {
        let (event, since) = self.replayer(tid).resumed;
        let next = self.replayer(tid).next.as_ref().expect("a stop was set");
        let (last, is_own) = (next.at, next.cause.is_own());
        let ticks = loop {
            match self.replayer(tid).ticks_to_look(event, last.wrapping_sub(since)) {
                Ok(ticks) => break ticks,
                Err((position, how)) => {
                    let gs_base = self.space_of(tid).read_slot(APP_GS);
                    let here = recorded(registers, gs_base);
                    let then = self.miss(tid, &position, how)?;
                    self.follow(tid, Here::At(&here), then)?;
                }
            }
        };
        let look_at = ticks.map(|ticks| since.wrapping_add(ticks));
        self.replayer(tid).look_at = look_at;
        let count = self.space_of(tid).count();
        let left = |at: u64| at.wrapping_sub(count);
        let copy_at = self.copy_due(tid).filter(|at| left(*at) < left(last));
        let stop_at = if is_own { None } else { Some(last) };
        Ok([look_at, copy_at, stop_at].into_iter().flatten().min_by_key(|at| left(*at)))
    }

    fn scene(&mut self, tid: Tid, registers: Recorded) -> Scene<'_> {
        let count = self.space_of(tid).count();
        let space = self.tasks[&tid].space;
        let limited = self.view.limited;
        let replayer = &self.replayers[&space];
        let (event, since) = replayer.resumed;
        let position =
            Position { event, ticks: count.wrapping_sub(since), pc: Some(registers.0[RIP]) };
        Scene {
            process: replayer.process,
            thread: replayer.running,
            position,
            registers,
            modules: replayer.modules.list(),
            views: &replayer.views,
            space: &self.spaces[&space],
            tid,
            limited,
        }
    }

    /// Nothing more is to be seen.
    fn end_look(&mut self, tid: Tid, look: &Look) -> Outcome<()> {
        self.report.events += self.replayer(tid).events;
        let mut observer = look.observer.borrow_mut();
        observer.streams(self.replayer(tid).inputs.streams());
        self.report.answer = Some(observer.answer());
        drop(observer);
        self.sample_all();
        for task in self.tasks.values_mut() {
            task.state = State::Dying;
            // SAFETY: plain system call; these are our own tracees.
            unsafe { libc::kill(task.pid, libc::SIGKILL) };
        }
        Err(Halt::Gone)
    }
}
