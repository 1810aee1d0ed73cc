//! Notes what happened in a chunk while it is read.

use crate::calls::Told;
use crate::control::Position;
use crate::course::{Completions, Executed, Signal, Sink, Wrote};
use crate::events::{Events, Interrupted, NEVER, OTHER, Other, UnitExecuted};
use crate::finder::Finder;
use crate::patterns::{NONE, Pattern};
use crate::units::Unit;
use std::ops::Range;

pub struct Noting<'a, 'p> {
    pub units: &'a [Unit],
    /// None if nobody asks for patterns.
    pub finder: Option<&'a mut Finder<'p>>,
    pub completions: &'a Completions,
    pub events: &'a mut Events,
    /// Where the accesses of the unit were that is noted.
    pub starts: Vec<u64>,
}

impl Noting<'_, '_> {
    /// Notes a unit that has a pattern; false if it has none.
    #[inline]
    fn note_alike(&mut self, executed: &Executed, unit: &Unit) -> bool {
        let Some(finder) = self.finder.as_mut() else { return false };
        let pattern = finder.find(unit, executed, &self.starts);
        if pattern == NONE {
            return false;
        }
        let Events { all, pages, .. } = &mut *self.events;
        let first = all.len();
        all.push(pattern);
        let accesses = self.starts.iter().copied().zip(unit.sizes.iter().copied());
        let is_in_pages = finder.numbering.places(accesses, pages, all);
        let is_near = Pattern::tell(executed, all);
        all.push(pattern);
        if !is_in_pages || !is_near {
            all.truncate(first);
        }
        is_in_pages && is_near
    }

    /// Notes one that has none.
    fn note_unlike(&mut self, executed: &Executed, unit: &Unit) {
        fn add<T: Copy>(to: &mut Vec<T>, list: &[T]) -> Range<u32> {
            let first = to.len() as u32;
            to.extend_from_slice(list);
            first..to.len() as u32
        }
        if unit.has_strings {
            let planned = &unit.plan.accesses[..self.starts.len()];
            self.starts.extend(planned.iter().map(|access| access.range(executed.values).1));
        }
        let events = &mut *self.events;
        let accesses = add(&mut events.accesses, &self.starts);
        let decided = add(&mut events.decided, executed.decided);
        let sites = add(&mut events.sites, executed.sites);
        let restored = add(&mut events.restored, executed.restored);
        let (unit, count) = (executed.unit as u32, executed.count as u32);
        let executed = UnitExecuted { unit, count, accesses, decided, sites, restored };
        self.add(Other::Executed(executed));
    }

    fn add(&mut self, other: Other) {
        let events = &mut *self.events;
        events.all.push(OTHER | events.others.len() as u32);
        events.others.push(other);
    }

    /// A thread executes what comes next.
    #[inline]
    fn turn_to(&mut self, thread: u64) {
        match &mut self.events.threads {
            Some((_, last)) if *last == thread => {}
            Some((_, last)) => {
                let from = std::mem::replace(last, thread);
                self.add(Other::Turn { from, to: thread });
            }
            threads => *threads = Some((thread, thread)),
        }
    }
}

impl Sink for Noting<'_, '_> {
    const DETAILS: bool = true;

    fn executed(&mut self, executed: Executed<'_>) {
        let Executed { unit: number, thread, position, count, values, .. } = executed;
        let unit = &self.units[number];
        self.turn_to(thread);
        let planned = unit.first_access[count];
        self.starts.clear();
        match unit.has_strings {
            false => self.starts.extend(unit.starts[..planned].iter().map(|at| at.of(values))),
            true => {
                let planned = &unit.plan.accesses[..planned];
                self.starts.extend(planned.iter().map(|access| access.start(values)));
            }
        }
        if !self.note_alike(&executed, unit) {
            self.note_unlike(&executed, unit);
        }
        let events = &mut *self.events;
        if events.positions.is_empty() {
            events.positions = position..position;
        }
        events.positions.end = position + count as Position;
        for index in unit.plan.unplanned.iter().filter(|index| usize::from(**index) < count) {
            events.passed_over.insert(unit.instructions[usize::from(*index)].address);
        }
    }

    fn interrupted(&mut self, executed: Executed<'_>) {
        let Executed { unit, thread, position, count, decided, sites, values, .. } = executed;
        let before = count as Position - 1;
        let at = position + before;
        let completed = self.completions.find(at, thread);
        let known = &self.units[unit];
        let planned = &known.plan.accesses[..known.first_access[count]];
        self.events.interrupted.push(at);
        self.add(Other::Interrupted(Interrupted {
            at,
            position: completed.and_then(|by| by.checked_sub(before)).unwrap_or(NEVER),
            thread,
            unit,
            count,
            decided: decided.to_vec(),
            sites: sites.to_vec(),
            starts: planned.iter().map(|access| access.start(values)).collect(),
            sizes: planned.iter().map(|access| access.range(values).1).collect(),
        }));
    }

    fn signal(&mut self, signal: Signal) {
        self.add(Other::Signal(signal));
    }

    fn told(&mut self, told: Told) {
        self.add(Other::Told(told));
    }

    fn wrote(&mut self, wrote: Wrote) {
        self.add(Other::Wrote(wrote));
    }
}
