//! System calls made in the target on the engine's behalf.

use crate::arena::Arena;
use crate::error::{EngineError, Halt};
use crate::lend::Lender;
use crate::memory::{Address, PAGE};
use crate::ptrace::{self, Registers, Stop};
use crate::shared::SharedMemory;
use crate::signals::{self};
use crate::space::{SCRATCH, Space};
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use std::cell::RefCell;
use std::rc::Rc;

/// Arguments of a call; missing ones are zero.
pub type Arguments = [u64; 6];

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
        ptrace::set_registers(tid, &registers)?;
        ptrace::resume(tid, 0)?;
        loop {
            match self.wait_for(tid)? {
                Stop::Signal(libc::SIGTRAP) => {
                    let registers = ptrace::registers(tid)?;
                    if registers.rip == gadget + 3 {
                        return Ok(registers.rax as i64);
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
        self.task(tid).hold_back(info);
        Ok(())
    }

    /// The same at the cache's gadget, with any registers.
    pub(crate) fn call(&mut self, tid: Tid, number: i64, arguments: Arguments) -> Outcome<i64> {
        let base = ptrace::registers(tid)?;
        let gadget = self.space_of(tid).gadget();
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

    /// Maps an arena, chosen by [`Space::plan_arena`], into the target.
    fn map_arena(&mut self, tid: Tid, arena: &Arena, fixed: i32) -> Outcome<()> {
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        self.map_shared(tid, &arena.memory, arena.base, protection, fixed)
    }

    fn map_shared(
        &mut self,
        tid: Tid,
        memory: &SharedMemory,
        at: Address,
        protection: i32,
        fixed: i32,
    ) -> Outcome<()> {
        self.map_part(tid, memory, at, 0, memory.size() as u64, protection, fixed)
    }

    #[expect(clippy::too_many_arguments, reason = "mmap has that many")]
    pub(crate) fn map_part(
        &mut self,
        tid: Tid,
        memory: &SharedMemory,
        at: Address,
        offset: u64,
        size: u64,
        protection: i32,
        fixed: i32,
    ) -> Outcome<()> {
        let open = self.open_arguments(tid, memory.path())?;
        let flags = (libc::MAP_SHARED | fixed) as u64;
        let map = |file| [at, size, protection as u64, flags, file, offset];
        let mut file = self.call(tid, libc::SYS_openat, open)?;
        // A process of another user may not look into ours.
        let lender = if file == -i64::from(libc::EACCES) { Lender::new(tid) } else { None };
        if let Some(lender) = &lender {
            let open = self.open_arguments(tid, lender.path(memory))?;
            file = self.call(tid, libc::SYS_openat, open)?;
        }
        if file == -i64::from(libc::EMFILE) {
            return self.map_by_helper(tid, open, &map);
        }
        let file = expect_success("opening the engine's memory", file)?;
        let mapped = self.must(tid, "mapping the engine's memory", libc::SYS_mmap, map(file));
        self.must(tid, "closing a descriptor", libc::SYS_close, [file, 0, 0, 0, 0, 0])?;
        mapped.map(drop)
    }

    /// The same when the application has used up all its descriptors: a thread made for
    /// the purpose has a copy of them, which it can close.
    fn map_by_helper(
        &mut self,
        tid: Tid,
        open: Arguments,
        map: &dyn Fn(u64) -> Arguments,
    ) -> Outcome<()> {
        let flags = libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_SIGHAND | libc::CLONE_THREAD;
        let clone = [flags as u64, 0, 0, 0, 0, 0];
        let helper = self.must(tid, "creating a thread", libc::SYS_clone, clone)? as Tid;
        while self.wait_for(helper)? != Stop::Interrupted {
            ptrace::resume(helper, 0)?;
        }
        // It is not one of the application's threads: signals are for the others.
        ptrace::set_signal_mask(helper, !signals::NEVER_BLOCKED)?;
        let base = ptrace::registers(helper)?;
        let gadget = self.space_of(tid).gadget();
        let close = [0, u64::from(u32::MAX), 0, 0, 0, 0];
        self.call_at(helper, gadget, &base, libc::SYS_close_range, close)?;
        let file = self.call_at(helper, gadget, &base, libc::SYS_openat, open)?;
        let mapped = match expect_success("opening the engine's memory", file) {
            Ok(file) => {
                let mapped = self.call_at(helper, gadget, &base, libc::SYS_mmap, map(file))?;
                expect_success("mapping the engine's memory", mapped).map(drop)
            }
            Err(error) => Err(error),
        };
        match self.call_at(helper, gadget, &base, libc::SYS_exit, [0; 6]) {
            Ok(_) | Err(Halt::Gone) => mapped,
            Err(error) => Err(error),
        }
    }

    /// The arguments for opening a path in the target.
    fn open_arguments(&mut self, tid: Tid, path: String) -> Outcome<Arguments> {
        let space = self.space_of(tid);
        let at = space.context + SCRATCH;
        let mut text = path.into_bytes();
        text.push(0);
        if space.memory.write(at, &text).is_err() {
            return Err(Halt::Gone);
        }
        let flags = (libc::O_RDWR | libc::O_CLOEXEC) as u64;
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
        let arena = Space::plan_arena(tid, pc)?;
        self.own_code(tid)?;
        self.map_arena(tid, &arena, libc::MAP_FIXED_NOREPLACE)?;
        self.space_of(tid).code.borrow_mut().arenas.push(arena);
        Ok(())
    }

    /// Ends the sharing of the code cache with other processes, before this one
    /// changes what its code is: it starts afresh with an empty cache.
    pub(crate) fn own_code(&mut self, tid: Tid) -> Outcome<()> {
        let shared = self.space_of(tid).code.clone();
        let users = self.spaces.values().filter(|space| Rc::ptr_eq(&space.code, &shared)).count();
        if users == 1 {
            return Ok(());
        }
        let shapes = shared.borrow().shapes.clone();
        let mut code = crate::code::Code::new(shared.borrow().tool(), shapes)?;
        for arena in &shared.borrow().arenas {
            code.arenas.push(Arena::new(arena.base)?);
        }
        let tables = self.space_of(tid).context + PAGE;
        for arena in &code.arenas {
            self.map_arena(tid, arena, libc::MAP_FIXED)?;
        }
        self.map_shared(tid, &code.tables, tables, libc::PROT_READ, libc::MAP_FIXED)?;
        let space = self.space_of(tid);
        space.code = Rc::new(RefCell::new(code));
        let images = shared.borrow().images.clone();
        for image in images {
            self.thaw(tid, image)?;
        }
        Ok(())
    }

    pub(crate) fn map_tables(&mut self, tid: Tid) -> Outcome<()> {
        let space = self.space_of(tid);
        let (code, tables) = (space.code.clone(), space.context + PAGE);
        let code = code.borrow();
        self.map_shared(tid, &code.tables, tables, libc::PROT_READ, libc::MAP_FIXED)
    }

    pub(crate) fn map_first_arena(&mut self, tid: Tid, arena: &Arena) -> Outcome<()> {
        self.map_arena(tid, arena, libc::MAP_FIXED_NOREPLACE)
    }

    /// Changes the protection of application memory.
    pub(crate) fn protect(&mut self, tid: Tid, at: Address, size: u64, prot: i32) -> Outcome<()> {
        let arguments = [at, size, prot as u64, 0, 0, 0];
        self.must(tid, "protecting application memory", libc::SYS_mprotect, arguments)?;
        Ok(())
    }
}

fn expect_success(what: &str, result: i64) -> Outcome<u64> {
    if (-4095..0).contains(&result) {
        let error = std::io::Error::from_raw_os_error(-result as i32);
        return Err(EngineError::system(format!("{what} in the target"))(error).into());
    }
    Ok(result as u64)
}
