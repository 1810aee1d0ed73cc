//! What a unit uses of what was there before it, and what it leaves behind: the same for all
//! records of a pattern.

use crate::across::slot_access;
use crate::control::Position;
use crate::course::Restored;
use crate::events::Record;
use crate::memory::{bits, covered};
use crate::patterns::{MOST, Test};
use crate::saves::Kept;
use crate::wanted::{Cells, Wanted, cell_words};
use std::ops::Range;
use why_effects::{Cell, Place};

pub struct Ports {
    /// First what it uses, then what it defines.
    tests: Box<[Test]>,
    uses: usize,
    /// Which of those that decided are not of the unit itself, a bit for each number in the record.
    pub decided: u64,
    /// Registers that were put aside before it, and which it brings back.
    pub brings: Box<[Brings]>,
    /// Where it puts registers aside.
    pub asides: Box<[Slot]>,
}

/// A register that is brought back, by its number in the record.
#[derive(Clone, Copy)]
pub struct Brings {
    pub number: u16,
    pub slot: Slot,
}

/// An access to where a register is put aside, whose cells begin there.
#[derive(Clone, Copy)]
pub struct Slot {
    access: u16,
    pub first: Cell,
}

impl Slot {
    fn of(access: usize, kept: Kept) -> Slot {
        Slot { access: access as u16, first: kept.cells().start }
    }

    #[inline]
    pub fn at(self, record: &Record) -> u64 {
        record.starts[usize::from(self.access)]
    }
}

impl Test {
    /// What is there now is not what was touched any more.
    #[inline]
    pub fn redefine(&self, record: &Record, touched: &mut Wanted) {
        match *self {
            Test::Cells { word, mask } => touched.registers.cells[usize::from(word)] &= !mask,
            Test::Bytes { access, offset, size } => {
                let at = record.starts[usize::from(access)].wrapping_add(offset.into());
                touched.memory.remove(at, bits(size.into()));
            }
        }
    }
}

impl Ports {
    /// Of a record that stands for all of its pattern. None if there are too many.
    pub fn of(record: &Record, thin: bool) -> Option<Ports> {
        if record.decided.len() > MOST {
            return None;
        }
        let is_before = |position: Position| position < record.position;
        let mut decided = 0;
        for (number, deciding) in record.decided.iter().enumerate() {
            decided |= u64::from(deciding.by().is_some_and(is_before)) << number;
        }
        let (mut found, mut brings, mut asides) = (Found::default(), Vec::new(), Vec::new());
        for (index, insn) in record.unit.instructions[..record.count].iter().enumerate() {
            let restored = record.restored(insn, index);
            found.add_uses(record, index, restored, thin);
            insn.effects.parts.iter().for_each(|part| found.define(record, index, &part.to));
            match (restored, insn.keeping.stores) {
                (Some(restored), _) if is_before(restored.saved()) => {
                    let number = record.restored.iter().position(|other| other == restored)?;
                    let slot = Slot::of(slot_access(record, index)?, restored.kept());
                    brings.push(Brings { number: number as u16, slot });
                }
                (None, Some((kept, operand))) => {
                    asides.push(Slot::of(record.unit.first_access[index] + operand, kept));
                }
                _ => {}
            }
        }
        let (tests, uses) = found.tests();
        let (brings, asides) = (brings.into(), asides.into());
        Some(Ports { tests, uses, decided, brings, asides })
    }

    /// What it uses.
    #[inline]
    pub fn uses(&self) -> &[Test] {
        &self.tests[..self.uses]
    }

    /// What it defines.
    #[inline]
    pub fn defines(&self) -> &[Test] {
        &self.tests[self.uses..]
    }

    /// How much memory they take.
    pub fn size(&self) -> usize {
        let Ports { tests, brings, asides, .. } = self;
        size_of_val(&**tests) + size_of_val(&**brings) + size_of_val(&**asides)
    }
}

/// What was found so far.
struct Found {
    uses: Vec<Test>,
    /// What was defined by the unit itself.
    cells: Cells,
    writes: Vec<Bytes>,
}

impl Default for Found {
    fn default() -> Found {
        Found { uses: Vec::new(), cells: [0; _], writes: Vec::new() }
    }
}

impl Found {
    /// What an instruction uses that was not defined by those before it.
    fn add_uses(&mut self, record: &Record, index: usize, restored: Option<&Restored>, thin: bool) {
        let effects = &record.unit.instructions[index].effects;
        // What was brought back is what was put aside, whatever is in memory.
        let is_restored =
            |to: &Place| restored.is_some_and(|r| *to == Place::Cells(r.kept().cells()));
        let parts = effects.parts.iter().filter(|part| !part.frame && !is_restored(&part.to));
        let values = parts.flat_map(|part| part.lanes.iter().chain(&part.whole));
        for place in values.chain(&effects.decides) {
            match place {
                Place::Cells(cells) => self.use_cells(cells),
                _ => self.use_bytes(record, bytes(record, index, place)),
            }
        }
        if !thin {
            let addresses = effects.operands.iter().flat_map(|operand| &operand.address);
            addresses.for_each(|cells| self.use_cells(cells));
        }
    }

    fn use_cells(&mut self, cells: &Range<Cell>) {
        for (word, mask) in cell_words(cells.clone()) {
            let mask = mask & !self.cells[word];
            let same = self.uses.iter_mut().find_map(|test| match test {
                Test::Cells { word: other, mask } if usize::from(*other) == word => Some(mask),
                _ => None,
            });
            match same {
                Some(all) => *all |= mask,
                None if mask != 0 => self.uses.push(Test::Cells { word: word as u16, mask }),
                None => {}
            }
        }
    }

    fn use_bytes(&mut self, record: &Record, bytes: Bytes) {
        let is_same = |test: &Test| match *test {
            Test::Bytes { access, offset, size } => {
                let other = Bytes { access, offset, size };
                other.at(record) == bytes.at(record) && size == bytes.size
            }
            Test::Cells { .. } => false,
        };
        let defined = self.writes.iter().fold(0, |all, write| all | bytes.covered(*write, record));
        if defined != bits(bytes.size.into()) && !self.uses.iter().any(is_same) {
            self.uses.push(bytes.test());
        }
    }

    fn define(&mut self, record: &Record, index: usize, to: &Place) {
        match to {
            Place::Cells(cells) => {
                cell_words(cells.clone()).for_each(|(word, mask)| self.cells[word] |= mask);
            }
            _ => self.writes.push(bytes(record, index, to)),
        }
    }

    /// First what is used, of which there is so much, then what is defined.
    fn tests(self) -> (Box<[Test]>, usize) {
        let mut tests = self.uses;
        let uses = tests.len();
        let words = (0..).zip(self.cells).filter(|(_, mask)| *mask != 0);
        tests.extend(words.map(|(word, mask)| Test::Cells { word, mask }));
        tests.extend(self.writes.into_iter().map(Bytes::test));
        (tests.into(), uses)
    }
}

/// Bytes of an access, at most 64.
#[derive(Clone, Copy)]
struct Bytes {
    access: u16,
    offset: u16,
    size: u16,
}

/// Where a place in memory is. Units with strings have no patterns.
fn bytes(record: &Record, index: usize, place: &Place) -> Bytes {
    let first = record.unit.first_access[index];
    match place {
        Place::Memory { operand, bytes } => Bytes {
            access: (first + operand) as u16,
            offset: bytes.start as u16,
            size: (bytes.end - bytes.start) as u16,
        },
        Place::String { operand } => Bytes { access: (first + operand) as u16, offset: 0, size: 0 },
        Place::Cells(_) => Bytes { access: 0, offset: 0, size: 0 },
    }
}

impl Bytes {
    fn at(self, record: &Record) -> u64 {
        record.starts[usize::from(self.access)].wrapping_add(self.offset.into())
    }

    /// Those that are among others, too, a bit for each.
    fn covered(self, others: Bytes, record: &Record) -> u64 {
        let own = (self.at(record), self.size.into());
        covered(own, (others.at(record), others.size.into()))
    }

    fn test(self) -> Test {
        let Bytes { access, offset, size } = self;
        Test::Bytes { access, offset, size }
    }
}
