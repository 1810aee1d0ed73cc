//! Keeping translations of files from run to run.

use crate::archive::{self, Archive, Key, Section};
use crate::code::Code;
use crate::image::{Identity, Image};
use crate::memory::{Address, PAGE};
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use why_translate::Tool;

impl Supervisor {
    /// Code of the file at `path` has been mapped.
    pub(crate) fn file_mapped(
        &mut self,
        tid: Tid,
        path: &Path,
        range: Range<Address>,
        offset: u64,
    ) -> Outcome<()> {
        // Trace records are numbered anew in each run.
        if self.options.tool == Tool::Trace {
            return Ok(());
        }
        let identity = std::fs::metadata(path).ok().as_ref().and_then(Identity::of);
        let Some(identity) = identity else { return Ok(()) };
        self.space_of(tid).regions.add_file(range.clone());
        self.thaw(tid, Image::new(identity, range, offset))
    }

    /// Takes what earlier runs translated of an image into the cache.
    pub(crate) fn thaw(&mut self, tid: Tid, image: Image) -> Outcome<()> {
        self.space_of(tid).code.borrow_mut().images.push(image.clone());
        let key = Key { identity: image.identity.clone(), tool: self.options.tool };
        let opened = archive::directory().and_then(|directory| Archive::open(&directory, &key));
        let Some(archive) = opened else { return Ok(()) };
        if self.matches_memory(tid, &image, &archive) {
            self.make_room(tid, image.range.start)?;
            self.space_of(tid).code.borrow_mut().thaw(&image, archive);
        }
        Ok(())
    }

    /// Whether the pages that were translated are the same today.
    fn matches_memory(&mut self, tid: Tid, image: &Image, archive: &Archive) -> bool {
        let pages: Vec<[u32; 2]> = archive.records::<2>(Section::Pages).iter().collect();
        let memory = &self.space_of(tid).memory;
        let mut buffer = Vec::new();
        // Neighbouring pages are read at once.
        for run in pages.chunk_by(|a, b| b[0] == a[0] + PAGE as u32) {
            buffer.resize(run.len() * PAGE as usize, 0);
            let start = image.bias.wrapping_add(u64::from(run[0][0]));
            let inside = image.range.start <= start
                && start + buffer.len() as u64 <= image.range.end.next_multiple_of(PAGE);
            if !inside || memory.read_exact(start, &mut buffer).is_err() {
                return false;
            }
            let sums = buffer.chunks(PAGE as usize).map(crc32fast::hash);
            if !sums.zip(run).all(|(sum, [_, expected])| sum == *expected) {
                return false;
            }
        }
        true
    }

    /// A process ended that may have been the last one to use a code cache.
    pub(crate) fn code_closed(&mut self, code: &Rc<RefCell<Code>>) {
        if Rc::strong_count(code) > 1 || self.options.tool == Tool::Trace {
            return;
        }
        let Some(directory) = archive::directory() else { return };
        let mut code = code.borrow_mut();
        for image in code.images.clone() {
            let Some(contents) = code.freeze(&image) else { continue };
            let key = Key { identity: image.identity, tool: self.options.tool };
            // Without an archive the next run is slower, and that is all.
            let _ = archive::write(&directory, &key, &contents);
        }
    }
}
