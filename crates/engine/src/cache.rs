//! How threads enter the code cache, and what they leave it for.

use crate::arena::Item;
use crate::code::{CodeSource, UnitId};
use crate::error::{EngineError, Halt};
use crate::memory::Address;
use crate::ptrace::{self, Registers, Stop};
use crate::regions::Reader;
use crate::signals::{self};
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{State, Tid};
use libc::siginfo_t;
use why_record::event::Cause;
use why_translate::context::{SAVED_RCX, SAVED_RDX};
use why_translate::{ExitKind, Place, SpanDetail, TranslateError};

/// In the flags register.
pub(crate) const TRAP_FLAG: u64 = 1 << 8;

/// No instruction is longer.
const LONGEST: usize = 15;

impl Supervisor {
    /// Lets a thread go on at an application address.
    pub(crate) fn enter(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        self.cross_border(tid, &registers)?;
        self.record_resume(tid, &registers)?;
        let pc = registers.rip;
        if registers.eflags & TRAP_FLAG != 0 && self.space_of(tid).regions.is_executable(pc) {
            // It steps itself: every instruction must be seen to end.
            return self.enter_single(tid, registers);
        }
        if let Some(few) = self.instructions_to_border(tid)? {
            return self.enter_few(tid, registers, few, false);
        }
        match self.unit_for(tid, pc) {
            Ok(entry) => self.go(tid, Registers { rip: entry, orig_rax: u64::MAX, ..registers }),
            Err(Untranslatable::NoCode) => self.fetch_fault(tid, registers, pc),
            Err(Untranslatable::NoInstruction) => self.try_instruction(tid, registers),
            Err(Untranslatable::Unexpected) => self.enter_beyond(tid, registers),
            Err(Untranslatable::Halt(halt)) => Err(halt),
        }
    }

    /// Continues with exactly these registers.
    pub(crate) fn go(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        self.trace_entry(tid, &registers);
        self.proceed(tid, registers)
    }

    /// The same behind an instruction of its own, where nothing has happened that a trace does not
    /// tell.
    fn proceed(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        ptrace::set_registers(tid, &registers)?;
        self.task(tid).state = State::Running;
        self.task(tid).steps_itself |= registers.eflags & TRAP_FLAG != 0;
        self.patch_code(tid);
        self.run_on(tid)
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
        // Code that can change is watched in this process only: no other may have its units.
        if self.shares_code(tid)
            && let Some(unit) = self.unit_for_quietly(tid, pc)
        {
            return Ok(unit);
        }
        self.own_code(tid)?;
        let code = self.space_of(tid).code.clone();
        if let Some(entry) = code.borrow().entry(pc) {
            return Ok(entry);
        }
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
    pub(crate) fn watch_new_code(&mut self, tid: Tid, before: u64) -> Outcome<()> {
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
    pub(crate) fn stepped(
        &mut self,
        tid: Tid,
        registers: Registers,
        mut info: siginfo_t,
    ) -> Outcome<()> {
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
        let Some(settled) = settled else {
            return Ok(());
        };
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
            Some((Item::Glue, _)) => false,
            None => true,
        }
    }

    /// A trap in the cache: which exit was it?
    pub(crate) fn trapped(&mut self, tid: Tid) -> Outcome<()> {
        let registers = ptrace::registers(tid)?;
        // The flag is clear already behind the instruction that cleared it.
        let steps = registers.eflags & TRAP_FLAG != 0;
        if steps || self.task(tid).steps_itself {
            self.task(tid).steps_itself = steps;
            let info = ptrace::signal_info(tid).map_err(|_| Halt::Gone)?;
            if info.si_code == libc::TRAP_TRACE {
                self.note_stepping()?;
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
        let (kind, alone) = {
            let code = code.borrow();
            let unit = &code.placed(from).unit;
            (unit.exits[exit].kind, unit.alone)
        };
        if alone {
            self.task(tid).passing = None;
        }
        match kind {
            ExitKind::Direct(target) if alone && self.task(tid).stops_at.is_some() => {
                let registers = ptrace::registers(tid)?;
                self.stopped_on_the_way(tid, Registers { rip: target, ..registers })
            }
            ExitKind::Indirect => {
                let registers = ptrace::registers(tid)?;
                let registers = self.unspill(tid, registers, registers.rcx);
                self.stopped_on_the_way(tid, registers)
            }
            ExitKind::Direct(target) if self.has_stopped(tid) => {
                // It has executed an instruction whose result is to be recorded.
                let registers = ptrace::registers(tid)?;
                self.enter(tid, Registers { rip: target, ..registers })
            }
            ExitKind::Direct(target) => match self.unit_for_quietly(tid, target) {
                Some(to) if !code.borrow().is_dead(from) => {
                    code.borrow_mut().link(from, exit as u32, to);
                    self.patch_code(tid);
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
            ExitKind::Asks { next } => {
                let registers = ptrace::registers(tid)?;
                if self.is_harmless(tid, &registers) {
                    self.report.calls_supervised += 1;
                    return Ok(ptrace::resume(tid, 0)?);
                }
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
            ExitKind::Varies { pc } => {
                let registers = Registers { rip: pc, ..ptrace::registers(tid)? };
                if self.replays() {
                    return self.replay_stop(tid, &registers, Cause::Instruction);
                }
                self.record_stop(tid, &registers, Cause::Instruction)?;
                if let Some(answered) = self.answer_for_cpu(tid, &registers)? {
                    self.adjust_count(tid, 1);
                    return self.enter(tid, answered);
                }
                self.record_varying(tid, &registers);
                self.enter_few(tid, registers, 1, true)
            }
            ExitKind::Stopped { pc } => {
                let registers = ptrace::registers(tid)?;
                self.stopped_on_the_way(tid, Registers { rip: pc, ..registers })
            }
            ExitKind::Unsupported { pc } => Err(self.unknown_instruction(tid, pc).into()),
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
        let mut reader =
            Reader { constant_only: true, ..Reader::new(&mut space.regions, &space.memory) };
        code.borrow_mut().translate(pc, &mut reader).ok()
    }

    /// An indirect branch to an address that has no entry yet. rcx and rdx are where
    /// the branch saved them.
    pub(crate) fn missed(
        &mut self,
        tid: Tid,
        registers: Registers,
        target: Address,
    ) -> Outcome<()> {
        let space = self.space_of(tid);
        let registers = Registers {
            rcx: space.read_slot(SAVED_RCX),
            rdx: space.read_slot(SAVED_RDX),
            rip: target,
            ..registers
        };
        self.make_room_for_links(tid, 1)?;
        match self.unit_for(tid, target) {
            Ok(entry) => {
                self.space_of(tid).code.borrow_mut().make_indirect(target, entry);
                self.proceed(tid, Registers { rip: entry, orig_rax: u64::MAX, ..registers })
            }
            Err(_) => self.enter(tid, registers),
        }
    }

    /// A jump led to a unit whose application code has changed since.
    pub(crate) fn entered_dead(&mut self, tid: Tid, dead: UnitId) -> Outcome<()> {
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
            let Stop::Signal(signal) = self.wait_for(tid)? else {
                continue;
            };
            let mut info = ptrace::signal_info(tid).map_err(|_| Halt::Gone)?;
            if !signals::is_synchronous(&info) {
                self.hold(tid, info)?;
                continue;
            }
            self.hear(tid)?;
            if signal == libc::SIGTRAP {
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

/// Why there is no unit for an address.
pub enum Untranslatable {
    /// Nothing there is executable: the application faults.
    NoCode,
    /// There is, but it is not an instruction.
    NoInstruction,
    /// It needs a CPU feature that the application is not shown.
    Unexpected,
    Halt(Halt),
}

impl From<TranslateError> for Untranslatable {
    fn from(error: TranslateError) -> Self {
        match error {
            TranslateError::NoInstruction(_) => Untranslatable::NoInstruction,
            TranslateError::Unexpected(_) => Untranslatable::Unexpected,
            other => Untranslatable::Halt(Halt::Engine(other.into())),
        }
    }
}

impl From<Halt> for Untranslatable {
    fn from(halt: Halt) -> Self {
        Untranslatable::Halt(halt)
    }
}
