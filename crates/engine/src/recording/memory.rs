//! What is in memory that the program has not computed, and where it is mapped.

use super::descriptors::position;
use crate::error::Halt;
use crate::maps::{self, Mapping};
use crate::memory::{Address, PAGE};
use crate::memory_calls::{DISCARDS, FOR_FORKS};
use crate::ptrace::Registers;
use crate::shown_maps;
use crate::space::SpaceId;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use why_record::event::{Access, Event, Source};

impl Supervisor {
    /// Memory that is there, with what is in it.
    pub(super) fn record_mapping(&mut self, tid: Tid, mapping: &Mapping) -> Outcome<()> {
        let source = self.record_fresh_mapping(tid, mapping)?;
        if mapping.writable || mapping.shared || is_of_lost_file(mapping, &source) {
            self.record_changes(tid, mapping.range.clone(), &source)?;
        }
        Ok(())
    }

    /// Memory that holds nothing but what it was mapped from. Of a file that nobody can open
    /// any more, what is in memory must be told.
    pub(super) fn record_fresh_mapping(&mut self, tid: Tid, mapping: &Mapping) -> Outcome<Source> {
        let range = mapping.range.clone();
        let is_stack = mapping.name == "[stack]"
            || self.log(tid).is_some_and(|log| log.stacks.contains(&range.end));
        let source = if is_stack {
            Source::Stack
        } else if mapping.shared {
            let recorder = self.recorder.as_mut().expect("recording");
            let identity = (mapping.device.clone(), mapping.inode);
            let next = recorder.objects.len() as u32;
            let object = *recorder.objects.entry(identity).or_insert(next);
            if object == next {
                recorder.unmapped.clear();
                self.note_outsiders(mapping)?;
            }
            let space = self.space_id(tid);
            self.record_view(space, object, mapping.writable)?;
            Source::Shared { object, offset: mapping.offset }
        } else if mapping.inode == 0 {
            Source::Zero
        } else if let Some(object) = self.object_that_changes(mapping) {
            Source::Private { object, offset: mapping.offset }
        } else {
            let path = format!("/proc/{tid}/map_files/{:x}-{:x}", range.start, range.end);
            let recorder = self.recorder.as_mut().expect("recording");
            let kept = recorder.keep(Path::new(&path)).or_else(|error| match error {
                Halt::Engine(error) if !error.is_full() => recorder.keep(Path::new(&mapping.name)),
                other => Err(other),
            });
            match kept {
                Ok(hash) => {
                    recorder.mapped_privately(&mapping.name);
                    Source::File { hash, offset: mapping.offset, name: mapping.name.clone() }
                }
                Err(Halt::Engine(error)) if !error.is_full() => Source::Zero,
                Err(other) => return Err(other),
            }
        };
        let access =
            Access { read: mapping.readable, write: mapping.writable, execute: mapping.executable };
        let size = range.end - range.start;
        self.record(tid, &Event::Mapped { at: range.start, size, access, source: source.clone() })?;
        if let Source::Private { .. } = source {
            self.record_unshared(tid, mapping)?;
        }
        Ok(source)
    }

    /// The object that a privately mapped file is, if somebody can write to it as to memory: what
    /// is written there is then seen here, too. (Code is not written in this way.)
    fn object_that_changes(&self, mapping: &Mapping) -> Option<u32> {
        let recorder = self.recorder.as_ref().expect("recording");
        if mapping.executable || recorder.objects.is_empty() {
            return None;
        }
        let object = recorder.objects.get(&(mapping.device.clone(), mapping.inode)).copied()?;
        recorder.is_written_to(object).then_some(object)
    }

    /// What a privately mapped file holds where this process has not mapped the same as shared
    /// memory: nothing else tells that.
    fn record_unshared(&mut self, tid: Tid, mapping: &Mapping) -> Outcome<()> {
        let same = |other: &&Mapping| {
            other.shared && (&other.device, other.inode) == (&mapping.device, mapping.inode)
        };
        let maps = maps::read(tid)?;
        let shared: Vec<Range<u64>> = maps
            .iter()
            .filter(same)
            .map(|other| other.offset..other.offset + (other.range.end - other.range.start))
            .collect();
        for at in mapping.range.clone().step_by(PAGE as usize) {
            let offset = mapping.offset + (at - mapping.range.start);
            if !shared.iter().any(|part| part.contains(&offset)) {
                self.record_memory(tid, at..at + PAGE)?;
            }
        }
        Ok(())
    }

    /// What of a mapping's memory is not what it was mapped from.
    pub(super) fn record_changes(
        &mut self,
        tid: Tid,
        range: Range<Address>,
        source: &Source,
    ) -> Outcome<()> {
        let file = match source {
            Source::File { hash, offset, .. } => {
                let recorder = self.recorder.as_ref().expect("recording");
                let file = File::open(recorder.files.path(*hash)).ok();
                file.map(|file| (file, *offset))
            }
            _ => None,
        };
        let (mut page, mut original) = ([0; PAGE as usize], [0; PAGE as usize]);
        for at in range.clone().step_by(PAGE as usize) {
            if self.space_of(tid).memory.read_exact(at, &mut page).is_err() {
                continue;
            }
            original.fill(0);
            if let Some((file, offset)) = &file {
                let _ = file.read_at(&mut original, offset + (at - range.start));
            }
            if page != original || matches!(source, Source::Shared { .. }) {
                self.record(tid, &Event::Wrote { at, bytes: page.to_vec() })?;
            }
        }
        Ok(())
    }

    /// The program has written to its own memory as to a file.
    pub(crate) fn record_write_to_memory(
        &mut self,
        tid: Tid,
        r: &Registers,
        result: u64,
    ) -> Outcome<()> {
        self.record_memory(tid, written_as_file(tid, r, result))
    }

    /// What is in this memory now, as far as it can be read.
    pub(super) fn record_memory(&mut self, tid: Tid, range: Range<Address>) -> Outcome<()> {
        self.record_memory_of(self.space_id(tid), range)
    }

    pub(super) fn record_memory_of(
        &mut self,
        space: SpaceId,
        range: Range<Address>,
    ) -> Outcome<()> {
        /// No event is larger.
        const PART: u64 = 1 << 20;
        let mut at = range.start;
        while at < range.end {
            let mut bytes = vec![0; (range.end - at).min(PART) as usize];
            let got = self.spaces[&space].memory.read(at, &mut bytes).unwrap_or(0);
            bytes.truncate(got);
            if got == 0 {
                // What is not there cannot have been written to, whatever the arguments said.
                return Ok(());
            }
            if let Some(recorder) = &mut self.recorder {
                recorder.add(space, &Event::Wrote { at, bytes })?;
            }
            at += got as u64;
        }
        Ok(())
    }

    /// A call has changed the map of memory.
    pub(crate) fn record_memory_call(
        &mut self,
        tid: Tid,
        r: &Registers,
        result: u64,
    ) -> Outcome<()> {
        if self.log(tid).is_none() {
            return Ok(());
        }
        if (-4095..0).contains(&(result as i64)) {
            return self.record_failed_memory_call(tid, r);
        }
        let pages = |size: u64| size.next_multiple_of(PAGE);
        match r.rax as i64 {
            libc::SYS_munmap => {
                self.forget_stacks(tid, &(r.rdi..r.rdi + pages(r.rsi)));
                self.record(tid, &Event::Unmapped { at: r.rdi, size: pages(r.rsi) })
            }
            libc::SYS_mprotect | libc::SYS_pkey_mprotect => {
                let (at, size) = (r.rdi, pages(r.rsi));
                if access(r.rdx).write && self.maps_shared(tid, at)? {
                    self.record_writable(self.space_id(tid))?;
                }
                self.record(tid, &Event::Protected { at, size, access: access(r.rdx) })
            }
            libc::SYS_mmap => self.record_mmap(tid, r, result),
            libc::SYS_mremap => {
                if r.rsi == 0 {
                    // Shared memory is mapped once more.
                    let maps = maps::read(tid)?;
                    let mapping = maps.iter().find(|m| m.range.contains(&result)).cloned();
                    return mapping.map_or(Ok(()), |mapping| self.record_mapping(tid, &mapping));
                }
                let (size, new_size) = (pages(r.rsi), pages(r.rdx));
                let stays = r.r10 as i32 & libc::MREMAP_DONTUNMAP != 0;
                self.record(tid, &Event::Moved { from: r.rdi, size, to: result, new_size, stays })
            }
            libc::SYS_madvise if FOR_FORKS.contains(&(r.rdx as i32)) => {
                let (at, size, advice) = (r.rdi, pages(r.rsi), r.rdx as i32);
                self.record(tid, &Event::Inherited { at, size, advice })
            }
            libc::SYS_madvise if !DISCARDS.contains(&(r.rdx as i32)) => Ok(()),
            libc::SYS_madvise => self.record_discard(tid, r.rdi..r.rdi + pages(r.rsi)),
            libc::SYS_shmat => {
                let maps = maps::read(tid)?;
                let mapping = maps.iter().find(|m| m.range.contains(&result)).cloned();
                let Some(mapping) = mapping else {
                    return Err(Halt::Gone);
                };
                let size = mapping.range.end - mapping.range.start;
                if let Some(log) = self.log(tid) {
                    log.segments.insert(result, size);
                }
                self.record_mapping(tid, &mapping)
            }
            libc::SYS_shmdt => {
                let size = self.log(tid).and_then(|log| log.segments.remove(&r.rdi)).unwrap_or(0);
                self.record(tid, &Event::Unmapped { at: r.rdi, size })
            }
            _ => Err(crate::unknown::call(r.rax, r.rip - 2).into()),
        }
    }

    /// Whether memory of an object is mapped there.
    fn maps_shared(&mut self, tid: Tid, at: Address) -> Outcome<bool> {
        if self.recorder.as_ref().is_none_or(|recorder| recorder.objects.is_empty()) {
            return Ok(false);
        }
        Ok(maps::read(tid)?.iter().any(|m| m.shared && m.range.contains(&at)))
    }

    /// A call has failed that may have changed the map of memory up to where it failed: it is
    /// told as it is now.
    fn record_failed_memory_call(&mut self, tid: Tid, r: &Registers) -> Outcome<()> {
        let discards = r.rax as i64 == libc::SYS_madvise && DISCARDS.contains(&(r.rdx as i32));
        let protects = matches!(r.rax as i64, libc::SYS_mprotect | libc::SYS_pkey_mprotect);
        let end = r.rsi.checked_next_multiple_of(PAGE).and_then(|size| r.rdi.checked_add(size));
        let Some(end) = end.filter(|_| r.rdi.is_multiple_of(PAGE) && (discards || protects)) else {
            return Ok(());
        };
        for part in self.shown_parts(tid, &(r.rdi..end))? {
            let (at, size) = (part.range.start, part.range.end - part.range.start);
            if protects {
                let (read, write, execute) = (part.readable, part.writable, part.executable);
                let access = Access { read, write, execute };
                self.record(tid, &Event::Protected { at, size, access })?;
            } else if !part.shared {
                let source = self.record_fresh_mapping(tid, &part)?;
                self.record_changes(tid, part.range, &source)?;
            }
        }
        Ok(())
    }

    /// The parts of mappings that lie in a range, as the program has them: a page that is
    /// watched is one that it can write to.
    fn shown_parts(&mut self, tid: Tid, range: &Range<Address>) -> Outcome<Vec<Mapping>> {
        let space = self.space_of(tid);
        let maps = shown_maps::mappings(&maps::read(tid)?, &space.regions, &space.own_ranges());
        let inside = maps.into_iter().filter_map(|mapping| {
            let start = mapping.range.start.max(range.start);
            let end = mapping.range.end.min(range.end);
            let offset = mapping.offset + start.saturating_sub(mapping.range.start);
            (start < end).then_some(Mapping { range: start..end, offset, ..mapping })
        });
        Ok(inside.collect())
    }

    pub(super) fn record_mmap(&mut self, tid: Tid, r: &Registers, at: Address) -> Outcome<()> {
        let (size, flags) = (r.rsi.next_multiple_of(PAGE), r.r10 as i32);
        let shared = flags & 0xf != libc::MAP_PRIVATE;
        self.forget_stacks(tid, &(at..at + size));
        let source = if shared {
            let maps = maps::read(tid)?;
            let Some(mapping) = maps.iter().find(|m| m.range.contains(&at)) else {
                return Err(Halt::Gone);
            };
            let executable = r.rdx & libc::PROT_EXEC as u64 != 0;
            let offset = mapping.offset + (at - mapping.range.start);
            let part = Mapping { range: at..at + size, offset, executable, ..mapping.clone() };
            return self.record_shared_part(tid, &part, r);
        } else if flags & libc::MAP_GROWSDOWN != 0 {
            if let Some(log) = self.log(tid) {
                log.stacks.insert(at + size);
            }
            Source::Stack
        } else if flags & libc::MAP_ANONYMOUS != 0 {
            Source::Zero
        } else if let Some(part) = self.changing_part(tid, r, at)? {
            return self.record_fresh_mapping(tid, &part).map(drop);
        } else {
            let path = format!("/proc/{tid}/fd/{}", r.r8 as i32);
            let recorder = self.recorder.as_mut().expect("recording");
            let hash = recorder.keep(Path::new(&path))?;
            let name = std::fs::read_link(&path).unwrap_or_default();
            let name = name.to_string_lossy().into_owned();
            recorder.mapped_privately(&name);
            Source::File { hash, offset: r.r9, name }
        };
        self.record(tid, &Event::Mapped { at, size, access: access(r.rdx), source })
    }

    /// Memory that has just been mapped and that others may have. What lies behind a file's end is
    /// told apart, so that it is known where that is.
    fn record_shared_part(&mut self, tid: Tid, part: &Mapping, r: &Registers) -> Outcome<()> {
        let source = self.record_fresh_mapping(tid, part)?;
        let Range { start, end } = part.range;
        let file = match r.r10 as i32 & libc::MAP_ANONYMOUS {
            0 => std::fs::metadata(format!("/proc/{tid}/fd/{}", r.r8 as i32)).ok(),
            _ => None,
        };
        let file_end = file.map_or(end, |file| start + file.len().saturating_sub(part.offset));
        if !(start..end).contains(&file_end) {
            return self.record_changes(tid, start..end, &source);
        }
        let last_page = file_end / PAGE * PAGE;
        self.record_changes(tid, start..last_page, &source)?;
        self.record_memory(tid, last_page..file_end)?;
        let behind = file_end.next_multiple_of(PAGE);
        self.record_memory(tid, file_end..behind)?;
        // It may have grown meanwhile.
        self.record_changes(tid, behind..end, &source)
    }

    /// A private mapping that has just been made, if it is of a file that can change.
    fn changing_part(&mut self, tid: Tid, r: &Registers, at: Address) -> Outcome<Option<Mapping>> {
        if self.recorder.as_ref().is_none_or(|recorder| recorder.objects.is_empty()) {
            return Ok(None);
        }
        let range = at..at + r.rsi.next_multiple_of(PAGE);
        let part = self.shown_parts(tid, &range)?.into_iter().find(|part| part.range == range);
        Ok(part.filter(|part| !part.shared && self.object_that_changes(part).is_some()))
    }

    /// Stacks of the program's own whose last page was there are no longer.
    fn forget_stacks(&mut self, tid: Tid, range: &Range<Address>) {
        if let Some(log) = self.log(tid) {
            log.stacks.retain(|end| !range.contains(&(end - 1)));
        }
    }

    /// What was in this memory is gone: it is as it was mapped.
    pub(super) fn record_discard(&mut self, tid: Tid, range: Range<Address>) -> Outcome<()> {
        // What is shared is still there for others.
        for part in self.shown_parts(tid, &range)?.into_iter().filter(|part| !part.shared) {
            let source = self.record_fresh_mapping(tid, &part)?;
            if is_of_lost_file(&part, &source) {
                self.record_changes(tid, part.range, &source)?;
            }
        }
        Ok(())
    }

    /// The heap now ends there.
    pub(crate) fn record_heap(&mut self, tid: Tid, end: Address) -> Outcome<()> {
        let Some(log) = self.log(tid) else {
            return Ok(());
        };
        let before = log.heap_end.replace(end).unwrap_or(end).next_multiple_of(PAGE);
        let end = end.next_multiple_of(PAGE);
        let access = Access { read: true, write: true, execute: false };
        if end > before {
            let size = end - before;
            self.record(tid, &Event::Mapped { at: before, size, access, source: Source::Zero })
        } else if end < before {
            self.record(tid, &Event::Unmapped { at: end, size: before - end })
        } else {
            Ok(())
        }
    }
}

/// Where a call that writes to memory as to a file has done so.
pub(super) fn written_as_file(tid: Tid, r: &Registers, result: u64) -> Range<Address> {
    let size = if (result as i64) < 0 { 0 } else { result };
    let at = match r.rax as i64 {
        libc::SYS_pwrite64 | libc::SYS_pwritev | libc::SYS_pwritev2 => r.r10,
        _ => position(tid, r.rdi as i32).unwrap_or(0).saturating_sub(size),
    };
    at..at.saturating_add(size)
}

/// Whether memory was mapped from a file of which no copy could be made.
pub(super) fn is_of_lost_file(mapping: &Mapping, source: &Source) -> bool {
    mapping.inode != 0 && *source == Source::Zero
}

fn access(protection: u64) -> Access {
    let has = |bit: i32| protection & bit as u64 != 0;
    Access {
        read: has(libc::PROT_READ),
        write: has(libc::PROT_WRITE),
        execute: has(libc::PROT_EXEC),
    }
}
