//! Notes what happened in a chunk while it is read.

use crate::calls::Told;
use crate::control::Position;
use crate::course::{By, Completions, Deciding, Executed, Restored, Signal, Sink, Unfolded, Wrote};
use crate::events::{Events, Interrupted, NEVER, OTHER, Other, UnitExecuted};
use crate::finder::Finder;
use crate::units::Unit;
use std::ops::Range;

pub struct Noting<'a, 'p> {
    pub units: &'a [Unit],
    /// None if nobody asks for patterns.
    pub finder: Option<&'a mut Finder<'p>>,
    pub completions: &'a Completions,
    pub events: &'a mut Events,
}

impl Noting<'_, '_> {
    /// Notes a unit that has no pattern.
    fn note_unlike(&mut self, executed: &Executed, unit: &Unit) {
        fn add<T>(to: &mut Vec<T>, more: impl IntoIterator<Item = T>) -> Range<u32> {
            let first = to.len() as u32;
            to.extend(more);
            first..to.len() as u32
        }
        let planned = &unit.plan.accesses[..unit.first_access[executed.count]];
        let ranges = planned.iter().map(|access| access.range(executed.values));
        let sizes = ranges.clone().map(|(_, size)| size).filter(|_| unit.has_strings);
        let (decided, restored) = lists(executed, unit);
        let events = &mut *self.events;
        let executed = UnitExecuted {
            unit: executed.unit as u32,
            count: executed.count as u32,
            accesses: add(&mut events.accesses, ranges.map(|(at, _)| at).chain(sizes)),
            decided: add(&mut events.decided, decided),
            sites: add(&mut events.sites, executed.sites.iter().copied()),
            restored: add(&mut events.restored, restored),
        };
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
        let Executed { unit: number, thread, position, count, .. } = executed;
        let unit = &self.units[number];
        self.turn_to(thread);
        let finder = self.finder.as_mut();
        if !finder.is_some_and(|finder| finder.note(unit, &executed, self.events)) {
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
        let Executed { unit, thread, position, count, sites, values, .. } = executed;
        let before = count as Position - 1;
        let at = position + before;
        let completed = self.completions.find(at, thread);
        let known = &self.units[unit];
        let (decided, _) = lists(&executed, known);
        let planned = &known.plan.accesses[..known.first_access[count]];
        self.events.interrupted.push(at);
        self.add(Other::Interrupted(Interrupted {
            at,
            position: completed.and_then(|by| by.checked_sub(before)).unwrap_or(NEVER),
            thread,
            unit,
            count,
            decided,
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

/// Who decided over the instructions of a unit, and what they brought back.
fn lists(executed: &Executed, unit: &Unit) -> (Vec<Deciding>, Vec<Restored>) {
    let when = |by: By| by.position(executed.position, |number| executed.told[number]);
    let Unfolded { decided, restored } = Unfolded::of(executed.notes, unit, executed.count);
    let decided = decided.into_iter().map(|(from, by)| Deciding::new(from, when(by)));
    let restored = restored.into_iter().filter_map(|(index, kept, saved)| {
        when(saved).map(|saved| Restored::new(index, kept, saved))
    });
    (decided.collect(), restored.collect())
}
