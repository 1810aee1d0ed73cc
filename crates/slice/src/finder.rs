//! Finds the numbers of patterns while records are read. There are many records, and what is needed
//! for each is close together.

use crate::course::{Executed, Note, Site};
use crate::events::Events;
use crate::patterns::{Crossing, NONE, Pattern, Patterns};
use crate::places::Numbering;
use crate::units::Unit;
use rustc_hash::FxHashMap;

pub struct Finder<'a> {
    all: &'a Patterns,
    /// Where each id is among those that came.
    by_id: Vec<u32>,
    met: Vec<OfId<'a>>,
    /// Of the record that is looked at: how it is described, and where the families of its accesses
    /// begin.
    key: Vec<u32>,
    bases: Vec<u64>,
    /// The last descriptions of ids that are longer than others.
    long: FxHashMap<usize, Box<[u32]>>,
    /// The blocks of the chunk that is read.
    numbering: Numbering,
}

/// Longer descriptions are rare.
const SHORT: usize = 11;

/// What is known of the records of an id.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct OfId<'a> {
    /// None if they have no patterns.
    crossing: Option<&'a Crossing>,
    /// How the last record was described, and its number.
    number: u32,
    length: u32,
    last: [u32; SHORT],
}

impl<'a> OfId<'a> {
    fn of(crossing: Option<&'a Crossing>) -> OfId<'a> {
        OfId { crossing, number: NONE, length: 0, last: [0; SHORT] }
    }
}

impl<'a> Finder<'a> {
    pub fn of(all: &'a Patterns) -> Finder<'a> {
        Finder {
            all,
            by_id: vec![0; all.crossings.len()],
            // The first is of none that came.
            met: vec![OfId::of(None)],
            key: Vec::new(),
            bases: Vec::new(),
            long: FxHashMap::default(),
            numbering: Numbering::default(),
        }
    }

    /// A chunk begins.
    pub fn begin_chunk(&mut self) {
        self.numbering.clear();
    }

    /// Notes a record as its pattern tells; false if it has none.
    #[inline]
    pub fn note(&mut self, unit: &Unit, executed: &Executed, events: &mut Events) -> bool {
        let id = unit.first_id + executed.count;
        if self.by_id[id] == 0 {
            self.meet(id, unit, executed.count);
        }
        let met = self.by_id[id] as usize;
        let Some(crossing) = self.met[met].crossing else { return false };
        let families = &*crossing.families.all;
        self.bases.clear();
        self.bases.extend(families.iter().map(|family| family.start.of(executed.values)));
        let number = self.find(met, id, crossing, unit, executed);
        if number == NONE {
            return false;
        }
        let Events { all, blocks, .. } = events;
        let first = all.len();
        all.push(number);
        let has_places = self.numbering.places(&self.bases, blocks, all);
        let mut farthest = 0;
        all.extend(executed.told.iter().map(|at| {
            let back = executed.position - at;
            farthest |= back;
            back as u32
        }));
        all.push(number);
        let is_noted = has_places && farthest <= u32::MAX.into();
        if !is_noted {
            all.truncate(first);
        }
        is_noted
    }

    /// The number of a record's pattern.
    #[inline]
    fn find(
        &mut self,
        met: usize,
        id: usize,
        crossing: &Crossing,
        unit: &Unit,
        executed: &Executed,
    ) -> u32 {
        describe(&mut self.key, crossing.hides, executed);
        if !crossing.is_apart(&self.bases) {
            crossing.describe_overlaps(&self.bases, &mut self.key);
        }
        let of_id = &self.met[met];
        let last = of_id.last.get(..of_id.length as usize);
        let last = last.unwrap_or_else(|| self.long.get(&id).map_or(&[], |last| last));
        if !last.iter().eq(&self.key) {
            self.turn_to_other(met, id, || Pattern::of(executed, unit, crossing));
        }
        self.met[met].number
    }

    #[cold]
    fn meet(&mut self, id: usize, unit: &Unit, count: usize) {
        self.by_id[id] = self.met.len() as u32;
        self.met.push(OfId::of(self.all.crossing(unit, count)));
    }

    /// The last record of an id is described so now.
    fn turn_to_other(&mut self, met: usize, id: usize, pattern: impl FnOnce() -> Pattern) {
        let of_id = &mut self.met[met];
        of_id.length = self.key.len().min(SHORT + 1) as u32;
        match of_id.last.get_mut(..self.key.len()) {
            Some(last) => last.copy_from_slice(&self.key),
            None => drop(self.long.insert(id, self.key.as_slice().into())),
        }
        self.key.push(id as u32);
        of_id.number = self.all.number(&self.key, pattern);
    }
}

/// What makes a difference.
#[inline]
fn describe(key: &mut Vec<u32>, hides: bool, executed: &Executed) {
    let sites = if hides { executed.sites } else { &[] };
    key.clear();
    key.push((executed.notes.len() << 16 | sites.len()) as u32);
    key.extend(executed.notes.iter().map(|note| note.number()));
    for site in sites {
        key.extend([site.number() as u32, (site.number() >> 32) as u32]);
    }
}

/// What was described so; none if that cannot be of these units.
pub fn described(
    key: &[u32],
    units: &[Unit],
    by_id: &[(usize, usize)],
    patterns: &Patterns,
) -> Option<Pattern> {
    let ([lengths, lists @ ..], id) = key.split_last().map(|(id, key)| (key, *id as usize))? else {
        return None;
    };
    let (notes, lists) = lists.split_at_checked((lengths >> 16) as usize)?;
    let (sites, _) = lists.split_at_checked(2 * (lengths & 0xffff) as usize)?;
    let notes: Vec<Note> = notes.iter().map(|number| Note::numbered(*number)).collect();
    let (sites, _) = sites.as_chunks();
    let site = |[low, high]: &[u32; 2]| Site::numbered(u64::from(*high) << 32 | u64::from(*low));
    let sites: Vec<Site> = sites.iter().map(site).collect();
    let (unit, count) = *by_id.get(id)?;
    let crossing = patterns.crossing(&units[unit], count)?;
    let is_whole = notes.iter().all(|note| note.index() < units[unit].instructions.len());
    is_whole.then(|| Pattern::noted((unit, count), &notes, &sites, &units[unit], crossing))
}
