//! Memory that may be mapped several times: what a copy of a process needs of it. A fork
//! shares it, so that its contents have to be copied.

use super::Objects;
use crate::error::EngineError;
use crate::inject::Part;
use crate::maps;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::Whence;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::rc::Rc;

/// With more of it, a process is not copied.
const MOST_BYTES: u64 = 64 << 20;
const MOST_OBJECTS: usize = 64;

/// How the names begin that the kernel shows for such memory.
pub(super) const NAME: &str = "/memfd:shared";

/// A new file for such memory.
pub(super) fn new_object() -> io::Result<File> {
    Ok(memfd_create(c"shared", MFdFlags::MFD_CLOEXEC)?.into())
}

/// The numbers by which the kernel knows the files.
pub(super) fn inodes(objects: &Objects) -> FxHashSet<u64> {
    let objects = objects.borrow();
    objects.values().filter_map(|file| Some(file.metadata().ok()?.ino())).collect()
}

/// The numbers by which the kernel knows files, and those of the objects in them.
pub(super) type Inodes = FxHashMap<u64, u32>;

/// Whether there is so much that copying it would take long.
pub(super) fn are_too_large(objects: &Objects) -> bool {
    let objects = objects.borrow();
    // Blocks are of 512 bytes, and holes have none.
    let size = |file: &File| file.metadata().map_or(u64::MAX, |metadata| metadata.blocks() * 512);
    objects.len() > MOST_OBJECTS
        || objects.values().map(size).fold(0, u64::saturating_add) > MOST_BYTES
}

/// Objects with the same contents; and by which numbers the old ones are known.
pub(super) fn copy(objects: &Objects) -> Outcome<(Objects, Inodes)> {
    let copying = |error| EngineError::system("copying shared memory")(error);
    let mut copies = FxHashMap::default();
    let mut inodes = Inodes::default();
    for (number, object) in objects.borrow().iter() {
        inodes.insert(object.metadata().map_err(copying)?.ino(), *number);
        copies.insert(*number, copy_of(object).map_err(copying)?);
    }
    Ok((Rc::new(RefCell::new(copies)), inodes))
}

fn copy_of(object: &File) -> io::Result<File> {
    /// How much is copied at once.
    const BLOCK: u64 = 1 << 18;
    let copy = new_object()?;
    let length = object.metadata()?.len();
    copy.set_len(length)?;
    let mut bytes = vec![0; BLOCK as usize];
    let mut at = 0;
    while let Some(start) = seek(object, at, Whence::SeekData)? {
        let end = seek(object, start, Whence::SeekHole)?.unwrap_or(length);
        for from in (start..end).step_by(BLOCK as usize) {
            let part = &mut bytes[..(end - from).min(BLOCK) as usize];
            object.read_exact_at(part, from)?;
            copy.write_all_at(part, from)?;
        }
        at = end;
    }
    Ok(copy)
}

/// None behind the last data.
fn seek(file: &File, from: u64, to: Whence) -> io::Result<Option<u64>> {
    match nix::unistd::lseek(file, from as i64, to) {
        Ok(at) => Ok(Some(at as u64)),
        Err(nix::Error::ENXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Supervisor {
    /// Maps a process's own objects wherever it has mapped those with these numbers.
    pub(super) fn map_own_objects(&mut self, tid: Tid, inodes: &Inodes) -> Outcome<()> {
        if inodes.is_empty() {
            return Ok(());
        }
        for mapping in maps::read(tid)?.into_iter().filter(|mapping| mapping.shared) {
            let Some(object) = inodes.get(&mapping.inode) else {
                continue;
            };
            let size = mapping.range.end - mapping.range.start;
            let file = self.replayer(tid).object(*object, 0)?;
            let mut protection = libc::PROT_NONE;
            if mapping.readable {
                protection |= libc::PROT_READ;
            }
            if mapping.writable {
                protection |= libc::PROT_WRITE;
            }
            let (at, offset) = (mapping.range.start, mapping.offset);
            let part = Part { at, offset, size, times: 1, protection };
            let flags = libc::MAP_SHARED | libc::MAP_FIXED;
            self.map_recorded(tid, file.as_fd(), libc::O_RDWR, &part, flags)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_same_contents_and_holes() {
        let object = new_object().unwrap();
        object.set_len(100 << 20).unwrap();
        object.write_all_at(b"early", 5).unwrap();
        object.write_all_at(b"late", (99 << 20) + 7).unwrap();
        let objects: Objects = Rc::new(RefCell::new(FxHashMap::from_iter([(3, object)])));
        assert!(!are_too_large(&objects));
        let (copies, inodes) = copy(&objects).unwrap();
        assert_eq!(inodes.values().copied().collect::<Vec<_>>(), [3]);
        let copies = copies.borrow();
        let metadata = copies[&3].metadata().unwrap();
        assert_eq!(metadata.len(), 100 << 20);
        assert!(metadata.blocks() * 512 < 1 << 20);
        let mut bytes = [0; 5];
        copies[&3].read_exact_at(&mut bytes, 5).unwrap();
        assert_eq!(&bytes, b"early");
        copies[&3].read_exact_at(&mut bytes[..4], (99 << 20) + 7).unwrap();
        assert_eq!(&bytes[..4], b"late");
    }
}
