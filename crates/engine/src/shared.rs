//! Memory that supervisor and target both map.

use crate::error::{EngineError, Result};
use nix::fcntl::FallocateFlags;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

/// In Linux since 5.14.
const MADV_POPULATE_WRITE: i32 = 23;

/// A memfd, mapped writable here. What the target maps of it is its own matter.
pub struct SharedMemory {
    file: OwnedFd,
    start: NonNull<u8>,
    size: usize,
}

// SAFETY: the memory is shared with another process anyway; all access is by copying
// or by whoever the two sides agreed upon.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    pub fn new(name: &str, size: usize) -> Result<SharedMemory> {
        let what = format!("creating shared memory for the {name}");
        let create = || -> nix::Result<SharedMemory> {
            let file = memfd_create(name, MFdFlags::MFD_CLOEXEC)?;
            nix::unistd::ftruncate(&file, size as i64)?;
            let length = NonZeroUsize::new(size).expect("not empty");
            // SAFETY: a new mapping at an address of the kernel's choice.
            let start = unsafe {
                mmap(
                    None,
                    length,
                    ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                    MapFlags::MAP_SHARED | MapFlags::MAP_NORESERVE,
                    &file,
                    0,
                )?
            };
            Ok(SharedMemory { file, start: start.cast(), size })
        };
        create().map_err(|errno| EngineError::system(what)(errno.into()))
    }

    /// The file, for the target to map.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub fn size(&self) -> usize {
        self.size
    }

    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.size);
        // SAFETY: in bounds by the assertion; the target may read these bytes at any
        // time, and no Rust reference to them exists.
        unsafe { self.start().add(offset).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    /// Has the kernel provide the pages of a part now. If it does not, faults will.
    pub fn populate(&self, offset: usize, size: usize) {
        assert!(offset + size <= self.size);
        let page = offset & !4095;
        // To have them in the file first is cheaper than to have both done by the second.
        let _ = nix::fcntl::fallocate(
            &self.file,
            FallocateFlags::empty(),
            page as i64,
            (offset + size - page) as i64,
        );
        // SAFETY: in bounds by the assertion, and the pages' contents stay what they are.
        unsafe {
            libc::madvise(self.start().add(page).cast(), offset + size - page, MADV_POPULATE_WRITE)
        };
    }

    pub fn read(&self, offset: usize, buffer: &mut [u8]) {
        assert!(offset + buffer.len() <= self.size);
        // SAFETY: in bounds by the assertion; no Rust reference to the source exists.
        unsafe {
            self.start().add(offset).copy_to_nonoverlapping(buffer.as_mut_ptr(), buffer.len())
        }
    }

    pub fn write_u64(&self, offset: usize, value: u64) {
        self.write(offset, &value.to_le_bytes());
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: this value alone knows the mapping.
        let _ = unsafe { munmap(self.start.cast(), self.size) };
    }
}
