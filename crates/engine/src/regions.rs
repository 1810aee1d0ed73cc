//! Which application memory counts as executable, and what it holds.
//!
//! In the target no application page really is executable; this is the record of
//! what the application believes, and a cache of the bytes.

use crate::code::CodeSource;
use crate::memory::{Address, Memory, PAGE, page_of};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Clone, Debug)]
struct Region {
    end: Address,
    /// The application may also write here, or through another mapping of the same
    /// memory: translated pages must be watched.
    writable: bool,
    shared: bool,
    /// It is code of a file, as the file has it.
    from_file: bool,
}

#[derive(Default)]
pub struct Regions {
    regions: BTreeMap<Address, Region>,
    pages: FxHashMap<Address, Box<[u8; PAGE as usize]>>,
    /// Pages made read-only because code was translated that lies there, or that can
    /// be written there: with the pages whose code a write changes.
    watched: FxHashMap<Address, Vec<Address>>,
}

impl Clone for Regions {
    /// For a forked process: the bytes are read again when needed.
    fn clone(&self) -> Regions {
        Regions {
            regions: self.regions.clone(),
            pages: FxHashMap::default(),
            watched: self.watched.clone(),
        }
    }
}

impl Regions {
    pub fn add(&mut self, range: Range<Address>, writable: bool, shared: bool) {
        self.remove(&range);
        let region = Region { end: range.end, writable, shared, from_file: false };
        self.regions.insert(range.start, region);
    }

    /// Code of a file, mapped privately and not writable.
    pub fn add_file(&mut self, range: Range<Address>) {
        self.add(range.clone(), false, false);
        if let Some(region) = self.regions.get_mut(&range.start) {
            region.from_file = true;
        }
    }

    /// Forgets a range; true if anything in it was executable.
    pub fn remove(&mut self, range: &Range<Address>) -> bool {
        let touched: Vec<(Address, Region)> = self
            .regions
            .range(..range.end)
            .filter(|(_, region)| region.end > range.start)
            .map(|(start, region)| (*start, region.clone()))
            .collect();
        for (start, region) in &touched {
            self.regions.remove(start);
            if *start < range.start {
                self.regions.insert(*start, Region { end: range.start, ..region.clone() });
            }
            if region.end > range.end {
                self.regions.insert(range.end, region.clone());
            }
        }
        if !touched.is_empty() {
            self.pages.retain(|page, _| !range.contains(page));
            self.watched.retain(|page, _| !range.contains(page));
        }
        !touched.is_empty()
    }

    fn region(&self, address: Address) -> Option<&Region> {
        let (_, region) = self.regions.range(..=address).next_back()?;
        (region.end > address).then_some(region)
    }

    pub fn is_executable(&self, address: Address) -> bool {
        self.region(address).is_some()
    }

    pub fn overlaps(&self, range: &Range<Address>) -> bool {
        self.regions.range(..range.end).next_back().is_some_and(|(_, r)| r.end > range.start)
    }

    /// The pages of `range` that hold executable code the application can change and
    /// that are not watched yet; with whether the memory is shared.
    pub fn unwatched(&self, range: &Range<Address>) -> Vec<(Address, bool)> {
        let mut pages = Vec::new();
        let mut page = page_of(range.start);
        while page < range.end {
            if let Some(region) = self.region(page)
                && (region.writable || region.shared)
                && !self.watched.contains_key(&page)
            {
                pages.push((page, region.shared));
            }
            page += PAGE;
        }
        pages
    }

    /// Whether the application can change the code at `address`.
    pub fn is_changeable(&self, address: Address) -> bool {
        self.region(address).is_some_and(|region| region.writable || region.shared)
    }

    pub fn is_writable(&self, page: Address) -> bool {
        self.region(page).is_some_and(|region| region.writable)
    }

    pub fn watch(&mut self, page: Address, code: Address) {
        let codes = self.watched.entry(page).or_default();
        if !codes.contains(&code) {
            codes.push(code);
        }
    }

    /// Ends the watch over a page; the pages of code that a write there changes.
    pub fn unwatch(&mut self, page: Address) -> Option<Vec<Address>> {
        self.watched.remove(&page)
    }

    pub fn watched(&self) -> Vec<Address> {
        self.watched.keys().copied().collect()
    }

    pub fn is_watched(&self, address: Address) -> bool {
        self.watched.contains_key(&page_of(address))
    }

    /// Where executable memory begins and ends.
    pub fn edges(&self) -> impl Iterator<Item = Address> {
        self.regions.iter().flat_map(|(start, region)| [*start, region.end])
    }

    /// Whether any executable memory is shared with others.
    pub fn has_shared(&self) -> bool {
        self.regions.values().any(|region| region.shared)
    }

    /// The bytes of this range are no longer what they were.
    pub fn forget_bytes(&mut self, range: &Range<Address>) {
        self.pages.retain(|page, _| !range.contains(page));
    }
}

/// Executable bytes of one address space.
pub struct Reader<'a> {
    pub regions: &'a mut Regions,
    pub memory: &'a Memory,
    /// Pass over code that can change, which has to be watched when translated.
    pub constant_only: bool,
}

impl<'a> Reader<'a> {
    pub fn new(regions: &'a mut Regions, memory: &'a Memory) -> Reader<'a> {
        Reader { regions, memory, constant_only: false }
    }
}

impl Reader<'_> {
    /// Copies bytes of one page that cannot change; false if it cannot be read.
    fn copy_constant(&mut self, at: Address, into: &mut [u8]) -> bool {
        let page = page_of(at);
        if !self.regions.pages.contains_key(&page) {
            let mut bytes = Box::new([0; PAGE as usize]);
            if self.memory.read_exact(page, &mut bytes[..]).is_err() {
                return false;
            }
            self.regions.pages.insert(page, bytes);
        }
        let from = (at - page) as usize;
        into.copy_from_slice(&self.regions.pages[&page][from..from + into.len()]);
        true
    }
}

impl CodeSource for Reader<'_> {
    fn can_change_unseen(&self, pc: Address) -> bool {
        self.regions.region(pc).is_some_and(|region| region.shared)
    }

    fn fetch(&mut self, pc: Address, buffer: &mut [u8]) -> usize {
        let mut got = 0;
        while got < buffer.len() {
            let at = pc + got as u64;
            let Some(region) = self.regions.region(at) else {
                break;
            };
            if self.constant_only && (region.writable || region.shared) {
                break;
            }
            let end = region.end.min(page_of(at) + PAGE);
            let length = ((end - at) as usize).min(buffer.len() - got);
            let into = &mut buffer[got..got + length];
            // Bytes that can change are not worth remembering.
            let read = if region.writable || region.shared {
                self.memory.read_exact(at, into).is_ok()
            } else {
                self.copy_constant(at, into)
            };
            if !read {
                break;
            }
            got += length;
        }
        got
    }

    fn page_checksum(&mut self, page: Address) -> Option<u32> {
        if !self.regions.region(page)?.from_file {
            return None;
        }
        Some(crate::archive::checksum(&self.regions.pages.get(&page)?[..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removing_the_middle_leaves_both_ends() {
        let mut regions = Regions::default();
        regions.add(0x1000..0x5000, false, false);
        assert!(regions.remove(&(0x2000..0x3000)));
        assert!(regions.is_executable(0x1fff) && regions.is_executable(0x3000));
        assert!(!regions.is_executable(0x2000) && !regions.is_executable(0x5000));
        assert!(!regions.remove(&(0x2000..0x3000)));
        assert!(regions.overlaps(&(0x2fff..0x3001)) && !regions.overlaps(&(0x2000..0x3000)));
    }

    #[test]
    fn only_writable_code_is_watched() {
        let mut regions = Regions::default();
        regions.add(0x1000..0x2000, false, false);
        regions.add(0x2000..0x4000, true, false);
        assert_eq!(regions.unwatched(&(0x1800..0x3000)), [(0x2000, false)]);
        regions.watch(0x2000, 0x2000);
        assert_eq!(regions.unwatched(&(0x1800..0x3000)), []);
        assert_eq!(regions.unwatch(0x2000), Some(vec![0x2000]));
    }
}
