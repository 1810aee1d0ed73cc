//! Chunks are decoded beside each other, and gone through one after the other.

use crate::events::Events;
use crate::region::{Region, RegionError};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A chunk that was decoded.
type Decoded<'a> = Result<Events<'a>, RegionError>;

impl Region {
    /// Goes through chunks in this order.
    pub(crate) fn each_chunk(
        &self,
        chunks: &[usize],
        mut each: impl FnMut(&Events),
    ) -> Result<(), RegionError> {
        /// More would wait for the one who goes through them, and take memory.
        const MOST: usize = 4;
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
        let workers = processors.clamp(1, MOST).min(chunks.len());
        std::thread::scope(|scope| {
            let workers: Vec<(Sender<Events<'_>>, Receiver<Decoded<'_>>)> = (0..workers)
                .map(|first| {
                    let (to, rooms) = channel::<Events<'_>>();
                    let (done, from) = channel();
                    // One is gone through while the next one is decoded.
                    for _ in 0..2 {
                        let _ = to.send(Events::of(&self.units));
                    }
                    let own = chunks.iter().copied().skip(first).step_by(workers);
                    scope.spawn(move || {
                        for chunk in own {
                            // Nobody sends any more when the slice is done.
                            let Ok(mut events) = rooms.recv() else { return };
                            let decoded = self.read(chunk, &mut events).map(|_| events);
                            if done.send(decoded).is_err() {
                                return;
                            }
                        }
                    });
                    (to, from)
                })
                .collect();
            for number in 0..chunks.len() {
                let (to, from) = &workers[number % workers.len()];
                let events = from.recv().map_err(|_| RegionError::Damaged)??;
                each(&events);
                let _ = to.send(events);
            }
            Ok(())
        })
    }
}
