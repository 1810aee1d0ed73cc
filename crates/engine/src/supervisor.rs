//! The event loop: one stop of one thread at a time, and whose turn comes next.

use crate::archive::{Archive, Key};
use crate::arena::Item;
use crate::code::{Code, CodeSource, UnitId};
use crate::error::{EngineError, Halt};
use crate::memory::Address;
use crate::ptrace::{self, Registers, Stop};
use crate::regions::Reader;
use crate::report::{Ended, Report};
use crate::signals::{self, ActionsRef};
use crate::space::{Space, SpaceId};
use crate::task::{State, Task, Tid};
use libc::siginfo_t;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};
use why_translate::context::{
    APP_GS, CALLS_IN_PROCESS, FIRST_COUNT, LAST_CALL, OTHERS_READY, SAVED_RCX, SAVED_RDX,
    TRACE_NEXT,
};
use why_translate::{ExitKind, Place, SpanDetail, Tool, TranslateError};

pub type Outcome<T> = std::result::Result<T, Halt>;

/// How long a thread may run while others wait.
pub const QUANTUM: Duration = Duration::from_millis(4);

pub struct Options {
    pub tool: Tool,
    /// The processors the target is told it runs on.
    pub affinity: Vec<u8>,
    /// The processors it may ask for.
    pub allowed: Vec<u8>,
    /// Called when the first process ends, and how many others are still there.
    pub on_end: Box<dyn FnMut(&Report)>,
    /// Called when the first process is stopped as a whole.
    pub on_stop: Box<dyn FnMut()>,
}

pub struct Supervisor {
    pub(crate) options: Options,
    pub(crate) tasks: FxHashMap<Tid, Task>,
    pub(crate) spaces: FxHashMap<SpaceId, Space>,
    next_space: u32,
    /// Stops of threads whose creation has not been reported yet.
    early: FxHashMap<Tid, Stop>,
    /// Stops seen while waiting for another one.
    pub(crate) deferred: VecDeque<(Tid, Stop)>,
    pub(crate) first: Tid,
    pub(crate) report: Report,
    timer_running: bool,
    pub(crate) shapes: crate::tracing::Shapes,
    /// Translations from earlier runs that have been opened and checked.
    pub(crate) archives: FxHashMap<Key, Rc<Archive>>,
}

impl Supervisor {
    pub fn new(options: Options, first: Tid) -> Supervisor {
        Supervisor {
            options,
            tasks: FxHashMap::default(),
            spaces: FxHashMap::default(),
            next_space: 0,
            early: FxHashMap::default(),
            deferred: VecDeque::new(),
            first,
            report: Report::default(),
            timer_running: false,
            shapes: crate::tracing::Shapes::default(),
            archives: FxHashMap::default(),
        }
    }

    /// Runs until no thread of the target is left.
    pub fn run(&mut self) -> Result<(), EngineError> {
        while !self.tasks.is_empty() {
            let (tid, stop) = match self.deferred.pop_front() {
                Some(event) => event,
                None => match ptrace::wait(-1) {
                    Ok(event) => event,
                    Err(error) if error.raw_os_error() == Some(libc::EINTR) => {
                        self.quantum_over();
                        continue;
                    }
                    Err(error) => return Err(EngineError::system("waiting for the target")(error)),
                },
            };
            self.report.stops += 1;
            match self.handle(tid, stop) {
                Ok(()) | Err(Halt::Gone) => {}
                Err(Halt::Engine(error)) => return Err(error),
            }
        }
        Ok(())
    }

    pub(crate) fn add_space(&mut self, space: Space) -> SpaceId {
        let id = SpaceId(self.next_space);
        self.next_space += 1;
        self.spaces.insert(id, space);
        id
    }

    pub(crate) fn task(&mut self, tid: Tid) -> &mut Task {
        self.tasks.get_mut(&tid).expect("a known thread")
    }

    pub(crate) fn space_of(&mut self, tid: Tid) -> &mut Space {
        let id = self.tasks[&tid].space;
        self.spaces.get_mut(&id).expect("a thread has a space")
    }

    /// Waits for one thread; its end is left to the event loop, as is what happens to
    /// others meanwhile. To wait for it alone would be wrong: the end of a process is
    /// not told before all its other threads have been waited for.
    pub(crate) fn wait_for(&mut self, tid: Tid) -> Outcome<Stop> {
        if let Some(index) = self.deferred.iter().position(|(other, _)| *other == tid) {
            let (_, stop) = self.deferred[index];
            if let Stop::Exited(_) | Stop::Killed(_) = stop {
                return Err(Halt::Gone);
            }
            self.deferred.remove(index);
            return Ok(stop);
        }
        loop {
            match ptrace::wait(-1) {
                Ok((other, stop)) if other != tid => self.deferred.push_back((other, stop)),
                Ok((_, stop @ (Stop::Exited(_) | Stop::Killed(_)))) => {
                    self.deferred.push_back((tid, stop));
                    return Err(Halt::Gone);
                }
                Ok((_, stop)) => {
                    self.report.stops += 1;
                    return Ok(stop);
                }
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(_) => return Err(Halt::Gone),
            }
        }
    }

    fn handle(&mut self, tid: Tid, stop: Stop) -> Outcome<()> {
        if let Stop::Exited(_) | Stop::Killed(_) = stop {
            return self.ended(tid, stop);
        }
        if stop == Stop::Exec {
            // Whatever the thread did that had this id before: it is gone.
            return self.executed(tid);
        }
        let Some(task) = self.tasks.get(&tid) else {
            self.early.insert(tid, stop);
            return Ok(());
        };
        match (&task.state, stop) {
            (State::New(_), _) => self.begin(tid),
            (State::Running, Stop::Signal(libc::SIGTRAP)) => self.trapped(tid),
            (State::Running, Stop::Signal(_)) => self.signalled(tid),
            (State::Running, Stop::Interrupted) => self.preempted(tid),
            (State::InCall(_), Stop::Signal(_)) => self.stopped_in_call(tid),
            (State::InCall(_), Stop::Clone | Stop::Fork | Stop::Vfork) => self.forked(tid),
            (State::Stopping(registers), Stop::Interrupted) => {
                let registers = *registers;
                self.task(tid).state = State::Ready(registers);
                self.becomes_ready(tid)
            }
            (_, Stop::GroupStop(_)) => {
                if self.tasks[&tid].pid == self.first {
                    (self.options.on_stop)();
                }
                ptrace::listen(tid)?;
                Ok(())
            }
            (_, Stop::Signal(signal)) => Ok(ptrace::resume(tid, signal)?),
            (State::InCall(_), Stop::Interrupted) => self.disturbed_in_call(tid),
            (_, Stop::Interrupted | Stop::Syscall) => Ok(ptrace::resume(tid, 0)?),
            (_, stop) => panic!("thread {tid} reported {stop:?} out of turn"),
        }
    }

    // Whose turn it is.

    /// A thread can go on: at once if nobody else runs in its space.
    pub(crate) fn becomes_ready(&mut self, tid: Tid) -> Outcome<()> {
        let space = self.space_of(tid);
        match space.current {
            None => self.turn(tid),
            Some(current) if current == tid => self.turn(tid),
            Some(current) => {
                space.ready.push_back(tid);
                if !space.others_ready {
                    space.others_ready = true;
                    space.write_slot(OTHERS_READY, 1);
                }
                // It may be waiting in a call that it makes without the supervisor.
                ptrace::interrupt(current)?;
                self.start_timer();
                Ok(())
            }
        }
    }

    /// Puts a thread into the cache.
    fn turn(&mut self, tid: Tid) -> Outcome<()> {
        let app_gs = self.task(tid).app_gs;
        let space = self.space_of(tid);
        space.current = Some(tid);
        space.since = Instant::now();
        let others = space.careful || !space.ready.is_empty();
        if others != space.others_ready {
            space.others_ready = others;
            space.write_slot(OTHERS_READY, u64::from(others));
        }
        if space.users > 1 {
            space.write_slot(APP_GS, app_gs);
        }
        if others {
            self.start_timer();
        }
        if self.space_of(tid).users > 1 {
            self.trace_thread(tid);
        }
        if std::mem::take(&mut self.task(tid).unwatch_at_turn) {
            self.unwatch_all(tid)?;
        }
        if self.deliver_pending(tid)? {
            return Ok(());
        }
        let State::Ready(registers) = self.task(tid).state else {
            panic!("thread {tid} has its turn and is not ready");
        };
        self.enter(tid, registers)
    }

    /// The current thread stops running: the next one has its turn.
    pub(crate) fn release(&mut self, tid: Tid) -> Outcome<()> {
        let space = self.space_of(tid);
        if space.current != Some(tid) {
            return Ok(());
        }
        space.current = None;
        let gs = (space.users > 1).then(|| space.read_slot(APP_GS));
        let next = space.ready.pop_front();
        if let Some(gs) = gs {
            self.task(tid).app_gs = gs;
        }
        match next {
            Some(next) => self.turn(next),
            None => Ok(()),
        }
    }

    fn start_timer(&mut self) {
        if !self.timer_running {
            self.timer_running = true;
            crate::timer::every(Some(QUANTUM));
        }
    }

    /// Interrupts the threads whose time is over while others wait.
    fn quantum_over(&mut self) {
        let mut waiting = false;
        for space in self.spaces.values() {
            if let Some(current) = space.current
                && !space.ready.is_empty()
            {
                waiting = true;
                if space.since.elapsed() >= QUANTUM {
                    // Its end, if it is gone, is reported separately.
                    let _ = ptrace::interrupt(current);
                }
            }
        }
        if !waiting {
            self.timer_running = false;
            crate::timer::every(None);
        }
    }

    /// Stopped by `PTRACE_INTERRUPT`, by a group stop that ended, or by mistake.
    fn preempted(&mut self, tid: Tid) -> Outcome<()> {
        if self.space_of(tid).ready.is_empty() {
            return Ok(ptrace::resume(tid, 0)?);
        }
        if ptrace::queued_signals(tid)?.iter().any(signals::is_synchronous) {
            // It has just faulted or trapped, which must be seen to where it happened.
            return Ok(ptrace::resume(tid, 0)?);
        }
        let registers = ptrace::registers(tid)?;
        if let Some(call) = self.waits_in_cache(tid, &registers) {
            return self.convert_to_call(tid, registers, call);
        }
        if self.space_of(tid).since.elapsed() < QUANTUM {
            return Ok(ptrace::resume(tid, 0)?);
        }
        let Some(registers) = self.settle(tid)? else { return Ok(()) };
        self.task(tid).state = State::Ready(registers);
        let space = self.space_of(tid);
        space.ready.push_back(tid);
        self.release(tid)
    }

    // Entering and leaving the cache.

    /// Lets a thread go on at an application address.
    pub(crate) fn enter(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        let pc = registers.rip;
        if registers.eflags & TRAP_FLAG != 0 && self.space_of(tid).regions.is_executable(pc) {
            // It steps itself: every instruction must be seen to end.
            return self.enter_single(tid, registers);
        }
        match self.unit_for(tid, pc) {
            Ok(entry) => self.go(tid, Registers { rip: entry, orig_rax: u64::MAX, ..registers }),
            Err(Untranslatable::NoCode) => self.fetch_fault(tid, registers, pc),
            Err(Untranslatable::NoInstruction) => self.try_instruction(tid, registers),
            Err(Untranslatable::Halt(halt)) => Err(halt),
        }
    }

    /// Continues with exactly these registers.
    pub(crate) fn go(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        ptrace::set_registers(tid, &registers)?;
        self.task(tid).state = State::Running;
        self.task(tid).steps_itself |= registers.eflags & TRAP_FLAG != 0;
        Ok(ptrace::resume(tid, 0)?)
    }

    /// The entry of the unit at an application address, translated if need be. The
    /// thread's registers are scratch afterwards.
    pub(crate) fn unit_for(&mut self, tid: Tid, pc: Address) -> Result<Address, Untranslatable> {
        let code = self.space_of(tid).code.clone();
        if let Some(entry) = code.borrow().entry(pc) {
            return Ok(entry);
        }
        if !self.space_of(tid).regions.is_executable(pc) {
            return Err(Untranslatable::NoCode);
        }
        self.make_room(tid, pc)?;
        let code = self.space_of(tid).code.clone();
        let before = code.borrow().statistics.units;
        let unit = {
            let space = self.space_of(tid);
            let mut reader = Reader::new(&mut space.regions, &space.memory);
            code.borrow_mut().translate(pc, &mut reader)?
        };
        self.watch_new_code(tid, before)?;
        Ok(unit)
    }

    /// Write-protects the pages of code that the application can change.
    fn watch_new_code(&mut self, tid: Tid, before: u64) -> Outcome<()> {
        let ranges = {
            let code = self.space_of(tid).code.clone();
            let code = code.borrow();
            code.newest(code.statistics.units - before)
        };
        for range in ranges {
            for (page, shared) in self.space_of(tid).regions.unwatched(&range) {
                self.watch_page(tid, page, shared)?;
            }
        }
        Ok(())
    }

    /// The application steps itself (it has set the trap flag): it sees a trap behind
    /// each of its own instructions, not behind each of the cache's.
    fn stepped(&mut self, tid: Tid, registers: Registers, mut info: siginfo_t) -> Outcome<()> {
        let last = registers.eflags & TRAP_FLAG == 0;
        let settled = if registers.rip == 0 {
            Some(self.unspill(tid, registers, registers.rcx))
        } else if self.completes_instruction(tid, registers.rip) {
            self.settled(tid, &registers)
        } else if last {
            self.settle(tid)?
        } else {
            return Ok(ptrace::resume(tid, 0)?);
        };
        let Some(settled) = settled else { return Ok(()) };
        crate::deliver::set_fault_address(&mut info, settled.rip);
        self.deliver(tid, settled, info)
    }

    /// Whether a thread that steps through the cache has just completed one of the
    /// application's instructions.
    fn completes_instruction(&mut self, tid: Tid, rip: Address) -> bool {
        let code = self.space_of(tid).code.clone();
        let mut code = code.borrow_mut();
        match code.find(rip) {
            Some((Item::Unit(_), 0)) => true,
            Some((Item::Unit(id), offset)) => {
                let unit = &code.placed(UnitId(id)).unit;
                match unit.place(offset) {
                    Place::Before(index) => match unit.spans[index].detail {
                        SpanDetail::Repeats { at } if offset == at => unit.spans[index].code == at,
                        _ => index > 0 && unit.spans[index].code == offset,
                    },
                    Place::AtExit(exit) => matches!(unit.exits[exit].kind, ExitKind::Direct(_)),
                    _ => false,
                }
            }
            Some((Item::Link(link), offset)) => code.is_miss(link, offset),
            Some((Item::Glue | Item::Frozen(_), _)) => false,
            None => true,
        }
    }

    /// A trap in the cache: which exit was it?
    fn trapped(&mut self, tid: Tid) -> Outcome<()> {
        let registers = ptrace::registers(tid)?;
        // The flag is clear already behind the instruction that cleared it.
        let steps = registers.eflags & TRAP_FLAG != 0;
        if steps || self.task(tid).steps_itself {
            self.task(tid).steps_itself = steps;
            let info = ptrace::signal_info(tid).map_err(|_| Halt::Gone)?;
            if info.si_code == libc::TRAP_TRACE {
                return self.stepped(tid, registers, info);
            }
        }
        let rip = registers.rip;
        let code = self.space_of(tid).code.clone();
        let found = code.borrow_mut().find(rip - 1);
        match found {
            Some((Item::Unit(id), offset)) => {
                let id = UnitId(id);
                if offset == 0 && code.borrow().is_dead(id) {
                    return self.entered_dead(tid, id);
                }
                let exit = {
                    let code = code.borrow();
                    let unit = &code.placed(id).unit;
                    unit.exits.iter().position(|exit| exit.stub == offset)
                };
                match exit {
                    Some(exit) => self.left(tid, id, exit),
                    None => self.signalled(tid),
                }
            }
            Some((Item::Link(link), offset)) if code.borrow().is_miss(link, offset) => {
                let registers = ptrace::registers(tid)?;
                let target = code.borrow().missed_target(link, registers.rcx);
                self.missed(tid, registers, target)
            }
            _ => self.signalled(tid),
        }
    }

    fn left(&mut self, tid: Tid, from: UnitId, exit: usize) -> Outcome<()> {
        let code = self.space_of(tid).code.clone();
        let kind = code.borrow().placed(from).unit.exits[exit].kind;
        match kind {
            ExitKind::Direct(target) => match self.unit_for_quietly(tid, target) {
                Some(to) if !code.borrow().is_dead(from) => {
                    code.borrow_mut().link(from, exit as u32, to);
                    // The exit is linked: go on behind the trap.
                    Ok(ptrace::resume(tid, 0)?)
                }
                _ => {
                    let registers = ptrace::registers(tid)?;
                    self.enter(tid, Registers { rip: target, ..registers })
                }
            },
            ExitKind::Syscall { next } => {
                let registers = ptrace::registers(tid)?;
                self.begin_call(tid, Registers { rip: next, ..registers })
            }
            ExitKind::SyscallFault { next } => {
                let registers = ptrace::registers(tid)?;
                self.call_faulted(tid, Registers { rip: next, rcx: next, ..registers })
            }
            ExitKind::Breakpoint { next } => {
                let registers = ptrace::registers(tid)?;
                let info = ptrace::signal_info(tid).map_err(|_| Halt::Gone)?;
                self.deliver(tid, Registers { rip: next, ..registers }, info)
            }
            ExitKind::Stale => {
                let registers = ptrace::registers(tid)?;
                self.code_changed(tid, from, registers)
            }
            ExitKind::Unsupported { pc } => {
                Err(self.unknown_instruction(tid, pc).into())
            }
        }
    }

    /// A unit found that its application code is no longer what was translated.
    pub(crate) fn code_changed(
        &mut self,
        tid: Tid,
        unit: UnitId,
        registers: Registers,
    ) -> Outcome<()> {
        let pc = self.space_of(tid).code.borrow().placed(unit).unit.pc;
        self.own_code(tid)?;
        let code = self.space_of(tid).code.clone();
        if code.borrow().has(unit) {
            code.borrow_mut().invalidate_unit(unit);
        }
        self.enter(tid, Registers { rip: pc, ..registers })
    }

    /// Translates `pc` if that needs nothing from the thread itself.
    fn unit_for_quietly(&mut self, tid: Tid, pc: Address) -> Option<Address> {
        let space = self.space_of(tid);
        let code = space.code.clone();
        if let Some(entry) = code.borrow().entry(pc) {
            return Some(entry);
        }
        if code.borrow().arena_for(pc).is_none()
            || !space.regions.is_executable(pc)
            || space.regions.is_changeable(pc)
        {
            return None;
        }
        let mut reader = Reader { constant_only: true, ..Reader::new(&mut space.regions, &space.memory) };
        code.borrow_mut().translate(pc, &mut reader).ok()
    }

    /// An indirect branch to an address that has no entry yet. rcx and rdx are where
    /// the branch saved them.
    pub(crate) fn missed(&mut self, tid: Tid, registers: Registers, target: Address) -> Outcome<()> {
        let space = self.space_of(tid);
        let registers = Registers {
            rcx: space.read_slot(SAVED_RCX),
            rdx: space.read_slot(SAVED_RDX),
            rip: target,
            ..registers
        };
        match self.unit_for(tid, target) {
            Ok(entry) => {
                self.space_of(tid).code.borrow_mut().make_indirect(target, entry);
                self.go(tid, Registers { rip: entry, orig_rax: u64::MAX, ..registers })
            }
            Err(_) => self.enter(tid, registers),
        }
    }

    /// A jump led to a unit whose application code has changed since.
    fn entered_dead(&mut self, tid: Tid, dead: UnitId) -> Outcome<()> {
        let registers = ptrace::registers(tid)?;
        let code = self.space_of(tid).code.clone();
        let pc = code.borrow().placed(dead).unit.pc;
        if let Ok(successor) = self.unit_for(tid, pc)
            && std::rc::Rc::ptr_eq(&code, &self.space_of(tid).code)
            && code.borrow().has(dead)
        {
            code.borrow_mut().revive(dead, successor);
        }
        self.enter(tid, Registers { rip: pc, ..registers })
    }

    // From the cache back to application state.

    /// The call in which a thread waits, made in the cache without the supervisor.
    fn waits_in_cache(&mut self, tid: Tid, registers: &Registers) -> Option<Address> {
        let interrupted = (-516..=-512).contains(&(registers.rax as i64))
            || registers.rax as i64 == -i64::from(libc::EINTR);
        if !interrupted || (registers.orig_rax as i64) < 0 {
            return None;
        }
        self.behind_call(tid, registers.rip)
    }

    /// If the address is right behind a call made in the cache: the application
    /// address behind its `syscall`.
    pub(crate) fn behind_call(&mut self, tid: Tid, rip: Address) -> Option<Address> {
        let code = self.space_of(tid).code.clone();
        let mut code = code.borrow_mut();
        let (Item::Unit(id), offset) = code.find(rip)? else { return None };
        let unit = &code.placed(UnitId(id)).unit;
        let Place::BehindSyscall(index) = unit.place(offset) else { return None };
        // Only directly behind, where the result is still all there is.
        (unit.behind(index) == Some(offset)).then(|| unit.next_pc(index))
    }

    /// Brings a thread that stopped anywhere in the cache to the next point at which
    /// the application's state is complete. None if something else happened on the
    /// way and has been dealt with.
    pub(crate) fn settle(&mut self, tid: Tid) -> Outcome<Option<Registers>> {
        loop {
            let registers = ptrace::registers(tid)?;
            if let Some(settled) = self.settled(tid, &registers) {
                return Ok(Some(settled));
            }
            ptrace::step(tid, 0)?;
            match self.wait_for(tid)? {
                Stop::Signal(libc::SIGTRAP) | Stop::Interrupted => {}
                Stop::Signal(libc::SIGSEGV) if ptrace::rip(tid)? == 0 => {
                    let registers = ptrace::registers(tid)?;
                    return Ok(Some(self.unspill(tid, registers, registers.rcx)));
                }
                Stop::Signal(_) => {
                    let info = ptrace::signal_info(tid).map_err(|_| Halt::Gone)?;
                    if signals::is_synchronous(&info) {
                        self.faulted(tid, info)?;
                        return Ok(None);
                    }
                    self.task(tid).hold_back(info);
                }
                stop => {
                    self.deferred.push_back((tid, stop));
                    return Err(Halt::Gone);
                }
            }
        }
    }

    pub(crate) fn unspill(&mut self, tid: Tid, registers: Registers, pc: Address) -> Registers {
        let space = self.space_of(tid);
        Registers {
            rcx: space.read_slot(SAVED_RCX),
            rdx: space.read_slot(SAVED_RDX),
            rip: pc,
            ..registers
        }
    }

    /// The application's registers, if the stopped thread is where they are complete.
    fn settled(&mut self, tid: Tid, registers: &Registers) -> Option<Registers> {
        let code = self.space_of(tid).code.clone();
        let mut code = code.borrow_mut();
        let rip = registers.rip;
        if rip == 0 {
            // Through an empty entry of the table. The fault must happen before the
            // thread goes anywhere else, or it would be taken for one of that place.
            return None;
        }
        match code.find(rip) {
            Some((Item::Unit(id), offset)) => {
                let placed = code.placed(UnitId(id));
                if code.is_dead(UnitId(id)) && offset == 0 {
                    return Some(Registers { rip: placed.unit.pc, ..*registers });
                }
                self.settled_in_unit(tid, registers, &code, UnitId(id), offset)
            }
            Some((Item::Link(link), offset)) if code.is_miss(link, offset) => {
                let target = code.missed_target(link, registers.rcx);
                Some(self.unspill(tid, *registers, target))
            }
            Some(_) => None,
            // Not in the cache: a handler's first instruction, for one.
            None => Some(*registers),
        }
    }

    fn settled_in_unit(
        &mut self,
        tid: Tid,
        registers: &Registers,
        code: &Code,
        id: UnitId,
        offset: u32,
    ) -> Option<Registers> {
        let placed = code.placed(id);
        let unit = &placed.unit;
        match unit.place(offset) {
            Place::Before(index) => {
                let at = Registers { rip: unit.spans[index].pc, ..*registers };
                self.account(tid, code, id, offset, index);
                Some(self.give_back(tid, at, unit, offset))
            }
            Place::BehindSyscall(index) => {
                let next = unit.next_pc(index);
                self.account(tid, code, id, offset, index + 1);
                Some(Registers { rip: next, rcx: next, ..*registers })
            }
            Place::AtExit(exit) => match unit.exits[exit].kind {
                ExitKind::Direct(target) => Some(Registers { rip: target, ..*registers }),
                ExitKind::Syscall { next } => {
                    self.adjust_count(tid, -1);
                    Some(Registers { rip: next - 2, ..*registers })
                }
                // Made again, it fails again, and is then looked after.
                ExitKind::SyscallFault { next } => {
                    self.adjust_count(tid, -1);
                    let rax = self.space_of(tid).read_slot(LAST_CALL);
                    Some(Registers { rip: next - 2, rax, ..*registers })
                }
                ExitKind::Breakpoint { .. } => {
                    self.adjust_count(tid, -1);
                    let pc = unit.spans.last().expect("a unit is not empty").pc;
                    Some(Registers { rip: pc, ..*registers })
                }
                ExitKind::Stale => Some(Registers { rip: unit.pc, ..*registers }),
                ExitKind::Unsupported { pc } => Some(Registers { rip: pc, ..*registers }),
            },
            Place::Within(..) | Place::Leaving => None,
        }
    }

    /// Registers that a traced unit borrowed, with their application values.
    pub(crate) fn give_back(
        &mut self,
        tid: Tid,
        mut registers: Registers,
        unit: &why_translate::Unit,
        offset: u32,
    ) -> Registers {
        if let Some(borrowed) = unit.borrowed
            && offset > borrowed.from
            && unit.committed_from.is_none_or(|from| offset < from)
        {
            for (register, slot) in borrowed.registers {
                let value = self.space_of(tid).read_slot(slot);
                set_register(&mut registers, register, value);
            }
        }
        registers
    }

    /// Corrects count and trace for a unit left in the middle, after `executed` of
    /// its instructions.
    pub(crate) fn account(
        &mut self,
        tid: Tid,
        code: &Code,
        id: UnitId,
        offset: u32,
        executed: usize,
    ) {
        let placed = code.placed(id);
        match code.tool() {
            Tool::None => {}
            Tool::Count => self.adjust_count(tid, placed.unit.uncounted(offset, executed)),
            Tool::Trace => self.trace_partial(tid, placed, offset, executed),
        }
    }

    pub(crate) fn adjust_count(&mut self, tid: Tid, by: i64) {
        if by == 0 {
            return;
        }
        match self.options.tool {
            Tool::None => {}
            Tool::Count => {
                let space = self.space_of(tid);
                let count = space.read_slot(FIRST_COUNT).wrapping_add_signed(by);
                space.write_slot(FIRST_COUNT, count);
            }
            Tool::Trace => self.trace_undo(tid, by),
        }
    }

    // Threads come and go.

    /// Registers a thread reported by its creator.
    pub(crate) fn expect(&mut self, task: Task) -> Outcome<()> {
        let tid = task.tid;
        self.spaces.get_mut(&task.space).expect("a space").users += 1;
        self.tasks.insert(tid, task);
        if self.early.remove(&tid).is_some() { self.begin(tid) } else { Ok(()) }
    }

    /// A new thread's first stop.
    fn begin(&mut self, tid: Tid) -> Outcome<()> {
        let State::New(registers) = self.task(tid).state else {
            panic!("thread {tid} begins twice");
        };
        // Stack and thread pointer are the new thread's own.
        let own = ptrace::registers(tid)?;
        let registers = Registers {
            rsp: own.rsp,
            fs_base: own.fs_base,
            gs_base: own.gs_base,
            ..registers
        };
        self.task(tid).state = State::Ready(registers);
        if self.space_of(tid).trace.is_none() {
            self.start_trace(tid)?;
        }
        self.becomes_ready(tid)
    }

    fn ended(&mut self, tid: Tid, stop: Stop) -> Outcome<()> {
        let Some(task) = self.tasks.remove(&tid) else { return Ok(()) };
        self.leave_space(&task);
        if tid == self.first {
            self.report.ended = Some(match stop {
                Stop::Killed(signal) => Ended::Signal(signal),
                Stop::Exited(status) => Ended::Status(status),
                _ => unreachable!("only ends come here"),
            });
            self.report.descendants_alive = self.processes_alive();
            (self.options.on_end)(&self.report);
        }
        self.next_in(task.space)
    }

    /// The next thread of a space has its turn, if nobody has.
    pub(crate) fn next_in(&mut self, id: SpaceId) -> Outcome<()> {
        let Some(space) = self.spaces.get_mut(&id) else { return Ok(()) };
        if space.current.is_some() {
            return Ok(());
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
        if space.users == 0 {
            let space = self.spaces.remove(&task.space).expect("just seen");
            self.close(space);
        }
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
        let next = space.read_slot(TRACE_NEXT);
        space.write_slot(CALLS_IN_PROCESS, 0);
        space.trace_next = next;
        self.report.instructions += count;
        self.report.calls_in_process += calls;
    }

    fn close(&mut self, space: Space) {
        let code = space.code;
        self.code_closed(&code);
        if let Some(trace) = space.trace {
            let totals = trace.finish(space.trace_next);
            self.report.instructions += totals.instructions;
            self.report.trace_instructions += totals.instructions;
        }
        // Processes forked from this one may go on with the same code; what has been
        // translated so far is reported once, here.
        self.report.add_code(std::mem::take(&mut code.borrow_mut().statistics));
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
            hidden_mask: 0,
            app_gs: 0,
            affinity: None,
            steps_itself: false,
            faulted_call: None,
            unwatch_at_turn: false,
        }
    }

    fn unknown_instruction(&mut self, tid: Tid, pc: Address) -> EngineError {
        let mut bytes = [0; 15];
        let space = self.space_of(tid);
        let got = space.memory.read(pc, &mut bytes).unwrap_or(0);
        crate::unknown::instruction(pc, &bytes[..got])
    }

    /// No instruction can be read where one should be: it is cut off by the end of
    /// executable memory, or it is none, or the CPU knows better.
    pub(crate) fn try_instruction(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        let pc = registers.rip;
        let mut bytes = [0; LONGEST];
        let space = self.space_of(tid);
        let got = Reader::new(&mut space.regions, &space.memory).fetch(pc, &mut bytes);
        if why_translate::is_cut_off(pc, &bytes[..got]) {
            return self.fetch_fault(tid, registers, pc + got as u64);
        }
        self.make_room(tid, pc)?;
        let code = self.space_of(tid).code.clone();
        let at = {
            let mut code = code.borrow_mut();
            let arena = code.arena_for(pc).expect("just made room");
            code.arenas[arena].place(Item::Glue, &bytes)
        };
        ptrace::set_registers(tid, &Registers { rip: at, orig_rax: u64::MAX, ..registers })?;
        loop {
            ptrace::step(tid, 0)?;
            let Stop::Signal(signal) = self.wait_for(tid)? else { continue };
            let mut info = ptrace::signal_info(tid).map_err(|_| Halt::Gone)?;
            if !signals::is_synchronous(&info) {
                self.task(tid).hold_back(info);
            } else if signal == libc::SIGTRAP {
                return Err(crate::unknown::instruction(pc, &bytes[..got]).into());
            } else {
                if signal == libc::SIGILL {
                    crate::deliver::set_fault_address(&mut info, pc);
                }
                return self.deliver(tid, registers, info);
            }
        }
    }
}

/// In the flags register.
const TRAP_FLAG: u64 = 1 << 8;

/// No instruction is longer.
const LONGEST: usize = 15;

/// Why there is no unit for an address.
pub enum Untranslatable {
    /// Nothing there is executable: the application faults.
    NoCode,
    /// There is, but it is not an instruction.
    NoInstruction,
    Halt(Halt),
}

impl From<TranslateError> for Untranslatable {
    fn from(error: TranslateError) -> Self {
        match error {
            TranslateError::NoInstruction(_) => Untranslatable::NoInstruction,
            other => Untranslatable::Halt(Halt::Engine(other.into())),
        }
    }
}

impl From<Halt> for Untranslatable {
    fn from(halt: Halt) -> Self {
        Untranslatable::Halt(halt)
    }
}

pub(crate) fn set_register(registers: &mut Registers, number: u8, value: u64) {
    let place = match number {
        0 => &mut registers.rax,
        1 => &mut registers.rcx,
        2 => &mut registers.rdx,
        3 => &mut registers.rbx,
        4 => &mut registers.rsp,
        5 => &mut registers.rbp,
        6 => &mut registers.rsi,
        7 => &mut registers.rdi,
        8 => &mut registers.r8,
        9 => &mut registers.r9,
        10 => &mut registers.r10,
        11 => &mut registers.r11,
        12 => &mut registers.r12,
        13 => &mut registers.r13,
        14 => &mut registers.r14,
        _ => &mut registers.r15,
    };
    *place = value;
}
