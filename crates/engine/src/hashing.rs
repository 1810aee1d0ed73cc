//! What a process's memory holds, in short: page by page, for a replay to compare with the
//! recorded run.

use crate::maps;
use crate::memory::{Address, PAGE};
use crate::pages::Pages;
use crate::recording::KERNELS;
use crate::shown_maps;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// The first page that two lists do not agree on.
pub fn first_difference(here: &[(Address, u64)], there: &[(Address, u64)]) -> Option<Address> {
    let differs = here.iter().zip(there).find(|(here, there)| here != there);
    let longer = || here.get(there.len()).or(there.get(here.len()));
    match differs {
        Some((here, there)) => Some(here.0.min(there.0)),
        None => longer().map(|(page, _)| *page),
    }
}

impl Supervisor {
    /// All pages that the process can write to and that are not empty, in the order of their
    /// addresses, each with a hash; but for those that are touched by what is left out. Pages
    /// that nobody can read are added to that: their file has been cut off.
    pub(crate) fn hash_memory(
        &mut self,
        tid: Tid,
        left_out: &mut Vec<Range<Address>>,
    ) -> Outcome<Vec<(Address, u64)>> {
        let space = self.space_of(tid);
        let shown = shown_maps::mappings(&maps::read(tid)?, &space.regions, &space.own_ranges());
        let pages = Pages::open(tid)?;
        let mut hashes = Vec::new();
        let writable = |m: &&maps::Mapping| m.writable && !KERNELS.contains(&m.name.as_str());
        for mapping in shown.iter().filter(writable) {
            // Whether a page of a file has been touched yet is nobody's business.
            let parts = match mapping.inode == 0 && !mapping.shared {
                true => pages.own(mapping.range.clone())?,
                false => vec![mapping.range.clone()],
            };
            for part in parts {
                self.hash_part(tid, part, &mut hashes, left_out);
            }
        }
        let touches =
            |page: Address, range: &Range<Address>| range.start < page + PAGE && range.end > page;
        hashes.retain(|(page, _)| !left_out.iter().any(|range| touches(*page, range)));
        Ok(hashes)
    }

    fn hash_part(
        &mut self,
        tid: Tid,
        part: Range<Address>,
        hashes: &mut Vec<(Address, u64)>,
        left_out: &mut Vec<Range<Address>>,
    ) {
        let mut page = [0; PAGE as usize];
        for at in part.step_by(PAGE as usize) {
            if self.space_of(tid).memory.read_exact(at, &mut page).is_err() {
                left_out.push(at..at + PAGE);
            } else if page.iter().any(|&byte| byte != 0) {
                hashes.push((at, xxh3_64(&page)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_page_that_differs_is_named() {
        let pages = [(0x1000, 7), (0x2000, 8), (0x4000, 9)];
        assert_eq!(first_difference(&pages, &pages), None);
        assert_eq!(first_difference(&pages, &[(0x1000, 7), (0x2000, 1)]), Some(0x2000));
        assert_eq!(first_difference(&pages, &pages[..2]), Some(0x4000));
        let more = [(0x1000, 7), (0x2000, 8), (0x3000, 1), (0x4000, 9)];
        assert_eq!(first_difference(&pages, &more), Some(0x3000));
    }
}
