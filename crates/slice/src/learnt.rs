//! What slices have learnt of ways over units ([`crate::shortcuts`]), for further ones of the same
//! kind: in the same process, and in a file for those of others.

use crate::backward::Dependences;
use crate::kept::Packed;
use crate::once::Once;
use crate::reasons::Names;
use crate::region::Region;
use crate::shortcut::Shortcut;
use crate::shortcuts::Known;
use crate::sketch::Sketcher;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use xxhash_rust::xxh3::xxh3_64;

/// Of more kinds it is not kept: those that were asked for last are.
const MOST_KINDS: usize = 8;

/// More ways of a kind would take longer to read than they spare.
const MOST_WAYS: usize = 1 << 18;

/// It is kept anew if there is one more for so many that were known.
const WORTH: usize = 8;

/// What is known of ways after a slice, for others of the same kind.
pub struct Learnt {
    pub kind: Kind,
    /// By the numbers of patterns.
    pub known: Vec<Known>,
    pub sketcher: Sketcher,
    pub once: Once,
    /// How many ways there are,
    pub count: usize,
    /// and how many were known to a process before this one.
    before: usize,
    /// The number of the slice.
    pub slice: u32,
    /// Who those are that want things.
    pub names: Names,
}

/// What the ways depend on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kind {
    pub dependences: Dependences,
    /// What decided counts.
    pub control: bool,
    /// Somebody asks why.
    pub asks: bool,
    /// Code that is not looked into.
    pub pruned: Vec<Range<u64>>,
    /// If not all are told of, whether it goes on through others.
    pub goes_on: Option<bool>,
}

/// What is kept of it.
#[derive(Serialize)]
struct Lasting<'a> {
    ways: Vec<(u32, &'a [Shortcut])>,
    names: &'a Names,
}

#[derive(Deserialize)]
struct OwnedLasting {
    ways: Vec<(u32, Vec<Shortcut>)>,
    names: Names,
}

impl Learnt {
    /// Nothing yet.
    pub fn nothing(kind: Kind) -> Learnt {
        Learnt {
            sketcher: Sketcher::new(kind.dependences),
            kind,
            known: Vec::new(),
            once: Once::new(),
            count: 0,
            before: 0,
            slice: 0,
            names: Names::default(),
        }
    }

    /// How much memory that takes, or a little less.
    pub fn size(&self) -> usize {
        size_of_val(self.known.as_slice()) + self.count * Shortcut::SIZE
    }

    /// All of it, for units with so many patterns; none if it cannot be kept.
    fn pack(&self, patterns: usize) -> Option<Packed> {
        let known = (0..).zip(&self.known[..patterns.min(self.known.len())]);
        let ways = known.map(|(number, known)| (number, known.ways.as_slice()));
        let ways = ways.filter(|(_, ways)| !ways.is_empty()).collect();
        Packed::of(&Lasting { ways, names: &self.names }).ok()
    }

    /// What was packed of a kind.
    fn unpack(kind: &Kind, packed: &Packed, patterns: usize) -> Option<Learnt> {
        let OwnedLasting { ways, names } = packed.unpack().ok()?;
        let mut learnt = Learnt { names, ..Learnt::nothing(kind.clone()) };
        learnt.known.resize_with(patterns, Known::default);
        for (number, ways) in ways {
            learnt.count += ways.len();
            learnt.known.get_mut(number as usize)?.ways = ways;
        }
        learnt.before = learnt.count;
        Some(learnt)
    }
}

/// What is learnt of a region.
#[derive(Default)]
pub struct Lessons(Mutex<All>);

#[derive(Default)]
struct All {
    /// What is learnt is of this one, if the region is in a file.
    edition: Option<Edition>,
    learnt: Vec<Learnt>,
    /// What other processes learnt.
    recalled: Vec<(Kind, Packed)>,
    /// What is learnt is wanted by other processes,
    is_shared: bool,
    /// and what they know is of another edition.
    is_outdated: bool,
}

/// A region in a file, by what others have to agree in who are to know what is learnt of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Edition {
    /// A number that those of other units or patterns do not have.
    pub sum: u64,
    /// How many patterns it describes: only of these the numbers are known to others.
    pub patterns: usize,
}

impl Lessons {
    pub(crate) fn of(edition: Edition) -> Lessons {
        Lessons(Mutex::new(All { edition: Some(edition), ..All::default() }))
    }

    /// The region is in another file, with at least the patterns that it had.
    pub(crate) fn are_of(&self, edition: Edition) {
        let mut all = self.all();
        all.is_outdated |= all.edition != Some(edition);
        all.edition = Some(edition);
    }

    fn all(&self) -> MutexGuard<'_, All> {
        // Nobody panics with the lock; and if, what is there is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much memory that takes.
    pub(crate) fn size(&self) -> usize {
        let all = self.all();
        let recalled = all.recalled.iter().map(|(_, packed)| packed.bytes.len());
        all.learnt.iter().map(Learnt::size).sum::<usize>() + recalled.sum::<usize>()
    }

    /// What slices of a kind have learnt, unless another one uses it.
    pub(crate) fn take(&self, kind: Kind) -> Learnt {
        let mut all = self.all();
        if let Some(own) = all.learnt.iter().position(|learnt| learnt.kind == kind) {
            return all.learnt.remove(own);
        }
        let recalled = all.recalled.iter().find(|(other, _)| *other == kind);
        let recalled = recalled.map(|(_, packed)| packed.clone());
        let patterns = all.edition.map_or(0, |edition| edition.patterns);
        drop(all);
        let unpacked = recalled.and_then(|packed| Learnt::unpack(&kind, &packed, patterns));
        unpacked.unwrap_or_else(|| Learnt::nothing(kind))
    }
}

impl Region {
    /// Keeps what a slice has learnt, if anybody may ask for it.
    pub(crate) fn keep_learnt(&self, learnt: Learnt) {
        let keeps_decoded = self.keeps_decoded();
        let mut all = self.lessons.all();
        let is_there = all.learnt.iter().any(|other| other.kind == learnt.kind);
        if !is_there && (all.is_shared || keeps_decoded) {
            all.learnt.push(learnt);
        }
    }

    /// Takes what other processes have learnt of the region, and keeps for them what is learnt from now
    /// on. What is damaged, or of another region, is as if it were not there.
    pub fn share_learnt(&self, bytes: &[u8]) {
        let mut all = self.lessons.all();
        all.is_shared = true;
        let told = bytes.split_first_chunk().filter(|(sum, rest)| **sum == sum_of(rest));
        match told.and_then(|(_, rest)| postcard::from_bytes(rest).ok()) {
            Some((edition, recalled)) if all.edition == Some(edition) => all.recalled = recalled,
            _ => all.is_outdated = true,
        }
    }

    /// What was learnt of the region, for other processes; none if they know all of it, or nearly.
    pub fn learnt(&self) -> Option<Vec<u8>> {
        let all = self.lessons.all();
        let edition = all.edition.filter(|edition| edition.patterns > 0)?;
        let own = || all.learnt.iter().rev().filter(|learnt| learnt.count <= MOST_WAYS);
        let is_new =
            |own: &Learnt| all.is_outdated || (own.count - own.before) * WORTH > own.before;
        if !own().any(is_new) {
            return None;
        }
        let is_told = |(kind, _): &&(Kind, Packed)| own().any(|own| own.kind == *kind);
        let recalled = all.recalled.iter().filter(|recalled| !is_told(recalled));
        let own = own().map(|own| Some((own.kind.clone(), own.pack(edition.patterns)?)));
        let recalled = recalled.cloned().map(Some);
        let kinds: Option<Vec<(Kind, Packed)>> = own.chain(recalled).take(MOST_KINDS).collect();
        let rest = postcard::to_stdvec(&(edition, kinds?)).ok()?;
        Some([&sum_of(&rest), rest.as_slice()].concat())
    }
}

fn sum_of(bytes: &[u8]) -> [u8; 8] {
    xxh3_64(bytes).to_le_bytes()
}
