//! In which function a process is, just before a signal ends it.

use nix::sys::ptrace;
use nix::unistd::Pid;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::rc::Rc;
use why_symbols::{Called, Frame, Image, Memory, Module, Modules};

/// Libraries in which a fault is the fault of whoever called them.
const RUNTIMES: [&str; 7] =
    ["libc.so", "libm.so", "libpthread.so", "ld-linux", "ld-musl", "libstdc++.so", "libgcc_s.so"];

/// A file in one of its states: device, number and when it was changed.
type State = (u64, u64, i64, i64);

/// The files of code that were looked into, for all tests of a worker.
#[derive(Default)]
pub struct Images(HashMap<State, Option<Rc<Image>>>);

impl Images {
    /// The innermost function of the program's own, by its source; else what is innermost but
    /// for the run-time library of its language. None if no table names it.
    pub fn function(&mut self, thread: Pid) -> Option<String> {
        let memory = ProcessMemory(File::open(format!("/proc/{thread}/mem")).ok()?);
        let modules = self.modules(thread)?;
        let mut frames = modules.backtrace(&memory, innermost(thread)?).frames;
        if is_sent(thread)
            && let Some(handler) = frames.iter().position(|frame| frame.is_signal)
        {
            // A handler has said something, and then sends the signal once more.
            frames.drain(..=handler);
        }
        let called: Vec<Called> = frames.iter().flat_map(|frame| modules.called(frame)).collect();
        let of_runtime = |called: &Called| {
            let module = called.module.as_deref().unwrap_or_default();
            RUNTIMES.iter().any(|name| module.starts_with(name))
        };
        let own = called.iter().find(|called| called.is_own && called.function.is_some());
        let chosen = own.or_else(|| called.iter().find(|called| !of_runtime(called)));
        chosen.or(called.first())?.function.clone()
    }

    fn modules(&mut self, thread: Pid) -> Option<Modules> {
        let maps = std::fs::read(format!("/proc/{thread}/maps")).ok()?;
        let maps = String::from_utf8_lossy(&maps);
        Some(Modules(maps.lines().filter_map(|line| self.module(line)).collect()))
    }

    /// Of a line of the map, if it is code from a file.
    fn module(&mut self, line: &str) -> Option<Module> {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let executable = words.next()?.contains('x');
        let offset = words.next()?;
        let path = words.nth(2)?.trim_start();
        if !executable || !path.starts_with('/') {
            return None;
        }
        let number = |text| u64::from_str_radix(text, 16).ok();
        let range = number(start)?..number(end)?;
        let image = self.image(Path::new(path))?;
        Module::new(range, number(offset)?, executable, path.to_owned(), image)
    }

    fn image(&mut self, path: &Path) -> Option<Rc<Image>> {
        let file = std::fs::metadata(path).ok()?;
        let state = (file.dev(), file.ino(), file.mtime(), file.mtime_nsec());
        let load = || Image::load(&std::fs::read(path).ok()?, path).map(Rc::new);
        self.0.entry(state).or_insert_with(load).clone()
    }
}

/// Whether a process has sent the signal, such as by `abort`, and no instruction caused it.
fn is_sent(thread: Pid) -> bool {
    ptrace::getsiginfo(thread).is_ok_and(|information| information.si_code <= 0)
}

struct ProcessMemory(File);

impl Memory for ProcessMemory {
    fn read(&self, at: u64, buffer: &mut [u8]) -> usize {
        self.0.read_at(buffer, at).unwrap_or(0)
    }
}

fn innermost(thread: Pid) -> Option<Frame> {
    let regs = ptrace::getregs(thread).ok()?;
    // As DWARF numbers them.
    let registers = [
        regs.rax, regs.rdx, regs.rcx, regs.rbx, regs.rsi, regs.rdi, regs.rbp, regs.rsp, regs.r8,
        regs.r9, regs.r10, regs.r11, regs.r12, regs.r13, regs.r14, regs.r15, regs.rip,
    ];
    Some(Frame::innermost(registers, None))
}
