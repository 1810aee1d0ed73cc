//! System calls that change the memory map: nothing but the cache ever becomes
//! executable, and code that changes is translated anew.

use crate::error::Halt;
use crate::maps;
use crate::memory::{Address, PAGE, page_of};
use crate::ptrace::Registers;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{Tid, returned};
use std::ops::Range;
use std::path::Path;

const EXEC: u64 = libc::PROT_EXEC as u64;
const READ: u64 = libc::PROT_READ as u64;
const WRITE: u64 = libc::PROT_WRITE as u64;

/// Mappings whose protection the kernel does not let anybody change.
pub(crate) const KERNELS_OWN: [&str; 2] = ["[vsyscall]", "[uprobes]"];

/// What x86 makes of a protection: what can be executed can be read.
fn without_exec(protection: u64) -> u64 {
    if protection & EXEC != 0 { protection & !EXEC | READ } else { protection }
}

fn pages(start: Address, size: u64) -> Range<Address> {
    let end = start.saturating_add(size).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
    page_of(start)..end
}

fn failed(result: u64) -> bool {
    (-4095..0).contains(&(result as i64))
}

/// Advice about what a forked process is to have.
pub(crate) const FOR_FORKS: [i32; 4] =
    [libc::MADV_DONTFORK, libc::MADV_DOFORK, libc::MADV_WIPEONFORK, libc::MADV_KEEPONFORK];

/// Advice after which memory holds something else.
pub(crate) const DISCARDS: [i32; 4] =
    [libc::MADV_DONTNEED, libc::MADV_FREE, libc::MADV_REMOVE, libc::MADV_DONTNEED_LOCKED];

impl Supervisor {
    /// Whether a call, whose unit can make it, changes only memory that never holds
    /// code: whatever comes of it is of no concern here.
    pub(crate) fn is_harmless(&mut self, tid: Tid, registers: &Registers) -> bool {
        let fixed = match registers.rax as i64 {
            libc::SYS_mmap => {
                registers.r10 & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) as u64 != 0
            }
            libc::SYS_mprotect | libc::SYS_munmap | libc::SYS_madvise => true,
            _ => return false,
        };
        if registers.rax as i64 == libc::SYS_madvise
            && registers.rdx as i32 == libc::MADV_FREE
            && self.recorder.is_some()
        {
            return false;
        }
        let executes = matches!(registers.rax as i64, libc::SYS_mmap | libc::SYS_mprotect)
            && registers.rdx & EXEC != 0;
        let regions = &self.space_of(tid).regions;
        let touches = fixed && regions.overlaps(&pages(registers.rdi, registers.rsi));
        !executes && !touches && !regions.has_shared()
    }

    pub(crate) fn change_memory(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        if self.space_of(tid).regions.has_shared() {
            // Views of shared code may come, go or become writable: all are looked for
            // again when code is translated from there again.
            self.unwatch_all(tid)?;
        }
        let result = match registers.rax as i64 {
            libc::SYS_mmap => self.map(tid, &registers)?,
            libc::SYS_munmap => {
                let result = self.make(tid, &registers)?;
                if !failed(result) {
                    let range = pages(registers.rdi, registers.rsi);
                    self.forget_code(tid, range.clone())?;
                    self.unwatch_for_border(tid, &range);
                }
                result
            }
            libc::SYS_mprotect | libc::SYS_pkey_mprotect => self.set_protection(tid, &registers)?,
            libc::SYS_mremap => self.remap(tid, &registers)?,
            libc::SYS_madvise => {
                // When the kernel takes what may be freed nobody could say.
                let frees = registers.rdx as i32 == libc::MADV_FREE && self.recorder.is_some();
                let advice = if frees { libc::MADV_DONTNEED as u64 } else { registers.rdx };
                let result = self.make(tid, &Registers { rdx: advice, ..registers })?;
                if DISCARDS.contains(&(registers.rdx as i32)) {
                    // Even a failed call may have done a part.
                    self.code_replaced(tid, pages(registers.rdi, registers.rsi))?;
                }
                result
            }
            libc::SYS_shmat => {
                const SHM_EXEC: u64 = 0o100000;
                let asked = registers.rdx;
                let result = self.make(tid, &Registers { rdx: asked & !SHM_EXEC, ..registers })?;
                if !failed(result) {
                    self.reread_map(tid, result, asked & SHM_EXEC != 0)?;
                }
                result
            }
            _ => {
                // shmdt and remap_file_pages do not say how much they change.
                let range = self.mapping_at(tid, registers.rdi)?;
                let result = self.make(tid, &registers)?;
                if !failed(result) {
                    self.forget_code(tid, range)?;
                }
                result
            }
        };
        self.record_memory_call(tid, &registers, result)?;
        self.finish(tid, returned(&registers, result))
    }

    fn map(&mut self, tid: Tid, registers: &Registers) -> Outcome<u64> {
        let (size, protection, flags) = (registers.rsi, registers.rdx, registers.r10);
        let asked = Registers { rdx: without_exec(protection), ..*registers };
        let result = self.make(tid, &asked)?;
        if failed(result) {
            return Ok(result);
        }
        let range = pages(result, size);
        self.forget_code(tid, range.clone())?;
        self.unwatch_for_border(tid, &range);
        if protection & EXEC != 0 {
            let shared = flags & 0xf != libc::MAP_PRIVATE as u64;
            let writable = protection & WRITE != 0;
            let anonymous = flags & libc::MAP_ANONYMOUS as u64 != 0;
            self.allow_code(tid, range.clone(), writable, shared)?;
            if !writable && !shared && !anonymous {
                let path = format!("/proc/{tid}/fd/{}", registers.r8 as i32);
                self.file_mapped(tid, Path::new(&path), range, registers.r9)?;
            }
        }
        Ok(result)
    }

    fn set_protection(&mut self, tid: Tid, registers: &Registers) -> Outcome<u64> {
        let (start, size, protection) = (registers.rdi, registers.rsi, registers.rdx);
        let asked = Registers { rdx: without_exec(protection), ..*registers };
        let result = self.make(tid, &asked)?;
        if failed(result) {
            return Ok(result);
        }
        let range = pages(start, size);
        self.forget_code(tid, range.clone())?;
        if protection & EXEC != 0 {
            let shared = maps::read(tid)?
                .iter()
                .any(|m| m.shared && m.range.start < range.end && m.range.end > range.start);
            self.allow_code(tid, range, protection & WRITE != 0, shared)?;
        }
        Ok(result)
    }

    fn remap(&mut self, tid: Tid, registers: &Registers) -> Outcome<u64> {
        let old = pages(registers.rdi, registers.rsi);
        let space = self.space_of(tid);
        let executable = space.regions.is_executable(old.start);
        let writable = space.regions.is_writable(old.start);
        let changeable = space.regions.is_changeable(old.start);
        // A moved page keeps its protection, so it must have the one it should have.
        if executable {
            self.unwatch_range(tid, &old)?;
        }
        let result = self.make(tid, registers)?;
        if failed(result) {
            return Ok(result);
        }
        let new = pages(result, registers.rdx);
        self.forget_code(tid, old)?;
        self.forget_code(tid, new.clone())?;
        if executable {
            self.allow_code(tid, new, writable, changeable && !writable)?;
        }
        Ok(result)
    }

    fn mapping_at(&self, tid: Tid, address: Address) -> Outcome<Range<Address>> {
        let found = maps::read(tid)?.into_iter().find(|m| m.range.contains(&address));
        Ok(found.map_or(address..address, |m| m.range))
    }

    fn reread_map(&mut self, tid: Tid, at: Address, executable: bool) -> Outcome<()> {
        let range = self.mapping_at(tid, at)?;
        self.forget_code(tid, range.clone())?;
        if executable { self.allow_code(tid, range, true, true) } else { Ok(()) }
    }

    /// The application counts this range as executable from now on.
    pub(crate) fn allow_code(
        &mut self,
        tid: Tid,
        range: Range<Address>,
        writable: bool,
        shared: bool,
    ) -> Outcome<()> {
        self.own_code(tid)?;
        let space = self.space_of(tid);
        space.regions.add(range, writable, shared);
        // Programs that make code all the time are not looked at every time.
        if space.looks_left > 0 {
            space.looks_left -= 1;
            self.look_for_executable(tid);
        }
        Ok(())
    }

    /// Counts the mappings that are executable and should not be.
    pub(crate) fn look_for_executable(&mut self, tid: Tid) {
        if !self.options.inspect {
            return;
        }
        let Ok(maps) = maps::read(tid) else { return };
        let space = self.space_of(tid);
        let found = maps.iter().filter(|m| {
            m.executable && !space.is_cache(m) && !KERNELS_OWN.contains(&m.name.as_str())
        });
        self.report.executable_outside_cache += found.count() as u64;
    }

    /// Nothing in this range is what it was.
    pub(crate) fn forget_code(&mut self, tid: Tid, range: Range<Address>) -> Outcome<()> {
        self.code_replaced(tid, range.clone())?;
        self.space_of(tid).regions.remove(&range);
        Ok(())
    }

    /// The range is as executable as it was, but holds other bytes.
    pub(crate) fn code_replaced(&mut self, tid: Tid, range: Range<Address>) -> Outcome<()> {
        if !self.space_of(tid).regions.overlaps(&range) {
            return Ok(());
        }
        self.own_code(tid)?;
        let space = self.space_of(tid);
        space.regions.forget_bytes(&range);
        let code = space.code.clone();
        let mut code = code.borrow_mut();
        code.invalidate_frozen(&range);
        code.images
            .retain(|image| image.range.end <= range.start || image.range.start >= range.end);
        for page in code.pages_within(&range) {
            code.invalidate_page(page);
        }
        Ok(())
    }

    /// Makes a page of code read-only, so that a change of it is noticed; and where
    /// else the same memory is mapped writable, these pages too.
    pub(crate) fn watch_page(&mut self, tid: Tid, page: Address, shared: bool) -> Outcome<()> {
        if self.space_of(tid).regions.is_writable(page) {
            self.protect(tid, page, PAGE, libc::PROT_READ)?;
        }
        self.space_of(tid).regions.watch(page, page);
        if !shared {
            return Ok(());
        }
        let maps = maps::read(tid)?;
        let Some(own) = maps.iter().find(|m| m.range.contains(&page)).cloned() else {
            return Ok(());
        };
        let offset = own.offset + (page - own.range.start);
        for other in &maps {
            let same = other.inode == own.inode && other.device == own.device && other.shared;
            let covers = offset >= other.offset
                && offset < other.offset + (other.range.end - other.range.start);
            if !same || !covers || !other.writable {
                continue;
            }
            let alias = other.range.start + (offset - other.offset);
            self.protect(tid, alias, PAGE, libc::PROT_READ)?;
            self.space_of(tid).regions.watch(alias, page);
        }
        Ok(())
    }

    /// The application writes to a page: if it was watched, its code is forgotten.
    pub(crate) fn unwatch_page(&mut self, tid: Tid, page: Address) -> Outcome<bool> {
        let Some(codes) = self.space_of(tid).regions.unwatch(page) else {
            return Ok(false);
        };
        self.own_code(tid)?;
        let code = self.space_of(tid).code.clone();
        for &changed in &codes {
            code.borrow_mut().invalidate_page(changed);
            // What is translated from there next must be watched anew, with all views.
            if changed != page && self.space_of(tid).regions.unwatch(changed).is_some() {
                self.unprotect(tid, changed)?;
            }
        }
        // A read-only view of shared memory stays read-only.
        let alias = codes.iter().all(|&code| code != page);
        if alias {
            self.protect(tid, page, PAGE, libc::PROT_READ | libc::PROT_WRITE)?;
        } else {
            self.unprotect(tid, page)?;
        }
        Ok(true)
    }

    /// Gives a page of code its own protection back.
    fn unprotect(&mut self, tid: Tid, page: Address) -> Outcome<()> {
        if self.space_of(tid).regions.is_writable(page) {
            self.protect(tid, page, PAGE, libc::PROT_READ | libc::PROT_WRITE)?;
        }
        Ok(())
    }

    pub(crate) fn unwatch_range(&mut self, tid: Tid, range: &Range<Address>) -> Outcome<()> {
        for page in self.space_of(tid).regions.watched() {
            if range.contains(&page) {
                self.unwatch_page(tid, page)?;
            }
        }
        Ok(())
    }

    /// The kernel is going to write to these places, in a call that cannot be made
    /// again once it has failed.
    pub(crate) fn unwatch_results(&mut self, tid: Tid, places: &[(Address, u64)]) -> Outcome<()> {
        for &(at, size) in places {
            if at != 0 {
                self.unwatch_range(tid, &pages(at, size))?;
            }
        }
        Ok(())
    }

    /// The kernel could not write where the application could have: true if there
    /// were watched pages, which may have been the reason.
    pub(crate) fn unwatch_all(&mut self, tid: Tid) -> Outcome<bool> {
        let watched = self.space_of(tid).regions.watched();
        for page in &watched {
            match self.unwatch_page(tid, *page) {
                Ok(_) | Err(Halt::Engine(_)) => {}
                Err(Halt::Gone) => return Err(Halt::Gone),
            }
        }
        Ok(!watched.is_empty())
    }
}
