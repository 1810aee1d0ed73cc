//! Chunks that were decoded once are kept so, for whoever opens the region again: in a file that takes
//! the place of the one that it is in.

use crate::events::Events;
use crate::kept::Part;
use crate::packing::Packing;
use crate::patterns::Book;
use crate::region::{Chunk, Form, Region, RegionError};
use crate::store::Store;
use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A file takes the place of another one if so much of it was decoded since: the rest is copied.
const WORTH: usize = 8;

/// None if nothing is to be remembered.
#[derive(Default)]
pub(crate) struct Remembered(Mutex<Option<Remembering>>);

impl Remembered {
    fn now(&self) -> MutexGuard<'_, Option<Remembering>> {
        // Nobody panics with the lock; and if, what is there is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Remembering {
    store: Store,
    /// Those that were decoded since, by their numbers.
    chunks: Vec<Option<Part>>,
}

impl Region {
    /// Whether there is anything that it is worth to remember.
    pub fn can_remember(&self) -> bool {
        (0..self.chunks.len()).any(|number| self.is_to_be_decoded(number))
    }

    /// What is decoded from now on is remembered in a file.
    pub fn remember_in(&self, file: File) -> Result<(), RegionError> {
        let remembering = Remembering { store: Store::file(file)?, chunks: Vec::new() };
        *self.remembered.now() = Some(remembering);
        Ok(())
    }

    /// The file has all that the region's own has; false if too little was decoded. It may take that
    /// one's place.
    pub fn finish_remembered(&self) -> Result<bool, RegionError> {
        let remembering = self.remembered.now().take();
        let Some(Remembering { mut store, mut chunks }) = remembering else {
            return Ok(false);
        };
        if chunks.iter().flatten().count() * WORTH < self.chunks.len().max(1) {
            return Ok(false);
        }
        chunks.resize(self.chunks.len(), None);
        let mut all = Vec::new();
        for (chunk, decoded) in self.chunks.iter().zip(chunks) {
            let form = match (decoded, &chunk.form) {
                (Some(decoded), _) => Form::Events(decoded),
                (None, Form::Events(part)) => Form::Events(part.copied(&self.store, &mut store)?),
                (None, Form::Records(records)) => {
                    Form::Records(store.add(&self.store.read(*records)?)?)
                }
            };
            all.push(Chunk { before: chunk.before.clone(), form });
        }
        self.keep_again(&all, store)?;
        Ok(true)
    }

    /// The last one stays as it is: it also tells where the run has led to.
    fn is_to_be_decoded(&self, number: usize) -> bool {
        let is_last = number + 1 == self.chunks.len();
        matches!(self.chunks[number].form, Form::Records(_)) && !is_last
    }

    /// A chunk was decoded.
    pub(crate) fn remember(&self, number: usize, packing: &mut Packing, events: &Events) {
        let is_wanted = || {
            let remembering = self.remembered.now();
            let is_new = |all: &Remembering| all.chunks.get(number).is_none_or(Option::is_none);
            remembering.as_ref().is_some_and(is_new)
        };
        if !self.is_to_be_decoded(number) || !is_wanted() {
            return;
        }
        let packed = packing.pack(events, self.patterns());
        let mut remembering = self.remembered.now();
        if let Some(all) = &mut *remembering {
            match packed.and_then(|packed| Part::add(&packed, &mut all.store)) {
                Ok(part) => {
                    let length = all.chunks.len().max(number + 1);
                    all.chunks.resize(length, None);
                    all.chunks[number] = Some(part);
                }
                // There may be no room: then all is as it was.
                Err(_) => *remembering = None,
            }
        }
    }

    /// What happened in a chunk, and the patterns of its units, whoever knew these.
    pub(crate) fn events(&self, number: usize) -> Result<(Events, Book), RegionError> {
        let mut events = Events::default();
        match &self.chunks[number].form {
            Form::Events(part) => {
                let mut packing = Packing::default();
                packing.unpack(&part.read(&self.store)?, self.patterns(), &mut events)?;
                Ok((events, packing.book))
            }
            Form::Records(packed) => {
                self.read(number, *packed, None, &mut events)?;
                Ok((events, Book::default()))
            }
        }
    }
}
