//! Which pages of a process hold something of their own, as the kernel tells it.

use crate::error::{EngineError, Result};
use crate::memory::{Address, PAGE};
use nix::ioctl_readwrite;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

pub struct Pages(File);

/// What a page is, for `PAGEMAP_SCAN`.
const FILE: u64 = 1 << 2;
const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;
const ZERO: u64 = 1 << 5;

/// The kernel's `struct pm_scan_arg`.
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    found: u64,
    found_length: u64,
    max_pages: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    returned: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Found {
    start: u64,
    end: u64,
    categories: u64,
}

ioctl_readwrite!(pagemap_scan, b'f', 16, Scan);

impl Pages {
    pub fn open(pid: i32) -> Result<Pages> {
        let path = format!("/proc/{pid}/pagemap");
        File::open(&path).map(Pages).map_err(EngineError::system(format!("opening {path}")))
    }

    /// The parts of a private mapping that are not what was mapped there.
    pub fn own(&self, range: Range<Address>) -> Result<Vec<Range<Address>>> {
        match self.scan(range.clone()) {
            // Linux before 6.7 cannot be asked so.
            Err(nix::Error::ENOTTY | nix::Error::EINVAL) => self.read(range),
            result => result.map_err(|error| EngineError::system(SCANNING)(error.into())),
        }
    }

    fn scan(&self, range: Range<Address>) -> nix::Result<Vec<Range<Address>>> {
        let mut own = Vec::new();
        let mut start = range.start;
        let mut found = [Found::default(); 512];
        while start < range.end {
            let mut scan = Scan {
                size: size_of::<Scan>() as u64,
                start,
                end: range.end,
                found: found.as_mut_ptr() as u64,
                found_length: found.len() as u64,
                inverted: FILE | ZERO,
                all_of: FILE | ZERO,
                any_of: PRESENT | SWAPPED,
                returned: PRESENT,
                ..Scan::default()
            };
            // SAFETY: the kernel fills in at most as many entries as it is told there are.
            let count = unsafe { pagemap_scan(self.0.as_raw_fd(), &raw mut scan) }?;
            let parts = &found[..(count as usize).min(found.len())];
            own.extend(parts.iter().map(|part| part.start..part.end));
            if scan.walk_end <= start {
                break;
            }
            start = scan.walk_end;
        }
        Ok(own)
    }

    /// The same, page by page.
    fn read(&self, range: Range<Address>) -> Result<Vec<Range<Address>>> {
        /// An entry's bits.
        const PRESENT: u64 = 1 << 63;
        const SWAPPED: u64 = 1 << 62;
        const FILE: u64 = 1 << 61;
        const ENTRIES: u64 = 1 << 16;
        let mut own: Vec<Range<Address>> = Vec::new();
        let mut entries = vec![0; 8 * ENTRIES as usize];
        for start in range.clone().step_by((ENTRIES * PAGE) as usize) {
            let count = ((range.end - start) / PAGE).min(ENTRIES) as usize;
            let entries = &mut entries[..8 * count];
            self.0
                .read_exact_at(entries, start / PAGE * 8)
                .map_err(EngineError::system(SCANNING))?;
            for (index, entry) in entries.chunks_exact(8).enumerate() {
                let entry = u64::from_le_bytes(entry.try_into().expect("eight bytes"));
                if entry & (PRESENT | SWAPPED) == 0 || entry & FILE != 0 {
                    continue;
                }
                let page = start + index as u64 * PAGE;
                match own.last_mut() {
                    Some(last) if last.end == page => last.end += PAGE,
                    _ => own.push(page..page + PAGE),
                }
            }
        }
        Ok(own)
    }
}

const SCANNING: &str = "asking which pages are in use";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_find_the_pages_that_were_written() {
        const PAGES: usize = 300;
        let size = PAGES * PAGE as usize;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: new memory, unmapped at the end; only pages inside it are written to.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), size, access, flags, -1, 0) };
        // Small pages only, or one write would bring many.
        // SAFETY: as above.
        unsafe { libc::madvise(at, size, libc::MADV_NOHUGEPAGE) };
        let at = at as u64;
        let page = |index: u64| at + index * PAGE;
        for index in [0, 1, 2, 77, 299] {
            // SAFETY: as above.
            unsafe { (page(index) as *mut u8).write_volatile(1) };
        }
        // SAFETY: as above. A page that was only read holds nothing.
        unsafe { (page(100) as *const u8).read_volatile() };
        let expected = [page(0)..page(3), page(77)..page(78), page(299)..page(300)];
        let pages = Pages::open(std::process::id() as i32).unwrap();
        let range = at..at + size as u64;
        let mut read = pages.read(range.clone()).unwrap();
        // Without the scan the page of zeroes cannot be told from others.
        read.retain(|part| part.start != page(100));
        assert_eq!(read, expected);
        if let Ok(scanned) = pages.scan(range) {
            assert_eq!(scanned, expected);
        }
        // SAFETY: as above.
        unsafe { libc::munmap(at as *mut libc::c_void, size) };
    }
}
