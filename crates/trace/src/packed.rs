//! A trace made small: what can be foretold is left out.
//!
//! Which record comes next is foretold by the three before it, and what is in a slot by what
//! was there the last two times. What is left is mostly nothing, in long runs, of which zstd
//! makes almost none. A chunk is packed for itself, so that reading may begin with any.

use crate::{Header, ID_LIMIT, MOST_SLOTS, SLOT_BITS};
use rustc_hash::FxHashMap;
use zstd::bulk::Compressor;

/// How many foretold records are remembered.
const REMEMBERED: usize = 1 << 16;

/// Higher ones gain little and take long.
const LEVEL: i32 = 1;

/// No chunk has longer streams.
const LARGEST: usize = 1 << 29;

#[derive(Debug, PartialEq, Eq)]
pub struct Damaged;

/// Makes a chunk of records.
#[derive(Default)]
pub struct Packer {
    /// What it needs for itself is used again for each stream.
    compressor: Option<Compressor<'static>>,
    course: Course,
    values: Values,
    /// How many records were foretold before each that was not, and that one.
    surprises: Vec<u8>,
    foretold: u64,
    records: u64,
    /// For each slot the number of bytes by which its value differs from what was foretold,
    lengths: Vec<u8>,
    /// and those.
    differences: Vec<u8>,
}

impl Packer {
    /// Adds a record.
    pub fn add(&mut self, id: u32, slots: &[u64]) {
        self.push(id << SLOT_BITS | slots.len() as u32, slots.iter().copied());
    }

    /// Adds a record by its header without its complement.
    #[inline]
    fn push(&mut self, symbol: u32, slots: impl Iterator<Item = u64>) {
        self.records += 1;
        if self.course.foretell() == symbol {
            self.foretold += 1;
        } else {
            put(&mut self.surprises, self.foretold);
            put(&mut self.surprises, symbol.into());
            self.foretold = 0;
        }
        self.course.went(symbol);
        for value in self.values.of(symbol).iter_mut().zip(slots) {
            let (seen, slot) = value;
            let difference = zigzag(seen.meets(slot));
            let length = 8 - difference.leading_zeros() as usize / 8;
            self.lengths.push(length as u8);
            if length > 0 {
                // The rest is overwritten by what comes next.
                let end = self.differences.len() + length;
                self.differences.extend(difference.to_le_bytes());
                self.differences.truncate(end);
            }
        }
    }

    /// Adds a whole number of records as they were written; false if there is not.
    pub fn add_all(&mut self, bytes: &[u8]) -> bool {
        let (words, rest) = bytes.as_chunks();
        let mut at = 0;
        while at < words.len() {
            let header = Header::at(words[at]);
            let end = at + 1 + header.slots();
            let Some(slots) = words.get(at + 1..end) else {
                return false;
            };
            let values = slots.iter().map(|slot| u64::from_le_bytes(*slot));
            self.push(header.0 as u32, values);
            at = end;
        }
        rest.is_empty()
    }

    /// The ids of the records that the chunk holds so far.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        let kinds = (0..).zip(&self.values.kinds);
        kinds.filter(|(_, kind)| **kind != 0).map(|(id, _)| id)
    }

    /// The chunk; the next one begins.
    pub fn finish(&mut self) -> std::io::Result<Vec<u8>> {
        put(&mut self.surprises, self.foretold);
        let mut chunk = Vec::new();
        put(&mut chunk, self.records);
        let compressor = match &mut self.compressor {
            Some(compressor) => compressor,
            none => none.insert(Compressor::new(LEVEL)?),
        };
        for stream in [&mut self.surprises, &mut self.lengths, &mut self.differences] {
            let small = compressor.compress(stream)?;
            put(&mut chunk, stream.len() as u64);
            put(&mut chunk, small.len() as u64);
            chunk.extend(small);
            stream.clear();
        }
        self.foretold = 0;
        self.records = 0;
        self.course.begin();
        self.values.clear();
        Ok(chunk)
    }
}

/// Reads a chunk; `sink` gets each record as it was written.
pub fn unpack(chunk: &[u8], mut sink: impl FnMut(u64, &[u64])) -> Result<(), Damaged> {
    let mut rest = chunk;
    let records = take(&mut rest).ok_or(Damaged)?;
    let mut stream = || {
        let (size, small) = (take(&mut rest)?, take(&mut rest)?);
        let small = rest.split_off(..usize::try_from(small).ok()?)?;
        let size = usize::try_from(size).ok().filter(|size| *size <= LARGEST)?;
        zstd::bulk::decompress(small, size).ok()
    };
    let [surprises, lengths, differences] =
        [stream().ok_or(Damaged)?, stream().ok_or(Damaged)?, stream().ok_or(Damaged)?];
    let mut streams =
        Streams { surprises: &surprises, lengths: &lengths, differences: &differences };
    let (mut course, mut values) = (Course::default(), Values::default());
    let mut slots = [0; MOST_SLOTS];
    let mut foretold = take(&mut streams.surprises).ok_or(Damaged)?;
    for _ in 0..records {
        let symbol = if foretold > 0 {
            foretold -= 1;
            course.foretell()
        } else {
            let symbol = take(&mut streams.surprises).ok_or(Damaged)?;
            foretold = take(&mut streams.surprises).ok_or(Damaged)?;
            let symbol = u32::try_from(symbol).map_err(|_| Damaged)?;
            if symbol >> SLOT_BITS >= ID_LIMIT {
                return Err(Damaged);
            }
            symbol
        };
        course.went(symbol);
        let seen = values.of(symbol);
        for (seen, slot) in seen.iter_mut().zip(&mut slots) {
            let difference = streams.difference().ok_or(Damaged)?;
            *slot = seen.differs(unzigzag(difference));
        }
        sink(u64::from(symbol >> SLOT_BITS), &slots[..seen.len()]);
    }
    Ok(())
}

struct Streams<'a> {
    surprises: &'a [u8],
    lengths: &'a [u8],
    differences: &'a [u8],
}

impl Streams<'_> {
    #[inline]
    fn difference(&mut self) -> Option<u64> {
        let (length, lengths) = self.lengths.split_first()?;
        self.lengths = lengths;
        if *length == 0 {
            return Some(0);
        }
        let (bytes, rest) = self.differences.split_at_checked(usize::from(*length))?;
        self.differences = rest;
        let mut whole = [0; 8];
        whole.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(whole))
    }
}

/// Which record comes next. A record is a header: its id and the number of its slots.
struct Course {
    next: Vec<u32>,
    /// Of the last three.
    hash: u64,
}

impl Default for Course {
    fn default() -> Course {
        Course { next: vec![0; REMEMBERED], hash: 0 }
    }
}

impl Course {
    /// Forgets everything.
    fn begin(&mut self) {
        self.next.fill(0);
        self.hash = 0;
    }

    fn index(&self) -> usize {
        const BITS: u32 = REMEMBERED.trailing_zeros();
        (self.hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS)) as usize
    }

    #[inline]
    fn foretell(&self) -> u32 {
        self.next[self.index()]
    }

    #[inline]
    fn went(&mut self, symbol: u32) {
        let index = self.index();
        self.next[index] = symbol;
        // Each takes 21 bits.
        self.hash = self.hash << 21 ^ u64::from(symbol >> SLOT_BITS);
    }
}

/// What was in each slot of each kind of record.
#[derive(Default)]
struct Values {
    all: Vec<Seen>,
    /// Where those of a kind begin, by its id and by the number of its slots.
    first: Vec<u32>,
    /// The same for kinds whose number of slots is not that of the first of their id.
    others: FxHashMap<u32, u32>,
    kinds: Vec<u32>,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    last: u64,
    step: u64,
}

impl Seen {
    /// How a value differs from what was foretold.
    #[inline]
    fn meets(&mut self, value: u64) -> u64 {
        let difference = value.wrapping_sub(self.last.wrapping_add(self.step));
        self.step = value.wrapping_sub(self.last);
        self.last = value;
        difference
    }

    /// The value that differs so from what was foretold.
    #[inline]
    fn differs(&mut self, difference: u64) -> u64 {
        let value = self.last.wrapping_add(self.step).wrapping_add(difference);
        self.step = value.wrapping_sub(self.last);
        self.last = value;
        value
    }
}

impl Values {
    /// Forgets everything, but keeps the room for it.
    fn clear(&mut self) {
        let Values { all, first, others, kinds } = self;
        all.clear();
        first.clear();
        others.clear();
        kinds.clear();
    }

    #[inline]
    fn of(&mut self, symbol: u32) -> &mut [Seen] {
        let (id, slots) = ((symbol >> SLOT_BITS) as usize, symbol as usize & MOST_SLOTS);
        let known = self.kinds.get(id).is_some_and(|kind| *kind == symbol + 1);
        let first = if known { self.first[id] } else { self.first_of(symbol, id, slots) } as usize;
        &mut self.all[first..first + slots]
    }

    #[cold]
    fn first_of(&mut self, symbol: u32, id: usize, slots: usize) -> u32 {
        let new = self.all.len() as u32;
        if id >= self.kinds.len() {
            self.kinds.resize(id + 1, 0);
            self.first.resize(id + 1, 0);
        }
        if self.kinds[id] == 0 {
            self.kinds[id] = symbol + 1;
            self.first[id] = new;
        } else if let Some(first) = self.others.get(&symbol) {
            return *first;
        } else {
            self.others.insert(symbol, new);
        }
        self.all.resize(self.all.len() + slots, Seen::default());
        new
    }
}

fn zigzag(difference: u64) -> u64 {
    difference << 1 ^ ((difference as i64) >> 63) as u64
}

fn unzigzag(difference: u64) -> u64 {
    difference >> 1 ^ (difference & 1).wrapping_neg()
}

/// Seven bits a byte, the lowest first; the last byte has no eighth bit.
fn put(stream: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        stream.push(number as u8 | 0x80);
        number >>= 7;
    }
    stream.push(number as u8);
}

fn take(stream: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *stream.split_off_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header;
    use std::collections::BTreeSet;

    fn bytes(records: &[(u32, Vec<u64>)]) -> Vec<u8> {
        let word = |(id, slots): &(u32, Vec<u64>)| {
            let header = i64::from(header(*id, slots.len())) as u64;
            [&[header], slots.as_slice()].concat()
        };
        records.iter().flat_map(word).flat_map(u64::to_le_bytes).collect()
    }

    fn unpacked(chunk: &[u8]) -> Result<Vec<(u32, Vec<u64>)>, Damaged> {
        let mut records = Vec::new();
        unpack(chunk, |id, slots| records.push((id as u32, slots.to_vec())))?;
        Ok(records)
    }

    /// Loops, jumps to and fro, and noise.
    fn some_records(random: &mut u64, count: usize) -> Vec<(u32, Vec<u64>)> {
        let mut next = || {
            *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *random >> 20
        };
        (0..count)
            .map(|at| {
                let id = if next() % 10 == 0 { 1 + next() % 5000 } else { 16 + at as u64 % 7 };
                let slots = if next() % 50 == 0 { next() % 20 } else { id % 4 };
                let value = |slot| match next() % 4 {
                    0 => next() << 13,
                    1 => u64::MAX - slot,
                    _ => 0x7fff_0000_0000 + 8 * at as u64 + slot,
                };
                (id as u32, (0..slots).map(value).collect())
            })
            .collect()
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        let mut random = 1;
        let mut packer = Packer::default();
        for count in [0, 1, 2, 10, 1000, 20_000] {
            let records = some_records(&mut random, count);
            assert!(packer.add_all(&bytes(&records)));
            let ids: BTreeSet<u32> = records.iter().map(|(id, _)| *id).collect();
            assert!(packer.ids().eq(ids));
            let chunk = packer.finish().unwrap();
            assert_eq!(unpacked(&chunk), Ok(records));
        }
    }

    #[test]
    fn a_loop_takes_no_room() {
        let turn = |at: u64| [(16, vec![0x1000 + 8 * at, at]), (20, vec![]), (25, vec![7])];
        let records: Vec<_> = (0..10_000).flat_map(turn).collect();
        let mut packer = Packer::default();
        assert!(packer.add_all(&bytes(&records)));
        assert!(packer.finish().unwrap().len() < 150);
    }

    #[test]
    fn what_is_cut_off_or_changed_is_no_crash() {
        let mut random = 7;
        let records = some_records(&mut random, 300);
        let mut packer = Packer::default();
        assert!(!packer.add_all(&bytes(&records)[..300]));
        let _ = packer.finish();
        assert!(packer.add_all(&bytes(&records)));
        let chunk = packer.finish().unwrap();
        for length in 0..chunk.len() {
            let _ = unpacked(&chunk[..length]);
        }
        for at in 0..chunk.len() {
            let mut other = chunk.clone();
            other[at] ^= 1 << (at % 8);
            let _ = unpacked(&other);
        }
    }
}
