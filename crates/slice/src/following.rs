//! The course of a run is followed on a thread of its own while its trace is packed.

use crate::arguments::{Arguments, OfCall};
use crate::calls::Told;
use crate::course::{
    Completion, Completions, Course, Executed, Input, Moment, Room, Sink, Unknown,
};
use crate::targets::Targets;
use crate::units::{Unit, ids};
use crate::words::Found;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use why_trace::MOST_SLOTS;

/// So many words are handed over at once, or a few more.
const BATCH: usize = 1 << 16;

/// So many batches may wait.
const WAITING: usize = 16;

/// How many bits of a record's first word tell its number of slots.
const SLOT_BITS: u32 = 32;

/// What one hands over to the thread that follows.
pub struct Following {
    to: SyncSender<Next>,
    /// Batches that were read, to be filled again.
    emptied: Receiver<Vec<u64>>,
    batch: Vec<u64>,
    /// Units that the next records may be of, by their numbers.
    units: Vec<(usize, Unit)>,
    thread: JoinHandle<Result<Followed, Unknown>>,
}

enum Next {
    /// Units are new, or others than they were.
    Units(Vec<(usize, Unit)>),
    /// Records, each behind its id and the number of its slots.
    Records(Vec<u64>),
    EndChunk,
    /// There are no more records.
    End,
    /// Somebody asks for what was seen since this was asked the last time.
    Seen(Sender<Seen>),
}

/// What the run tells of instructions.
#[derive(Default)]
pub struct Seen {
    /// Jumps, each with a target.
    pub targets: Vec<(u64, u64)>,
    pub arguments: Vec<OfCall>,
}

/// What is known in the end, and was noted on the way.
#[derive(Default)]
pub struct Followed {
    pub course: Course,
    pub units: Vec<Unit>,
    /// Where each chunk began.
    pub began: Vec<Course>,
    pub words: Found,
    pub moments: Vec<Moment>,
    pub inputs: Vec<Input>,
    pub completions: Completions,
    by_id: Vec<(usize, usize)>,
    targets: Targets,
    arguments: Arguments,
    /// The unit that was executed last, and how much of it.
    last: (usize, usize),
    room: Room,
}

impl Following {
    pub fn begin() -> Following {
        let (to, next) = sync_channel(WAITING);
        let (empty, emptied) = channel();
        let thread = std::thread::spawn(move || Followed::follow(&next, &empty));
        Following { to, emptied, batch: Vec::new(), units: Vec::new(), thread }
    }

    /// A unit is new.
    pub fn learn(&mut self, number: usize, unit: Unit) {
        self.units.push((number, unit));
    }

    /// From now on a unit is another than it was.
    pub fn relearn(&mut self, number: usize, unit: Unit) {
        self.hand_over();
        self.units.push((number, unit));
    }

    #[inline]
    pub fn record(&mut self, id: u32, slots: &[u64]) {
        self.batch.push(u64::from(id) << SLOT_BITS | slots.len() as u64);
        self.batch.extend_from_slice(slots);
        if self.batch.len() >= BATCH {
            self.hand_over();
        }
    }

    pub fn end_chunk(&mut self) {
        self.hand_over();
        self.send(Next::EndChunk);
    }

    /// What was seen since this was asked the last time.
    pub fn take_seen(&mut self) -> Seen {
        let (answer, seen) = channel();
        self.send(Next::Seen(answer));
        seen.recv().unwrap_or_default()
    }

    /// There are no more records.
    pub fn end(&mut self) {
        self.hand_over();
        self.send(Next::End);
    }

    pub fn finish(mut self) -> Result<Followed, Unknown> {
        self.end();
        drop(self.to);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn hand_over(&mut self) {
        if !self.batch.is_empty() {
            // A few more words: those of the record with which it is full.
            let new = |_| Vec::with_capacity(BATCH + 1 + MOST_SLOTS);
            let next = self.emptied.try_recv().unwrap_or_else(new);
            let batch = std::mem::replace(&mut self.batch, next);
            self.send(Next::Records(batch));
        }
    }

    fn send(&mut self, next: Next) {
        let units = std::mem::take(&mut self.units);
        // Who met a record that nobody knows ends early, and says so in the end.
        let _ = (!units.is_empty()).then(|| self.to.send(Next::Units(units)));
        let _ = self.to.send(next);
    }
}

impl Followed {
    fn follow(next: &Receiver<Next>, empty: &Sender<Vec<u64>>) -> Result<Followed, Unknown> {
        let mut followed = Followed { began: vec![Course::default()], ..Followed::default() };
        for next in next {
            match next {
                Next::Units(units) => {
                    units.into_iter().for_each(|(number, unit)| followed.learn(number, unit));
                }
                Next::Records(mut batch) => {
                    followed.read(&batch)?;
                    batch.clear();
                    let _ = empty.send(batch);
                }
                Next::EndChunk => {
                    followed.began.push(followed.course.at_rest());
                    followed.course.begin_chunk();
                }
                Next::End => followed.settle(),
                Next::Seen(answer) => {
                    let targets = followed.targets.take_new();
                    let arguments = followed.arguments.take_new();
                    let _ = answer.send(Seen { targets, arguments });
                }
            }
        }
        // There is none behind the last chunk.
        followed.began.pop();
        Ok(followed)
    }

    fn learn(&mut self, number: usize, unit: Unit) {
        match self.units.get_mut(number) {
            Some(known) => *known = unit,
            None => {
                self.by_id.extend(ids(number, unit.instructions.len()));
                self.units.push(unit);
            }
        }
    }

    fn read(&mut self, mut batch: &[u64]) -> Result<(), Unknown> {
        let (course, by_id, room, mut noted) = self.parts();
        let (units, noted) = (noted.units, &mut noted);
        while let [header, rest @ ..] = batch {
            let (slots, rest) = rest.split_at(*header as u32 as usize);
            course.read(header >> SLOT_BITS, slots, by_id, units, room, noted)?;
            batch = rest;
        }
        Ok(())
    }

    /// What is followed, by which ids, in which room, and what is noted meanwhile.
    fn parts(&mut self) -> (&mut Course, &[(usize, usize)], &mut Room, Noted<'_>) {
        let Followed { course, by_id, room, .. } = self;
        let Followed {
            units, words, targets, arguments, last, moments, inputs, completions, ..
        } = self;
        let noted = Noted { units, words, targets, arguments, last, moments, inputs, completions };
        (course, by_id, room, noted)
    }

    /// Nothing more will be told of the last unit.
    fn settle(&mut self) {
        let (course, _, room, mut noted) = self.parts();
        course.settle(noted.units, room, &mut noted);
    }
}

/// Only moments, inputs, what threads synchronise by, what calls are and where jumps led are of interest
/// yet.
struct Noted<'a> {
    units: &'a [Unit],
    words: &'a mut Found,
    targets: &'a mut Targets,
    arguments: &'a mut Arguments,
    last: &'a mut (usize, usize),
    moments: &'a mut Vec<Moment>,
    inputs: &'a mut Vec<Input>,
    completions: &'a mut Completions,
}

impl Sink for Noted<'_> {
    const DETAILS: bool = false;

    fn executed(&mut self, executed: Executed<'_>) {
        let Executed { unit: number, thread, count, .. } = executed;
        self.targets.executed(self.units, thread, number, count);
        *self.last = (number, count);
        let unit = &self.units[number];
        let end = unit.first_access[executed.count];
        for access in unit.atomics.iter().take_while(|access| **access < end) {
            self.words.add(&unit.plan.accesses[*access].at(executed.values));
        }
    }

    fn called(&mut self, call: u64) {
        let (number, count) = *self.last;
        if let Some(unit) = self.units.get(number) {
            self.arguments.called(unit, count, call);
        }
    }

    fn told(&mut self, told: Told) {
        self.words.add_told(&told);
    }

    fn read(&mut self, input: Input) {
        self.inputs.push(input);
    }

    fn completed(&mut self, completion: Completion) {
        self.completions.add(completion);
    }

    fn moment(&mut self, moment: Moment) {
        // Where the same way goes on, nothing is new.
        let follows = |last: &Moment| {
            last.event == moment.event
                && moment.ticks.wrapping_sub(last.ticks) == moment.position - last.position
        };
        if !self.moments.last().is_some_and(follows) {
            self.moments.push(moment);
        }
    }
}
