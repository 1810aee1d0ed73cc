//! System calls that the supervisor makes, or answers itself.

use crate::error::Halt;
use crate::ptrace::{self, Registers, Stop};
use crate::recording::locks::{changes_lock, takes_lock};
use crate::signals::{Action, NEVER_BLOCKED, bit};
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{Call, State, Tid, returned};
use std::rc::Rc;
use why_record::event::Cause;
use why_translate::context::{APP_GS, CALLS_IN_PROCESS, LAST_CALL};

const ENOSYS: u64 = -(libc::ENOSYS as i64) as u64;
const ENOSPC: u64 = -(libc::ENOSPC as i64) as u64;
const EINVAL: u64 = -(libc::EINVAL as i64) as u64;
const EFAULT: u64 = -(libc::EFAULT as i64) as u64;

const ARCH_SET_GS: u64 = 0x1001;
const ARCH_GET_GS: u64 = 0x1004;
/// Shadow stacks, which would see the cache's calls and not the application's.
const ARCH_SHADOW_STACKS: std::ops::RangeInclusive<u64> = 0x5001..=0x5005;
/// Registers that a program must ask for before it uses them.
const ARCH_MORE_REGISTERS: std::ops::RangeInclusive<u64> = 0x1021..=0x1025;
const PR_SET_SYSCALL_USER_DISPATCH: u64 = 59;

impl Supervisor {
    /// The thread, its space's current one, wants to make the call that `registers`
    /// describe, with rip behind its `syscall`.
    pub(crate) fn begin_call(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        self.report.calls_supervised += 1;
        let number = registers.rax as u32;
        if self.replays() {
            return self.replay_call(tid, registers);
        }
        if self.signal_comes_first(tid, &registers)? {
            return Ok(());
        }
        if self.recorder.is_some() {
            self.record_stop(tid, &registers, Cause::Call(number))?;
            self.task(tid).recorded_call = Some(registers);
            match i64::from(number) {
                libc::SYS_set_tid_address => self.task(tid).cleared_at_end = registers.rdi,
                libc::SYS_set_robust_list => self.task(tid).robust_list = registers.rdi,
                _ => {}
            }
            if let Some(other) = self.other_written(tid, &registers) {
                return self.write_to_other(tid, registers, other);
            }
        }
        match i64::from(number) {
            // The kernel would write to memory in a way that is not recorded; the C
            // library then uses `clone`.
            libc::SYS_clone3 if self.recorder.is_some() => self.answer(tid, &registers, ENOSYS),
            libc::SYS_rseq
            | libc::SYS_io_uring_setup
            | libc::SYS_io_uring_enter
            | libc::SYS_io_uring_register => self.answer(tid, &registers, ENOSYS),
            // As on a CPU without protection keys.
            libc::SYS_pkey_alloc if self.view.limited => self.answer(tid, &registers, ENOSPC),
            libc::SYS_chdir => {
                let result = self.make(tid, &registers)?;
                self.look_at_directory(tid);
                self.answer(tid, &registers, result)
            }
            _ if self.memory_written(tid, &registers).is_some() => {
                let result = self.make(tid, &registers)?;
                self.code_replaced(tid, 0..u64::MAX)?;
                self.record_write_to_memory(tid, &registers, result)?;
                self.answer(tid, &registers, result)
            }
            libc::SYS_rt_sigprocmask => self.change_mask(tid, registers),
            libc::SYS_rt_sigaction => self.change_action(tid, registers),
            libc::SYS_rt_sigpending => self.pending_signals(tid, registers),
            libc::SYS_rt_sigtimedwait => {
                self.unwatch_results(tid, &[(registers.rsi, 128)])?;
                self.wait_for_signal(tid, registers)
            }
            libc::SYS_wait4 => {
                self.unwatch_results(tid, &[(registers.rsi, 4), (registers.r10, 144)])?;
                self.release_into(tid, registers)
            }
            libc::SYS_waitid => {
                self.unwatch_results(tid, &[(registers.rdx, 128), (registers.r8, 144)])?;
                self.release_into(tid, registers)
            }
            libc::SYS_rt_sigreturn => self.return_from_handler(tid, registers),
            libc::SYS_mmap
            | libc::SYS_munmap
            | libc::SYS_mprotect
            | libc::SYS_pkey_mprotect
            | libc::SYS_mremap
            | libc::SYS_madvise
            | libc::SYS_shmat
            | libc::SYS_shmdt
            | libc::SYS_remap_file_pages => self.change_memory(tid, registers),
            libc::SYS_sched_setaffinity => self.set_affinity(tid, registers),
            libc::SYS_sched_getaffinity => self.get_affinity(tid, registers),
            libc::SYS_arch_prctl => self.architecture(tid, registers),
            libc::SYS_prctl if registers.rdi == PR_SET_SYSCALL_USER_DISPATCH => {
                self.answer(tid, &registers, EINVAL)
            }
            libc::SYS_exit => {
                self.sample(tid);
                if self.recorder.is_some() {
                    return self.record_exit(tid, registers);
                }
                self.release_into(tid, registers)
            }
            // What goes to a standard stream without coming by memory could not be told; whoever
            // tries this has another way.
            libc::SYS_sendfile if self.is_recorded_stream(tid, registers.rdi) => {
                self.answer(tid, &registers, EINVAL)
            }
            libc::SYS_splice | libc::SYS_copy_file_range
                if self.is_recorded_stream(tid, registers.rdx) =>
            {
                self.answer(tid, &registers, EINVAL)
            }
            libc::SYS_brk if self.recorder.is_some() => {
                let result = self.make(tid, &registers)?;
                self.record_heap(tid, result)?;
                self.answer(tid, &registers, result)
            }
            // Else another thread could write behind this one and be told of before it.
            libc::SYS_write | libc::SYS_writev if self.writes_at_once(tid, &registers) => {
                self.hold_into(tid, registers)
            }
            // After these there is nothing left to read figures from, so nobody else
            // may execute once they have been read.
            libc::SYS_exit_group | libc::SYS_execve | libc::SYS_execveat => {
                self.sample(tid);
                self.look_at_shared_locks();
                if i64::from(number) == libc::SYS_exit_group {
                    self.checkpoint_at_end(tid)?;
                    self.begin_end(tid);
                }
                self.hold_into(tid, registers)
            }
            // What other threads did to the memory meanwhile, the new process might have
            // or not; and a new thread's number, the others might have seen or not.
            libc::SYS_fork | libc::SYS_clone | libc::SYS_clone3
                if self.creates_at_once(tid, &registers) =>
            {
                self.hold_into(tid, registers)
            }
            libc::SYS_kill | libc::SYS_tkill | libc::SYS_tgkill => {
                self.look_at_shared_locks();
                // It may be the last thing that this process does.
                self.sample(tid);
                self.pass(tid, registers)
            }
            libc::SYS_futex if self.recorder.is_some() && changes_lock(&registers) => {
                self.pass(tid, registers)
            }
            libc::SYS_futex if self.recorder.is_some() && takes_lock(&registers) => {
                self.take_lock(tid, registers)
            }
            _ if crate::calls::name(number).is_none() => self.unknown_call(tid, registers),
            _ => self.release_into(tid, registers),
        }
    }

    /// Gives the call's result to the thread without troubling the kernel.
    pub(crate) fn answer(&mut self, tid: Tid, at_call: &Registers, result: u64) -> Outcome<()> {
        self.finish(tid, returned(at_call, result))
    }

    /// Goes on with these registers; the thread has had its turn all along.
    pub(crate) fn finish(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        self.task(tid).state = State::Ready(registers);
        self.becomes_ready(tid)
    }

    /// Makes the call while nobody else runs.
    fn pass(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        let result = self.make(tid, &registers)?;
        self.answer(tid, &registers, result)
    }

    /// The application's call as it stands.
    pub(crate) fn make(&mut self, tid: Tid, r: &Registers) -> Outcome<u64> {
        let gadget = self.space_of(tid).glue.call();
        let arguments = [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9];
        Ok(self.call_at(tid, gadget, r, r.rax as i64, arguments)? as u64)
    }

    /// Starts the call and lets others run meanwhile.
    fn release_into(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        if self.signal_comes_first(tid, &registers)? {
            return Ok(());
        }
        self.hold_into(tid, registers)?;
        self.release(tid)
    }

    /// A call is put off while a signal is held that the kernel would have delivered before it:
    /// it might wait for what the handler does, or block the signal. Whether there is one.
    pub(crate) fn signal_comes_first(&mut self, tid: Tid, at_call: &Registers) -> Outcome<bool> {
        if !self.can_deliver(tid)? {
            return Ok(false);
        }
        let call = Call { number: at_call.rax as u32, registers: *at_call };
        self.put_off(tid, &call)?;
        Ok(true)
    }

    /// A call that has not begun begins when the thread has its turn the next time.
    pub(crate) fn put_off(&mut self, tid: Tid, call: &Call) -> Outcome<()> {
        self.adjust_count(tid, -1);
        self.task(tid).recorded_call = None;
        let again = Registers {
            rip: call.next() - 2,
            rax: call.number.into(),
            orig_rax: u64::MAX,
            ..call.registers
        };
        self.finish(tid, again)
    }

    /// Starts the call and keeps the turn.
    pub(crate) fn hold_into(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        let gadget = self.space_of(tid).glue.call();
        let at_gadget = Registers { rip: gadget, orig_rax: u64::MAX, ..registers };
        ptrace::set_registers(tid, &at_gadget)?;
        let call = Call { number: registers.rax as u32, registers };
        self.keep_vectors(tid, call.number)?;
        self.task(tid).state = State::InCall(call);
        Ok(ptrace::resume(tid, 0)?)
    }

    /// A call begun by [`Supervisor::release_into`] returned.
    pub(crate) fn call_over(&mut self, tid: Tid, call: &Call, result: u64) -> Outcome<()> {
        if result == EFAULT && self.deserves_another_try(tid, call) {
            return self.make_again(tid, call);
        }
        self.task(tid).faulted_call = None;
        let opens = matches!(
            i64::from(call.number),
            libc::SYS_open | libc::SYS_openat | libc::SYS_openat2 | libc::SYS_creat
        );
        if opens && (result as i64) >= 0 {
            self.opened(tid, result)?;
        }
        self.finish(tid, call.returned(result))
    }

    /// Whether a call may have failed only because of a page that the engine watches;
    /// true once for each.
    fn deserves_another_try(&mut self, tid: Tid, call: &Call) -> bool {
        let first = self.task(tid).faulted_call != Some(call.next());
        first && !self.space_of(tid).regions.watched().is_empty()
    }

    /// Makes a call once more with no page watched. Where that means changing the cache,
    /// nobody else may be executing in it: the thread then waits for its turn.
    fn make_again(&mut self, tid: Tid, call: &Call) -> Outcome<()> {
        self.task(tid).faulted_call = Some(call.next());
        let at_call = Registers { rax: call.number.into(), ..call.registers };
        if self.space_of(tid).current.is_none_or(|current| current == tid) {
            self.unwatch_all(tid)?;
            return self.release_into(tid, at_call);
        }
        self.task(tid).unwatch_at_turn = true;
        self.put_off(tid, call)
    }

    /// A call made in the cache answered EFAULT.
    pub(crate) fn call_faulted(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        self.record_call_in_cache(tid, &registers, registers.rip)?;
        if self.unwatch_all(tid)? {
            self.task(tid).faulted_call = Some(registers.rip);
            let number = self.space_of(tid).read_slot(LAST_CALL);
            return self.begin_call(tid, Registers { rax: number, ..registers });
        }
        self.finish(tid, Registers { orig_rax: u64::MAX, ..registers })
    }

    /// A number that the engine does not know. If the kernel does not know it either,
    /// that is the answer; else what it did is unknown, and the run ends here.
    fn unknown_call(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        let result = self.make(tid, &registers)?;
        if result == ENOSYS {
            return self.answer(tid, &registers, result);
        }
        Err(crate::unknown::call(registers.rax, registers.rip - 2).into())
    }

    // Signals.

    /// rt_sigprocmask, without ever really blocking what the engine needs.
    fn change_mask(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        let Registers { rdi: how, rsi: set, rdx: old, r10: size, .. } = registers;
        if size != 8 {
            return self.answer(tid, &registers, EINVAL);
        }
        let before = ptrace::signal_mask(tid)? | self.task(tid).hidden_mask;
        if set != 0 {
            let Ok(set) = self.space_of(tid).memory.read_u64(set) else {
                return self.answer(tid, &registers, EFAULT);
            };
            let after = match how as i32 {
                libc::SIG_BLOCK => before | set,
                libc::SIG_UNBLOCK => before & !set,
                libc::SIG_SETMASK => set,
                _ => return self.answer(tid, &registers, EINVAL),
            };
            self.set_mask(tid, after)?;
        }
        if old != 0 && self.space_of(tid).memory.write_u64(old, before).is_err() {
            return self.answer(tid, &registers, EFAULT);
        }
        self.answer(tid, &registers, 0)
    }

    fn set_mask(&mut self, tid: Tid, mask: u64) -> Outcome<()> {
        self.task(tid).hidden_mask = mask & NEVER_BLOCKED;
        Ok(ptrace::set_signal_mask(tid, mask & !NEVER_BLOCKED)?)
    }

    fn change_action(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        let Registers { rdi: signal, rsi: new, rdx: old, .. } = registers;
        let mut bytes = [0; Action::BYTES];
        let read = new != 0 && self.space_of(tid).memory.read_exact(new, &mut bytes).is_ok();
        let result = self.make(tid, &registers)?;
        if result != 0 {
            return self.answer(tid, &registers, result);
        }
        let signal = signal as i32;
        let actions = self.task(tid).actions.clone();
        // A fault of the engine's own makes the kernel forget that these are ignored.
        if old != 0 && bit(signal) & NEVER_BLOCKED != 0 {
            let before = actions.borrow().get(signal).to_bytes();
            if self.space_of(tid).memory.write(old, &before).is_err() {
                return self.answer(tid, &registers, EFAULT);
            }
        }
        if read {
            actions.borrow_mut().set(signal, Action::from_bytes(&bytes));
        }
        self.answer(tid, &registers, result)
    }

    /// rt_sigpending: signals that the engine holds back are pending too.
    fn pending_signals(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        let result = self.make(tid, &registers)?;
        let held = self.task(tid).pending.iter().fold(0, |set, info| set | bit(info.si_signo));
        if result == 0 && held != 0 {
            // The thread may have been deaf, and then more was blocked.
            let blocked = ptrace::signal_mask(tid)? | self.task(tid).hidden_mask;
            let memory = &self.space_of(tid).memory;
            let set = memory.read_u64(registers.rdi).map_err(|_| Halt::Gone)?;
            memory.write_u64(registers.rdi, (set | held) & blocked).map_err(|_| Halt::Gone)?;
        }
        self.answer(tid, &registers, result)
    }

    /// rt_sigtimedwait: one of those that the engine holds back may be the answer.
    fn wait_for_signal(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        let wanted = self.space_of(tid).memory.read_u64(registers.rdi).unwrap_or(0);
        let pending = &mut self.task(tid).pending;
        let index = pending.iter().position(|info| wanted & bit(info.si_signo) != 0);
        let Some(info) = index.and_then(|index| pending.remove(index)) else {
            return self.release_into(tid, registers);
        };
        let size = std::mem::size_of_val(&info);
        // SAFETY: a siginfo_t is plain data, wholly filled in by the kernel.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const info).cast::<u8>(), size) };
        let to = registers.rsi;
        if to != 0 && self.space_of(tid).memory.write(to, bytes).is_err() {
            return self.answer(tid, &registers, EFAULT);
        }
        self.answer(tid, &registers, info.si_signo as u64)
    }

    /// rt_sigreturn: the kernel takes all registers from the frame.
    fn return_from_handler(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        let gadget = self.space_of(tid).glue.call();
        ptrace::set_registers(tid, &Registers { rip: gadget, orig_rax: u64::MAX, ..registers })?;
        let mut stops = 0;
        while stops < 2 {
            ptrace::resume_to_syscall(tid)?;
            match self.wait_for(tid)? {
                Stop::Syscall => stops += 1,
                Stop::Signal(signal) => {
                    let info = ptrace::signal_info(tid).map_err(|_| Halt::Gone)?;
                    let own = crate::signals::is_synchronous(&info);
                    assert!(!own, "signal {signal} in a return from a handler");
                    // The mask in the frame may block it.
                    self.task(tid).hold_back(info);
                    if self.signal_comes_first(tid, &registers)? {
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
        let mask = ptrace::signal_mask(tid)?;
        self.set_mask(tid, mask)?;
        self.record_vectors_changed(tid);
        let registers = ptrace::registers(tid)?;
        self.task(tid).returned_to = registers.rip;
        self.finish(tid, Registers { orig_rax: u64::MAX, ..registers })
    }

    // The processor.

    fn set_affinity(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        let size = (registers.rsi as usize).min(self.options.affinity.len());
        let mut wanted = vec![0; size];
        if self.space_of(tid).memory.read_exact(registers.rdx, &mut wanted).is_err() {
            return self.answer(tid, &registers, EFAULT);
        }
        let allowed = &self.options.allowed;
        wanted.resize(allowed.len(), 0);
        for (wanted, allowed) in wanted.iter_mut().zip(allowed) {
            *wanted &= allowed;
        }
        if wanted.iter().all(|&byte| byte == 0) {
            return self.answer(tid, &registers, EINVAL);
        }
        let target = if registers.rdi == 0 { tid } else { registers.rdi as Tid };
        let processor = self.options.processor;
        if let Some(task) = self.tasks.get_mut(&target) {
            // It asked to know where it runs: that must be one of these.
            if let Some(processor) = processor {
                crate::processor::place(target, &wanted, processor);
            }
            task.affinity = Some(wanted);
            return self.answer(tid, &registers, 0);
        }
        self.pass(tid, registers)
    }

    fn get_affinity(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        let target = if registers.rdi == 0 { tid } else { registers.rdi as Tid };
        let Some(task) = self.tasks.get(&target) else {
            return self.pass(tid, registers);
        };
        let mask = task.affinity.clone().unwrap_or_else(|| self.options.affinity.clone());
        let size = registers.rsi as usize;
        if size < mask.len() || !size.is_multiple_of(8) {
            return self.answer(tid, &registers, EINVAL);
        }
        if self.space_of(tid).memory.write(registers.rdx, &mask).is_err() {
            return self.answer(tid, &registers, EFAULT);
        }
        self.answer(tid, &registers, mask.len() as u64)
    }

    fn architecture(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        let Registers { rdi: code, rsi: value, .. } = registers;
        match code {
            ARCH_SET_GS => {
                self.task(tid).app_gs = value;
                self.space_of(tid).write_slot(APP_GS, value);
                self.answer(tid, &registers, 0)
            }
            ARCH_GET_GS => {
                let space = self.space_of(tid);
                let base = space.read_slot(APP_GS);
                let written = space.memory.write_u64(value, base);
                self.answer(tid, &registers, if written.is_ok() { 0 } else { EFAULT })
            }
            code if ARCH_SHADOW_STACKS.contains(&code) => self.answer(tid, &registers, EINVAL),
            code if ARCH_MORE_REGISTERS.contains(&code) && self.view.limited => {
                self.answer(tid, &registers, EINVAL)
            }
            _ => {
                // ARCH_SET_FS changes the thread's own register: take it over.
                let result = self.make(tid, &registers)?;
                let fs_base = ptrace::registers(tid)?.fs_base;
                self.answer(tid, &Registers { fs_base, ..registers }, result)
            }
        }
    }

    // Processes.

    /// A thread created another one.
    pub(crate) fn forked(&mut self, tid: Tid) -> Outcome<()> {
        let child = ptrace::event_message(tid)? as Tid;
        let parent = &self.tasks[&tid];
        let State::InCall(call) = &parent.state else { panic!("thread {tid} is in no call") };
        let flags = self.clone_flags(tid, call);
        let registers = call.returned(0);
        let parent = &self.tasks[&tid];
        let (space, pid) = (parent.space, parent.pid);
        let parent_pid = pid;
        let (actions, hidden_mask) = (parent.actions.clone(), parent.hidden_mask);
        let (app_gs, affinity) = (parent.app_gs, parent.affinity.clone());
        let shares = |flag: i32| flags & flag as u64 != 0;
        let actions = if shares(libc::CLONE_SIGHAND) {
            actions
        } else {
            Rc::new(std::cell::RefCell::new(actions.borrow().clone()))
        };
        let space = if shares(libc::CLONE_VM) { space } else { self.fork_space(space, child)? };
        let pid = if shares(libc::CLONE_THREAD) { pid } else { child };
        let mut task = Supervisor::new_task(child, pid, space, actions, State::New(registers));
        task.hidden_mask = hidden_mask;
        task.app_gs = app_gs;
        task.affinity = affinity;
        task.recorded_call = self.tasks[&tid].recorded_call;
        if shares(libc::CLONE_CHILD_CLEARTID) {
            task.cleared_at_end = registers.r10;
        }
        self.report.threads += 1;
        if !shares(libc::CLONE_THREAD) {
            self.report.processes += 1;
            self.record_descriptors(parent_pid, child);
        }
        if !shares(libc::CLONE_VM) {
            let space = self.spaces.get_mut(&space).expect("just added");
            // What the parent did is the parent's.
            space.begin_count();
            space.write_slot(CALLS_IN_PROCESS, 0);
            self.record_fork(tid, child, task.space)?;
        }
        ptrace::resume(tid, 0)?;
        self.expect(task)
    }

    /// Whether a call that creates a thread or process is to be over before another thread
    /// runs. One that waits for what it has created cannot be.
    fn creates_at_once(&self, tid: Tid, registers: &Registers) -> bool {
        let call = Call { number: registers.rax as u32, registers: *registers };
        let flags = self.clone_flags(tid, &call);
        let has = |flag: i32| flags & flag as u64 != 0;
        !has(libc::CLONE_VM) || self.recorder.is_some() && !has(libc::CLONE_VFORK)
    }

    /// What the creating call asked for.
    fn clone_flags(&self, tid: Tid, call: &Call) -> u64 {
        match i64::from(call.number) {
            libc::SYS_clone => call.registers.rdi,
            libc::SYS_clone3 => {
                let space = &self.spaces[&self.tasks[&tid].space];
                space.memory.read_u64(call.registers.rdi).unwrap_or(0)
            }
            libc::SYS_vfork => (libc::CLONE_VM | libc::CLONE_VFORK) as u64,
            _ => 0,
        }
    }

    /// A process has executed a new program; all its other threads are gone.
    pub(crate) fn executed(&mut self, tid: Tid) -> Outcome<()> {
        // The thread that called may have had another id, which is now this one.
        let former = ptrace::event_message(tid)? as Tid;
        let caller = self.tasks.remove(&former).expect("a known thread executes");
        let mut task = caller;
        let pid = task.pid;
        let others: Vec<Tid> =
            self.tasks.values().filter(|t| t.pid == pid).map(|t| t.tid).collect();
        for other in &others {
            let other = self.tasks.remove(other).expect("just listed");
            self.leave_space(&other);
        }
        // Stops of threads that are unknown stay: they are other processes' newest.
        self.deferred.retain(|(thread, _)| !others.contains(thread));
        self.record_replaced(&task)?;
        self.leave_space(&task);
        task.tid = tid;
        let actions = task.actions.borrow().after_exec();
        task.actions = Rc::new(std::cell::RefCell::new(actions));
        task.app_gs = 0;
        let former_space = task.space;
        self.tasks.insert(tid, task);
        self.attach(tid)?;
        // Whoever shared the old space (after vfork) may be waiting for a turn.
        self.next_in(former_space)
    }
}
