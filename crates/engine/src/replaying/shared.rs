//! What other processes write to shared memory while one waits for its turn: whoever reads the
//! trace of that one is to know that it did not write there itself.

use super::objects::{self, NAME};
use crate::maps;
use crate::memory::Address;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use std::ops::Range;

/// What shared memory held, by where it is mapped.
pub(super) type Held = Vec<(Address, Vec<u8>)>;

/// If a byte of so many has changed, all of them count as written: no number is larger, and some
/// of its bytes are often the same as before.
const WORD: usize = 8;

impl Supervisor {
    /// Others go on from here.
    pub(super) fn remember_shared(&mut self, tid: Tid) -> Outcome<()> {
        if self.options.tool.traces() && self.replayer(tid).look().is_some() {
            let held = self.shared_memory(tid)?;
            self.replayer(tid).shared = Some(held);
        }
        Ok(())
    }

    /// It is this process's turn again.
    pub(super) fn compare_shared(&mut self, tid: Tid) {
        for (at, before) in self.replayer(tid).shared.take().into_iter().flatten() {
            let mut now = vec![0; before.len()];
            let got = self.space_of(tid).memory.read(at, &mut now).unwrap_or(0);
            let changed = changed(&before[..got], &now[..got]);
            let there = changed.map(|range| at + range.start as u64..at + range.end as u64);
            self.replayer(tid).others_wrote.extend(there);
        }
    }

    /// All memory that the process has mapped of objects.
    pub(super) fn shared_memory(&mut self, tid: Tid) -> Outcome<Held> {
        let inodes = objects::inodes(&self.replayer(tid).objects);
        let mut maps = maps::read(tid)?;
        maps.retain(|mapping| inodes.contains(&mapping.inode) && mapping.name.starts_with(NAME));
        let memory = &self.space_of(tid).memory;
        let held = maps.into_iter().map(|mapping| {
            let Range { start, end } = mapping.range;
            let mut bytes = vec![0; (end - start) as usize];
            let got = memory.read(start, &mut bytes).unwrap_or(0);
            bytes.truncate(got);
            (start, bytes)
        });
        Ok(held.collect())
    }
}

/// Where words differ; those that follow each other go together.
fn changed(before: &[u8], now: &[u8]) -> impl Iterator<Item = Range<usize>> {
    const PAGE: usize = 4096;
    let pages = before.chunks(PAGE).zip(now.chunks(PAGE)).enumerate();
    let words =
        pages.filter(|(_, (before, now))| before != now).flat_map(|(page, (before, now))| {
            let words = before.chunks(WORD).zip(now.chunks(WORD)).enumerate();
            let differ = words.filter(|(_, (before, now))| before != now);
            differ.map(move |(word, (bytes, _))| {
                let start = page * PAGE + word * WORD;
                start..start + bytes.len()
            })
        });
    let mut words = words.peekable();
    std::iter::from_fn(move || {
        let mut range = words.next()?;
        while let Some(next) = words.next_if(|next| next.start == range.end) {
            range.end = next.end;
        }
        Some(range)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_differ_are_found_and_put_together() {
        let before = vec![0; 3 * 4096 + 2];
        let mut now = before.clone();
        for at in [1, 7, 12, 4094, 4096, 3 * 4096 + 1] {
            now[at] = 1;
        }
        let found: Vec<Range<usize>> = changed(&before, &now).collect();
        assert_eq!(found, [0..16, 4088..4104, 3 * 4096..3 * 4096 + 2]);
        assert_eq!(changed(&now, &now).count(), 0);
    }
}
