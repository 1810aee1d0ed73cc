//! How often lines were executed for a slice.
//!
//! It is known how often each instruction was. Those of a line lie in stretches, between which there
//! are other lines: as often as a stretch was executed, the line was, unless it had only gone on
//! there from another one of its own.

use super::lines::Sources;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use why_slice::reasons::Reason;

/// The number of a line's place, and where one of its stretches begins.
type Key = (usize, u64);

/// Instructions of a line that lie together, and what they have called.
#[derive(Default)]
struct Stretch {
    /// Of the line's own, by their addresses.
    own: BTreeMap<u64, u64>,
    /// Of what was inlined, those that made what others want: what they made that of may be in loops.
    inlined: BTreeMap<u64, u64>,
    /// The same of what was called, by the calls' addresses and their own.
    called: BTreeMap<(u64, u64), u64>,
}

impl Stretch {
    fn add(&mut self, reason: &Reason, is_own: bool, is_for_others: bool) {
        let times = match reason.site {
            None if is_own => self.own.entry(reason.address),
            None if is_for_others => self.inlined.entry(reason.address),
            Some(call) if is_for_others => {
                *self.called.entry((call, reason.address)).or_default() += reason.times;
                return;
            }
            _ => return,
        };
        *times.or_default() += reason.times;
    }

    /// How often it was executed, and where that is known from. What is called may loop to make what
    /// others want: of that the one that did least often counts.
    fn times(&self) -> (u64, u64) {
        let most = |all: &BTreeMap<u64, u64>| {
            let most = all.iter().max_by_key(|(at, times)| (**times, Reverse(**at)));
            most.map(|(at, times)| (*times, *at))
        };
        let called = || self.called.iter().min_by_key(|(_, times)| **times);
        let called = || called().map(|((call, _), times)| (*times, *call));
        most(&self.own).or_else(|| most(&self.inlined)).or_else(called).unwrap_or((1, 0))
    }
}

/// For each place how often it was executed for these reasons, where code jumps like that.
pub fn of(
    sources: &mut Sources,
    (reasons, places): (&[Reason], &[usize]),
    jumps: impl Iterator<Item = (u64, u64)>,
) -> HashMap<usize, u64> {
    let mut stretches: HashMap<Key, Stretch> = HashMap::new();
    for (reason, place) in reasons.iter().zip(places) {
        let at = reason.site.unwrap_or(reason.address);
        let stretch = stretches.entry((*place, sources.begun(at))).or_default();
        let is_own = reason.site.is_none() && !sources.is_called(at);
        let is_for_others = reason.wanter.is_none_or(|wanter| places[wanter] != *place);
        stretch.add(reason, is_own, is_for_others);
    }
    // What was only called there counts if there is nothing else of the line.
    let own: HashSet<usize> = stretches
        .iter()
        .filter(|(_, all)| !all.own.is_empty())
        .map(|((place, _), _)| *place)
        .collect();
    stretches.retain(|(place, _), all| !all.own.is_empty() || !own.contains(place));
    let known: HashMap<Key, (u64, u64)> =
        stretches.iter().map(|(stretch, own)| (*stretch, own.times())).collect();
    let gone_on = gone_on(sources, &known, jumps);
    // A compiler that optimises mixes lines: then stretches that were executed equally often were so
    // together.
    let mut together: HashSet<(usize, u64)> = HashSet::new();
    let mut all: HashMap<usize, (u64, u64)> = HashMap::new();
    for ((place, begun), (times, _)) in known {
        let (most, sum) = all.entry(place).or_default();
        *most = times.max(*most);
        if !sources.is_optimised(begun) || together.insert((place, times)) {
            *sum += times;
        }
    }
    let times = |(place, (most, sum)): (usize, (u64, u64))| {
        let gone_on = gone_on.get(&place).copied().unwrap_or(0);
        (place, sum.saturating_sub(gone_on).max(most))
    };
    all.into_iter().map(times).collect()
}

/// How often places went on in one of their stretches from another one.
fn gone_on(
    sources: &mut Sources,
    known: &HashMap<Key, (u64, u64)>,
    jumps: impl Iterator<Item = (u64, u64)>,
) -> HashMap<usize, u64> {
    let several: HashSet<usize> = {
        let mut seen = HashSet::new();
        known.keys().map(|(place, _)| *place).filter(|place| !seen.insert(*place)).collect()
    };
    let mut led: HashSet<(usize, u64, u64)> = HashSet::new();
    let mut gone_on: HashMap<usize, u64> = HashMap::new();
    for (from, to) in jumps {
        let place = sources.place(from);
        if !several.contains(&place) || sources.place(to) != place {
            continue;
        }
        let (one, other) = (sources.begun(from), sources.begun(to));
        let times = known.get(&(place, one)).zip(known.get(&(place, other)));
        if let Some(((before, _), (behind, at))) = times
            && one != other
            && to <= *at
            && led.insert((place, one, other))
        {
            *gone_on.entry(place).or_default() += before.min(behind);
        }
    }
    gone_on
}
