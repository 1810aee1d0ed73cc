//! Keeping translations of files from run to run.

use crate::archive::{self, Archive, Key, Section, checksum};
use crate::code::Code;
use crate::error::Halt;
use crate::frozen::Placement;
use crate::image::{Identity, Image};
use crate::memory::{Address, Memory, PAGE};
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use std::cell::RefCell;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
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
        self.watch_for_border(tid, path, &range, offset);
        let Ok(file) = File::open(path) else {
            return Ok(());
        };
        let Some(identity) = file.metadata().ok().as_ref().and_then(Identity::of) else {
            return Ok(());
        };
        let image = Image::new(identity, range, offset);
        self.image_mapped(tid, image, |bytes, offset| read_up_to(&file, bytes, offset).is_ok())
    }

    /// Code of a file of a recording has been mapped.
    pub(crate) fn recorded_file_mapped(
        &mut self,
        tid: Tid,
        file: &File,
        hash: why_record::files::Hash,
        range: Range<Address>,
        offset: u64,
    ) -> Outcome<()> {
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        let image = Image::new(Identity::of_content(hash.0, size), range, offset);
        self.image_mapped(tid, image, |bytes, offset| read_up_to(file, bytes, offset).is_ok())
    }

    /// The kernel's own code is there for the application to call.
    pub(crate) fn kernel_code_mapped(&mut self, tid: Tid, range: Range<Address>) -> Outcome<()> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        self.space_of(tid).memory.read_exact(range.start, &mut bytes).map_err(|_| Halt::Gone)?;
        let image = Image::new(Identity::of_kernel_code(&bytes), range, 0);
        self.image_mapped(tid, image, |wanted, offset| {
            let own = bytes.get(offset as usize..offset as usize + wanted.len());
            own.map(|own| wanted.copy_from_slice(own)).is_some()
        })
    }

    /// An image has been mapped of which `read` gives bytes from an offset on.
    fn image_mapped(
        &mut self,
        tid: Tid,
        image: Image,
        read: impl FnMut(&mut [u8], u64) -> bool,
    ) -> Outcome<()> {
        // Trace records are numbered anew in each run.
        if self.options.tool.traces() {
            return Ok(());
        }
        self.space_of(tid).regions.add_file(image.range.clone());
        self.find_archive(tid, &image, read);
        self.thaw(tid, image)
    }

    /// Opens what earlier runs kept of an image, if nobody has yet.
    fn find_archive(&mut self, tid: Tid, image: &Image, read: impl FnMut(&mut [u8], u64) -> bool) {
        let key = self.key(image, &self.spaces[&self.tasks[&tid].space].code.borrow());
        if !self.archives.contains_key(&key)
            && let Some(archive) = open_archive(&key, read)
        {
            self.archives.insert(key, Rc::new(archive));
        }
    }

    fn key(&self, image: &Image, code: &Code) -> Key {
        Key {
            identity: image.identity.clone(),
            offset: image.start,
            tool: code.tool(),
            calls: code.calls,
            limited: self.view.limited,
        }
    }

    /// Goes on with units made by another tool.
    pub(crate) fn change_tool(&mut self, tid: Tid, tool: Tool) -> Outcome<()> {
        self.give_up_code(tid, |code| code.change_tool(tool))?;
        let code = self.space_of(tid).code.clone();
        let images = std::mem::take(&mut code.borrow_mut().images);
        let memory = Memory::open(tid)?;
        for image in images {
            // What is mapped there cannot be written to.
            self.find_archive(tid, &image, |bytes, offset| {
                memory.read_exact(image.bias.wrapping_add(offset), bytes).is_ok()
            });
            self.thaw(tid, image)?;
        }
        Ok(())
    }

    /// Empties the cache in a way that gives up what was mapped of archives.
    pub(crate) fn give_up_code(
        &mut self,
        tid: Tid,
        empty: impl FnOnce(&mut Code) -> Vec<Range<Address>>,
    ) -> Outcome<()> {
        if !self.shares_code(tid) {
            let code = self.space_of(tid).code.clone();
            self.keep_translations(&code);
        }
        self.own_code(tid)?;
        let archived = empty(&mut self.space_of(tid).code.borrow_mut());
        for range in archived {
            let arguments = [range.start, range.end - range.start, 0, 0, 0, 0];
            self.must(tid, "unmapping the code cache", libc::SYS_munmap, arguments)?;
        }
        Ok(())
    }

    /// Takes what earlier runs translated of an image into the cache.
    pub(crate) fn thaw(&mut self, tid: Tid, image: Image) -> Outcome<()> {
        let code = self.space_of(tid).code.clone();
        let key = self.key(&image, &code.borrow());
        // What is kept passes watched addresses.
        let watched = code.borrow().is_watched_within(&image.range);
        let archive = self.archives.get(&key).filter(|_| !watched).cloned();
        if let Some(archive) = &archive {
            // Both may start the cache afresh, with the images known so far.
            self.make_room(tid, image.range.start)?;
            self.make_room_for_links(tid, archive.records::<2>(Section::Links).len())?;
        }
        let code = self.space_of(tid).code.clone();
        code.borrow_mut().images.push(image.clone());
        let Some(archive) = archive else {
            return Ok(());
        };
        let placement = code.borrow().place_of(&image, &archive);
        let mapped = match &placement {
            Some(placement) => self.map_archive(tid, &archive, placement)?,
            None => false,
        };
        let Some(Placement { at, .. }) = placement.filter(|_| mapped) else {
            code.borrow_mut().displaced.push(image.range.start);
            return Ok(());
        };
        if let Some((offset, literals)) = archive.literals(image.bias) {
            let written = self.space_of(tid).memory.write(at + offset, &literals);
            written.map_err(|_| Halt::Gone)?;
        }
        code.borrow_mut().thaw(&image, archive, at);
        Ok(())
    }

    /// Writes what has changed in archived code to all processes that share it.
    pub(crate) fn patch_code(&mut self, tid: Tid) {
        let code = self.space_of(tid).code.clone();
        let patches = code.borrow_mut().take_patches();
        if patches.is_empty() {
            return;
        }
        for space in self.spaces.values().filter(|space| Rc::ptr_eq(&space.code, &code)) {
            for (at, bytes) in &patches {
                // Fails only when the process is gone.
                let _ = space.memory.write(*at, bytes);
            }
        }
    }

    /// A process ended that may have been the last one to use a code cache.
    pub(crate) fn code_closed(&mut self, code: &Rc<RefCell<Code>>) {
        if Rc::strong_count(code) == 1 {
            self.keep_translations(code);
        }
    }

    /// Writes what has been translated to archives.
    pub(crate) fn keep_translations(&mut self, code: &Rc<RefCell<Code>>) {
        if self.options.tool.traces() {
            return;
        }
        let Some(directory) = archive::directory() else {
            return;
        };
        let mut code = code.borrow_mut();
        for image in code.images.clone() {
            if code.is_watched_within(&image.range) {
                continue;
            }
            let Some(contents) = code.freeze(&image) else {
                continue;
            };
            let key = self.key(&image, &code);
            self.archives.remove(&key);
            // Without an archive the next run is slower, and that is all.
            let _ = archive::write(&directory, &key, &contents);
        }
    }
}

/// Pages compared at once.
const AT_ONCE: usize = 8;

/// The archive of an image, if there is one, it is sound, and the code it was made from is
/// the same. Where the identity cannot tell, the code is compared.
fn open_archive(key: &Key, read: impl FnMut(&mut [u8], u64) -> bool) -> Option<Archive> {
    let archive = Archive::open(&archive::directory()?, key)?;
    let good = archive.is_sound() && (archive.settled || is_of_same_code(&archive, read));
    good.then_some(archive)
}

fn is_of_same_code(archive: &Archive, mut read: impl FnMut(&mut [u8], u64) -> bool) -> bool {
    let pages: Vec<[u32; 2]> = archive.records::<2>(Section::Pages).iter().collect();
    let mut buffer = vec![0; AT_ONCE * PAGE as usize];
    // One read for a run of pages is cheaper than one for each.
    let mut runs = pages.chunk_by(|[one, _], [next, _]| one + PAGE as u32 == *next);
    runs.all(|run| {
        run.chunks(AT_ONCE).all(|run| {
            let bytes = &mut buffer[..run.len() * PAGE as usize];
            // Memory behind the file's end is zero.
            bytes.fill(0);
            let sums = run.iter().map(|[_, sum]| *sum);
            read(bytes, run[0][0].into()) && bytes.chunks(PAGE as usize).map(checksum).eq(sums)
        })
    })
}

/// Reads what the file has of these bytes.
fn read_up_to(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
    let mut got = 0;
    while got < buffer.len() {
        match file.read_at(&mut buffer[got..], offset + got as u64)? {
            0 => break,
            n => got += n,
        }
    }
    Ok(())
}
