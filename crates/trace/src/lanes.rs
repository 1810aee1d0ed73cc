//! Reads a buffer at several places at once.
//!
//! Where a record ends is known only once its header has been loaded, so reading one
//! behind the other is waiting most of the time. Four lanes that begin at different
//! places wait side by side. Where a lane begins is guessed by what looks like a header
//! there; the guess is right if the lane before it ends exactly there. If one is wrong,
//! the whole buffer is read in order instead.

use crate::{Counter, FIRST_UNIT_ID, Header, MOST_SLOTS, Sum, Word};

const LANES: usize = 4;

/// A lane reads so many words, then goes on with a part that nobody has read.
const PART: usize = 8 << 10;

/// So many records must seem to follow each other for the last to be taken for one. A slot
/// that looks like a header soon leads to what is none, or to a true one.
const IN_A_ROW: usize = 24;

/// The part of the buffer that a lane reads.
#[derive(Clone, Copy, Default)]
struct Lane {
    at: usize,
    end: usize,
}

impl Counter {
    /// What the buffer's records add up to; none if it is too short for lanes, or a
    /// guess was wrong, or it is malformed.
    pub(crate) fn read_in_lanes(&self, words: &[Word]) -> Option<Sum> {
        let mut parts = self.parts(words)?.into_iter();
        let mut lanes = [Lane::default(); LANES];
        let mut sum = Sum::default();
        'parts: loop {
            for lane in &mut lanes {
                if lane.at >= lane.end {
                    match parts.next() {
                        _ if lane.at > lane.end => return None,
                        Some(part) => *lane = part,
                        None => break 'parts,
                    }
                }
                // SAFETY: a lane ends with the buffer at the latest.
                let word = unsafe { *words.get_unchecked(lane.at) };
                lane.at += self.record(Header::at(word), words, lane.at, &mut sum)?;
            }
        }
        for lane in &mut lanes {
            while lane.at < lane.end {
                let header = Header::at(words[lane.at]);
                lane.at += self.record(header, words, lane.at, &mut sum)?;
            }
        }
        lanes.iter().all(|lane| lane.at == lane.end).then_some(sum)
    }

    /// Divides the buffer where records probably begin.
    fn parts(&self, words: &[Word]) -> Option<Vec<Lane>> {
        let mut parts: Vec<Lane> = Vec::with_capacity(words.len() / PART + 1);
        let mut at = 0;
        while words.len() - at >= 2 * PART {
            let end = self.guess(words, at + PART)?;
            parts.push(Lane { at, end });
            at = end;
        }
        parts.push(Lane { at, end: words.len() });
        (parts.len() >= LANES).then_some(parts)
    }

    /// A place from a place on where a record seems to begin.
    fn guess(&self, words: &[Word], from: usize) -> Option<usize> {
        (from..from + MOST_SLOTS + 1).find_map(|start| {
            (0..IN_A_ROW).try_fold(start, |at, _| {
                let header = Header::at(*words.get(at)?);
                self.is_unit(header).then_some(at + 1 + header.slots())
            })
        })
    }

    fn is_unit(&self, header: Header) -> bool {
        let unit = header.id().checked_sub(u64::from(FIRST_UNIT_ID));
        unit.is_some_and(|unit| unit < self.instructions.len() as u64)
    }
}
