//! The map of memory, as the stream tells it.

use super::inputs::Mapped;
use super::modules::Module;
use super::objects::new_object;
use super::{Replayer, diverged};
use crate::error::EngineError;
use crate::inject::Part;
use crate::memory::Address;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use why_record::event::{Access, Source};
use why_record::files::Hash;

/// Memory that lies elsewhere now.
#[derive(Clone)]
pub(crate) struct Move {
    pub from: Range<Address>,
    pub to: Range<Address>,
}

impl Replayer {
    /// Memory that may be mapped several times, at least so large.
    pub(super) fn object(&mut self, object: u32, size: u64) -> Outcome<File> {
        let making = |error| EngineError::system("making shared memory")(error);
        let mut objects = self.objects.borrow_mut();
        let file = match objects.entry(object) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(new_object().map_err(making)?),
        };
        if file.metadata().map_err(making)?.len() < size {
            file.set_len(size).map_err(making)?;
        }
        Ok(file.try_clone().map_err(making)?)
    }

    pub(super) fn write_to_object(&self, at: Address, bytes: &[u8]) -> bool {
        let view = self.views.iter().rev().find(|(range, ..)| range.contains(&at));
        view.is_some_and(|(range, object, offset)| {
            let objects = self.objects.borrow();
            let object = objects.get(object);
            object.is_some_and(|o| o.write_all_at(bytes, offset + (at - range.start)).is_ok())
        })
    }
}

impl Supervisor {
    /// Memory has changed.
    pub(super) fn replay_write(&mut self, tid: Tid, at: Address, bytes: &[u8]) -> Outcome<()> {
        self.code_replaced(tid, at..at.saturating_add(bytes.len() as u64))?;
        let written = self.space_of(tid).memory.write(at, bytes);
        // Nobody can write through a shared mapping that is read-only.
        if written.is_err() && !self.replayer(tid).write_to_object(at, bytes) {
            let event = self.replayer(tid).events;
            return Err(diverged(event, format!("there is no memory at {at:#x}")));
        }
        self.tell_later(tid, at..at.saturating_add(bytes.len() as u64));
        Ok(())
    }

    /// The trace is to tell that something else is in memory, as soon as the thread goes on to
    /// which that happened.
    fn tell_later(&mut self, tid: Tid, range: Range<Address>) {
        if self.options.tool.traces() {
            self.replayer(tid).untold_writes.push(range);
        }
    }

    /// Memory now holds what a kept file holds.
    pub(super) fn replay_copy(
        &mut self,
        tid: Tid,
        at: Address,
        size: u64,
        hash: Hash,
        offset: u64,
    ) -> Outcome<()> {
        /// How much is copied at once.
        const BLOCK: u64 = 1 << 18;
        let file = self.replayer(tid).kept_part(hash, offset, size)?;
        let mut bytes = vec![0; size.min(BLOCK) as usize];
        for done in (0..size).step_by(BLOCK as usize) {
            let bytes = &mut bytes[..(size - done).min(BLOCK) as usize];
            self.replayer(tid).read_kept(&file, hash, offset + done, bytes)?;
            self.replay_write(tid, at.saturating_add(done), bytes)?;
        }
        Ok(())
    }

    pub(super) fn replay_map(
        &mut self,
        tid: Tid,
        at: Address,
        size: u64,
        access: Access,
        source: &Source,
    ) -> Outcome<()> {
        let range = at..at.saturating_add(size);
        self.tell_later(tid, range.clone());
        self.forget_code(tid, range.clone())?;
        let vacated = self.vacate(tid, &range)?;
        // What else is the engine's the program has never touched, though it may have asked for
        // all memory from here to there.
        for part in without(&range, &self.space_of(tid).own_ranges()) {
            self.replay_map_part(tid, part.clone(), part.start - at, access, source)?;
        }
        self.settle_elsewhere(tid, vacated)?;
        if let Source::Shared { object, offset } = source {
            self.replayer(tid).views.push((range.clone(), *object, *offset));
        }
        self.replayer(tid).mapped.push(range.clone());
        if access.execute {
            let shared = matches!(source, Source::Shared { .. });
            self.allow_code(tid, range.clone(), access.write, shared)?;
            if let (Source::File { hash, offset, .. }, false) = (source, access.write) {
                let file = self.replayer(tid).files.open(*hash).map_err(EngineError::Recording)?;
                self.recorded_file_mapped(tid, &file, *hash, range.clone(), *offset)?;
            }
        }
        self.forget_modules(tid, &range);
        if let (Source::File { hash, offset, name }, true) = (source, self.options.tool.traces()) {
            let (offset, name, executable) = (*offset, name.clone(), access.execute);
            // The rest of its last page is none of it.
            let size = self.replayer(tid).files.size_of(*hash).unwrap_or(u64::MAX);
            let bytes =
                range.start..range.end.min(range.start.saturating_add(size - size.min(offset)));
            self.replayer(tid).untold_maps.push(Mapped { bytes, offset, name, executable });
        }
        if let Source::File { hash, offset, name } = source {
            let (executable, name) = (access.execute, name.clone());
            let module = Module { range, offset: *offset, executable, hash: *hash, name };
            self.replayer(tid).modules.add(module.clone());
            self.watch_module(tid, &module);
        }
        Ok(())
    }

    /// Maps what lies so far from the beginning of a source.
    pub(super) fn replay_map_part(
        &mut self,
        tid: Tid,
        range: Range<Address>,
        distance: u64,
        access: Access,
        source: &Source,
    ) -> Outcome<()> {
        let (at, size) = (range.start, range.end - range.start);
        let fixed = libc::MAP_PRIVATE | libc::MAP_FIXED;
        let protection = protection(access);
        let part = |offset: u64| Part { at, offset: offset + distance, size, times: 1, protection };
        match source {
            Source::Zero | Source::Stack => {
                let grows = if *source == Source::Stack { libc::MAP_GROWSDOWN } else { 0 };
                let flags = (fixed | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | grows) as u64;
                let map = [at, size, protection as u64, flags, u64::MAX, 0];
                self.must(tid, "mapping recorded memory", libc::SYS_mmap, map)?;
            }
            Source::Shared { object, offset } => {
                let part = part(*offset);
                let file = self.replayer(tid).object(*object, part.offset.saturating_add(size))?;
                let shared = libc::MAP_SHARED | libc::MAP_FIXED;
                self.map_recorded(tid, file.as_fd(), libc::O_RDWR, &part, shared)?;
            }
            Source::Private { object, offset } => {
                let part = part(*offset);
                let file = self.replayer(tid).object(*object, part.offset.saturating_add(size))?;
                self.map_recorded(tid, file.as_fd(), libc::O_RDONLY, &part, fixed)?;
                self.replayer(tid).has_private_views = true;
            }
            Source::File { hash, offset, .. } => {
                let file = self.replayer(tid).files.open(*hash).map_err(EngineError::Recording)?;
                self.map_recorded(tid, file.as_fd(), libc::O_RDONLY, &part(*offset), fixed)?;
            }
        }
        Ok(())
    }

    /// Another program begins: where the last one's translations are, it may have memory.
    pub(super) fn start_cache_afresh(&mut self, tid: Tid) -> Outcome<()> {
        self.own_code(tid)?;
        let code = self.space_of(tid).code.clone();
        let far: Vec<Range<Address>> = {
            let mut code = code.borrow_mut();
            code.flush();
            code.images.clear();
            code.displaced.clear();
            // The first one is at home.
            code.arenas.drain(1..).map(|arena| arena.range()).collect()
        };
        for range in far {
            let arguments = [range.start, range.end - range.start, 0, 0, 0, 0];
            self.must(tid, "unmapping the code cache", libc::SYS_munmap, arguments)?;
        }
        Ok(())
    }

    pub(super) fn replay_unmap(&mut self, tid: Tid, range: Range<Address>) -> Outcome<()> {
        self.forget_modules(tid, &range);
        self.forget_code(tid, range.clone())?;
        for part in without(&range, &self.space_of(tid).own_ranges()) {
            let arguments = [part.start, part.end - part.start, 0, 0, 0, 0];
            self.must(tid, "unmapping recorded memory", libc::SYS_munmap, arguments)?;
        }
        Ok(())
    }

    /// What a forked process is to have of this memory.
    pub(super) fn replay_inherited(
        &mut self,
        tid: Tid,
        range: Range<Address>,
        advice: i32,
    ) -> Outcome<()> {
        // One that goes on alone has no children but copies, which are to have all.
        if self.replayer(tid).alone {
            return Ok(());
        }
        for part in without(&range, &self.space_of(tid).own_ranges()) {
            let arguments = [part.start, part.end - part.start, advice as u64, 0, 0, 0];
            self.must(tid, "telling what a child is to have", libc::SYS_madvise, arguments)?;
        }
        self.replayer(tid).withheld.push(range);
        Ok(())
    }

    /// Forks are to have what is there, whatever was said before.
    pub(super) fn give_to_forks(&mut self, tid: Tid, range: Range<Address>) -> Outcome<()> {
        for part in without(&range, &self.space_of(tid).own_ranges()) {
            for advice in [libc::MADV_DOFORK, libc::MADV_KEEPONFORK] {
                // Some of it may be gone, and is passed over.
                let arguments = [part.start, part.end - part.start, advice as u64, 0, 0, 0];
                self.call(tid, libc::SYS_madvise, arguments)?;
            }
        }
        Ok(())
    }

    pub(super) fn set_access(
        &mut self,
        tid: Tid,
        range: Range<Address>,
        access: Access,
    ) -> Outcome<()> {
        self.forget_code(tid, range.clone())?;
        for part in without(&range, &self.space_of(tid).own_ranges()) {
            self.protect(tid, part.start, part.end - part.start, protection(access))?;
        }
        if access.execute {
            let shared =
                self.replayer(tid).views.iter().any(|(view, ..)| view.contains(&range.start));
            self.allow_code(tid, range, access.write, shared)?;
        }
        Ok(())
    }

    pub(super) fn replay_move(
        &mut self,
        tid: Tid,
        from: Range<Address>,
        to: Range<Address>,
        stays: bool,
    ) -> Outcome<()> {
        let regions = &self.space_of(tid).regions;
        let executable = regions.is_executable(from.start);
        let writable = regions.is_writable(from.start);
        if executable {
            // A moved page keeps its protection, so it must have the one it should have.
            self.unwatch_range(tid, &from)?;
        }
        self.forget_code(tid, from.clone())?;
        self.forget_code(tid, to.clone())?;
        let mut flags = 0;
        if from.start != to.start {
            flags |= libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        }
        if stays {
            flags |= libc::MREMAP_DONTUNMAP;
        }
        if self.options.tool.traces() {
            let (from, to) = (from.clone(), to.clone());
            self.replayer(tid).untold_moves.push(Move { from, to });
        }
        let vacated = self.vacate(tid, &to)?;
        let (size, new_size) = (from.end - from.start, to.end - to.start);
        let arguments = [from.start, size, new_size, flags as u64, to.start, 0];
        self.must(tid, "moving recorded memory", libc::SYS_mremap, arguments)?;
        self.settle_elsewhere(tid, vacated)?;
        let replayer = self.replayer(tid);
        replayer.mapped.push(to.clone());
        if replayer.withheld.iter().any(|held| held.start < from.end && from.start < held.end) {
            replayer.withheld.push(to.clone());
        }
        self.forget_modules(tid, &to);
        self.replayer(tid).modules.relocate(&from, to.start);
        if executable {
            self.allow_code(tid, to, writable, false)?;
        }
        Ok(())
    }
}

/// A range without some others.
fn without(range: &Range<Address>, others: &[Range<Address>]) -> Vec<Range<Address>> {
    let mut parts = vec![range.clone()];
    for other in others {
        let cut = |part: Range<Address>| {
            let before = part.start..part.end.min(other.start);
            let after = part.start.max(other.end)..part.end;
            [before, after].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>()
        };
        parts = parts.into_iter().flat_map(cut).collect();
    }
    parts
}

fn protection(access: Access) -> i32 {
    let mut protection = libc::PROT_NONE;
    if access.read || access.execute {
        protection |= libc::PROT_READ;
    }
    if access.write {
        protection |= libc::PROT_WRITE;
    }
    protection
}
