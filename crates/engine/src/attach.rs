//! Taking over a process that has just executed a new program.

use crate::arena::Arena;
use crate::code::Code;
use crate::error::Halt;
use crate::maps;
use crate::memory::{Memory, PAGE};
use crate::memory_calls::KERNELS_OWN;
use crate::ptrace::{self, Registers, Stop};
use crate::space::{Space, SpaceId};
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{State, Tid};
use crate::tracing::{SPAN, Shapes, SpaceTrace};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use why_translate::Tool;
use why_translate::context::{TOTAL_BYTES, TRACE_NEXT};

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
        let code = Code::new(self.options.tool, Shapes::default())?;
        let mut space = Space::new(Memory::open(tid)?, Rc::new(RefCell::new(code)));
        space.users = 1;
        let id = self.add_space(space);
        self.task(tid).space = id;
        self.map_context(tid, &start)?;
        self.report.processes += 1;
        self.claim_code(tid)?;
        self.start_trace(tid)?;
        self.look_at_directory(tid);
        let context = self.space_of(tid).context;
        let registers = Registers { gs_base: context, orig_rax: u64::MAX, ..start };
        self.task(tid).state = State::Ready(registers);
        self.becomes_ready(tid)
    }

    /// Maps context, tables and the first arena, with a gadget written over the
    /// program's first instruction for the time being.
    fn map_context(&mut self, tid: Tid, start: &Registers) -> Outcome<()> {
        let entry = start.rip;
        let original = self.space_of(tid).memory.read_u64(entry).map_err(|_| Halt::Gone)?;
        let gadget = u64::from_le_bytes([0x0f, 0x05, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc]);
        ptrace::poke(tid, entry, gadget)?;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let map = [0, TOTAL_BYTES as u64, protection, flags, u64::MAX, 0];
        let mapped = self.call_at(tid, entry, start, libc::SYS_mmap, map)?;
        if mapped < 0 {
            let error = std::io::Error::from_raw_os_error(-mapped as i32);
            return Err(
                crate::error::EngineError::system("mapping the engine's context")(error).into()
            );
        }
        self.space_of(tid).context = mapped as u64;
        let arena = Space::plan_arena(tid, entry)?;
        // Until the arena is there, the gadget at the entry stands in for its own.
        let code = self.space_of(tid).code.clone();
        code.borrow_mut().arenas.push(Arena::new(entry)?);
        self.map_first_arena(tid, &arena)?;
        code.borrow_mut().arenas[0] = arena;
        ptrace::poke(tid, entry, original)?;
        self.map_tables(tid)
    }

    /// Takes the right to execute from all application memory.
    fn claim_code(&mut self, tid: Tid) -> Outcome<()> {
        for mapping in maps::read(tid)? {
            if !mapping.executable
                || self.space_of(tid).is_cache(&mapping)
                || KERNELS_OWN.contains(&mapping.name.as_str())
            {
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
            }
        }
        Ok(())
    }

    /// Maps the trace buffers, when tracing.
    pub(crate) fn start_trace(&mut self, tid: Tid) -> Outcome<()> {
        if self.options.tool != Tool::Trace {
            return Ok(());
        }
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as u64;
        let reserve = [0, SPAN, libc::PROT_NONE as u64, flags, u64::MAX, 0];
        let base = self.must(tid, "reserving room for the trace", libc::SYS_mmap, reserve)?;
        self.map_trace(tid, base)
    }

    pub(crate) fn map_trace(&mut self, tid: Tid, base: u64) -> Outcome<()> {
        let shapes = self.space_of(tid).code.borrow().shapes.clone();
        let (processor, allowed) = (self.options.processor, self.options.allowed.clone());
        let move_away = move || {
            if let Some(processor) = processor {
                crate::processor::avoid(processor, &allowed);
            }
        };
        let trace = SpaceTrace::new(base, shapes, move_away)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        for (at, offset) in trace.buffers() {
            let size = crate::tracing::BUFFER_BYTES as u64;
            let memory = trace.memory.clone();
            self.map_part(tid, &memory, at, offset, size, protection, libc::MAP_FIXED)?;
        }
        let space = self.space_of(tid);
        space.write_slot(TRACE_NEXT, trace.first());
        space.trace_next = trace.first();
        space.trace = Some(trace);
        Ok(())
    }

    /// A forked process gets a space of its own that shares what has been translated.
    pub(crate) fn fork_space(&mut self, parent: SpaceId, child: Tid) -> Outcome<SpaceId> {
        let memory = Memory::open(child)?;
        let parent = &self.spaces[&parent];
        let mut space = Space::new(memory, parent.code.clone());
        space.context = parent.context;
        space.regions = parent.regions.clone();
        space.careful = parent.careful;
        // The context page is a copy of the parent's.
        space.others_ready = parent.others_ready;
        Ok(self.add_space(space))
    }
}

/// The tables follow the context page.
const _: () = assert!(why_translate::context::CALL_CLASSES as u64 == PAGE);
