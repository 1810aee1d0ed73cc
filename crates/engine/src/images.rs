//! Keeping translations of files from run to run.

use crate::archive::{self, Archive, Key, Map, Section};
use crate::code::Code;
use crate::image::{Identity, Image};
use crate::memory::{Address, PAGE};
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use std::cell::RefCell;
use std::fs::File;
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
        let Ok(file) = File::open(path) else {
            return Ok(());
        };
        let identity = file.metadata().ok().as_ref().and_then(Identity::of);
        let Some(identity) = identity else {
            return Ok(());
        };
        self.space_of(tid).regions.add_file(range.clone());
        let key = Key { identity: identity.clone(), offset, tool: self.options.tool };
        if !self.archives.contains_key(&key)
            && let Some(archive) = open_archive(&key, &file)
        {
            self.archives.insert(key, Rc::new(archive));
        }
        self.thaw(tid, Image::new(identity, range, offset))
    }

    /// Takes what earlier runs translated of an image into the cache.
    pub(crate) fn thaw(&mut self, tid: Tid, image: Image) -> Outcome<()> {
        self.space_of(tid).code.borrow_mut().images.push(image.clone());
        let key =
            Key { identity: image.identity.clone(), offset: image.start, tool: self.options.tool };
        if let Some(archive) = self.archives.get(&key).cloned() {
            self.make_room(tid, image.range.start)?;
            self.space_of(tid).code.borrow_mut().thaw(&image, archive);
        }
        Ok(())
    }

    /// A process ended that may have been the last one to use a code cache.
    pub(crate) fn code_closed(&mut self, code: &Rc<RefCell<Code>>) {
        if Rc::strong_count(code) > 1 || self.options.tool == Tool::Trace {
            return;
        }
        let Some(directory) = archive::directory() else {
            return;
        };
        let mut code = code.borrow_mut();
        for image in code.images.clone() {
            let Some(contents) = code.freeze(&image) else {
                continue;
            };
            let key =
                Key { identity: image.identity, offset: image.start, tool: self.options.tool };
            self.archives.remove(&key);
            // Without an archive the next run is slower, and that is all.
            let _ = archive::write(&directory, &key, &contents);
        }
    }
}

/// The archive of a file, if there is one and the code it was made from is the same.
fn open_archive(key: &Key, file: &File) -> Option<Archive> {
    let archive = Archive::open(&archive::directory()?, key)?;
    let map = Map::of(file)?;
    let pages = archive.records::<2>(Section::Pages);
    let same = pages.iter().all(|[offset, checksum]| {
        let mut page = [0; PAGE as usize];
        let start = offset as usize;
        let Some(bytes) = map.bytes().get(start..map.bytes().len().min(start + page.len())) else {
            return false;
        };
        // Memory behind the file's end is zero.
        page[..bytes.len()].copy_from_slice(bytes);
        crc32fast::hash(&page) == checksum
    });
    same.then_some(archive)
}
