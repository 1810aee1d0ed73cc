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
    /// By the numbers of units.
    shapes: Vec<Arc<Shape>>,
    /// Those that were executed.
    units: FxHashMap<usize, Unit>,
    /// Where the units begin that were said to be made longer.
    longer: FxHashSet<Address>,
    /// By the ids of records.
    records: Vec<Records>,
    /// Where indirect branches led, by their unit and place there.
    led: FxHashMap<(usize, usize), Led>,
}

/// What is known of the records of an id.
struct Records {
    kind: Kind,
    /// Whether the last instruction that they tell of is an indirect branch, once one was seen.
    is_indirect: Option<bool>,
    /// How many there are in the part of a buffer that is being looked at.
    times: u32,
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
    /// Makes the next units and the next ids of records known.
    pub fn learn(&mut self, shapes: &[Arc<Shape>], kinds: &[Kind]) {
        self.shapes.extend_from_slice(shapes);
        let records = |kind: &Kind| Records { kind: *kind, is_indirect: None, times: 0 };
        self.records.extend(kinds.iter().map(records));
    }

    /// Looks at some records of a buffer; the units that should be made anew because of them.
    pub fn read(&mut self, records: &[u8]) -> Vec<Anew> {
        let mut units = self.count(&records[..records.len().min(SAMPLE)]);
        units.sort_unstable();
        units.dedup();
        units.into_iter().filter_map(|unit| self.anew(unit)).collect()
    }

    /// Counts records, of which the last may be cut off; the numbers of their units.
    fn count(&mut self, sample: &[u8]) -> Vec<usize> {
        let Directions { shapes, units, records, led, .. } = self;
        let (mut seen, mut before) = (Vec::new(), None);
        let _ = why_trace::each_record(sample, |id, _| {
            let id = id.wrapping_sub(FIRST_UNIT_ID.into()) as usize;
            let branch = before.take();
            let Some(Records { kind, is_indirect, times }) = records.get_mut(id) else { return };
            let instructions = || &shapes[kind.unit()].instructions;
            seen.extend((*times == 0).then_some(id));
            *times += 1;
            let is_indirect = is_indirect.get_or_insert_with(|| {
                let last = kind.executed().checked_sub(1);
                last.is_some_and(|last| self::is_indirect(&instructions()[last]))
            });
            before = is_indirect.then(|| (kind.unit(), kind.executed() - 1));
            if let Some(branch) = branch {
                led.entry(branch).or_default().to(instructions()[0].ip());
            }
        });
        let add = |id: usize| {
            let Records { kind, times, .. } = &mut records[id];
            let new = || Unit::new(&shapes[kind.unit()]);
            let unit = units.entry(kind.unit()).or_insert_with(new);
            unit.left[kind.executed()] += std::mem::take(times);
            kind.unit()
        };
        seen.into_iter().map(add).collect()
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

    const LONGER: Anew = Anew { unit: 0x1000, turned: None };

    /// nop; jz; nop, where the branch is left out of the unit or followed.
    fn learn(directions: &mut Directions, followed: bool) {
        const CODE: &[u8] = &[0x90, 0x74, 0x20];
        let mut instructions: Vec<Instruction> =
            Decoder::with_ip(64, CODE, 0x1000, DecoderOptions::NONE).into_iter().collect();
        let next = if followed { 0x1023 } else { 0x1003 };
        instructions.extend(Decoder::with_ip(64, &[0x90], next, DecoderOptions::NONE));
        let shape = Arc::new(Shape { instructions, told: Vec::new() });
        let kinds = Kind::all(followed.into(), &shape);
        directions.learn(&[shape], &kinds);
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
        learn(&mut directions, false);
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
        learn(&mut directions, false);
        assert_eq!(directions.read(&records(FIRST_UNIT_ID, 700, 300)), [LONGER]);
        assert_eq!(directions.read(&records(FIRST_UNIT_ID, 700, 300)), []);
    }

    #[test]
    fn a_branch_may_be_turned_back_but_no_unit_is_told_for_ever() {
        let mut directions = Directions::default();
        learn(&mut directions, false);
        learn(&mut directions, true);
        let mut told = |first_id| {
            let often = records(first_id, 1000, 0);
            (0..5).flat_map(|_| directions.read(&often)).collect::<Vec<Anew>>()
        };
        let to = |way| Anew { turned: Some(Turned { branch: 0x1001, times: 0, way }), ..LONGER };
        assert_eq!(told(FIRST_UNIT_ID), [LONGER, to(Way::Taken), to(Way::Taken)]);
        assert_eq!(told(FIRST_UNIT_ID + 4), [to(Way::NotTaken); 2]);
    }
}
