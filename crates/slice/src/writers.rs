//! Which instance of a slice wrote to memory last, byte by byte.

use crate::control::Position;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// An instance that wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    pub position: Position,
    /// Its instruction, by a number.
    pub code: u32,
    pub thread: u64,
}

const PAGE: u64 = 4096;

/// Pages hold the numbers of writers, which are given anew when all bytes of one are overwritten.
#[derive(Default)]
pub struct Writers {
    pages: FxHashMap<u64, Box<[u32; PAGE as usize]>>,
    all: Vec<Writer>,
    /// How many bytes each has, and those that have none any more.
    bytes: Vec<u32>,
    free: Vec<u32>,
}

impl Writers {
    /// Somebody has written; nobody of interest, if there is none.
    pub fn wrote(&mut self, bytes: Range<u64>, writer: Option<Writer>) {
        if bytes.is_empty() {
            return;
        }
        let number = writer.map(|writer| self.number(writer));
        for (page, within) in pages(bytes) {
            let slots = match number {
                Some(_) => self.pages.entry(page).or_insert_with(|| Box::new([0; PAGE as usize])),
                None => match self.pages.get_mut(&page) {
                    Some(slots) => slots,
                    None => continue,
                },
            };
            for slot in &mut slots[within] {
                let before = std::mem::replace(slot, number.map_or(0, |number| number + 1));
                if let Some(number) = number {
                    self.bytes[number as usize] += 1;
                }
                if let Some(before) = before.checked_sub(1) {
                    self.bytes[before as usize] -= 1;
                    if self.bytes[before as usize] == 0 {
                        self.free.push(before);
                    }
                }
            }
        }
    }

    /// Who wrote there last: each writer once for bytes that follow each other, with the first.
    pub fn of(&self, bytes: Range<u64>) -> Vec<(u64, Writer)> {
        let mut found = Vec::new();
        let mut last = 0;
        for (page, within) in pages(bytes) {
            let Some(slots) = self.pages.get(&page) else {
                continue;
            };
            for (index, slot) in within.clone().zip(&slots[within]) {
                if std::mem::replace(&mut last, *slot) != *slot && *slot != 0 {
                    let at = (page * PAGE).wrapping_add(index as u64);
                    found.push((at, self.all[*slot as usize - 1]));
                }
            }
        }
        found
    }

    /// What was there is elsewhere now; what is new there nobody has written.
    pub fn moved(&mut self, from: Range<u64>, to: Range<u64>) {
        let size = to.end.wrapping_sub(to.start);
        let known = self.runs(from.clone());
        self.wrote(from, None);
        self.wrote(to.clone(), None);
        for (run, writer) in known.into_iter().filter(|(run, _)| run.start < size) {
            let at = |byte: u64| to.start.wrapping_add(byte.min(size));
            self.wrote(at(run.start)..at(run.end), Some(writer));
        }
    }

    /// Who wrote bytes that follow each other, counted from the first.
    fn runs(&self, bytes: Range<u64>) -> Vec<(Range<u64>, Writer)> {
        let mut runs: Vec<(Range<u64>, Writer)> = Vec::new();
        let mut before = 0;
        for (page, within) in pages(bytes) {
            let slots = self.pages.get(&page).map(|slots| &slots[within.clone()]);
            for (byte, slot) in (before..).zip(slots.into_iter().flatten()) {
                let Some(number) = slot.checked_sub(1) else { continue };
                let writer = self.all[number as usize];
                match runs.last_mut() {
                    Some((run, last)) if run.end == byte && *last == writer => run.end += 1,
                    _ => runs.push((byte..byte + 1, writer)),
                }
            }
            before += within.len() as u64;
        }
        runs
    }

    fn number(&mut self, writer: Writer) -> u32 {
        if let Some(free) = self.free.pop() {
            self.all[free as usize] = writer;
            return free;
        }
        self.all.push(writer);
        self.bytes.push(0);
        self.all.len() as u32 - 1
    }
}

/// The parts of pages that bytes lie in. Addresses may wrap around.
fn pages(bytes: Range<u64>) -> impl Iterator<Item = (u64, Range<usize>)> {
    let (mut at, mut left) = (bytes.start, bytes.end.wrapping_sub(bytes.start));
    std::iter::from_fn(move || {
        let within = at % PAGE;
        let count = left.min(PAGE - within);
        let page = at / PAGE;
        (at, left) = (at.wrapping_add(count), left - count);
        (count > 0).then(|| (page, within as usize..(within + count) as usize))
    })
}
