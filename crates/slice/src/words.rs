//! The words of memory by which threads synchronise: those that an atomic instruction or a futex
//! call ever touched.

use crate::calls::{Object, Told, What};
use rustc_hash::FxHashSet;
use std::ops::Range;

/// Those that were found so far, by address and size.
#[derive(Default)]
pub struct Found(FxHashSet<(u64, u64)>);

impl Found {
    pub fn add(&mut self, word: &Range<u64>) {
        self.0.insert((word.start, word.end.wrapping_sub(word.start)));
    }

    /// What the kernel is told of.
    pub fn add_told(&mut self, told: &Told) {
        /// Of every futex.
        const SIZE: u64 = 4;
        if let What::Releases(Object::Word(at)) | What::Acquires(Object::Word(at)) = told.what {
            self.0.insert((at, SIZE));
        }
    }

    /// All of them, in order; those that overlap are one.
    pub fn finish(self) -> Vec<Range<u64>> {
        let mut all: Vec<(u64, u64)> = self.0.into_iter().collect();
        all.sort_unstable();
        let mut words: Vec<Range<u64>> = Vec::new();
        for (start, size) in all {
            let end = start.saturating_add(size);
            match words.last_mut() {
                Some(last) if start < last.end => last.end = last.end.max(end),
                _ => words.push(start..end),
            }
        }
        words
    }
}

/// Finds those that an access touches. Hardly any does.
pub struct Words<'a> {
    all: &'a [Range<u64>],
    /// A bit for each line of bytes, by the low bits of its number: whether it may hold one.
    filter: Vec<u64>,
}

const LINE: u64 = 16;
const LINES: u64 = 1 << 16;

impl<'a> Words<'a> {
    pub fn new(all: &'a [Range<u64>]) -> Words<'a> {
        let mut filter = vec![0; (LINES / 64) as usize];
        for word in all {
            for line in lines(word) {
                filter[(line % LINES / 64) as usize] |= 1 << (line % 64);
            }
        }
        Words { all, filter }
    }

    pub fn touched(&self, bytes: &Range<u64>) -> &'a [Range<u64>] {
        let has = |line: u64| self.filter[(line % LINES / 64) as usize] >> (line % 64) & 1 == 1;
        if !lines(bytes).any(has) {
            return &[];
        }
        let first = self.all.partition_point(|word| word.end <= bytes.start);
        let behind = self.all.partition_point(|word| word.start < bytes.end);
        self.all.get(first..behind).unwrap_or_default()
    }
}

fn lines(bytes: &Range<u64>) -> impl Iterator<Item = u64> + use<> {
    // More than all of them tell nothing else.
    let (first, last) = (bytes.start / LINE, bytes.end.saturating_sub(1) / LINE);
    first..=last.min(first.saturating_add(LINES))
}
