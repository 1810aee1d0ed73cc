//! The trace of a run: what was executed and the values its addresses follow from.
//!
//! Translated code writes records into a buffer; a consumer on another core reads
//! them. A record is an eight-byte header and as many eight-byte slots as the header
//! says. The slots are the values of registers, as far as the reader needs them: what
//! simple instructions make of known values it computes itself, and it follows the stack
//! pointer from record to record of a thread. A header is the complement of the record's
//! id, shifted by the seven bits that count the slots: its upper half is all ones, which
//! hardly any address is, so that records can be found from the middle of a buffer (see
//! [`lanes`]).
//!
//! [`shape`] says which registers the records of a unit hold, [`known`] what follows from
//! them, and [`follow`] rebuilds every address; [`plan`] does so at speed, with what follows for
//! all records of a unit. [`packed`] makes chunks of records small.

pub mod access;
pub mod follow;
mod known;
mod lanes;
pub mod nowhere;
pub mod number;
pub mod packed;
pub mod plan;
pub mod register;
pub mod shape;
mod symbol;

use shape::Kind;
use std::borrow::Cow;

/// Ids below this one are not of units.
pub const FIRST_UNIT_ID: u32 = 17;

/// Another process has written to memory that it shares with this one, since the thread's last
/// record: where, and how many bytes.
pub const OTHERS_WROTE: u32 = 0;
/// The next records are of the thread whose id is in the one slot that follows.
pub const THREAD: u32 = 1;
/// So many of the last record's instructions have not been executed after all.
pub const UNDO: u32 = 2;
/// The stack pointer of the thread is now the value in the slot that follows.
pub const STACK: u32 = 3;
/// The base of a segment of the thread is now that.
pub const FS_BASE: u32 = 4;
pub const GS_BASE: u32 = 5;
/// The string instruction behind the last record's last one repeated itself until its
/// pointer was this, and was interrupted.
pub const REPEATED: u32 = 6;
/// The records so far count this many instructions too many, which have no addresses: a
/// system call is made again.
pub const RECOUNT: u32 = 7;

/// Somebody else, such as the kernel, has written to memory since the thread's last record:
/// where, and how many bytes.
pub const WROTE: u32 = 8;
/// Where that is in a recording: the event with which the thread went on, and how many
/// instructions lie in between.
pub const MOMENT: u32 = 9;
/// What was written last was read from somewhere: where it is and how many bytes, the stream, and
/// from which byte of that on.
pub const READ: u32 = 10;
/// A handler of a signal begins; the stack pointer was that before.
pub const HANDLER: u32 = 11;
/// It is over, and all registers are what they were before; the slot says nothing.
pub const RETURNED: u32 = 12;
/// The thread makes a system call: its number and its first five arguments.
pub const CALLED: u32 = 13;
/// The call is over: its result, and behind that the two descriptors if it gave so many.
pub const CAME_BACK: u32 = 14;
/// The thread whose id is in the slot has ended.
pub const ENDED: u32 = 15;
/// Memory lies elsewhere since the thread's last record: from where on it was, and how many bytes;
/// and from where on it is, and how many bytes. What is new of these is empty.
pub const MOVED: u32 = 16;

pub const HEADER_BYTES: usize = 8;

const SLOT_BITS: u32 = 7;
/// So many slots a record has at most.
pub const MOST_SLOTS: usize = (1 << SLOT_BITS) - 1;
/// Ids are smaller.
const ID_LIMIT: u32 = 1 << (31 - SLOT_BITS);

/// A record's header, as the instruction that writes it has it: to be sign-extended.
pub fn header(id: u32, slots: usize) -> i32 {
    assert!(slots <= MOST_SLOTS && id < ID_LIMIT, "too many units to trace");
    !((id << SLOT_BITS) as i32 | slots as i32)
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
    /// How many instructions the records of each unit id stand for.
    instructions: Vec<u8>,
    pub totals: Totals,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Malformed {
    pub offset: usize,
    pub id: u64,
}

type Word = [u8; 8];

/// What some of a buffer's records add up to.
#[derive(Clone, Copy, Default)]
struct Sum {
    instructions: u64,
    records: u64,
}

impl Counter {
    pub fn new() -> Counter {
        Counter::default()
    }

    /// Makes the next ids known.
    pub fn learn(&mut self, kinds: &[Kind]) {
        self.instructions.extend(kinds.iter().map(|kind| kind.executed as u8));
    }

    /// Reads a whole number of records.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let (words, rest) = bytes.as_chunks();
        if !rest.is_empty() {
            return Err(Malformed { offset: bytes.len() - rest.len(), id: 0 });
        }
        let sum = match self.read_in_lanes(words) {
            Some(sum) => sum,
            None => self.read_in_order(words)?,
        };
        self.totals.instructions = self.totals.instructions.wrapping_add(sum.instructions);
        self.totals.records += sum.records;
        self.totals.slots += words.len() as u64 - sum.records;
        Ok(())
    }

    fn read_in_order(&self, words: &[Word]) -> Result<Sum, Malformed> {
        let mut sum = Sum::default();
        let mut at = 0;
        while at < words.len() {
            let header = Header::at(words[at]);
            at += self
                .record(header, words, at, &mut sum)
                .filter(|length| at + length <= words.len())
                .ok_or(Malformed { offset: 8 * at, id: header.id() })?;
        }
        Ok(sum)
    }

    /// Adds the record whose header is at `at`; its length.
    #[inline(always)]
    fn record(&self, header: Header, words: &[Word], at: usize, sum: &mut Sum) -> Option<usize> {
        let unit = header.id().wrapping_sub(u64::from(FIRST_UNIT_ID));
        let instructions = match self.instructions.get(unit as usize) {
            Some(&instructions) => u64::from(instructions),
            None => self.special(header, *words.get(at + 1)?)?,
        };
        sum.instructions = sum.instructions.wrapping_add(instructions);
        sum.records += 1;
        Some(1 + header.slots())
    }

    /// The instructions that a record adds which is not of a unit.
    #[cold]
    fn special(&self, header: Header, value: Word) -> Option<u64> {
        match (u32::try_from(header.id()).ok()?, header.slots()) {
            (THREAD | STACK | FS_BASE | GS_BASE | REPEATED | HANDLER | RETURNED, 1) => Some(0),
            (WROTE | OTHERS_WROTE | MOMENT, 2) | (READ | MOVED, 4) => Some(0),
            (CALLED, 6) | (CAME_BACK, 1 | 3) | (ENDED, 1) => Some(0),
            (UNDO | RECOUNT, 1) => Some(u64::from_le_bytes(value).wrapping_neg()),
            _ => None,
        }
    }
}

/// Goes through a whole number of records: `each` gets the id and the slots of each.
pub fn each_record(bytes: &[u8], mut each: impl FnMut(u64, &[u64])) -> Result<(), Malformed> {
    let words = words(bytes);
    let mut at = 0;
    while at < words.len() {
        let header = Header(!words[at]);
        let slots = words.get(at + 1..at + 1 + header.slots());
        each(header.id(), slots.ok_or(Malformed { offset: 8 * at, id: header.id() })?);
        at += 1 + header.slots();
    }
    Ok(())
}

/// The words of a buffer: where it lies as they do, and that is wherever records are written, they
/// need not be copied.
fn words(bytes: &[u8]) -> Cow<'_, [u64]> {
    // SAFETY: whatever the bytes are, eight of them are a word.
    let (before, words, _) = unsafe { bytes.align_to::<u64>() };
    if before.is_empty() && words.len() == bytes.len() / size_of::<u64>() {
        return Cow::Borrowed(words);
    }
    let (words, _) = bytes.as_chunks();
    words.iter().copied().map(u64::from_le_bytes).collect()
}

/// A header without its complement.
#[derive(Clone, Copy)]
struct Header(u64);

impl Header {
    fn at(word: Word) -> Header {
        Header(!u64::from_le_bytes(word))
    }

    fn id(self) -> u64 {
        self.0 >> SLOT_BITS
    }

    fn slots(self) -> usize {
        self.0 as usize & MOST_SLOTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shape::Shape;

    fn word(id: u32, slots: usize) -> u64 {
        i64::from(header(id, slots)) as u64
    }

    /// All records of a unit of so many instructions.
    fn kinds(instructions: usize) -> Vec<Kind> {
        let instructions = vec![Default::default(); instructions];
        Kind::all(0, &Shape { instructions, told: Vec::new() })
    }

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    #[test]
    fn records_are_counted_and_corrected() {
        let mut counter = Counter::new();
        counter.learn(&kinds(5));
        let (unit, thread, undo) = (word(FIRST_UNIT_ID + 5, 2), word(THREAD, 1), word(UNDO, 1));
        counter.read(&bytes(&[unit, 0xa, 0xb, thread, 7, unit, 1, 2, undo, 1])).unwrap();
        assert_eq!(counter.totals, Totals { instructions: 9, records: 4, slots: 6 });
    }

    #[test]
    fn records_are_found_wherever_a_buffer_begins() {
        let records = bytes(&[word(21, 2), 0xa, 0xb, word(THREAD, 1), 7, word(16, 0)]);
        for shift in 0..8 {
            let shifted = [vec![0; shift], records.clone()].concat();
            let mut found = Vec::new();
            each_record(&shifted[shift..], |id, slots| found.push((id, slots.to_vec()))).unwrap();
            assert_eq!(found, [(21, vec![0xa, 0xb]), (THREAD.into(), vec![7]), (16, vec![])]);
        }
    }

    #[test]
    fn an_unknown_id_is_refused() {
        let error = Counter::new().read(&bytes(&[word(20, 0)])).unwrap_err();
        assert_eq!(error, Malformed { offset: 0, id: 20 });
    }

    #[test]
    fn a_record_cut_off_is_refused() {
        let mut counter = Counter::new();
        counter.learn(&kinds(5));
        let cut_off = [word(FIRST_UNIT_ID, 0), word(FIRST_UNIT_ID, 2), 1];
        let error = counter.read(&bytes(&cut_off)).unwrap_err();
        assert_eq!(error, Malformed { offset: 8, id: FIRST_UNIT_ID.into() });
    }

    /// Many records of different lengths, with `slot` in every slot.
    fn long_trace(slot: u64) -> (Vec<u8>, Totals) {
        let mut words = Vec::new();
        let mut totals = Totals::default();
        while words.len() < 100_000 {
            let slots = words.len() % 11;
            words.push(word(FIRST_UNIT_ID + slots as u32, slots));
            words.extend(std::iter::repeat_n(slot, slots));
            totals.instructions += slots as u64;
            totals.records += 1;
            totals.slots += slots as u64;
        }
        words.extend([word(UNDO, 1), 2]);
        totals.instructions -= 2;
        totals.records += 1;
        totals.slots += 1;
        (bytes(&words), totals)
    }

    #[test]
    fn a_long_trace_is_read_whatever_is_in_its_slots() {
        // The second looks like a header itself.
        for slot in [0x7fff_1234_5678, word(FIRST_UNIT_ID + 2, 1)] {
            let (bytes, totals) = long_trace(slot);
            let mut counter = Counter::new();
            counter.learn(&kinds(10));
            counter.read(&bytes).unwrap();
            assert_eq!(counter.totals, totals);
        }
    }
}
