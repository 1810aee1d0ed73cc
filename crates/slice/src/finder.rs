//! Finds the numbers of patterns while records are read. There are many records, and what is needed
//! for each is close together.

use crate::control::Position;
use crate::course::Executed;
use crate::patterns::{Crossing, NONE, Pattern, Patterns};
use crate::places::Numbering;
use crate::units::Unit;
use rustc_hash::FxHashMap;

pub struct Finder<'a> {
    all: &'a Patterns,
    /// Where each id is among those that came.
    by_id: Vec<u32>,
    met: Vec<OfId<'a>>,
    key: Vec<u64>,
    /// The last descriptions of ids that are longer than others.
    long: FxHashMap<usize, Box<[u64]>>,
    /// The pages of the chunk that is read.
    pub numbering: Numbering,
}

/// Longer descriptions are rare.
const SHORT: usize = 4;

/// What is known of the records of an id.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct OfId<'a> {
    /// See [`crate::patterns::Crossing`].
    hides: bool,
    /// How the last record was described, and its number.
    length: u8,
    number: u32,
    last: [u64; SHORT],
    /// None if they have no patterns.
    crossing: Option<&'a Crossing>,
}

impl<'a> OfId<'a> {
    fn of(crossing: Option<&'a Crossing>) -> OfId<'a> {
        let hides = crossing.is_some_and(|crossing| crossing.hides);
        OfId { hides, length: 0, number: NONE, last: [0; SHORT], crossing }
    }
}

impl<'a> Finder<'a> {
    pub fn of(all: &'a Patterns) -> Finder<'a> {
        let (key, long, numbering) = (Vec::new(), FxHashMap::default(), Numbering::default());
        // The first is of none that came.
        let (by_id, met) = (vec![0; all.crossings.len()], vec![OfId::of(None)]);
        Finder { all, by_id, met, key, long, numbering }
    }

    /// The number of a record's pattern.
    #[inline]
    pub fn find(&mut self, unit: &Unit, executed: &Executed, starts: &[u64]) -> u32 {
        let id = unit.first_id + executed.count;
        if self.by_id[id] == 0 {
            self.meet(id, unit, executed.count);
        }
        let met = self.by_id[id] as usize;
        let of_id = &self.met[met];
        let Some(crossing) = of_id.crossing else { return NONE };
        describe(&mut self.key, id, of_id.hides, executed);
        if !crossing.is_apart(starts) {
            crossing.describe_overlaps(starts, &mut self.key);
        }
        let last = of_id.last.get(..usize::from(of_id.length));
        let last = last.unwrap_or_else(|| self.long.get(&id).map_or(&[], |last| last));
        if !last.iter().eq(&self.key) {
            let hides = of_id.hides;
            self.turn_to_other(id, || Pattern::of(executed, starts.len(), hides));
        }
        self.met[met].number
    }

    #[cold]
    fn meet(&mut self, id: usize, unit: &Unit, count: usize) {
        self.by_id[id] = self.met.len() as u32;
        self.met.push(OfId::of(self.all.crossing(unit, count)));
    }

    /// The last record of an id is described so now.
    fn turn_to_other(&mut self, id: usize, pattern: impl FnOnce() -> Pattern) {
        let of_id = &mut self.met[self.by_id[id] as usize];
        of_id.number = self.all.number(&self.key, pattern);
        of_id.length = self.key.len().min(SHORT + 1) as u8;
        match of_id.last.get_mut(..self.key.len()) {
            Some(last) => last.copy_from_slice(&self.key),
            None => drop(self.long.insert(id, self.key.as_slice().into())),
        }
    }
}

/// What makes a difference.
#[inline]
fn describe(key: &mut Vec<u64>, id: usize, hides: bool, executed: &Executed) {
    const OTHER: u64 = 0xff;
    const NOTHING: u64 = 0x100;
    // Instructions of the unit itself are told by their numbers, others are alike.
    let index = |at: Position| at.checked_sub(executed.position).unwrap_or(OTHER);
    key.clear();
    key.push((id << 32 | executed.restored.len() << 16 | executed.decided.len()) as u64);
    for restored in executed.restored {
        key.push((restored.by() as u64) << 32 | index(restored.saved()));
    }
    for decided in executed.decided {
        key.push((decided.from() as u64) << 32 | decided.by().map_or(NOTHING, index));
    }
    if hides {
        key.extend(executed.sites.iter().map(|site| site.number()));
    }
}
