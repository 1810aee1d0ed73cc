//! What happened in a chunk, packed to be kept: to unpack that takes a tenth of the time that it takes
//! to read the chunk's records once more, and about as much room as these.
//!
//! Of units with a pattern, what differs from record to record is told by how far it is from what it
//! was when the pattern was met last. Of many such numbers first all lowest bytes are told, then all
//! second ones, and so on: most of the latter are zero.

use crate::control::Position;
use crate::course::{Deciding, Restored, Site};
use crate::events::{Events, OTHER, Other};
use crate::kept::{LARGEST, Packed};
use crate::patterns::{Book, Patterns};
use crate::region::RegionError;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use zstd::bulk::Decompressor;

/// Packs chunks and unpacks them, in room that is used again.
#[derive(Default)]
pub struct Packing {
    /// All patterns that it has met.
    pub book: Book,
    /// What was told last of each pattern, and where that begins.
    last: Vec<u32>,
    first: Vec<usize>,
    columns: Columns,
    bytes: Vec<u8>,
    decompressor: Option<Decompressor<'static>>,
}

/// What is told of units with a pattern.
#[derive(Default)]
struct Columns {
    /// As they come in events: of patterns and of others.
    numbers: Vec<u32>,
    /// For each pattern that is met, how far each is from what it was before.
    places: Vec<u32>,
    told: Vec<u32>,
}

/// All else.
#[derive(Serialize, Deserialize)]
struct Rest<'a> {
    /// How long the columns are.
    lengths: [usize; 3],
    others: Cow<'a, [Other]>,
    blocks: Cow<'a, [u64]>,
    positions: Range<Position>,
    threads: Option<(u64, u64)>,
    accesses: Cow<'a, [u64]>,
    decided: Cow<'a, [Deciding]>,
    sites: Cow<'a, [Site]>,
    restored: Cow<'a, [Restored]>,
    passed_over: Cow<'a, BTreeSet<u64>>,
    interrupted: Cow<'a, [Position]>,
}

impl Packing {
    /// Packs what happened in a chunk, in units with these patterns.
    pub fn pack(&mut self, events: &Events, patterns: &Patterns) -> Result<Packed, RegionError> {
        self.begin(patterns);
        self.fold(&events.all);
        let rest = Rest {
            lengths: self.columns.all().map(|column| column.len()),
            others: (&events.others).into(),
            blocks: (&events.blocks).into(),
            positions: events.positions.clone(),
            threads: events.threads,
            accesses: (&events.accesses).into(),
            decided: (&events.decided).into(),
            sites: (&events.sites).into(),
            restored: (&events.restored).into(),
            passed_over: Cow::Borrowed(&events.passed_over),
            interrupted: (&events.interrupted).into(),
        };
        let rest = postcard::to_stdvec(&rest).map_err(|_| RegionError::Damaged)?;
        self.bytes.clear();
        self.bytes.extend((rest.len() as u32).to_le_bytes());
        self.bytes.extend(rest);
        for column in self.columns.all() {
            for shift in [0, 8, 16, 24] {
                self.bytes.extend(column.iter().map(|number| (number >> shift) as u8));
            }
        }
        Packed::pack(&self.bytes)
    }

    /// What happened in a chunk that was packed.
    pub fn unpack(
        &mut self,
        packed: &Packed,
        patterns: &Patterns,
        events: &mut Events,
    ) -> Result<(), RegionError> {
        self.begin(patterns);
        self.bytes.resize(packed.unpacked.min(LARGEST), 0);
        let decompressor = match &mut self.decompressor {
            Some(decompressor) => decompressor,
            none => none.insert(Decompressor::new()?),
        };
        let size = decompressor.decompress_to_buffer(&packed.bytes, self.bytes.as_mut_slice());
        let size = size.map_err(|_| RegionError::Damaged)?;
        let (length, behind) =
            self.bytes[..size].split_first_chunk().ok_or(RegionError::Damaged)?;
        let rest = behind.split_at_checked(u32::from_le_bytes(*length) as usize);
        let (rest, columns) = rest.ok_or(RegionError::Damaged)?;
        let rest: Rest = postcard::from_bytes(rest).map_err(|_| RegionError::Damaged)?;
        self.columns.read(rest.lengths, columns)?;
        events.clear();
        events.others = rest.others.into_owned();
        events.blocks = rest.blocks.into_owned();
        events.positions = rest.positions;
        events.threads = rest.threads;
        events.accesses = rest.accesses.into_owned();
        events.decided = rest.decided.into_owned();
        events.sites = rest.sites.into_owned();
        events.restored = rest.restored.into_owned();
        events.passed_over = rest.passed_over.into_owned();
        events.interrupted = rest.interrupted.into_owned();
        self.unfold(events)
    }

    /// A chunk begins: nothing has been told of any pattern.
    fn begin(&mut self, patterns: &Patterns) {
        self.book.update(patterns);
        for number in self.first.len()..self.book.patterns.len() {
            let sizes = self.book.sizes(number as u32);
            let words = usize::from(sizes.families) + usize::from(sizes.told);
            self.first.push(self.last.len());
            self.last.resize(self.last.len() + words, 0);
        }
        self.last.fill(0);
    }

    fn fold(&mut self, all: &[u32]) {
        fn add(words: &[u32], last: &mut [u32], column: &mut Vec<u32>) {
            column.extend(words.iter().zip(last).map(|(word, last)| {
                let away = word.wrapping_sub(std::mem::replace(last, *word)) as i32;
                (away << 1 ^ away >> 31) as u32
            }));
        }
        let Columns { numbers, places, told } = &mut self.columns;
        for column in [&mut *numbers, &mut *places, &mut *told] {
            column.clear();
        }
        let mut left = all;
        while let [number, behind @ ..] = left {
            numbers.push(*number);
            left = behind;
            if number & OTHER == 0 {
                let sizes = self.book.sizes(*number);
                let last = &mut self.last[self.first[*number as usize]..];
                let (families, behind) = left.split_at(sizes.families.into());
                let (own, behind) = behind.split_at(sizes.told.into());
                let (last, last_told) = last.split_at_mut(sizes.families.into());
                add(families, last, places);
                add(own, last_told, told);
                // There the number is once more.
                left = &behind[1..];
            }
        }
    }

    fn unfold(&mut self, events: &mut Events) -> Result<(), RegionError> {
        fn add(column: &[u32], last: &mut [u32], words: &mut Vec<u32>) {
            words.extend(column.iter().zip(last).map(|(away, last)| {
                let away = away >> 1 ^ (away & 1).wrapping_neg();
                *last = last.wrapping_add(away);
                *last
            }));
        }
        let Columns { numbers, places, told } = &self.columns;
        let (mut places, mut told) = (places.as_slice(), told.as_slice());
        let all = &mut events.all;
        all.reserve(2 * numbers.len() + places.len() + told.len());
        for number in numbers {
            all.push(*number);
            if number & OTHER != 0 {
                if (number & !OTHER) as usize >= events.others.len() {
                    return Err(RegionError::Damaged);
                }
                continue;
            }
            let first = *self.first.get(*number as usize).ok_or(RegionError::Damaged)?;
            let sizes = self.book.sizes(*number);
            let own = places.split_off(..usize::from(sizes.families));
            let own_told = told.split_off(..usize::from(sizes.told));
            let (Some(own), Some(own_told)) = (own, own_told) else {
                return Err(RegionError::Damaged);
            };
            let (last, last_told) = self.last[first..].split_at_mut(own.len());
            add(own, last, all);
            add(own_told, last_told, all);
            all.push(*number);
        }
        Ok(())
    }
}

impl Columns {
    fn all(&self) -> [&[u32]; 3] {
        [&self.numbers, &self.places, &self.told]
    }

    fn read(&mut self, lengths: [usize; 3], mut bytes: &[u8]) -> Result<(), RegionError> {
        for (column, length) in
            [&mut self.numbers, &mut self.places, &mut self.told].into_iter().zip(lengths)
        {
            let mut next = || bytes.split_off(..length).ok_or(RegionError::Damaged);
            let [first, second, third, fourth] = [next()?, next()?, next()?, next()?];
            let numbers = first.iter().zip(second).zip(third).zip(fourth);
            column.clear();
            column.extend(numbers.map(|(((first, second), third), fourth)| {
                u32::from_le_bytes([*first, *second, *third, *fourth])
            }));
        }
        Ok(())
    }
}
