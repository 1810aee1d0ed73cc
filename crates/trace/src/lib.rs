//! The trace of a run: what was executed and the values its addresses follow from.
//!
//! Translated code writes records into a buffer; a consumer on another core reads
//! them. A record is an eight-byte header, whose low half is an id, and as many
//! eight-byte slots as the id's [`RecordShape`] says.

/// Ids below this one are not of units.
pub const FIRST_UNIT_ID: u32 = 16;

/// The next records are of the thread whose id is in the one slot that follows.
pub const THREAD: u32 = 1;
/// The records so far count this many instructions too many (one slot).
pub const UNDO: u32 = 2;

pub const HEADER_BYTES: usize = 8;

/// What a record of one id holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordShape {
    pub instructions: u32,
    pub slots: u16,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub instructions: u64,
    pub records: u64,
    pub slots: u64,
}

/// Reads records and adds them up.
#[derive(Default)]
pub struct Counter {
    shapes: Vec<RecordShape>,
    pub totals: Totals,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Malformed {
    pub offset: usize,
    pub id: u32,
}

impl Counter {
    /// Makes the shapes of further ids known, in the order of their ids.
    pub fn learn(&mut self, shapes: &[RecordShape]) {
        self.shapes.extend_from_slice(shapes);
    }

    /// Reads a whole number of records.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let mut at = 0;
        while at + HEADER_BYTES <= bytes.len() {
            let id = word(at) as u32;
            at += HEADER_BYTES;
            let malformed = Malformed { offset: at - HEADER_BYTES, id };
            if id < FIRST_UNIT_ID {
                if at + 8 > bytes.len() {
                    return Err(malformed);
                }
                match id {
                    THREAD => {}
                    UNDO => {
                        self.totals.instructions = self.totals.instructions.wrapping_sub(word(at));
                    }
                    _ => return Err(malformed),
                }
                at += 8;
                continue;
            }
            let Some(shape) = self.shapes.get((id - FIRST_UNIT_ID) as usize) else {
                return Err(malformed);
            };
            self.totals.instructions += u64::from(shape.instructions);
            self.totals.records += 1;
            self.totals.slots += u64::from(shape.slots);
            at += 8 * usize::from(shape.slots);
        }
        if at == bytes.len() { Ok(()) } else { Err(Malformed { offset: at, id: 0 }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_counted_and_corrected() {
        let mut counter = Counter::default();
        counter.learn(&[RecordShape { instructions: 5, slots: 2 }]);
        let words = [16u64, 0xa, 0xb, u64::from(THREAD), 7, 16, 1, 2, u64::from(UNDO), 1];
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        counter.read(&bytes).unwrap();
        assert_eq!(counter.totals, Totals { instructions: 9, records: 2, slots: 4 });
    }

    #[test]
    fn an_unknown_id_is_refused() {
        let error = Counter::default().read(&20u64.to_le_bytes()).unwrap_err();
        assert_eq!(error, Malformed { offset: 0, id: 20 });
    }
}
