//! Taking over a process that has just executed a new program.

use crate::calls;
use crate::code::Code;
use crate::error::Halt;
use crate::glue::{GLUE, Glue};
use crate::inject::Part;
use crate::maps::{self, Mapping};
use crate::memory::{Address, Memory, page_of};
use crate::memory_calls::KERNELS_OWN;
use crate::processor::Beside;
use crate::ptrace::{self, Registers, Stop};
use crate::space::{Space, SpaceId};
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{State, Tid};
use crate::tracing::{SPAN, SpaceTrace};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use why_trace::shape::Shared;
use why_translate::context::{CALL_CLASSES, CLASS_SIZES, MAP_PROTECTIONS, TOTAL_BYTES, TRACE_NEXT};

impl Supervisor {
    /// At `PTRACE_EVENT_EXEC`: gives the thread a new space and starts it there.
    pub(crate) fn attach(&mut self, tid: Tid) -> Outcome<()> {
        // Within the call still; its end would overwrite rax.
        ptrace::resume_to_syscall(tid)?;
        match self.wait_for(tid)? {
            Stop::Syscall => {}
            stop => {
                self.deferred.push_back((tid, stop));
                return Err(Halt::Gone);
            }
        }
        let start = ptrace::registers(tid)?;
        let mut code = Code::new(self.options.tool, Shared::default())?;
        code.calls = self.calls_of_new_program();
        code.view = self.view.clone();
        let pid = self.tasks[&tid].pid;
        let mut space = Space::new(pid, Memory::open(tid)?, Rc::new(RefCell::new(code)));
        space.users = 1;
        let id = self.add_space(space);
        self.task(tid).space = id;
        let maps = maps::read(tid)?;
        if self.recorder.is_some() {
            self.limit_hints(tid, start.rsp)?;
            self.record_program(tid, &maps)?;
        }
        self.map_context(tid, &start)?;
        self.follow_streams(tid);
        self.start_log(tid)?;
        self.report.processes += 1;
        if self.replays() {
            self.start_trace(tid)?;
            return self.begin_replay(tid, &maps);
        }
        self.claim_code(tid, maps)?;
        self.start_trace(tid)?;
        self.look_at_directory(tid);
        let context = self.space_of(tid).context;
        let registers = Registers { gs_base: context, orig_rax: u64::MAX, ..start };
        self.task(tid).state = State::Ready(registers);
        self.becomes_ready(tid)
    }

    /// Maps context, targets and the first arena, with the glue written over the page of
    /// the program's first instruction for the time being.
    fn map_context(&mut self, tid: Tid, start: &Registers) -> Outcome<()> {
        let entry = page_of(start.rip);
        let mut original = [0; GLUE.len()];
        let space = self.space_of(tid);
        space.memory.read_exact(entry, &mut original).map_err(|_| Halt::Gone)?;
        space.memory.write(entry, &GLUE).map_err(|_| Halt::Gone)?;
        space.glue = Glue(entry);
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let hint = if self.replays() { crate::stub::CONTEXT } else { 0 };
        let map = [hint, TOTAL_BYTES as u64, protection, flags, u64::MAX, 0];
        let context = self.must(tid, "mapping the engine's context", libc::SYS_mmap, map)?;
        self.space_of(tid).context = context;
        let arena = self.add_arena(tid, entry)?;
        let code = self.space_of(tid).code.clone();
        self.map_targets(tid, &code.borrow().targets)?;
        let space = self.space_of(tid);
        let classes = [
            (CALL_CLASSES, space.code.borrow().call_classes()),
            (MAP_PROTECTIONS, calls::map_tables()),
            (CLASS_SIZES, calls::class_sizes()),
        ];
        for (at, table) in classes {
            space.memory.write(context + at as u64, &table).map_err(|_| Halt::Gone)?;
        }
        space.begin_count();
        space.glue = Glue(arena);
        space.memory.write(entry, &original).map_err(|_| Halt::Gone)
    }

    /// Limits what the kernel tells a new program: of the CPU, to what is shown of it; and
    /// nothing of the vDSO, from which it would learn what is not recorded.
    fn limit_hints(&mut self, tid: Tid, stack: Address) -> Outcome<()> {
        const AT_IGNORE: u64 = 1;
        let memory = &self.spaces[&self.tasks[&tid].space].memory;
        let read = |at: Address| memory.read_u64(at).map_err(|_| Halt::Gone);
        // The stack: argc, argv, 0, envp, 0, then pairs of key and value.
        let mut at = stack + 8 * (read(stack)? + 2);
        while read(at)? != 0 {
            at += 8;
        }
        at += 8;
        loop {
            match read(at)? {
                libc::AT_NULL => return Ok(()),
                libc::AT_SYSINFO_EHDR => {
                    memory.write_u64(at, AT_IGNORE).map_err(|_| Halt::Gone)?;
                }
                key => {
                    let value = read(at + 8)?;
                    let limited = self.limit_hint(key, value);
                    if limited != value {
                        memory.write_u64(at + 8, limited).map_err(|_| Halt::Gone)?;
                    }
                }
            }
            at += 16;
        }
    }

    /// Takes the right to execute from all application memory.
    fn claim_code(&mut self, tid: Tid, maps: Vec<Mapping>) -> Outcome<()> {
        for mapping in maps {
            if !mapping.executable || KERNELS_OWN.contains(&mapping.name.as_str()) {
                continue;
            }
            let range = mapping.range.clone();
            let shared = mapping.shared;
            self.space_of(tid).regions.add(range.clone(), mapping.writable, shared);
            let protection = libc::PROT_READ | if mapping.writable { libc::PROT_WRITE } else { 0 };
            // A sealed mapping (the vDSO on some kernels) refuses; it then stays
            // executable, and is still never executed.
            let arguments = [range.start, range.end - range.start, protection as u64, 0, 0, 0];
            self.call(tid, libc::SYS_mprotect, arguments)?;
            if !mapping.writable && !shared && mapping.inode != 0 {
                self.file_mapped(tid, Path::new(&mapping.name), range, mapping.offset)?;
            } else if mapping.name == "[vdso]" {
                self.kernel_code_mapped(tid, range)?;
            }
        }
        Ok(())
    }

    /// Maps the trace buffers, when tracing.
    pub(crate) fn start_trace(&mut self, tid: Tid) -> Outcome<()> {
        if !self.options.tool.traces() {
            return Ok(());
        }
        if let Some(base) = self.space_of(tid).parents_trace.take() {
            // A forked process gets buffers of its own in their place.
            return self.map_trace(tid, base);
        }
        let hint = if self.replays() { crate::stub::TRACE } else { 0 };
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as u64;
        let reserve = [hint, SPAN, libc::PROT_NONE as u64, flags, u64::MAX, 0];
        let base = self.must(tid, "reserving room for the trace", libc::SYS_mmap, reserve)?;
        self.map_trace(tid, base)
    }

    fn map_trace(&mut self, tid: Tid, base: u64) -> Outcome<()> {
        let shapes = self.space_of(tid).code.borrow().shapes.clone();
        let beside =
            Beside { engine: self.options.processor, allowed: self.options.allowed.clone() };
        let process = self.recorded_process(tid).unwrap_or(tid);
        let readers = self.options.readers.clone();
        let prepare = move || readers.and_then(|readers| readers(process));
        let trace = SpaceTrace::new(base, shapes, beside, prepare)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        for (at, offset) in trace.buffers() {
            let size = crate::tracing::BUFFER_BYTES as u64;
            let part = Part { at, offset, size, times: 1, protection };
            self.map_shared(tid, &trace.memory, part)?;
        }
        let space = self.space_of(tid);
        space.write_slot(TRACE_NEXT, trace.begin());
        space.trace_next = trace.begin();
        space.trace = Some(trace);
        Ok(())
    }

    /// A forked process gets a space of its own that shares what has been translated.
    pub(crate) fn fork_space(&mut self, parent: SpaceId, child: Tid) -> Outcome<SpaceId> {
        let memory = Memory::open(child)?;
        let parent = &self.spaces[&parent];
        let mut space = Space::new(child, memory, parent.code.clone());
        space.context = parent.context;
        space.glue = parent.glue;
        space.regions = parent.regions.clone();
        space.careful = parent.careful;
        space.parents_log = parent.log.as_ref().map(|log| log.range().start).or(parent.parents_log);
        space.parents_trace = parent.trace.as_ref().map(|trace| trace.base);
        // The context page is a copy of the parent's.
        space.others_ready = parent.others_ready;
        Ok(self.add_space(space))
    }
}
