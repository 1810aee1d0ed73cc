//! Signals: from the kernel to the application, with the application's own registers.
//!
//! The kernel itself builds the frame: it is given the application's registers and
//! one single step with the signal, which ends at the handler's first instruction.

use crate::arena::Item;
use crate::cache::TRAP_FLAG;
use crate::code::UnitId;
use crate::error::Halt;
use crate::memory::{Address, page_of};
use crate::ptrace::{self, Registers, Stop};
use crate::regions::Reader;
use crate::replaying::TIMER_SIGNAL;
use crate::settle::set_register;
use crate::signals::{self, Disposition, NEVER_BLOCKED};
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{Call, State, Tid};
use libc::siginfo_t;
use why_record::event::Cause;
use why_trace::register::RCX;
use why_translate::context::TRACE_NEXT;
use why_translate::{Place, TranslateError};

/// Some calls, `epoll_wait` for one, end when they are interrupted by no more than a
/// tracer. Nothing has happened to the application, so they are made again.
const GAVE_UP: i64 = -(libc::EINTR as i64);

const SYS_CLOSE: u64 = libc::SYS_close as u64;

/// The length of `syscall`.
const SYSCALL_BYTES: u64 = 2;

/// Where the signal mask lies in a frame: behind the return address, and in
/// ucontext behind flags, link, stack and registers.
const FRAME_MASK: u64 = 8 + 8 + 8 + 24 + 256;

/// Where the flags lie in a frame.
const FRAME_FLAGS: u64 = 8 + 8 + 8 + 24 + 17 * 8;

impl Supervisor {
    /// A running thread is about to receive a signal.
    pub(crate) fn signalled(&mut self, tid: Tid) -> Outcome<()> {
        let info = ptrace::signal_info(tid).map_err(|_| Halt::Gone)?;
        if signals::is_synchronous(&info) {
            return self.faulted(tid, info);
        }
        if self.replays() && info.si_signo == TIMER_SIGNAL {
            return self.time_is_up(tid);
        }
        let Some(info) = self.task(tid).said_before(info) else {
            return self.go_on_undisturbed(tid);
        };
        let signal = info.si_signo;
        if self.task(tid).hidden_mask & signals::bit(signal) != 0 {
            self.task(tid).hold_back(info);
            return self.go_on_undisturbed(tid);
        }
        if self.task(tid).is_too_early(&info) {
            self.send_again_later(tid, info);
            return self.go_on_undisturbed(tid);
        }
        match self.disposition(tid, signal) {
            // Where a recorded thread dies must be known.
            Disposition::Terminate if self.recorder.is_some() => {
                self.task(tid).hold_back(info);
                self.settle_and_deliver(tid)
            }
            Disposition::Handler => {
                // In a call made in the cache, the kernel knows how to restart it.
                let registers = ptrace::registers(tid)?;
                if let Some(next) = self.behind_call(tid, registers.rip) {
                    self.account_call(tid, &registers);
                    self.record_call_in_cache(tid, &registers, next)?;
                    let registers = Registers { rip: next, rcx: next, ..registers };
                    return self.deliver(tid, registers, info);
                }
                self.task(tid).hold_back(info);
                self.settle_and_deliver(tid)
            }
            Disposition::Ignore => self.go_on_undisturbed(tid),
            Disposition::Stop => Ok(ptrace::resume(tid, signal)?),
            Disposition::Terminate => {
                self.sample(tid);
                Ok(ptrace::resume(tid, signal)?)
            }
        }
    }

    pub(crate) fn send_again_later(&mut self, tid: Tid, info: siginfo_t) {
        self.task(tid).early.push((info, false));
        self.start_timer();
    }

    /// Sends the signals that came too early, if it is time; whether there are more.
    pub(crate) fn send_again(&mut self) -> bool {
        for task in self.tasks.values_mut() {
            task.only_handled = 0;
            let (pid, tid) = (task.pid, task.tid);
            for (info, sent) in task.early.iter_mut().filter(|(_, sent)| !sent) {
                *sent = true;
                // SAFETY: plain system call; its end, if it is gone, is reported separately.
                unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, info.si_signo) };
            }
        }
        self.tasks.values().any(|task| task.early.iter().any(|(_, sent)| !sent))
    }

    /// A signal came that natively would not even have been noticed. A call made in
    /// the cache that gave up because of it is made again.
    fn go_on_undisturbed(&mut self, tid: Tid) -> Outcome<()> {
        let registers = ptrace::registers(tid)?;
        // A descriptor is closed even if `close` gives up.
        let again = registers.rax as i64 == GAVE_UP && registers.orig_rax != SYS_CLOSE;
        if again && self.waits_in_cache(tid, &registers).is_some() && !self.expects_handler(tid)? {
            let again = Registers {
                rip: registers.rip - SYSCALL_BYTES,
                rax: registers.orig_rax,
                orig_rax: u64::MAX,
                ..registers
            };
            ptrace::set_registers(tid, &again)?;
        }
        Ok(ptrace::resume(tid, 0)?)
    }

    /// Whether a signal that the application handles comes right behind this one: then
    /// natively, too, a call gives up.
    fn expects_handler(&mut self, tid: Tid) -> Outcome<bool> {
        let blocked = ptrace::signal_mask(tid)?;
        let handled = |signal| self.disposition(tid, signal) == Disposition::Handler;
        let mut queued = ptrace::queued_signals(tid)?;
        queued.extend(ptrace::queued_for_process(tid)?);
        let mut queued = queued.into_iter().map(|info| info.si_signo);
        Ok(queued.any(|signal| blocked & signals::bit(signal) == 0 && handled(signal)))
    }

    pub(crate) fn disposition(&self, tid: Tid, signal: i32) -> Disposition {
        self.tasks[&tid].actions.borrow().disposition(signal)
    }

    /// Delivers a signal to a thread with these application registers. The thread is
    /// in a stop for a signal.
    pub(crate) fn deliver(
        &mut self,
        tid: Tid,
        registers: Registers,
        info: siginfo_t,
    ) -> Outcome<()> {
        let signal = info.si_signo;
        let synchronous = signals::is_synchronous(&info);
        let cause = if synchronous { Cause::Fault(signal) } else { Cause::Signal(signal) };
        if self.replays() {
            return self.replay_stop(tid, &registers, cause);
        }
        self.task(tid).note_delivery(&info, registers.rip);
        self.record_stop(tid, &registers, cause)?;
        // A handler begins with other registers, which tell nothing of a call's result.
        self.record_results(tid, &registers)?;
        let blocked = synchronous && self.task(tid).hidden_mask & signals::bit(signal) != 0;
        let disposition = match self.disposition(tid, signal) {
            _ if blocked => Disposition::Terminate,
            // The kernel does not let a fault be ignored.
            Disposition::Ignore if synchronous => Disposition::Terminate,
            other => other,
        };
        match disposition {
            Disposition::Handler => self.call_handler(tid, registers, info),
            Disposition::Ignore => self.enter(tid, registers),
            Disposition::Stop => {
                ptrace::set_registers(tid, &registers)?;
                ptrace::set_signal_info(tid, &info)?;
                self.task(tid).state = State::Stopping(registers);
                ptrace::resume(tid, signal)?;
                self.release(tid)
            }
            Disposition::Terminate => {
                self.checkpoint_at_end(tid)?;
                self.sample(tid);
                self.begin_end(tid);
                if blocked || self.disposition(tid, signal) == Disposition::Ignore {
                    self.reset_action(tid, signal)?;
                }
                ptrace::set_registers(tid, &registers)?;
                ptrace::set_signal_info(tid, &info)?;
                self.task(tid).state = State::Dying;
                Ok(ptrace::resume(tid, signal)?)
            }
        }
    }

    fn reset_action(&mut self, tid: Tid, signal: i32) -> Outcome<()> {
        let at = self.space_of(tid).context + crate::space::SCRATCH;
        self.space_of(tid).memory.write(at, &[0; 32]).map_err(|_| Halt::Gone)?;
        self.call(tid, libc::SYS_rt_sigaction, [signal as u64, at, 0, 8, 0, 0])?;
        Ok(())
    }

    fn call_handler(&mut self, tid: Tid, registers: Registers, info: siginfo_t) -> Outcome<()> {
        let signal = info.si_signo;
        ptrace::set_registers(tid, &registers)?;
        ptrace::set_signal_info(tid, &info)?;
        ptrace::step(tid, signal)?;
        loop {
            match self.wait_for(tid)? {
                Stop::Signal(libc::SIGTRAP) => break,
                Stop::Signal(libc::SIGSEGV) => {
                    // The frame did not fit on the stack.
                    let info = ptrace::signal_info(tid).map_err(|_| Halt::Gone)?;
                    let registers = ptrace::registers(tid)?;
                    self.frame_did_not_fit(tid, signal);
                    return self.deliver(tid, registers, info);
                }
                _ => ptrace::step(tid, 0)?,
            }
        }
        self.after_handler_entry(tid, signal, registers.eflags)?;
        let registers = ptrace::registers(tid)?;
        self.task(tid).state = State::Ready(registers);
        if self.deliver_pending(tid)? { Ok(()) } else { self.enter(tid, registers) }
    }

    /// The kernel answers with SIGSEGV, and a second one is fatal.
    fn frame_did_not_fit(&mut self, tid: Tid, signal: i32) {
        if signal == libc::SIGSEGV {
            self.task(tid).actions.borrow_mut().reset(libc::SIGSEGV);
        }
    }

    /// What the kernel did when it called a handler; `flags` were interrupted.
    fn after_handler_entry(&mut self, tid: Tid, signal: i32, flags: u64) -> Outcome<()> {
        // In front of `popf` the kernel takes the step's trap flag for the application's.
        let frame = ptrace::registers(tid)?.rsp;
        let memory = &self.space_of(tid).memory;
        if let Ok(saved) = memory.read_u64(frame + FRAME_FLAGS)
            && (saved ^ flags) & TRAP_FLAG != 0
        {
            let _ = memory.write_u64(frame + FRAME_FLAGS, saved ^ TRAP_FLAG);
        }
        let action = self.task(tid).actions.borrow().get(signal);
        if action.flags & libc::SA_RESETHAND as u64 != 0 {
            self.task(tid).actions.borrow_mut().reset(signal);
        }
        let hidden = self.task(tid).hidden_mask;
        if hidden != 0 {
            let frame = ptrace::registers(tid)?.rsp;
            let memory = &self.space_of(tid).memory;
            if let Ok(mask) = memory.read_u64(frame + FRAME_MASK) {
                let _ = memory.write_u64(frame + FRAME_MASK, mask | hidden);
            }
        }
        let mask = ptrace::signal_mask(tid)?;
        self.record_frame(tid)?;
        self.task(tid).hidden_mask |= mask & NEVER_BLOCKED;
        if mask & NEVER_BLOCKED != 0 {
            ptrace::set_signal_mask(tid, mask & !NEVER_BLOCKED)?;
        }
        Ok(())
    }

    /// A translated instruction faulted: on the application's behalf, or on ours.
    pub(crate) fn faulted(&mut self, tid: Tid, mut info: siginfo_t) -> Outcome<()> {
        let registers = ptrace::registers(tid)?;
        let signal = info.si_signo;
        if registers.rip == 0 && signal == libc::SIGSEGV {
            // No entry for this indirect target.
            return self.missed(tid, registers, registers.rcx);
        }
        let code = self.space_of(tid).code.clone();
        let mut code = code.borrow_mut();
        let Some((Item::Unit(id), offset)) = code.find(registers.rip) else {
            drop(code);
            // The application's own jump to where nothing can execute.
            return self.deliver(tid, registers, info);
        };
        let id = UnitId(id);
        if signal == libc::SIGSEGV
            && self.swap_trace(tid, &registers, fault_address(&info), &mut code, id)?
        {
            return Ok(());
        }
        if signal == libc::SIGSEGV && self.log_is_full(tid, &registers, fault_address(&info))? {
            return Ok(());
        }
        let unit = &code.placed(id).unit;
        if offset < unit.spans[0].code {
            // The application code that this unit compares cannot be read any more.
            let registers = self.unspill(tid, registers, unit.pc);
            drop(code);
            return self.code_changed(tid, id, registers);
        }
        let (index, borrowed) = match unit.place(offset) {
            Place::Before(index) => (index, [None; 3]),
            Place::Within(index, borrowed) => (index, borrowed),
            place => panic!("a fault {} at {:#x}, {place:?}", signals::name(signal), registers.rip),
        };
        let pc = unit.spans[index].pc;
        if unit.behind(index).is_some() {
            // Not the application's fault: a path that cannot be read was looked at.
            let next = unit.next_pc(index);
            self.account(tid, &code, id, offset, index + 1, &registers);
            drop(code);
            return self.begin_call(tid, Registers { rip: next, ..registers });
        }
        let mut registers = registers;
        // It may be the application's, for the length of one instruction.
        registers.gs_base = self.space_of(tid).context;
        for (register, slot) in borrowed.into_iter().flatten() {
            let value = self.space_of(tid).read_slot(slot);
            set_register(&mut registers, register, value);
        }
        // What the unit borrows as a whole was borrowed first.
        let mut registers = self.give_back(tid, registers, unit, offset);
        registers.rip = pc;
        self.account(tid, &code, id, offset, index, &registers);
        drop(code);
        if signal == libc::SIGSEGV && self.wrote_to_code(tid, registers, fault_address(&info))? {
            return Ok(());
        }
        if matches!(signal, libc::SIGILL | libc::SIGFPE) {
            set_fault_address(&mut info, pc);
        }
        self.deliver(tid, registers, info)
    }

    /// Lets the CPU itself fault on fetching from `at`, where there is no code, so that
    /// the kernel describes the fault.
    pub(crate) fn fetch_fault(
        &mut self,
        tid: Tid,
        registers: Registers,
        at: Address,
    ) -> Outcome<()> {
        let probe = if self.space_of(tid).regions.is_executable(at) {
            // Executable for the application, but nothing there can be read, as behind
            // the end of a mapped file: a load meets the same.
            let rip = self.space_of(tid).glue.load_from_rax();
            Registers { rip, rax: at, orig_rax: u64::MAX, ..registers }
        } else {
            Registers { rip: at, orig_rax: u64::MAX, ..registers }
        };
        ptrace::set_registers(tid, &probe)?;
        ptrace::resume(tid, 0)?;
        loop {
            if let Stop::Signal(signal) = self.wait_for(tid)? {
                let info = ptrace::signal_info(tid).map_err(|_| Halt::Gone)?;
                if signals::is_synchronous(&info) {
                    self.hear(tid)?;
                    if signal == libc::SIGTRAP {
                        // It can be read after all, by now.
                        return self.enter(tid, registers);
                    }
                    return self.deliver(tid, registers, info);
                }
                self.hold(tid, info)?;
            }
            ptrace::resume(tid, 0)?;
        }
    }

    /// A thread in a supervised call stopped: the call is over, or a signal came.
    pub(crate) fn stopped_in_call(&mut self, tid: Tid) -> Outcome<()> {
        let registers = ptrace::registers(tid)?;
        let gadget = self.space_of(tid).glue.call();
        let State::InCall(call) = &self.task(tid).state else {
            panic!("thread {tid} is in no call");
        };
        let call = call.clone();
        if registers.rip == gadget + 3 {
            self.hear(tid)?;
            return self.call_over(tid, &call, registers.rax);
        }
        let info = ptrace::signal_info(tid).map_err(|_| Halt::Gone)?;
        let (signal, said) = (info.si_signo, self.task(tid).said_before(info));
        if self.task(tid).hidden_mask & signals::bit(signal) != 0 {
            if let Some(info) = said {
                self.task(tid).hold_back(info);
            }
            return Ok(ptrace::resume(tid, 0)?);
        }
        let disposition = match said {
            Some(_) => self.disposition(tid, signal),
            None => Disposition::Ignore,
        };
        match disposition {
            // Natively it would not even have been noticed.
            Disposition::Ignore if u64::from(call.number) != SYS_CLOSE => {
                if self.expects_handler(tid)? {
                    return Ok(ptrace::resume(tid, 0)?);
                }
                self.disturbed_in_call(tid)
            }
            Disposition::Ignore => Ok(ptrace::resume(tid, 0)?),
            Disposition::Stop => Ok(ptrace::resume(tid, signal)?),
            Disposition::Terminate => {
                self.sample(tid);
                Ok(ptrace::resume(tid, signal)?)
            }
            Disposition::Handler => {
                self.interrupt_call(tid, &call, registers, said.unwrap_or(info))
            }
        }
    }

    fn interrupt_call(
        &mut self,
        tid: Tid,
        call: &Call,
        registers: Registers,
        info: siginfo_t,
    ) -> Outcome<()> {
        let gadget = self.space_of(tid).glue.call();
        let restarts = (-516..=-512).contains(&(registers.rax as i64));
        if registers.rip == gadget {
            // Not begun yet: it begins again after the handler.
            self.task(tid).hold_back(info);
            return self.put_off(tid, call);
        }
        // It may have replaced the signal mask until the signal is delivered.
        let gave_up = registers.rip == gadget + SYSCALL_BYTES && registers.rax as i64 == GAVE_UP;
        if !restarts && !gave_up {
            // It is over; the trap behind it will tell.
            self.hold(tid, info)?;
            return Ok(ptrace::resume(tid, 0)?);
        }
        // The kernel decides about restarting when it builds the frame, so this stop
        // must be the one from which it goes on: the handler is entered at once.
        let interrupted = Registers {
            rax: registers.rax,
            orig_rax: registers.orig_rax,
            ..call.returned(registers.rax)
        };
        let id = self.tasks[&tid].space;
        if self.spaces[&id].current.is_none() && self.may_run(id) {
            self.space_of(tid).current = Some(tid);
            return self.deliver(tid, interrupted, info);
        }
        self.enter_handler_later(tid, interrupted, info)
    }

    /// Builds the handler's frame now and lets the thread wait for its turn.
    fn enter_handler_later(
        &mut self,
        tid: Tid,
        registers: Registers,
        info: siginfo_t,
    ) -> Outcome<()> {
        let signal = info.si_signo;
        ptrace::set_registers(tid, &registers)?;
        ptrace::set_signal_info(tid, &info)?;
        ptrace::step(tid, signal)?;
        match self.wait_for(tid)? {
            Stop::Signal(libc::SIGTRAP) => {
                self.after_handler_entry(tid, signal, registers.eflags)?;
                let registers = ptrace::registers(tid)?;
                self.task(tid).state = State::Ready(registers);
                self.becomes_ready(tid)
            }
            Stop::Signal(libc::SIGSEGV) => {
                let info = ptrace::signal_info(tid).map_err(|_| Halt::Gone)?;
                self.frame_did_not_fit(tid, signal);
                let registers = ptrace::registers(tid)?;
                self.deliver(tid, registers, info)
            }
            stop => {
                self.deferred.push_back((tid, stop));
                Err(Halt::Gone)
            }
        }
    }

    /// A thread was interrupted in a call although nothing happened to the application.
    pub(crate) fn disturbed_in_call(&mut self, tid: Tid) -> Outcome<()> {
        let registers = ptrace::registers(tid)?;
        let gadget = self.space_of(tid).glue.call();
        if registers.rip == gadget + 2 && registers.rax as i64 == GAVE_UP {
            let again =
                Registers { rip: gadget, rax: registers.orig_rax, orig_rax: u64::MAX, ..registers };
            ptrace::set_registers(tid, &again)?;
        }
        Ok(ptrace::resume(tid, 0)?)
    }

    /// Counts a unit that is left right behind a call made in it.
    fn account_call(&mut self, tid: Tid, registers: &Registers) {
        let code = self.space_of(tid).code.clone();
        let mut code = code.borrow_mut();
        if let Some((Item::Unit(id), offset)) = code.find(registers.rip)
            && let Place::BehindSyscall(index) = code.placed(UnitId(id)).unit.place(offset)
        {
            self.account(tid, &code, UnitId(id), offset, index + 1, registers);
        }
    }

    /// A thread waits in a call that it made in the cache while another could run:
    /// it goes on waiting as if the supervisor had begun the call.
    pub(crate) fn convert_to_call(
        &mut self,
        tid: Tid,
        registers: Registers,
        next: Address,
    ) -> Outcome<()> {
        self.account_call(tid, &registers);
        self.record_call_in_cache(tid, &registers, next)?;
        let gadget = self.space_of(tid).glue.call();
        let number = registers.orig_rax as u32;
        let at_call = Registers { rip: next, rax: registers.orig_rax, ..registers };
        let resumed = if registers.rax as i64 == GAVE_UP {
            Registers { rip: gadget, rax: registers.orig_rax, orig_rax: u64::MAX, ..registers }
        } else {
            Registers { rip: gadget + 2, ..registers }
        };
        ptrace::set_registers(tid, &resumed)?;
        self.keep_vectors(tid, number)?;
        let call = Call { number, registers: at_call };
        self.task(tid).state = State::InCall(call);
        ptrace::resume(tid, 0)?;
        self.release(tid)
    }

    /// If the fault is the trace buffer's end: hands it over and goes on.
    fn swap_trace(
        &mut self,
        tid: Tid,
        registers: &Registers,
        address: Address,
        code: &mut crate::code::Code,
        id: UnitId,
    ) -> Outcome<bool> {
        // Who else executes the same units might be in the middle of one.
        let may_turn = self.replays() && !self.shares_code(tid);
        let space = self.space_of(tid);
        let Some(trace) = space.trace.as_mut() else {
            return Ok(false);
        };
        if !trace.is_guard(address) {
            return Ok(false);
        }
        let next =
            space.memory.read_u64(space.context + TRACE_NEXT.0 as u64).map_err(|_| Halt::Gone)?;
        let next = trace.swap(next);
        let anew = std::mem::take(&mut trace.anew);
        space.write_slot(TRACE_NEXT, next);
        if may_turn {
            // Other code has to be watched, when somebody comes there.
            let mut reader =
                Reader { constant_only: true, ..Reader::new(&mut space.regions, &space.memory) };
            for anew in anew {
                code.make_anew(anew, registers.rip, &mut reader);
            }
        }
        // A unit that is a system call needs none of its own.
        let borrowed = code.placed(id).unit.borrowed.as_ref();
        let register = borrowed.map_or(RCX, |borrowed| borrowed.register);
        let mut registers = *registers;
        set_register(&mut registers, register, next);
        ptrace::set_registers(tid, &registers)?;
        self.run_on(tid)?;
        Ok(true)
    }

    /// If the address is in a page that is read-only only because code was translated
    /// from it: forgets that code and lets the one instruction write.
    fn wrote_to_code(&mut self, tid: Tid, registers: Registers, address: Address) -> Outcome<bool> {
        if !self.unwatch_page(tid, page_of(address))? {
            return Ok(false);
        }
        self.enter_single(tid, registers)?;
        Ok(true)
    }

    /// Executes one instruction from a unit that is not kept.
    pub(crate) fn enter_single(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        self.enter_few(tid, registers, 1, false)
    }

    /// Executes at most so many instructions from a unit that is not kept.
    pub(crate) fn enter_few(
        &mut self,
        tid: Tid,
        registers: Registers,
        at_most: usize,
        plain: bool,
    ) -> Outcome<()> {
        let pc = registers.rip;
        self.make_room(tid, pc)?;
        let space = self.space_of(tid);
        let code = space.code.clone();
        let mut reader = Reader::new(&mut space.regions, &space.memory);
        let before = code.borrow().statistics.units;
        let unit = code.borrow_mut().translate_few(pc, &mut reader, at_most, plain);
        if unit.is_ok() && at_most > 1 {
            // They may change each other.
            self.watch_new_code(tid, before)?;
        }
        match unit {
            Ok(entry) => self.go(tid, Registers { rip: entry, orig_rax: u64::MAX, ..registers }),
            Err(TranslateError::NoInstruction(_)) => self.try_instruction(tid, registers),
            Err(TranslateError::Unexpected(_)) => self.enter_beyond(tid, registers),
            Err(error) => Err(Halt::Engine(error.into())),
        }
    }
}

/// The address in a fault's description.
fn fault_address(info: &siginfo_t) -> Address {
    // SAFETY: for the synchronous signals this field is what the kernel filled in.
    unsafe { info.si_addr() as Address }
}

pub(crate) fn set_fault_address(info: &mut siginfo_t, address: Address) {
    // siginfo_t is signo, errno, code, padding, then the union whose first word is
    // the address.
    // SAFETY: the offset lies within siginfo_t's 128 bytes.
    unsafe {
        let place = std::ptr::from_mut(info).cast::<u8>().add(16).cast::<u64>();
        place.write_unaligned(address);
    }
}
