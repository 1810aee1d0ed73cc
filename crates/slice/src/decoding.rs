//! Chunks are decoded beside each other, and gone through one after the other. Those that are
//! wanted again may be kept as they are.

use crate::events::Events;
use crate::finder::Finder;
use crate::packing::Packing;
use crate::patterns::Book;
use crate::region::{Form, Region, RegionError};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Chunks that were decoded and are kept.
#[derive(Default)]
pub struct Kept(Mutex<KeptChunks>);

#[derive(Default)]
struct KeptChunks {
    /// In bytes: as much may be kept.
    limit: usize,
    used: usize,
    /// What the largest chunk took.
    largest: usize,
    chunks: Vec<Option<Arc<Events>>>,
}

impl Kept {
    fn all(&self) -> MutexGuard<'_, KeptChunks> {
        // Nobody panics with the lock; and if, what is there is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, chunk: usize) -> Option<Arc<Events>> {
        self.all().chunks.get(chunk)?.clone()
    }

    /// Whether as much as was kept of any chunk could be kept once more.
    fn has_room(&self) -> bool {
        let all = self.all();
        all.used + all.largest < all.limit
    }

    /// Keeps a chunk, if there is room.
    fn add(&self, chunk: usize, events: &Arc<Events>) {
        let mut all = self.all();
        let size = events.size();
        all.largest = all.largest.max(size);
        if all.used + size <= all.limit {
            all.used += size;
            if all.chunks.len() <= chunk {
                all.chunks.resize(chunk + 1, None);
            }
            all.chunks[chunk] = Some(Arc::clone(events));
        }
    }
}

/// A chunk that was decoded.
enum Decoded {
    Kept(Arc<Events>),
    /// In room that is used again.
    Room(Box<Events>),
}

impl Region {
    /// Keeps what is decoded, up to so many bytes: whoever asks once more gets an answer sooner.
    pub fn keep_decoded(&self, limit: usize) {
        self.kept.all().limit = limit;
    }

    /// How much memory what is kept takes.
    pub(crate) fn kept_size(&self) -> usize {
        let decoded = self.kept.all().used;
        decoded + self.lessons.size()
    }

    /// Whether anything is kept of it.
    pub(crate) fn keeps_decoded(&self) -> bool {
        self.kept.all().used > 0
    }

    /// Goes through chunks in this order.
    pub(crate) fn each_chunk(
        &self,
        chunks: &[usize],
        mut each: impl FnMut(&Events, &Book) -> Result<(), RegionError>,
    ) -> Result<(), RegionError> {
        /// More would wait for the one who goes through them, and take memory.
        const MOST: usize = 4;
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
        let workers = processors.clamp(1, MOST).min(chunks.len());
        std::thread::scope(|scope| {
            let worker = |first: usize| {
                let (to, rooms) = channel::<Box<Events>>();
                let (done, from) = channel();
                // One is gone through while the next one is decoded.
                for _ in 0..2 {
                    let _ = to.send(Box::default());
                }
                let own = chunks.iter().copied().skip(first).step_by(workers);
                scope.spawn(move || self.decode(own, &rooms, &done));
                (to, from)
            };
            let workers: Vec<_> = (0..workers).map(worker).collect();
            let mut book = Book::default();
            for number in 0..chunks.len() {
                let (to, from) = &workers[number % workers.len()];
                let decoded = from.recv().map_err(|_| RegionError::Damaged)??;
                book.update(self.patterns());
                match decoded {
                    Decoded::Kept(events) => each(&events, &book)?,
                    Decoded::Room(events) => {
                        each(&events, &book)?;
                        let _ = to.send(events);
                    }
                }
            }
            Ok(())
        })
    }

    fn decode(
        &self,
        chunks: impl Iterator<Item = usize>,
        rooms: &Receiver<Box<Events>>,
        done: &Sender<Result<Decoded, RegionError>>,
    ) {
        let (mut finder, mut packing) = (Finder::of(self.patterns()), Packing::default());
        let mut last = Arc::<Events>::default();
        for chunk in chunks {
            let decoded = match self.kept.find(chunk) {
                Some(kept) => Ok(Decoded::Kept(kept)),
                None if self.kept.has_room() => {
                    let mut events = last.room_like();
                    self.make(chunk, &mut finder, &mut packing, &mut events).map(|()| {
                        last = Arc::new(events);
                        self.kept.add(chunk, &last);
                        Decoded::Kept(Arc::clone(&last))
                    })
                }
                None => {
                    // Nobody sends any more when the slice is done.
                    let Ok(mut room) = rooms.recv() else { return };
                    let made = self.make(chunk, &mut finder, &mut packing, &mut room);
                    made.map(|()| Decoded::Room(room))
                }
            };
            if done.send(decoded).is_err() {
                return;
            }
        }
    }

    /// Makes events of a chunk, however it is kept.
    fn make(
        &self,
        number: usize,
        finder: &mut Finder,
        packing: &mut Packing,
        events: &mut Events,
    ) -> Result<(), RegionError> {
        match &self.chunks[number].form {
            Form::Events(part) => packing.unpack(&part.read(&self.store)?, self.patterns(), events),
            Form::Records(records) => {
                self.read(number, *records, Some(finder), events)?;
                self.remember(number, packing, events);
                Ok(())
            }
        }
    }
}
