//! Looking at a replay: at a moment, and whenever a thread comes to a watched address.
//!
//! Who looks is an [`Observer`]. It lives in the supervisor's process, which has the replayed
//! memory; what it found goes to `why` as its answer.

use super::Replayer;
use super::modules::Module;
use crate::error::{EngineError, Halt};
use crate::memory::{Address, Memory};
use crate::ptrace::{self, Registers};
use crate::recording::recorded;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use why_record::event::{Cause, Thread};
use why_record::position::{Moment, Position};
use why_record::registers::{RIP, Registers as Recorded};
use why_translate::context::APP_GS;

/// What is to be seen of a replay, and until when it goes on.
pub struct Look {
    pub process: Thread,
    pub to: Moment,
    /// Nothing of what the program writes is to be seen.
    pub silent: bool,
    observer: RefCell<Box<dyn Observer>>,
}

impl Look {
    pub fn new(process: Thread, to: Moment, silent: bool, observer: Box<dyn Observer>) -> Look {
        Look { process, to, silent, observer: RefCell::new(observer) }
    }
}

pub trait Observer {
    /// Code of a file has been mapped: the addresses in it that are to be watched.
    fn mapped(&mut self, _module: &Module) -> Vec<Address> {
        Vec::new()
    }

    /// A thread is about to execute the instruction at a watched address.
    fn reached(&mut self, _scene: &Scene) -> Then {
        Then::GoOn
    }

    /// The moment has come up to which the replay was to go.
    fn arrived(&mut self, _scene: &Scene) {}

    /// What was found, once the replay is over.
    fn answer(&mut self) -> serde_json::Value {
        serde_json::Value::Null
    }
}

/// Nobody looks.
impl Observer for () {}

/// What comes after a look.
pub enum Then {
    GoOn,
    /// Watch these addresses as well.
    Watch(Vec<Address>),
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
    memory: &'a Memory,
    /// The kernel thread that stands for it.
    tid: Tid,
}

impl Scene<'_> {
    /// Reads memory; how much of it could be read.
    pub fn read(&self, at: Address, buffer: &mut [u8]) -> usize {
        self.memory.read(at, buffer).unwrap_or(0)
    }

    /// The vector registers, as XSAVE lays them out.
    pub fn vectors(&self) -> Option<Vec<u8>> {
        ptrace::vectors(self.tid).ok()
    }
}

impl Replayer {
    /// What is to be seen of this process.
    pub(super) fn look(&self) -> Option<Rc<Look>> {
        self.look.clone().filter(|look| look.process == self.process)
    }

    /// If it is to be looked at before the next event: after how many instructions.
    pub(super) fn ticks_to_look(&self, event: u64, instructions: u64) -> Outcome<Option<u64>> {
        let Some(look) = self.look() else {
            return Ok(None);
        };
        match look.to {
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
        let scene = self.scene(tid, recorded(registers, gs_base));
        let then = look.observer.borrow_mut().reached(&scene);
        match then {
            Then::GoOn => Ok(()),
            Then::Watch(addresses) => {
                self.space_of(tid).code.borrow_mut().watch(&addresses);
                Ok(())
            }
            Then::Enough => self.end_look(&look),
        }
    }

    /// Whether a thread at a watched address has come to execute it, though it is to stop
    /// before: it faults there.
    pub(super) fn reaches_to_fault(&mut self, tid: Tid, pc: Address) -> bool {
        let next = self.replayer(tid).next.as_ref().map(|stop| stop.cause);
        matches!(next, Some(Cause::Fault(_))) && self.is_watched(tid, pc)
    }

    /// The moment has come that was asked for.
    pub(super) fn replay_arrived(&mut self, tid: Tid, registers: Recorded) -> Outcome<()> {
        let look = self.replayer(tid).look().expect("somebody asked");
        let pc = registers.0[RIP];
        if let Moment::At(position) = look.to
            && position.pc.is_some_and(|expected| expected != pc)
        {
            let how = format!("the next instruction there is at {pc:#x}");
            return Err(EngineError::NoMoment { position: position.to_string(), how }.into());
        }
        let scene = self.scene(tid, registers);
        look.observer.borrow_mut().arrived(&scene);
        self.end_look(&look)
    }

    fn scene(&mut self, tid: Tid, registers: Recorded) -> Scene<'_> {
        let count = self.space_of(tid).count();
        let space = self.tasks[&tid].space;
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
            memory: &self.spaces[&space].memory,
            tid,
        }
    }

    /// Nothing more is to be seen.
    fn end_look(&mut self, look: &Look) -> Outcome<()> {
        self.report.answer = Some(look.observer.borrow_mut().answer());
        self.sample_all();
        for task in self.tasks.values() {
            // SAFETY: plain system call; these are our own tracees.
            unsafe { libc::kill(task.pid, libc::SIGKILL) };
        }
        Err(Halt::Gone)
    }
}
