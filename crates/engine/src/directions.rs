//! Which units are executed often and which way their branches go, as the records of units tell.
//! Such a unit is better made anew, longer, and one that is nearly always left at the same branch
//! so that it goes on where that leads: then there are fewer records, and each tells more.

use crate::memory::Address;
use iced_x86::{FlowControl, Instruction};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use why_trace::FIRST_UNIT_ID;
use why_trace::shape::{Kind, Shape};

/// The unit that begins there should be made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anew {
    pub unit: Address,
    /// Longer; or also, if it was before, with this branch as it mostly goes.
    pub turned: Option<Turned>,
}

/// A branch that mostly goes another way than its unit does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turned {
    pub branch: Address,
    /// So many times the unit has it before.
    pub times: usize,
    pub way: Way,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A conditional branch, to its target.
    Taken,
    NotTaken,
    /// An indirect one.
    To(Address),
}

/// So many bytes of each buffer are looked at: what is executed often is there, too.
const SAMPLE: usize = 1 << 17;

/// A unit that was executed so often is worth being made anew,
const OFTEN: u32 = 16;
/// and one that is longer already if so often. Of a branch that was reached less often nothing is
/// known.
const MORE_OFTEN: u32 = 64;

#[derive(Default)]
pub struct Directions {
    units: FxHashMap<usize, Unit>,
    /// Where the units begin that were said to be made longer.
    longer: FxHashSet<Address>,
    /// By the ids of records.
    kinds: Vec<Kind>,
    /// Where indirect branches led, by their unit and place there.
    led: FxHashMap<(usize, usize), Led>,
}

struct Unit {
    shape: Arc<Shape>,
    /// How often it was left after so many instructions.
    left: Vec<u32>,
    /// How often it was said that it should be made anew.
    told: u8,
}

/// It may have just been entered when that was said first; if it is there for a third time, it
/// cannot be made otherwise.
const MOST_TOLD: u8 = 2;

/// Where an indirect branch leads: an address that has a majority if any has, and how many more
/// times it led there than elsewhere.
#[derive(Default)]
struct Led {
    target: Address,
    more: u32,
}

impl Led {
    fn to(&mut self, target: Address) {
        match self.target == target {
            true => self.more += 1,
            false if self.more == 0 => *self = Led { target, more: 1 },
            false => self.more -= 1,
        }
    }
}

impl Unit {
    fn new(shape: &Arc<Shape>) -> Unit {
        let left = vec![0; shape.instructions.len() + 1];
        Unit { shape: Arc::clone(shape), left, told: 0 }
    }
}

impl Directions {
    /// Makes the next ids of records known.
    pub fn learn(&mut self, kinds: &[Kind]) {
        self.kinds.extend_from_slice(kinds);
    }

    /// Looks at some records of a buffer; the units that should be made anew because of them.
    pub fn read(&mut self, records: &[u8]) -> Vec<Anew> {
        let mut units = Vec::new();
        let mut before = None;
        // The last record of the sample may be cut off.
        let sample = &records[..records.len().min(SAMPLE)];
        let _ = why_trace::each_record(sample, &mut |id, _| {
            let id = id.wrapping_sub(FIRST_UNIT_ID.into());
            let indirect = before.take();
            let Some(Kind { unit, executed }) = self.kinds.get(id as usize) else { return };
            let instructions = &unit.shape.instructions;
            self.units.entry(unit.number).or_insert_with(|| Unit::new(&unit.shape)).left
                [*executed] += 1;
            units.push(unit.number);
            let last = executed.checked_sub(1).filter(|last| is_indirect(&instructions[*last]));
            before = last.map(|last| (unit.number, last));
            if let Some(branch) = indirect {
                self.led.entry(branch).or_default().to(instructions[0].ip());
            }
        });
        units.sort_unstable();
        units.dedup();
        units.into_iter().filter_map(|unit| self.anew(unit)).collect()
    }

    fn anew(&mut self, number: usize) -> Option<Anew> {
        let Unit { shape, left, told } = &self.units[&number];
        let unit = shape.instructions[0].ip();
        let all: u32 = left.iter().sum();
        if all < OFTEN {
            return None;
        }
        if self.longer.insert(unit) {
            return Some(Anew { unit, turned: None });
        }
        if all < MORE_OFTEN || *told == MOST_TOLD {
            return None;
        }
        let turned = self.turned(number)?;
        self.units.get_mut(&number)?.told += 1;
        Some(Anew { unit, turned: Some(turned) })
    }

    /// The first branch of a unit at which it is nearly always left for the same place.
    fn turned(&self, number: usize) -> Option<Turned> {
        let Unit { shape, left, .. } = &self.units[&number];
        let all: u32 = left.iter().sum();
        let mut reached = all;
        shape.instructions.iter().enumerate().find_map(|(index, insn)| {
            // Without those that ended in front of it.
            reached -= left[index];
            let here = left[index + 1];
            let is_left = reached >= MORE_OFTEN && 2 * reached >= all && 10 * here >= 8 * reached;
            let way = is_left.then(|| self.way(number, shape, index, here)).flatten();
            let before = shape.instructions[..index].iter();
            let times = before.filter(|other| other.ip() == insn.ip()).count();
            way.map(|way| Turned { branch: insn.ip(), times, way })
        })
    }

    /// Where an instruction leads from which a unit was left so often.
    fn way(&self, unit: usize, shape: &Shape, index: usize, times: u32) -> Option<Way> {
        let insn = &shape.instructions[index];
        if is_indirect(insn) {
            let led = self.led.get(&(unit, index)).filter(|led| 10 * led.more >= 6 * times)?;
            return Some(Way::To(led.target));
        }
        let next = shape.instructions.get(index + 1)?;
        is_conditional(insn).then(|| match next.ip() == insn.next_ip() {
            true => Way::Taken,
            false => Way::NotTaken,
        })
    }
}

/// Whether units can go on on either side of it.
fn is_conditional(insn: &Instruction) -> bool {
    insn.flow_control() == FlowControl::ConditionalBranch && insn.is_jcc_short_or_near()
}

fn is_indirect(insn: &Instruction) -> bool {
    use FlowControl as F;
    matches!(insn.flow_control(), F::IndirectBranch | F::IndirectCall | F::Return)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};
    use why_trace::header;
    use why_trace::shape::Numbered;

    const LONGER: Anew = Anew { unit: 0x1000, turned: None };

    /// nop; jz; nop, where the branch is left out of the unit or followed.
    fn kinds(followed: bool) -> Vec<Kind> {
        const CODE: &[u8] = &[0x90, 0x74, 0x20];
        let mut instructions: Vec<Instruction> =
            Decoder::with_ip(64, CODE, 0x1000, DecoderOptions::NONE).into_iter().collect();
        let next = if followed { 0x1023 } else { 0x1003 };
        instructions.extend(Decoder::with_ip(64, &[0x90], next, DecoderOptions::NONE));
        let shape = Arc::new(Shape { instructions, told: Vec::new() });
        Kind::all(&Numbered { number: followed.into(), shape }).collect()
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
        directions.learn(&kinds(false));
        let turned = Turned { branch: 0x1001, times: 0, way: Way::Taken };
        assert_eq!(directions.read(&records(FIRST_UNIT_ID, 10, 5)), [], "too few");
        assert_eq!(directions.read(&records(FIRST_UNIT_ID, 1, 0)), [LONGER]);
        assert_eq!(directions.read(&records(FIRST_UNIT_ID, 30, 0)), [], "too few");
        let anew = Anew { turned: Some(turned), ..LONGER };
        assert_eq!(directions.read(&records(FIRST_UNIT_ID, 100, 0)), [anew]);
    }

    #[test]
    fn one_that_mostly_goes_on_is_not() {
        let mut directions = Directions::default();
        directions.learn(&kinds(false));
        assert_eq!(directions.read(&records(FIRST_UNIT_ID, 700, 300)), [LONGER]);
        assert_eq!(directions.read(&records(FIRST_UNIT_ID, 700, 300)), []);
    }

    #[test]
    fn a_branch_may_be_turned_back_but_no_unit_is_told_for_ever() {
        let mut directions = Directions::default();
        directions.learn(&kinds(false));
        directions.learn(&kinds(true));
        let mut told = |first_id| {
            let often = records(first_id, 1000, 0);
            (0..5).flat_map(|_| directions.read(&often)).collect::<Vec<Anew>>()
        };
        let to = |way| Anew { turned: Some(Turned { branch: 0x1001, times: 0, way }), ..LONGER };
        assert_eq!(told(FIRST_UNIT_ID), [LONGER, to(Way::Taken), to(Way::Taken)]);
        assert_eq!(told(FIRST_UNIT_ID + 4), [to(Way::NotTaken); 2]);
    }
}
