//! Files in `/proc` through which a program sees or changes its own memory: the map
//! must not show the engine, and code written through `mem` is translated anew.

use crate::error::Halt;
use crate::maps;
use crate::ptrace::Registers;
use crate::shown_maps;
use crate::space::SCRATCH;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use why_translate::context::OPENS_WATCHED;

/// What a descriptor of the application refers to.
enum InProc {
    Maps { pid: Tid },
    Memory { pid: Tid },
    Directory,
}

impl Supervisor {
    /// The application has opened a file under `/proc`, or might have.
    pub(crate) fn opened(&mut self, tid: Tid, descriptor: u64) -> Outcome<()> {
        match in_proc(tid, descriptor) {
            Some(InProc::Maps { pid }) => self.show_maps(tid, descriptor, pid),
            Some(InProc::Memory { .. }) => {
                // From now on all that may write is looked at.
                self.space_of(tid).careful = true;
                Ok(())
            }
            Some(InProc::Directory) => {
                self.watch_opens(tid);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Paths may be relative to a directory in `/proc` from now on.
    pub(crate) fn watch_opens(&mut self, tid: Tid) {
        self.space_of(tid).write_slot(OPENS_WATCHED, 1);
    }

    /// If the working directory is in `/proc`.
    pub(crate) fn look_at_directory(&mut self, tid: Tid) {
        let directory = std::fs::read_link(format!("/proc/{tid}/cwd"));
        if directory.is_ok_and(|path| path.starts_with("/proc")) {
            self.watch_opens(tid);
        }
    }

    /// The process to whose memory a call writes as to a file, behind the back of the page
    /// protection that tells of changes to code.
    pub(crate) fn memory_written(&mut self, tid: Tid, registers: &Registers) -> Option<Tid> {
        let writes = matches!(
            registers.rax as i64,
            libc::SYS_write
                | libc::SYS_pwrite64
                | libc::SYS_writev
                | libc::SYS_pwritev
                | libc::SYS_pwritev2
        );
        if !writes || !self.space_of(tid).careful {
            return None;
        }
        match in_proc(tid, registers.rdi)? {
            InProc::Memory { pid } => Some(pid),
            _ => None,
        }
    }

    /// Puts a file with the map as the application should see it in place of the one
    /// that it has just opened.
    fn show_maps(&mut self, tid: Tid, descriptor: u64, pid: Tid) -> Outcome<()> {
        let Some(text) = self.shown_maps(pid)? else {
            return Ok(());
        };
        let Ok(file) = memfd_create(c"maps", MFdFlags::MFD_CLOEXEC) else {
            return Ok(());
        };
        let mut file = File::from(file);
        if file.write_all(text.as_bytes()).is_err() {
            return Ok(());
        }
        let space = self.space_of(tid);
        let path = space.context + SCRATCH;
        let name = format!("/proc/{}/fd/{}\0", std::process::id(), file.as_raw_fd());
        space.memory.write(path, name.as_bytes()).map_err(|_| Halt::Gone)?;
        let close_on_exec = closes_on_exec(tid, descriptor);
        let open = [libc::AT_FDCWD as u64, path, libc::O_RDONLY as u64, 0, 0, 0];
        let other = self.call(tid, libc::SYS_openat, open)?;
        if other < 0 {
            // No descriptor is left: the program sees the map as it really is.
            return Ok(());
        }
        let flags = if close_on_exec { libc::O_CLOEXEC as u64 } else { 0 };
        self.call(tid, libc::SYS_dup3, [other as u64, descriptor, flags, 0, 0, 0])?;
        self.call(tid, libc::SYS_close, [other as u64, 0, 0, 0, 0, 0])?;
        Ok(())
    }

    fn shown_maps(&self, pid: Tid) -> Outcome<Option<String>> {
        let Some(task) = self.tasks.values().find(|task| task.pid == pid || task.tid == pid) else {
            return Ok(None);
        };
        let space = &self.spaces[&task.space];
        let mappings = maps::read(task.tid)?;
        Ok(Some(shown_maps::text(&mappings, &space.regions, &space.own_ranges())))
    }
}

fn in_proc(tid: Tid, descriptor: u64) -> Option<InProc> {
    let path = std::fs::read_link(format!("/proc/{tid}/fd/{descriptor}")).ok()?;
    let rest = path.strip_prefix("/proc").ok()?;
    let parts: Vec<&str> = rest.iter().filter_map(|part| part.to_str()).collect();
    let pid = |text: &str| text.parse().ok();
    match parts[..] {
        [process, "maps"] | [_, "task", process, "maps"] => {
            Some(InProc::Maps { pid: pid(process)? })
        }
        [process, "mem"] | [_, "task", process, "mem"] => {
            Some(InProc::Memory { pid: pid(process)? })
        }
        _ if path.is_dir() => Some(InProc::Directory),
        _ => None,
    }
}

fn closes_on_exec(tid: Tid, descriptor: u64) -> bool {
    let info = std::fs::read_to_string(format!("/proc/{tid}/fdinfo/{descriptor}"));
    let flags = info.ok().and_then(|info| {
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
        i32::from_str_radix(flags.trim(), 8).ok()
    });
    flags.is_some_and(|flags| flags & libc::O_CLOEXEC != 0)
}
