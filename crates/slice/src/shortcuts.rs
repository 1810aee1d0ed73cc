//! The ways over units that were gone before.
//!
//! What going back over a unit does to what is wanted depends on little: on its pattern
//! ([`crate::patterns`]), on which of the bytes that it makes are wanted, and on which of its
//! instructions belong to the slice anyway. Most units are met in few such ways again and again, so
//! what follows is found once for each ([`crate::sketch`]) and then only done.

use crate::backward::Dependences;
use crate::control::Position;
use crate::events::Record;
use crate::memory::{bits, each_bit};
use crate::once::Once;
use crate::patterns::{MOST, NONE, Patterns, Test};
use crate::search::Noted;
use crate::sketch::{Behind, By, Found, Sketcher};
use crate::waiting::Aside;
use crate::wanted::{Wanted, Wanter};
use why_effects::Cell;

/// More ways of a pattern are not remembered.
const MOST_WAYS: usize = 64;

pub struct Shortcuts<'a> {
    patterns: &'a Patterns,
    /// By the numbers of patterns.
    known: Vec<Known>,
    sketcher: Sketcher,
    control: bool,
    /// Of the record that is looked at.
    key: Key,
    once: Once,
    /// How many ways there are.
    learnt: usize,
}

/// What a way is known by.
#[derive(Default, Hash)]
struct Key {
    tests: Vec<u64>,
    waits: Waits,
    /// What is wanted of registers that were put aside; and which of the instructions are told of,
    /// if not all are.
    others: Vec<u64>,
}

/// What is known of a pattern.
#[derive(Default)]
struct Known {
    is_met: bool,
    is_pruned: bool,
    /// The ways that are gone most are in front.
    ways: Vec<Way>,
    tests: Box<[Test]>,
}

/// What going back over a unit does, met so. There is a list for each kind of thing: to tell them
/// apart would take as long as to do them.
struct Way {
    /// What is wanted of what it may make: of the cells of the first words,
    cells: [Cells; FIRST],
    /// of those of others,
    others: Box<[(u16, Cells)]>,
    /// and of memory.
    bytes: Box<[Bytes]>,
    waits: Waits,
    /// What else was looked at.
    besides: Box<[u64]>,
    /// What is made and wanted.
    taken: Box<[Bytes]>,
    /// What is wanted because of it,
    wants: Box<[Want]>,
    /// in memory: its words are accesses,
    memory: Box<[Want]>,
    /// and what decided, by its numbers in the record.
    decided: Box<[(u16, Wanter)]>,
    /// Nothing but that is to be done.
    is_simple: bool,
    /// Nothing at all is, and nothing belongs to the slice.
    is_nothing: bool,
    times: u64,
    /// The instructions that are told of.
    members: u64,
    rest: Box<Rest>,
}

/// So many words of cells, those of general registers and flags, are nearly always looked at.
const FIRST: usize = 3;

/// Cells of a word.
#[derive(Clone, Copy, Default)]
struct Cells {
    /// Those that may be made,
    mask: u64,
    /// those of them that are wanted,
    found: u64,
    /// and those that still are in front of the unit: they were put aside and brought back.
    kept: u64,
}

/// Bytes of an access, and those of them that are wanted.
#[derive(Clone, Copy)]
struct Bytes {
    access: u16,
    offset: u16,
    mask: u64,
    found: u64,
}

/// Some of a word's cells, or of an access's bytes, are wanted.
#[derive(Clone, Copy)]
struct Want {
    word: u16,
    wanter: Wanter,
    mask: u64,
}

/// Which instructions belong to the slice whatever they make, and which have put aside something
/// that is wanted.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Waits {
    decide: u64,
    aside: u64,
}

/// What is needed seldom.
#[derive(Default)]
struct Rest {
    /// The numbers of those who want what the instructions that are told of are made of.
    wanters: Vec<u32>,
    restored: Vec<(usize, [Option<For>; 8])>,
    /// Registers that were put aside, by instruction: the cells that are wanted in front of the
    /// unit, with their numbers.
    asides: Vec<(usize, Vec<(Cell, usize)>)>,
}

/// Who wants something.
#[derive(Clone, Copy)]
enum For {
    Somebody(Wanter),
    /// Whoever wanted it behind the unit.
    SameAsBefore,
    /// Whoever wants a cell of a register that an instruction put aside.
    SameAsAside(usize, usize),
}

impl<'a> Shortcuts<'a> {
    pub fn new(patterns: &'a Patterns, dependences: Dependences, control: bool) -> Shortcuts<'a> {
        let (sketcher, once) = (Sketcher::new(dependences), Once::new());
        Shortcuts {
            patterns,
            known: Vec::new(),
            sketcher,
            control,
            key: Key::default(),
            once,
            learnt: 0,
        }
    }

    /// How much memory that takes, or a little less.
    pub fn size(&self) -> usize {
        const WAY: usize = size_of::<Way>() + size_of::<Rest>() + 16 * size_of::<Want>();
        size_of_val(self.known.as_slice()) + self.learnt * WAY
    }

    /// Goes back over a unit if the way is known, or can be found out; false if not.
    pub fn over(&mut self, record: &Record, wanted: &mut Wanted, noted: &mut Noted) -> bool {
        if record.pattern == NONE {
            return false;
        }
        let number = record.pattern as usize;
        if self.known.get(number).is_none_or(|known| !known.is_met) {
            self.meet(record, noted);
        }
        let Known { tests, ways, is_pruned, .. } = &mut self.known[number];
        if *is_pruned {
            return false;
        }
        let (decide, aside) = noted.waiting.masks(record.position, record.count as u32);
        let key = &mut self.key;
        key.waits = Waits { decide, aside };
        key.others.clear();
        each_bit(aside, |index| {
            let aside = noted.waiting.aside(record.position + Position::from(index));
            key.others.push(aside.map_or(0, |aside| aside.cells.into()));
        });
        if let Some(only) = noted.only {
            key.others.push(only.mask(record.position, record.count as u32));
        }
        let Some(found) = ways.iter().position(|way| way.is_met(key, record, wanted)) else {
            key.tests.clear();
            key.tests.extend(tests.iter().map(|test| test.wanted(record, wanted)));
            if key.wants_nothing() {
                ways.push(Way::met(tests, &key.tests, key.waits, &key.others));
                self.learnt += 1;
                return true;
            }
            let is_worth = ways.len() < MOST_WAYS && self.once.is_there((record.pattern, &*key));
            let Some(mut way) = is_worth.then(|| self.find(record, noted)).flatten() else {
                return false;
            };
            way.go(record, wanted, noted);
            self.known[number].ways.push(way);
            self.learnt += 1;
            return true;
        };
        if found > 0 {
            ways.swap(found, found / 2);
        }
        ways[found / 2].go(record, wanted, noted);
        true
    }

    #[cold]
    fn meet(&mut self, record: &Record, noted: &Noted) {
        let number = record.pattern as usize;
        if self.known.len() <= number {
            self.known.resize_with(number + 1, Known::default);
        }
        let known = &mut self.known[number];
        known.is_met = true;
        let instructions = &record.unit.instructions[..record.count];
        known.is_pruned = instructions.iter().any(|insn| noted.is_pruned(insn.address));
        if let Some(crossing) = self.patterns.crossing(record.unit, record.count) {
            known.tests = crossing.tests.as_slice().into();
        }
    }

    /// The way over a unit that is met so. None if not all that belongs to the slice because of it
    /// did before: somebody has to say why.
    #[cold]
    fn find(&mut self, record: &Record, noted: &Noted) -> Option<Way> {
        let crossing = self.patterns.crossing(record.unit, record.count)?;
        // Which accesses are to the same memory is part of a pattern only if it has to be.
        let is_apart = crossing.is_apart(record.starts);
        let starts = if is_apart { &crossing.stand_ins } else { record.starts };
        let Key { tests, waits, others } = &self.key;
        let tests: Vec<(Test, u64)> =
            crossing.tests.iter().copied().zip(tests.iter().copied()).collect();
        let (mut asides, mut cells) = (Vec::new(), others.iter());
        each_bit(waits.aside, |index| {
            asides.push((index as usize, cells.next().map_or(0, |cells| *cells as u8)));
        });
        let behind = Behind { tests: &tests, decide: waits.decide, asides: &asides };
        let record = &Record { starts, ..*record };
        let found = self.sketcher.sketch(record, &behind, self.control);
        let way = Way::met(&crossing.tests, &self.key.tests, *waits, others);
        Way::of(way, found, record, noted)
    }

    /// Counts what was gone by shortcuts.
    pub fn count(&self, noted: &mut Noted) {
        for way in self.known.iter().flat_map(|known| &known.ways) {
            noted.slice.count += way.times * u64::from(way.members.count_ones());
            if let Some(reasons) = &mut noted.reasons {
                way.rest.wanters.iter().for_each(|number| reasons.again(*number - 1, way.times));
            }
        }
    }
}

impl Key {
    fn wants_nothing(&self) -> bool {
        self.waits == Waits::default() && self.tests.iter().all(|found| *found == 0)
    }
}

impl Cells {
    /// Whether what is wanted of a word is what was.
    #[inline]
    fn differ(&self, word: u64) -> u64 {
        word & self.mask ^ self.found
    }

    /// What is wanted of it in front of the unit, if this was behind it.
    #[inline]
    fn pass(&self, word: &mut u64) {
        *word = *word & !self.found | self.kept;
    }
}

impl Bytes {
    #[inline]
    fn at(&self, record: &Record) -> u64 {
        record.starts[usize::from(self.access)].wrapping_add(self.offset.into())
    }
}

impl Way {
    /// Met so, and with nothing to be done.
    fn met(tests: &[Test], found: &[u64], waits: Waits, besides: &[u64]) -> Way {
        let mut cells = [Cells::default(); FIRST];
        let (mut others, mut bytes) = (Vec::new(), Vec::new());
        for (test, found) in tests.iter().zip(found.iter().copied()) {
            match *test {
                Test::Cells { word, mask } => {
                    let own = Cells { mask, found, kept: 0 };
                    match cells.get_mut(usize::from(word)) {
                        Some(first) => *first = own,
                        None => others.push((word, own)),
                    }
                }
                Test::Bytes { access, offset, size } => {
                    bytes.push(Bytes { access, offset, mask: bits(size.into()), found });
                }
            }
        }
        Way {
            cells,
            others: others.into(),
            taken: bytes.iter().copied().filter(|bytes| bytes.found != 0).collect(),
            bytes: bytes.into(),
            waits,
            besides: besides.into(),
            wants: Box::default(),
            memory: Box::default(),
            decided: Box::default(),
            is_simple: true,
            is_nothing: true,
            times: 0,
            members: 0,
            rest: Box::default(),
        }
    }

    /// Whether the way over a record is this one.
    #[inline]
    fn is_met(&self, key: &Key, record: &Record, wanted: &Wanted) -> bool {
        let words = &wanted.registers.cells;
        let mut differs = self.waits.decide ^ key.waits.decide | self.waits.aside ^ key.waits.aside;
        for (own, word) in self.cells.iter().zip(words) {
            differs |= own.differ(*word);
        }
        differs == 0
            && self.others.iter().all(|(word, own)| own.differ(words[usize::from(*word)]) == 0)
            && self.bytes.iter().all(|own| {
                wanted.memory.some(own.at(record), own.mask) == own.found
            })
            // Of slices of few numbers this is faster than to compare them as a whole.
            && (self.is_nothing || self.besides.iter().eq(&key.others))
    }

    /// The cells of a word.
    fn cells_of(&mut self, word: usize) -> Option<&mut Cells> {
        match self.cells.get_mut(word) {
            Some(first) => Some(first),
            None => {
                let own = self.others.iter_mut().find(|(at, _)| usize::from(*at) == word);
                own.map(|(_, cells)| cells)
            }
        }
    }

    /// None if there is more to it than can be told.
    fn of(mut way: Way, found: Found, record: &Record, noted: &Noted) -> Option<Way> {
        let members = match noted.only {
            Some(only) => found.members & only.mask(record.position, record.count as u32),
            None => found.members,
        };
        let numbers = numbers(members, record, noted)?;
        let wanter = |by: By| match by {
            By::Instruction(index, role) => Some(Wanter::new(numbers[index], role)),
            By::Behind | By::Aside(..) => None,
        };
        let mut asides: Vec<(usize, Vec<(Cell, usize)>)> = Vec::new();
        each_bit(way.waits.aside, |index| asides.push((index as usize, Vec::new())));
        let (mut wants, mut memory, mut decided) = (Vec::new(), Vec::new(), Vec::new());
        for (word, mask, by) in found.cells {
            match by {
                By::Aside(index, number) => {
                    let (_, own) = asides.iter_mut().find(|(at, _)| *at == index)?;
                    each_bit(mask, |bit| own.push(((64 * word) as Cell + bit as Cell, number)));
                }
                By::Behind => way.cells_of(word)?.kept |= mask,
                _ => wants.push(Want { word: word as u16, mask, wanter: wanter(by)? }),
            }
        }
        for (access, mask, by) in found.memory {
            memory.push(Want { word: access as u16, mask, wanter: wanter(by)? });
        }
        for (number, by) in found.decided {
            decided.push((number as u16, wanter(by)?));
        }
        let mut restored = Vec::new();
        for (number, wanters) in found.restored {
            let mut own = [None; 8];
            for (own, by) in own.iter_mut().zip(wanters) {
                *own = match by {
                    None => None,
                    Some(By::Behind) => Some(For::SameAsBefore),
                    Some(By::Aside(index, cell)) => Some(For::SameAsAside(index, cell)),
                    Some(by) => Some(For::Somebody(wanter(by)?)),
                };
            }
            restored.push((number, own));
        }
        let mut wanters = Vec::new();
        if noted.reasons.is_some() {
            each_bit(members, |index| wanters.push(numbers[index as usize]));
        }
        let is_simple = restored.is_empty() && asides.is_empty() && !noted.lists;
        let rest = Box::new(Rest { wanters, restored, asides });
        let (wants, memory, decided) = (wants.into(), memory.into(), decided.into());
        let is_nothing = false;
        Some(Way { wants, memory, decided, is_simple, is_nothing, members, rest, ..way })
    }

    /// Goes it.
    #[inline]
    fn go(&mut self, record: &Record, wanted: &mut Wanted, noted: &mut Noted) {
        self.times += 1;
        noted.slice.positions.add_mask(record.position, self.members);
        if !self.is_simple {
            self.rest.before(record, wanted, noted);
        }
        let words = &mut wanted.registers.cells;
        for (own, word) in self.cells.iter().zip(words.iter_mut()) {
            own.pass(word);
        }
        for (word, own) in &self.others {
            own.pass(&mut words[usize::from(*word)]);
        }
        for own in &self.taken {
            wanted.memory.remove(own.at(record), own.found);
        }
        for Want { word, wanter, mask } in self.wants.iter().copied() {
            wanted.registers.want(usize::from(word), mask, wanter);
        }
        for Want { word, wanter, mask } in self.memory.iter().copied() {
            wanted.memory.add_some(record.starts[usize::from(word)], mask, wanter);
        }
        for (number, wanter) in self.decided.iter().copied() {
            if let Some(by) = record.decided[usize::from(number)].by() {
                noted.waiting.decide(by, wanter);
            }
        }
        if !self.is_simple {
            self.rest.behind(record, wanted, noted);
            self.list(record, noted);
        }
    }
}

impl Way {
    fn list(&self, record: &Record, noted: &mut Noted) {
        if noted.lists {
            let indices = (0..record.count).rev().filter(|index| self.members >> index & 1 == 1);
            noted.slice.instructions.extend(indices.map(|index| {
                let address = record.unit.instructions[index].address;
                (record.position + index as Position, address)
            }));
        }
    }
}

impl Rest {
    /// Before anything is taken: what was brought back is wanted where it was put aside.
    fn before(&self, record: &Record, wanted: &Wanted, noted: &mut Noted) {
        for (number, wanters) in &self.restored {
            let restored = &record.restored[*number];
            let mut aside = Aside::default();
            for (cell, wanter) in wanters.iter().enumerate() {
                let Some(wanter) = *wanter else { continue };
                aside.cells |= 1 << cell;
                aside.wanters[cell] = match wanter {
                    For::Somebody(wanter) => wanter,
                    For::SameAsBefore => {
                        wanted.who_wanted_cell(restored.kept().cells().start + cell as Cell)
                    }
                    For::SameAsAside(index, cell) => {
                        let aside = noted.waiting.aside(record.position + index as Position);
                        aside.map_or(Wanter::default(), |aside| aside.wanters[cell])
                    }
                };
            }
            noted.waiting.put_aside(restored.saved(), &aside);
        }
    }

    fn behind(&self, record: &Record, wanted: &mut Wanted, noted: &mut Noted) {
        for (index, cells) in &self.asides {
            let aside = noted.waiting.take_aside(record.position + *index as Position);
            for (cell, number) in cells {
                let wanter = aside.as_ref().map_or(Wanter::default(), |own| own.wanters[*number]);
                wanted.registers.want(usize::from(cell / 64), 1 << (cell % 64), wanter);
            }
        }
    }
}

/// The numbers of those who want what these instructions are made of; none if one has no number.
fn numbers(members: u64, record: &Record, noted: &Noted) -> Option<[u32; MOST]> {
    let mut numbers = [0; MOST];
    let Some(reasons) = &noted.reasons else {
        return Some(numbers);
    };
    for index in (0..record.count).filter(|index| members >> index & 1 == 1) {
        let insn = &record.unit.instructions[index];
        let site = if insn.shown { None } else { record.site(index) };
        numbers[index] = reasons.find(insn, site)? + 1;
    }
    Some(numbers)
}
