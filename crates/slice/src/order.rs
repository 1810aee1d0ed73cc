//! What a thread knows that others have done before.
//!
//! A thread knows of another one all up to a position: what that one had done when it released
//! something that this one has acquired since (Lamport's happens-before, with a vector of
//! positions for each thread and each object).

use crate::calls::Object;
use crate::control::Position;
use rustc_hash::FxHashMap;

/// For each thread, by its number: what it did before this position is known.
#[derive(Clone, Default)]
struct Known(Vec<Position>);

impl Known {
    fn up_to(&self, thread: usize) -> Position {
        self.0.get(thread).copied().unwrap_or(0)
    }

    fn learn(&mut self, other: &Known) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            *own = (*own).max(*other);
        }
    }

    fn learn_of(&mut self, thread: usize, up_to: Position) {
        if self.0.len() <= thread {
            self.0.resize(thread + 1, 0);
        }
        self.0[thread] = self.0[thread].max(up_to);
    }
}

#[derive(Default)]
pub struct Order {
    numbers: FxHashMap<u64, usize>,
    threads: Vec<Known>,
    objects: FxHashMap<Object, Known>,
}

impl Order {
    fn number(&mut self, thread: u64) -> usize {
        let next = self.threads.len();
        let number = *self.numbers.entry(thread).or_insert(next);
        if number == next {
            self.threads.push(Known::default());
        }
        number
    }

    /// Who acquires the object later knows what the thread did before a position, and what it
    /// knows.
    pub fn release(&mut self, thread: u64, before: Position, object: Object) {
        let thread = self.number(thread);
        let known = &mut self.threads[thread];
        known.learn_of(thread, before);
        self.objects.entry(object).or_default().learn(known);
    }

    /// The same, and what was known by the object no more: its value is another one.
    pub fn replace(&mut self, thread: u64, before: Position, object: Object) {
        self.objects.remove(&object);
        self.release(thread, before, object);
    }

    pub fn acquire(&mut self, thread: u64, object: Object) {
        let thread = self.number(thread);
        if let Some(known) = self.objects.get(&object) {
            self.threads[thread].learn(known);
        }
    }

    /// Whether a thread knows what another one did at a position.
    pub fn knows(&mut self, thread: u64, other: u64, position: Position) -> bool {
        let (thread, other) = (self.number(thread), self.number(other));
        thread == other || position < self.threads[thread].up_to(other)
    }
}
