//! Room for recorded memory. It must be where it was recorded, and the engine's own may be in
//! the way: while recording it lay elsewhere.

use crate::arena::Arena;
use crate::code::Code;
use crate::frozen::Frozen;
use crate::memory::Address;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use std::ops::Range;

/// Whether a part of the code cache was in the way and is gone.
#[must_use]
pub(super) struct Vacated(bool);

impl Supervisor {
    /// Takes away what there is of the code cache in a range, before something recorded is
    /// mapped there.
    pub(super) fn vacate(&mut self, tid: Tid, range: &Range<Address>) -> Outcome<Vacated> {
        let parts = self.space_of(tid).code.borrow().parts_within(range);
        if parts.is_empty() {
            return Ok(Vacated(false));
        }
        self.own_code(tid)?;
        self.space_of(tid).code.borrow_mut().leave(&parts);
        for part in parts {
            let arguments = [part.start, part.end - part.start, 0, 0, 0, 0];
            self.must(tid, "unmapping the code cache", libc::SYS_munmap, arguments)?;
        }
        Ok(Vacated(true))
    }

    /// Maps anew what is kept of translations, now that what is recorded is in its place.
    pub(super) fn settle_elsewhere(&mut self, tid: Tid, vacated: Vacated) -> Outcome<()> {
        if !vacated.0 {
            return Ok(());
        }
        let code = self.space_of(tid).code.clone();
        let images = std::mem::take(&mut code.borrow_mut().images);
        images.into_iter().try_for_each(|image| self.thaw(tid, image))
    }
}

impl Code {
    /// The parts of the cache that touch a range. The first arena, with the glue, is not one of
    /// them: it cannot go.
    fn parts_within(&self, range: &Range<Address>) -> Vec<Range<Address>> {
        let arenas = self.arenas.iter().skip(1).map(Arena::range);
        let parts = arenas.chain(self.frozen.iter().map(Frozen::range));
        parts.filter(|part| part.start < range.end && range.start < part.end).collect()
    }

    /// Empties the cache and gives up some of its parts.
    fn leave(&mut self, parts: &[Range<Address>]) {
        self.flush();
        self.displaced.clear();
        self.arenas.retain(|arena| !parts.contains(&arena.range()));
        self.frozen.retain(|frozen| !parts.contains(&frozen.range()));
    }
}
