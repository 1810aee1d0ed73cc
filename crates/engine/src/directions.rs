//! Which way branches go, as the records of units tell. A unit that is nearly always left at the
//! same branch is better made anew, so that it goes on where that leads: then there are fewer
//! records, and each tells more.

use crate::memory::Address;
use iced_x86::{FlowControl, Instruction};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use why_trace::FIRST_UNIT_ID;
use why_trace::shape::Shape;

/// A branch that mostly goes another way than a unit does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turned {
    /// Where the unit begins.
    pub unit: Address,
    pub branch: Address,
    /// The way that it goes is to its target.
    pub is_taken: bool,
}

/// So many bytes of each buffer are looked at: what is executed often is there, too.
const SAMPLE: usize = 1 << 17;

/// Of a branch that was reached less often nothing is known.
const OFTEN: u32 = 64;

#[derive(Default)]
pub struct Directions {
    units: Vec<Unit>,
    /// By the ids of records: the unit's number, and how often it was left so.
    left: Vec<(u32, u32)>,
    /// The ways that branches were turned to: none is turned twice.
    turned: FxHashMap<Address, bool>,
}

struct Unit {
    first_id: usize,
    shape: Arc<Shape>,
    /// How often it was said that it should be made anew.
    told: u8,
}

/// It may have been in use when that was said first; if it is there for a third time, it cannot be
/// made otherwise.
const MOST_TOLD: u8 = 2;

impl Directions {
    /// Makes the next units known.
    pub fn learn(&mut self, shapes: &[Arc<Shape>]) {
        for shape in shapes {
            let unit = self.units.len() as u32;
            let first_id = self.left.len();
            self.units.push(Unit { first_id, shape: Arc::clone(shape), told: 0 });
            self.left.extend((0..=shape.instructions.len()).map(|_| (unit, 0)));
        }
    }

    /// Looks at some records of a buffer; the units that should be made anew because of them.
    pub fn read(&mut self, records: &[u8]) -> Vec<Turned> {
        let mut units = Vec::new();
        // The last record of the sample may be cut off.
        let sample = &records[..records.len().min(SAMPLE)];
        let _ = why_trace::each_record(sample, &mut |id, _| {
            let id = id.wrapping_sub(FIRST_UNIT_ID.into()) as usize;
            if let Some((unit, times)) = self.left.get_mut(id) {
                *times += 1;
                units.push(*unit);
            }
        });
        units.sort_unstable();
        units.dedup();
        units.into_iter().filter_map(|unit| self.turn(unit)).collect()
    }

    /// The first branch of a unit at which it is nearly always left.
    fn turn(&mut self, unit: u32) -> Option<Turned> {
        let Unit { first_id: first, shape, told } = &mut self.units[unit as usize];
        let times = |executed: Range<usize>| -> u32 {
            self.left[*first + executed.start..*first + executed.end]
                .iter()
                .map(|left| left.1)
                .sum()
        };
        let end = shape.instructions.len() + 1;
        let all = times(0..end);
        if all < OFTEN || *told == MOST_TOLD {
            return None;
        }
        let pairs = shape.instructions.windows(2).enumerate();
        let (branch, next) =
            pairs.filter(|(_, pair)| is_conditional(&pair[0])).find_map(|(index, pair)| {
                let (left, reached) = (times(index + 1..index + 2), times(index + 1..end));
                let is_turned = reached >= OFTEN && 2 * reached >= all && 10 * left >= 8 * reached;
                is_turned.then(|| (pair[0], pair[1]))
            })?;
        let is_taken = next.ip() == branch.next_ip();
        let unit = shape.instructions[0].ip();
        let is_new = *self.turned.entry(branch.ip()).or_insert(is_taken) == is_taken;
        is_new.then(|| {
            *told += 1;
            Turned { unit, branch: branch.ip(), is_taken }
        })
    }
}

/// Whether units can go on on either side of it.
fn is_conditional(insn: &Instruction) -> bool {
    insn.flow_control() == FlowControl::ConditionalBranch && insn.is_jcc_short_or_near()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};
    use why_trace::header;

    /// nop; jz; nop, where the branch is left out of the unit or followed.
    fn shape(followed: bool) -> Arc<Shape> {
        const CODE: &[u8] = &[0x90, 0x74, 0x20];
        let mut instructions: Vec<Instruction> =
            Decoder::with_ip(64, CODE, 0x1000, DecoderOptions::NONE).into_iter().collect();
        let next = if followed { 0x1023 } else { 0x1003 };
        instructions.extend(Decoder::with_ip(64, &[0x90], next, DecoderOptions::NONE));
        Arc::new(Shape { instructions, told: Vec::new() })
    }

    /// So many records of the first unit that end behind the branch, and so many that do not.
    fn records(first_id: u32, left: usize, passed: usize) -> Vec<u8> {
        let record = |executed: u32| i64::from(header(first_id + executed, 0)).to_le_bytes();
        let left = std::iter::repeat_n(record(2), left);
        left.chain(std::iter::repeat_n(record(3), passed)).flatten().collect()
    }

    #[test]
    fn a_unit_that_is_mostly_left_at_a_branch_is_made_anew() {
        let mut directions = Directions::default();
        directions.learn(&[shape(false)]);
        let turned = Turned { unit: 0x1000, branch: 0x1001, is_taken: true };
        assert_eq!(directions.read(&records(FIRST_UNIT_ID, 50, 5)), [], "too few");
        assert_eq!(directions.read(&records(FIRST_UNIT_ID, 100, 0)), [turned]);
    }

    #[test]
    fn one_that_mostly_goes_on_is_not() {
        let mut directions = Directions::default();
        directions.learn(&[shape(false)]);
        assert_eq!(directions.read(&records(FIRST_UNIT_ID, 700, 300)), []);
    }

    #[test]
    fn no_branch_is_turned_to_and_fro_and_no_unit_is_told_for_ever() {
        let mut directions = Directions::default();
        directions.learn(&[shape(false), shape(true)]);
        let often = records(FIRST_UNIT_ID, 1000, 0);
        let told: Vec<usize> = (0..4).map(|_| directions.read(&often).len()).collect();
        assert_eq!(told, [1, 1, 0, 0]);
        assert_eq!(directions.read(&records(FIRST_UNIT_ID + 4, 1000, 0)), []);
    }
}
