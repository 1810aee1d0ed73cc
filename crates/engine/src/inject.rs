//! System calls made in the target on the engine's behalf.

use crate::archive::Archive;
use crate::arena::Arena;
use crate::error::{EngineError, Halt};
use crate::frozen::Placement;
use crate::glue::Glue;
use crate::lend::Lender;
use crate::memory::Address;
use crate::ptrace::{self, Registers, Stop};
use crate::shared::SharedMemory;
use crate::signals::{self};
use crate::space::SCRATCH;
use crate::supervisor::{Outcome, Supervisor};
use crate::targets::Targets;
use crate::task::Tid;
use std::cell::RefCell;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::rc::Rc;
use why_translate::context::TARGETS;

/// Arguments of a call; missing ones are zero.
pub type Arguments = [u64; 6];

/// A part of a file, and where it goes in the target.
pub struct Part {
    pub at: Address,
    pub offset: u64,
    pub size: u64,
    /// How often it is mapped, each time behind the last.
    pub times: usize,
    pub protection: i32,
}

impl Part {
    fn whole(memory: &SharedMemory, at: Address, protection: i32) -> Part {
        Part { at, offset: 0, size: memory.size() as u64, times: 1, protection }
    }

    /// Where the last one goes.
    fn last(&self) -> Address {
        self.at + (self.times as u64 - 1) * self.size
    }
}

/// Of the code cache in the target.
const CACHE_PROTECTION: i32 = libc::PROT_READ | libc::PROT_EXEC;

impl Supervisor {
    /// Makes a call in a stopped thread, at the `syscall; int3` at `gadget`. The
    /// thread's registers must be set again afterwards.
    pub(crate) fn call_at(
        &mut self,
        tid: Tid,
        gadget: Address,
        base: &Registers,
        number: i64,
        arguments: Arguments,
    ) -> Outcome<i64> {
        let [rdi, rsi, rdx, r10, r8, r9] = arguments;
        let registers = Registers {
            rip: gadget,
            rax: number as u64,
            orig_rax: u64::MAX,
            rdi,
            rsi,
            rdx,
            r10,
            r8,
            r9,
            ..*base
        };
        Ok(self.run_to(tid, &registers, gadget + 3)?.rax as i64)
    }

    /// Lets a stopped thread execute glue until it has trapped before `end`.
    pub(crate) fn run_to(
        &mut self,
        tid: Tid,
        from: &Registers,
        end: Address,
    ) -> Outcome<Registers> {
        ptrace::set_registers(tid, from)?;
        ptrace::resume(tid, 0)?;
        loop {
            match self.wait_for(tid)? {
                Stop::Signal(libc::SIGTRAP) => {
                    let registers = ptrace::registers(tid)?;
                    if registers.rip == end {
                        self.hear(tid)?;
                        return Ok(registers);
                    }
                    self.keep_signal(tid)?;
                }
                Stop::Signal(_) => self.keep_signal(tid)?,
                _ => {}
            }
            ptrace::resume(tid, 0)?;
        }
    }

    /// A signal at a moment when it cannot be delivered.
    fn keep_signal(&mut self, tid: Tid) -> Outcome<()> {
        let info = ptrace::signal_info(tid).map_err(|_| Halt::Gone)?;
        assert!(
            !signals::is_synchronous(&info) || info.si_signo == libc::SIGTRAP,
            "an injected call faulted: {} in thread {tid}",
            signals::name(info.si_signo),
        );
        self.hold(tid, info)
    }

    /// The same at the cache's gadget, with any registers.
    pub(crate) fn call(&mut self, tid: Tid, number: i64, arguments: Arguments) -> Outcome<i64> {
        let base = ptrace::registers(tid)?;
        let gadget = self.space_of(tid).glue.call();
        self.call_at(tid, gadget, &base, number, arguments)
    }

    /// A call that the engine cannot do without.
    pub(crate) fn must(
        &mut self,
        tid: Tid,
        what: &str,
        number: i64,
        arguments: Arguments,
    ) -> Outcome<u64> {
        let result = self.call(tid, number, arguments)?;
        expect_success(what, result)
    }

    /// Maps a new arena for the code at `near`; where it lies.
    pub(crate) fn add_arena(&mut self, tid: Tid, near: Address) -> Outcome<Address> {
        let memory = Arena::memory()?;
        for place in Arena::places(near) {
            let part = Part::whole(&memory, place, CACHE_PROTECTION);
            let flags = libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE;
            let mapped = self.map_file(tid, memory.file(), libc::O_RDWR, &part, flags)?;
            if must_open(mapped)? == place as i64 {
                let code = &self.space_of(tid).code;
                code.borrow_mut().arenas.push(Arena::new(memory, place));
                return Ok(place);
            }
        }
        let nowhere = std::io::Error::from(std::io::ErrorKind::OutOfMemory);
        Err(EngineError::system("finding room for the code cache")(nowhere).into())
    }

    /// Maps a part of the engine's memory in place of whatever is there.
    pub(crate) fn map_shared(
        &mut self,
        tid: Tid,
        memory: &SharedMemory,
        part: Part,
    ) -> Outcome<()> {
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        let mapped = self.map_file(tid, memory.file(), libc::O_RDWR, &part, flags)?;
        let at = expect_success("mapping the engine's memory", must_open(mapped)?)?;
        assert_eq!(at, part.last(), "memory is mapped where it must be");
        Ok(())
    }

    /// Maps a part of a recorded file.
    pub(crate) fn map_recorded(
        &mut self,
        tid: Tid,
        file: BorrowedFd<'_>,
        access: i32,
        part: &Part,
        flags: i32,
    ) -> Outcome<()> {
        let mapped = self.map_file(tid, file, access, part, flags)?;
        expect_success("mapping a recorded file", mapped.unwrap_or_else(|error| error)).map(drop)
    }

    /// Maps an archive's code; false if there is something else, or if the target may not
    /// have it.
    pub(crate) fn map_archive(
        &mut self,
        tid: Tid,
        archive: &Archive,
        placement: &Placement,
    ) -> Outcome<bool> {
        let fixed = if placement.replaces { libc::MAP_FIXED } else { libc::MAP_FIXED_NOREPLACE };
        let part = Part {
            at: placement.at,
            offset: archive.mapped_from(),
            size: archive.mapped_length(),
            times: 1,
            protection: CACHE_PROTECTION,
        };
        let flags = libc::MAP_PRIVATE | fixed;
        let mapped = self.map_file(tid, archive.file().as_fd(), libc::O_RDONLY, &part, flags)?;
        Ok(mapped == Ok(placement.at as i64))
    }

    /// Maps a part of a file that is open here; what the call answered, or what opening
    /// the file did when it failed.
    fn map_file(
        &mut self,
        tid: Tid,
        file: BorrowedFd<'_>,
        access: i32,
        part: &Part,
        flags: i32,
    ) -> Outcome<Result<i64, i64>> {
        let path = |pid| format!("/proc/{pid}/fd/{}", file.as_raw_fd());
        let mut open = self.open_arguments(tid, path(std::process::id()), access)?;
        let glue = self.space_of(tid).glue;
        let mut opened = self.open_and_map(tid, glue, open, part, flags)?;
        // A process of another user may not look into ours.
        let denied = opened == Err(-i64::from(libc::EACCES));
        let lender = if denied { Lender::new(tid) } else { None };
        if let Some(lender) = &lender {
            open = self.open_arguments(tid, path(lender.pid()), access)?;
            opened = self.open_and_map(tid, glue, open, part, flags)?;
        }
        if opened == Err(-i64::from(libc::EMFILE)) {
            return self.map_by_helper(tid, open, part, flags);
        }
        Ok(opened)
    }

    /// What mapping answered, or what opening did when it failed.
    fn open_and_map(
        &mut self,
        tid: Tid,
        glue: Glue,
        open: Arguments,
        part: &Part,
        flags: i32,
    ) -> Outcome<Result<i64, i64>> {
        let base = ptrace::registers(tid)?;
        let [rdi, rsi, rdx, r10, ..] = open;
        let registers = Registers {
            rip: glue.map(),
            rax: libc::SYS_openat as u64,
            orig_rax: u64::MAX,
            rdi,
            rsi,
            rdx,
            r10,
            rbx: part.at,
            r13: part.size,
            r14: part.protection as u64,
            r15: flags as u64,
            r12: part.times as u64,
            rbp: part.offset,
            ..base
        };
        let done = self.run_to(tid, &registers, glue.mapped())?;
        let (descriptor, mapped) = (done.r8 as i64, done.r13 as i64);
        Ok(if descriptor < 0 { Err(descriptor) } else { Ok(mapped) })
    }

    /// The same when the application has used up all its descriptors: a thread made for
    /// the purpose has a copy of them, which it can close.
    fn map_by_helper(
        &mut self,
        tid: Tid,
        open: Arguments,
        part: &Part,
        flags: i32,
    ) -> Outcome<Result<i64, i64>> {
        let thread = libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_SIGHAND | libc::CLONE_THREAD;
        let clone = [thread as u64, 0, 0, 0, 0, 0];
        let helper = self.must(tid, "creating a thread", libc::SYS_clone, clone)? as Tid;
        while self.wait_for(helper)? != Stop::Interrupted {
            ptrace::resume(helper, 0)?;
        }
        // It is not one of the application's threads: signals are for the others.
        ptrace::set_signal_mask(helper, !signals::NEVER_BLOCKED)?;
        let base = ptrace::registers(helper)?;
        let glue = self.space_of(tid).glue;
        let close = [0, u64::from(u32::MAX), 0, 0, 0, 0];
        self.call_at(helper, glue.call(), &base, libc::SYS_close_range, close)?;
        let mapped = self.open_and_map(helper, glue, open, part, flags);
        match self.call_at(helper, glue.call(), &base, libc::SYS_exit, [0; 6]) {
            Ok(_) | Err(Halt::Gone) => mapped,
            Err(error) => Err(error),
        }
    }

    /// The arguments for opening a path in the target.
    fn open_arguments(&mut self, tid: Tid, path: String, access: i32) -> Outcome<Arguments> {
        let space = self.space_of(tid);
        let at = space.context + SCRATCH;
        let mut text = path.into_bytes();
        text.push(0);
        if space.memory.write(at, &text).is_err() {
            return Err(Halt::Gone);
        }
        let flags = (access | libc::O_CLOEXEC) as u64;
        Ok([libc::AT_FDCWD as u64, at, flags, 0, 0, 0])
    }

    /// Sees to it that units for `pc` have an arena.
    pub(crate) fn make_room(&mut self, tid: Tid, pc: Address) -> Outcome<()> {
        let code = self.space_of(tid).code.clone();
        if code.borrow().arena_for(pc).is_some() {
            return Ok(());
        }
        if code.borrow().arenas.iter().any(|arena| arena.in_reach(pc)) {
            // It is full. Nobody executes in it: all threads are stopped at, or in
            // calls of, the application.
            self.report.flushes += 1;
            self.own_code(tid)?;
            self.space_of(tid).code.borrow_mut().flush();
            return Ok(());
        }
        self.own_code(tid)?;
        self.add_arena(tid, pc).map(drop)
    }

    /// Ends the sharing of the code cache with other processes, before this one
    /// changes what its code is: it starts afresh with an empty cache.
    pub(crate) fn own_code(&mut self, tid: Tid) -> Outcome<()> {
        if !self.shares_code(tid) {
            return Ok(());
        }
        let shared = self.space_of(tid).code.clone();
        let shapes = shared.borrow().shapes.clone();
        let mut code = crate::code::Code::new(shared.borrow().tool(), shapes)?;
        code.calls = shared.borrow().calls;
        code.view = shared.borrow().view.clone();
        code.watched = shared.borrow().watched.clone();
        for arena in &shared.borrow().arenas {
            code.arenas.push(Arena::new(Arena::memory()?, arena.base));
        }
        // What archives were mapped will make room for the same ones, unpatched.
        code.frozen = shared.borrow().frozen.clone();
        code.abandon_frozen();
        code.targets = shared.borrow().targets.same()?;
        for arena in &code.arenas {
            let part = Part::whole(&arena.memory, arena.base, CACHE_PROTECTION);
            self.map_shared(tid, &arena.memory, part)?;
        }
        self.map_targets(tid, &code.targets)?;
        let space = self.space_of(tid);
        space.code = Rc::new(RefCell::new(code));
        let images = shared.borrow().images.clone();
        images.into_iter().try_for_each(|image| self.thaw(tid, image))
    }

    /// Whether other processes have the same code cache.
    pub(crate) fn shares_code(&self, tid: Tid) -> bool {
        let code = &self.spaces[&self.tasks[&tid].space].code;
        self.spaces.values().filter(|space| Rc::ptr_eq(&space.code, code)).count() > 1
    }

    /// Sees to it that there can be so many links more.
    pub(crate) fn make_room_for_links(&mut self, tid: Tid, more: usize) -> Outcome<()> {
        let code = self.space_of(tid).code.clone();
        if !code.borrow().targets_too_small(more) {
            return Ok(());
        }
        self.own_code(tid)?;
        let targets = Targets::large()?;
        self.map_targets(tid, &targets)?;
        self.space_of(tid).code.borrow_mut().use_targets(targets);
        Ok(())
    }

    pub(crate) fn map_targets(&mut self, tid: Tid, targets: &Targets) -> Outcome<()> {
        let at = self.space_of(tid).context + TARGETS as u64;
        let part = Part::whole(&targets.memory, at, libc::PROT_READ);
        self.map_shared(tid, &targets.memory, Part { times: targets.times(), ..part })
    }

    /// Changes the protection of application memory.
    pub(crate) fn protect(&mut self, tid: Tid, at: Address, size: u64, prot: i32) -> Outcome<()> {
        let arguments = [at, size, prot as u64, 0, 0, 0];
        self.must(tid, "protecting application memory", libc::SYS_mprotect, arguments)?;
        Ok(())
    }
}

/// The engine's own memory must be there.
fn must_open(mapped: Result<i64, i64>) -> Outcome<i64> {
    match mapped {
        Ok(mapped) => Ok(mapped),
        Err(error) => expect_success("opening the engine's memory", error).map(|at| at as i64),
    }
}

fn expect_success(what: &str, result: i64) -> Outcome<u64> {
    if (-4095..0).contains(&result) {
        let error = std::io::Error::from_raw_os_error(-result as i32);
        return Err(EngineError::system(format!("{what} in the target"))(error).into());
    }
    Ok(result as u64)
}
