//! The trace of a run: what was executed and the values its addresses follow from.
//!
//! Translated code writes records into a buffer; a consumer on another core reads
//! them. A record is an eight-byte header and as many eight-byte slots as the header's
//! low seven bits say; the bits above are the record's id.

/// Ids below this one are not of units.
pub const FIRST_UNIT_ID: u32 = 16;

/// The next records are of the thread whose id is in the one slot that follows.
pub const THREAD: u32 = 1;
/// The records so far count this many instructions too many (one slot).
pub const UNDO: u32 = 2;

pub const HEADER_BYTES: usize = 8;

const SLOT_BITS: u32 = 7;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub instructions: u64,
    pub records: u64,
    pub slots: u64,
}

/// Reads records and adds them up.
#[derive(Default)]
pub struct Counter {
    /// How many instructions the records of each id stand for.
    instructions: Vec<u32>,
    pub totals: Totals,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Malformed {
    pub offset: usize,
    pub id: u32,
}

impl Counter {
    pub fn new() -> Counter {
        Counter { instructions: vec![0; FIRST_UNIT_ID as usize], totals: Totals::default() }
    }

    /// Makes the next unit ids known: how many instructions each stands for.
    pub fn learn(&mut self, instructions: &[u32]) {
        self.instructions.extend_from_slice(instructions);
    }

    /// Reads a whole number of records.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let word = |at: usize| {
            bytes.get(at..at + 8).map(|word| u64::from_le_bytes(word.try_into().unwrap()))
        };
        let mut totals = self.totals;
        let mut at = 0;
        while let Some(header) = word(at) {
            let id = header as u32 >> SLOT_BITS;
            let slots = (header & ((1 << SLOT_BITS) - 1)) as usize;
            let malformed = Malformed { offset: at, id };
            let Some(&instructions) = self.instructions.get(id as usize) else {
                return Err(malformed);
            };
            totals.instructions += u64::from(instructions);
            totals.records += 1;
            totals.slots += slots as u64;
            if id < FIRST_UNIT_ID {
                let value = word(at + HEADER_BYTES).ok_or(malformed)?;
                match id {
                    THREAD => {}
                    UNDO => totals.instructions = totals.instructions.wrapping_sub(value),
                    _ => return Err(Malformed { offset: at, id }),
                }
            }
            at += HEADER_BYTES + 8 * slots;
        }
        self.totals = totals;
        if at == bytes.len() { Ok(()) } else { Err(Malformed { offset: at, id: 0 }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(id: u32, slots: u64) -> u64 {
        u64::from(id) << SLOT_BITS | slots
    }

    #[test]
    fn records_are_counted_and_corrected() {
        let mut counter = Counter::new();
        counter.learn(&[5]);
        let (unit, thread, undo) = (header(16, 2), header(THREAD, 1), header(UNDO, 1));
        let words = [unit, 0xa, 0xb, thread, 7, unit, 1, 2, undo, 1];
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        counter.read(&bytes).unwrap();
        assert_eq!(counter.totals, Totals { instructions: 9, records: 4, slots: 6 });
    }

    #[test]
    fn an_unknown_id_is_refused() {
        let error = Counter::new().read(&header(20, 0).to_le_bytes()).unwrap_err();
        assert_eq!(error, Malformed { offset: 0, id: 20 });
    }
}
