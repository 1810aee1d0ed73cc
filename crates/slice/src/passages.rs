//! The ways forwards over units that were gone before.
//!
//! What going over a unit does to what is touched depends on its pattern ([`crate::patterns`]), on
//! what of that is touched which it uses ([`crate::ports`]), and on which of those belong to the
//! slice that decided over it. What follows is found once for each such way ([`crate::outline`]) and
//! then only done. Several slices may share ways; by whom things are touched each knows for itself.

use crate::across::{Across, REGISTER};
use crate::backward::Dependences;
use crate::events::Record;
use crate::memory::each_bit;
use crate::once::Once;
use crate::outline::{Before, Outliner};
use crate::own::Own;
use crate::patterns::{NONE, Patterns};
use crate::ports::Ports;
use crate::spread::Noted;
use crate::wanted::Wanter;
use crate::way::{Way, redefine};

/// What came of looking for a way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// The unit was passed.
    Passed,
    /// It has to be gone over, and should be learnt.
    New,
    /// It has to be gone over, because this slice has not gone that way yet.
    First(usize),
    /// It has to be gone over.
    Unknown,
}

/// More ways of a pattern are not remembered at once: those that are gone least are forgotten. What a
/// run goes through at first, such as while a table is filled, need not come again.
const MOST_WAYS: usize = 64;

/// More ways of a pattern are not learnt: it is met in ever new ones.
const MOST_LEARNT: usize = 16 * MOST_WAYS;

pub struct Passages<'a> {
    patterns: &'a Patterns,
    thin: bool,
    /// By the numbers of patterns.
    known: Vec<Known>,
    outliner: Outliner,
    once: Once,
    /// Of the record that is looked at.
    key: Vec<u64>,
    /// Who touched registers that are brought back.
    brought: Vec<[Wanter; REGISTER as usize]>,
    /// How many ways there are, and how much memory they take.
    count: usize,
    size: usize,
}

/// What is known of a pattern.
#[derive(Default)]
enum Known {
    #[default]
    Nothing,
    /// It was met once: most that are will not be again.
    Met,
    /// It has to be gone over each time.
    NoWays,
    Ways(Box<Ways>),
}

struct Ways {
    ports: Ports,
    /// Those that are gone most are in front.
    all: Vec<Way>,
    /// How many there have been.
    learnt: usize,
}

impl<'a> Passages<'a> {
    pub fn new(patterns: &'a Patterns, dependences: Dependences, control: bool) -> Passages<'a> {
        Passages {
            patterns,
            thin: dependences.thin,
            known: Vec::new(),
            outliner: Outliner::new(dependences, control),
            once: Once::new(),
            key: Vec::new(),
            brought: Vec::new(),
            count: 0,
            size: 0,
        }
    }

    /// How much memory that takes, or a little less.
    pub fn size(&self) -> usize {
        size_of_val(self.known.as_slice()) + self.size
    }

    /// Goes over a unit if the way is known.
    pub fn over(
        &mut self,
        record: &Record,
        across: &mut Across,
        noted: &mut Noted,
        own: &mut Own,
    ) -> Met {
        if record.pattern == NONE || !own.may_pass {
            return Met::Unknown;
        }
        let Ways { ports, all: ways, learnt } = match self.known.get_mut(record.pattern as usize) {
            Some(Known::Ways(ways)) => &mut **ways,
            Some(Known::NoWays) => return Met::Unknown,
            Some(Known::Met) => {
                self.meet_again(record);
                return self.over(record, across, noted, own);
            }
            Some(Known::Nothing) | None => {
                self.meet(record);
                return Met::Unknown;
            }
        };
        let key = &mut self.key;
        if !gather(key, ports, record, across, noted) {
            redefine(ports, record, across, noted);
            return Met::Passed;
        }
        // Of slices of few numbers this is faster than to compare them as a whole.
        let Some(found) = ways.iter().position(|way| way.key.iter().eq(key.iter())) else {
            let is_worth =
                *learnt < MOST_LEARNT && self.once.is_there((record.pattern, key.as_slice()));
            return if is_worth { Met::New } else { Met::Unknown };
        };
        if found > 0 {
            ways.swap(found, found / 2);
        }
        let way = &ways[found / 2];
        let Some(gone) = own.find(way) else { return Met::First(way.number) };
        let noting = noted.to_note(record);
        if noting != 0 && !gone.note(record, noting, noted) {
            return Met::Unknown;
        }
        gone.times += 1;
        redefine(ports, record, across, noted);
        way.note(record, &gone.deciders, noted);
        way.go(record, ports, &gone.wanters, across, &mut self.brought);
        Met::Passed
    }

    #[cold]
    fn meet(&mut self, record: &Record) {
        let number = record.pattern as usize;
        if self.known.len() <= number {
            self.known.resize_with(number + 1, Known::default);
        }
        self.known[number] = Known::Met;
    }

    #[cold]
    fn meet_again(&mut self, record: &Record) {
        let ports = self
            .stand_ins(record)
            .and_then(|starts| Ports::of(&Record { starts: &starts, ..*record }, self.thin));
        self.known[record.pattern as usize] = match ports {
            Some(ports) => {
                self.size += size_of::<Ways>() + ports.size();
                Known::Ways(Box::new(Ways { ports, all: Vec::new(), learnt: 0 }))
            }
            None => Known::NoWays,
        };
    }

    /// What stands for the accesses of all records of a pattern: which are to the same memory is part
    /// of it only if it has to be.
    fn stand_ins(&self, record: &Record) -> Option<Vec<u64>> {
        let crossing = self.patterns.crossing(record.unit, record.count)?;
        Some(crossing.stand_ins(record.starts))
    }

    /// The unit was gone over: next time that will be known.
    pub fn learn(&mut self, met: Met, record: &Record, noted: &mut Noted, own: &mut Own) {
        let way = match met {
            Met::New => self.add_way(record),
            Met::First(way) => Some(way),
            Met::Passed | Met::Unknown => None,
        };
        let Some(way) = way else { return };
        if let Known::Ways(ways) = &self.known[record.pattern as usize]
            && let Some(way) = ways.all.iter().find(|other| other.number == way)
        {
            own.learn(way, record, noted);
        }
    }

    /// The number of a new way.
    fn add_way(&mut self, record: &Record) -> Option<usize> {
        let record = &Record { starts: &self.stand_ins(record)?, ..*record };
        let known = &mut self.known[record.pattern as usize];
        let Known::Ways(known) = known else { return None };
        let Ways { ports, all: ways, learnt } = &mut **known;
        let (uses, others) = self.key.split_at(ports.uses().len());
        let (decided, brings) = others.split_first()?;
        let before = Before { uses, decided: *decided, brings };
        let outline = self.outliner.outline(record, ports, &before);
        let way = Way::of(outline, self.key.as_slice().into(), self.count);
        if ways.len() == MOST_WAYS {
            self.size -= ways.drain(MOST_WAYS / 2..).map(|way| way.size()).sum::<usize>();
        }
        (self.count, *learnt) = (self.count + 1, *learnt + 1);
        self.size += way.size();
        ways.push(way);
        Some(self.count - 1)
    }
}

/// What a way over a unit is known by; whether anything is touched of what it uses.
#[inline]
fn gather(
    key: &mut Vec<u64>,
    ports: &Ports,
    record: &Record,
    across: &Across,
    noted: &Noted,
) -> bool {
    let uses = ports.uses();
    key.resize(uses.len() + 1 + ports.brings.len(), 0);
    let (used, others) = key.split_at_mut(uses.len());
    let mut any = 0;
    for (mask, test) in used.iter_mut().zip(uses) {
        *mask = test.wanted(record, &across.touched);
        any |= *mask;
    }
    let mut decided = 0;
    each_bit(ports.decided, |number| {
        let by = record.decided[number as usize].by();
        decided |= u64::from(by.is_some_and(|by| noted.deciding.has(by))) << number;
    });
    others[0] = decided;
    for (mask, brings) in others[1..].iter_mut().zip(&*ports.brings) {
        *mask = across.stored.mask(brings.slot.at(record), REGISTER);
        any |= *mask;
    }
    any | decided != 0
}
