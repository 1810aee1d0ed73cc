//! From anywhere in the code cache back to the application's own state.

use crate::arena::Item;
use crate::cache::TRAP_FLAG;
use crate::code::{Code, UnitId};
use crate::error::Halt;
use crate::memory::Address;
use crate::ptrace::{self, Registers, Stop};
use crate::signals::{self};
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use why_translate::context::{LAST_CALL, SAVED_RCX, SAVED_RDX, SAVED_TRACE};
use why_translate::{ExitKind, Place};

impl Supervisor {
    /// The call in which a thread waits, made in the cache without the supervisor.
    pub(crate) fn waits_in_cache(&mut self, tid: Tid, registers: &Registers) -> Option<Address> {
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
        let (Item::Unit(id), offset) = code.find(rip)? else {
            return None;
        };
        let unit = &code.placed(UnitId(id)).unit;
        let Place::BehindSyscall(index) = unit.place(offset) else {
            return None;
        };
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
                self.hear(tid)?;
                return Ok(Some(settled));
            }
            if !self.tasks[&tid].pending.is_empty() {
                self.deafen(tid)?;
            }
            ptrace::step(tid, 0)?;
            match self.wait_for(tid)? {
                Stop::Signal(libc::SIGTRAP) | Stop::Interrupted => {
                    self.hide_step(tid, &registers)?;
                }
                Stop::Signal(libc::SIGSEGV) if ptrace::rip(tid)? == 0 => {
                    self.hear(tid)?;
                    let registers = ptrace::registers(tid)?;
                    return Ok(Some(self.unspill(tid, registers, registers.rcx)));
                }
                Stop::Signal(_) => {
                    let info = ptrace::signal_info(tid).map_err(|_| Halt::Gone)?;
                    if signals::is_synchronous(&info) {
                        self.hear(tid)?;
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

    /// Instructions that store the flags also store that they are being stepped.
    fn hide_step(&mut self, tid: Tid, before: &Registers) -> Outcome<()> {
        const PUSHF: u8 = 0x9c;
        const SYSCALL: [u8; 2] = [0x0f, 0x05];
        const WORD_SIZED: u8 = 0x66;
        if before.eflags & TRAP_FLAG != 0 {
            return Ok(());
        }
        let after = ptrace::registers(tid)?;
        let memory = &self.space_of(tid).memory;
        let mut bytes = [0; 2];
        if after.rip == before.rip || memory.read_exact(before.rip, &mut bytes).is_err() {
            return Ok(());
        }
        if bytes[0] == PUSHF || bytes == [WORD_SIZED, PUSHF] {
            let mut flags = [0; 2];
            if memory.read_exact(after.rsp, &mut flags).is_ok() {
                let _ = memory.write(after.rsp + 1, &[flags[1] & !1]);
            }
        } else if bytes == SYSCALL {
            ptrace::set_registers(tid, &Registers { r11: after.r11 & !TRAP_FLAG, ..after })?;
        }
        Ok(())
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
    pub(crate) fn settled(&mut self, tid: Tid, registers: &Registers) -> Option<Registers> {
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
                self.account(tid, code, id, offset, index, registers);
                Some(self.give_back(tid, at, unit, offset))
            }
            Place::BehindSyscall(index) => {
                let next = unit.next_pc(index);
                self.account(tid, code, id, offset, index + 1, registers);
                // An error here would come again where the thread goes on.
                let _ = self.record_call_in_cache(tid, registers, next);
                Some(Registers { rip: next, rcx: next, ..*registers })
            }
            Place::AtExit(exit) => match unit.exits[exit].kind {
                ExitKind::Direct(target) => Some(Registers { rip: target, ..*registers }),
                ExitKind::Syscall { next } | ExitKind::Asks { next } => {
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
                ExitKind::Indirect => Some(self.unspill(tid, *registers, registers.rcx)),
                ExitKind::Stale => Some(Registers { rip: unit.pc, ..*registers }),
                ExitKind::Unsupported { pc }
                | ExitKind::Stopped { pc }
                | ExitKind::Varies { pc } => Some(Registers { rip: pc, ..*registers }),
            },
            Place::Within(..) | Place::Leaving => None,
        }
    }

    /// The register that a traced unit borrowed, with its application value.
    pub(crate) fn give_back(
        &mut self,
        tid: Tid,
        mut registers: Registers,
        unit: &why_translate::Unit,
        offset: u32,
    ) -> Registers {
        if let Some(borrowed) = &unit.borrowed
            && offset > borrowed.from
            && unit.committed_from.is_none_or(|from| offset < from)
        {
            let value = self.space_of(tid).read_slot(SAVED_TRACE);
            set_register(&mut registers, borrowed.register, value);
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
        registers: &Registers,
    ) {
        let unit = &code.placed(id).unit;
        if code.tool().counts() {
            self.correct_count(tid, unit.uncounted(offset, executed));
        }
        if code.tool().traces() {
            let id = |traced: &_| code.shapes.write().expect("no panic").id(traced, executed);
            self.trace_partial(tid, unit, offset, executed, &id, registers);
        }
    }

    /// The thread's count is wrong by so much, and so is the trace.
    pub(crate) fn adjust_count(&mut self, tid: Tid, by: i64) {
        if self.correct_count(tid, by) {
            self.trace_recount(tid, by);
        }
    }

    /// An instruction counts that is told rather than executed; these are the registers
    /// before it.
    pub(crate) fn count_told(&mut self, tid: Tid, registers: &Registers) {
        self.correct_count(tid, 1);
        self.trace_told(tid, registers);
    }

    /// The thread's count is wrong by so much. While another one is executing, its figures
    /// are being changed: the thread then waits for its turn. Whether it is done now.
    fn correct_count(&mut self, tid: Tid, by: i64) -> bool {
        if by == 0 {
            return false;
        }
        if self.space_of(tid).current.is_some_and(|current| current != tid) {
            self.task(tid).recount += by;
            return false;
        }
        if self.options.tool.counts() {
            let space = self.space_of(tid);
            space.counted = space.counted.wrapping_add_signed(by);
            space.looks_before = None;
        }
        true
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
