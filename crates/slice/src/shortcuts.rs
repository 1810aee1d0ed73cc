//! The ways over units that were gone before.
//!
//! What going back over a unit does to what is wanted depends on little: on its pattern
//! ([`crate::patterns`]), on which of the bytes that it makes are wanted, and on which of its
//! instructions belong to the slice anyway. Most units are met in few such ways again and again, so
//! what follows is found once for each ([`crate::sketch`]) and then only done.

use crate::control::Position;
use crate::events::{Alike, Record};
use crate::families::Bytes;
use crate::learnt::Learnt;
use crate::memory::{bits, each_bit};
use crate::patterns::{Book, Pattern, Patterns, Test};
use crate::reasons::Reasons;
use crate::search::{Manner, Noted};
use crate::shortcut::{FIRST, Key, PACKED, Shortcut};
use crate::sketch::Behind;
use crate::units::Unit;
use crate::wanted::Wanted;

/// More ways of a pattern are not remembered.
const MOST_WAYS: usize = 64;

/// So many of them are found at once.
const RECENT: usize = 16;

pub struct Shortcuts<'a> {
    units: &'a [Unit],
    patterns: &'a Patterns,
    learnt: Learnt,
    /// Of the unit that is looked at.
    key: Key,
}

/// What came of looking for a way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// It was gone.
    Gone,
    /// It is known by this number, but was not gone for this slice.
    First(usize),
    /// It was not known, but may be found.
    New,
    /// It has to be gone one by one.
    Unknown,
}

/// What is known of a pattern.
#[derive(Default)]
pub struct Known {
    state: State,
    /// A bit for each of its instructions.
    all: u64,
    /// What it may make: of the cells of the first words,
    cells: [u64; FIRST],
    /// of those of others,
    others: Box<[(u16, u64)]>,
    /// and of memory; the last have no room in the first words of a key.
    bytes: Box<[Bytes]>,
    far: Box<[Bytes]>,
    pub ways: Vec<Shortcut>,
    /// Those that were met last, by what they are known by.
    recent: [u8; RECENT],
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    New,
    Known,
    /// Some of it is not looked into.
    Pruned,
}

impl<'a> Shortcuts<'a> {
    /// For the next slice: those who want things have the names that they had.
    pub fn new(
        units: &'a [Unit],
        patterns: &'a Patterns,
        mut learnt: Learnt,
        reasons: Option<&mut Reasons>,
    ) -> Shortcuts<'a> {
        learnt.slice += 1;
        if let Some(reasons) = reasons {
            reasons.names = std::mem::take(&mut learnt.names);
        }
        Shortcuts { units, patterns, learnt, key: Key::default() }
    }

    /// How much memory that takes, or a little less.
    pub fn size(&self) -> usize {
        self.learnt.size()
    }

    /// Goes back over a unit if the way is known.
    #[inline]
    pub fn over(
        &mut self,
        alike: &Alike,
        book: &Book,
        wanted: &mut Wanted,
        noted: &mut Noted,
    ) -> Met {
        let number = alike.pattern as usize;
        if self.learnt.known.get(number).is_none_or(|known| known.state != State::Known)
            && !self.meet(number, book, noted)
        {
            return Met::Unknown;
        }
        let Learnt { known, once, slice, .. } = &mut self.learnt;
        let known = &mut known[number];
        if !known.describe(alike, wanted, noted, &mut self.key) {
            return Met::Gone;
        }
        let Known { ways, recent, .. } = known;
        let Some(found) = find(ways, recent, &self.key) else {
            let is_worth = ways.len() < MOST_WAYS && once.is_there((alike.pattern, &self.key));
            return if is_worth { Met::New } else { Met::Unknown };
        };
        let way = &mut ways[found];
        if !way.is_gone_for(*slice) {
            return Met::First(found);
        }
        way.go(alike, wanted, noted);
        if noted.lists {
            let unit = &self.units[book.patterns[number].unit];
            way.list(alike.position, unit, noted);
        }
        Met::Gone
    }

    /// Whether a pattern can be passed; it is known from now on.
    #[cold]
    fn meet(&mut self, number: usize, book: &Book, noted: &Noted) -> bool {
        let known = &mut self.learnt.known;
        if known.len() <= number {
            known.resize_with(book.patterns.len(), Known::default);
        }
        let known = &mut known[number];
        if known.state == State::New {
            let pattern = &book.patterns[number];
            let unit = &self.units[pattern.unit];
            let instructions = &unit.instructions[..pattern.count];
            let is_pruned = instructions.iter().any(|insn| noted.is_pruned(insn.address));
            if let Some(crossing) = self.patterns.crossing(unit, pattern.count) {
                // They may be known already, from another process.
                let ways = std::mem::take(&mut known.ways);
                *known = Known { ways, ..Known::of(&crossing.tests, pattern) };
            }
            known.state = if is_pruned { State::Pruned } else { State::Known };
        }
        known.state == State::Known
    }

    /// Goes back over a unit that was met so, if there is a way; false if not.
    pub fn find(
        &mut self,
        met: Met,
        (alike, record): (&Alike, &Record),
        book: &Book,
        wanted: &mut Wanted,
        noted: &mut Noted,
    ) -> bool {
        let number = alike.pattern as usize;
        let way = match met {
            Met::First(way) => way,
            Met::New => {
                let Some(way) = self.sketch(record, book, wanted, noted) else { return false };
                self.learnt.count += 1;
                let ways = &mut self.learnt.known[number].ways;
                ways.push(way);
                ways.len() - 1
            }
            Met::Gone | Met::Unknown => return false,
        };
        let way = &mut self.learnt.known[number].ways[way];
        way.begin(self.learnt.slice, record, wanted, noted);
        way.go(alike, wanted, noted);
        if noted.lists {
            way.list(alike.position, record.unit, noted);
        }
        true
    }

    /// The way over a unit.
    fn sketch(
        &mut self,
        record: &Record,
        book: &Book,
        wanted: &Wanted,
        noted: &mut Noted,
    ) -> Option<Shortcut> {
        let crossing = self.patterns.crossing(record.unit, record.count)?;
        let tests = crossing.tests.iter().map(|test| (*test, test.wanted(record, wanted)));
        let tests: Vec<(Test, u64)> = tests.collect();
        // Which accesses are to the same memory is part of a pattern only if it has to be.
        let starts = &crossing.stand_ins(record.starts);
        let mut asides = Vec::new();
        each_bit(self.key.first[Key::ASIDE], |index| {
            let aside = noted.waiting.aside(record.position + Position::from(index));
            asides.push((index as usize, aside.map_or(0, |aside| aside.cells)));
        });
        let decide = self.key.first[Key::DECIDE];
        let mut left = 0;
        for (index, insn) in record.unit.instructions[..record.count].iter().enumerate() {
            let manner = noted.manner(record.position + index as Position, insn);
            left |= u64::from(manner == Manner::Left) << index;
        }
        let partly = noted.partly();
        let behind = Behind { tests: &tests, decide, asides: &asides, left, partly };
        let record = &Record { starts, ..*record };
        let Learnt { sketcher, kind, .. } = &mut self.learnt;
        let found = sketcher.sketch(record, &behind, kind.control);
        let pattern = &book.patterns[record.pattern as usize];
        Shortcut::of(&self.key, &tests, found, record, pattern, noted)
    }

    /// Counts what was gone by shortcuts; what is learnt, for the next slice.
    pub fn finish(mut self, noted: &mut Noted) -> Learnt {
        let ways = self.learnt.known.iter().flat_map(|known| &known.ways);
        ways.for_each(|way| way.count(self.learnt.slice, noted));
        if let Some(reasons) = &mut noted.reasons {
            self.learnt.names = std::mem::take(&mut reasons.names);
        }
        self.learnt
    }
}

/// The way that is known by a key. There is often one, and else one of a few.
#[inline(always)]
fn find(ways: &[Shortcut], recent: &mut [u8; RECENT], key: &Key) -> Option<usize> {
    if ways.first()?.is_met(key) {
        return Some(0);
    }
    let last = &mut recent[key.hash() as usize % RECENT];
    if !ways.get(usize::from(*last)).is_some_and(|way| way.is_met(key)) {
        *last = ways.iter().position(|way| way.is_met(key))? as u8;
    }
    Some(usize::from(*last))
}

impl Known {
    fn of(tests: &[Test], pattern: &Pattern) -> Known {
        let mut cells = [0; FIRST];
        let (mut others, mut made) = (Vec::new(), Vec::new());
        for test in tests {
            match *test {
                Test::Cells { word, mask } => match cells.get_mut(usize::from(word)) {
                    Some(first) => *first = mask,
                    None => others.push((word, mask)),
                },
                Test::Bytes { access, offset, size } => {
                    let at = pattern.place(access, offset);
                    made.push(Bytes { at, mask: bits(size.into()) });
                }
            }
        }
        let mut bytes = Bytes::together(made);
        let far = bytes.split_off(bytes.len().min(PACKED));
        let (others, bytes, far) = (others.into(), bytes.into(), far.into());
        let (ways, recent) = (Vec::new(), [0; RECENT]);
        let all = bits(pattern.count as u32);
        Known { state: State::Known, all, cells, others, bytes, far, ways, recent }
    }

    /// Makes a key of what is wanted of a unit; false if nothing is.
    #[inline(always)]
    fn describe(&self, alike: &Alike, wanted: &Wanted, noted: &Noted, key: &mut Key) -> bool {
        let (decide, aside) = noted.waiting.masks(alike.position, self.all);
        let words = &wanted.registers.cells;
        let first = &mut key.first;
        // What was just written takes long to read together.
        let mut any = decide | aside;
        for ((first, mask), word) in first.iter_mut().zip(&self.cells).zip(words) {
            *first = mask & word;
            any |= mask & word;
        }
        first[Key::DECIDE] = decide;
        first[Key::ASIDE] = aside;
        first[Key::BYTES..].fill(0);
        for (word, own) in first[Key::BYTES..].iter_mut().zip(&self.bytes) {
            let found = wanted.memory.some_at(alike.place(own.at), own.mask);
            *word = found;
            any |= found;
        }
        key.rest.clear();
        for (word, mask) in &self.others {
            let found = words[usize::from(*word)] & mask;
            key.rest.push(found);
            any |= found;
        }
        for own in &self.far {
            let found = wanted.memory.some_at(alike.place(own.at), own.mask);
            key.rest.push(found);
            any |= found;
        }
        each_bit(aside, |index| {
            let aside = noted.waiting.aside(alike.position + Position::from(index));
            key.rest.push(aside.map_or(0, |aside| aside.cells.into()));
        });
        if let Some(only) = noted.only {
            key.rest.push(only.told.mask(alike.position, alike.count));
        }
        if let Some(partly) = noted.partly().filter(|partly| !partly.is_empty()) {
            partly.describe(alike.position, alike.count as usize, &mut key.rest);
        }
        any != 0
    }
}
