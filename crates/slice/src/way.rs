//! A way over a unit: what going over it does to what is touched.

use crate::across::{Across, REGISTER};
use crate::control::Position;
use crate::events::Record;
use crate::memory::{bits, each_bit};
use crate::outline::{Act, By, Outline};
use crate::partly::Shape;
use crate::patterns::Test;
use crate::ports::Ports;
use crate::spread::Noted;
use crate::wanted::Wanter;
use why_effects::Cell;

/// What going over a unit does, met so.
pub struct Way {
    /// What is touched of what it uses; which of those that decided belong to the slice; what is
    /// touched of registers that it brings back.
    pub key: Box<[u64]>,
    /// Among all.
    pub number: usize,
    /// The instructions that belong to the slice; and all that did for a while.
    members: u64,
    pub met: u64,
    /// Those that decide over others.
    pub decide: u64,
    made: Box<[Act]>,
    asides: Box<[Act]>,
    /// The instructions of which not all depends on the source, and what does; none if that has no
    /// shape.
    pub partly: Option<Box<[(u8, Shape)]>>,
}

impl Way {
    pub fn of(outline: Outline, key: Box<[u64]>, number: usize) -> Way {
        let Outline { members, met, decide, made, asides, partly, has_other } = outline;
        let ranked = |by: By| match by {
            By::Instruction(index) => By::Instruction(rank(met, index.into()) as u8),
            by => by,
        };
        let ranked =
            |all: Vec<Act>| all.into_iter().map(|(at, mask, by)| (at, mask, ranked(by))).collect();
        let (made, asides) = (ranked(made), ranked(asides));
        let partly = (!has_other).then(|| partly.into());
        Way { key, number, members, met, decide, made, asides, partly }
    }

    pub fn size(&self) -> usize {
        let acts = size_of_val(&*self.made) + size_of_val(&*self.asides);
        let partly = self.partly.as_ref().map_or(0, |partly| size_of_val(&**partly));
        size_of::<Way>() + size_of_val(&*self.key) + acts + partly
    }

    /// Which instructions belong to the slice.
    #[inline]
    pub fn note(&self, record: &Record, deciders: &[Wanter], noted: &mut Noted) {
        noted.slice.positions.add_mask(record.position, self.members);
        noted.decide(record.position, self.decide, deciders);
        if noted.lists {
            each_bit(self.members, |index| {
                let address = record.unit.instructions[index as usize].address;
                let position = record.position + Position::from(index);
                noted.slice.instructions.push((position, address));
            });
        }
    }

    /// What is touched behind the unit of what it defines.
    #[inline]
    pub fn go(
        &self,
        record: &Record,
        ports: &Ports,
        wanters: &[Wanter],
        across: &mut Across,
        brought: &mut Vec<[Wanter; REGISTER as usize]>,
    ) {
        let Across { touched, stored, .. } = across;
        // That is asked for before anything is put aside at the same place.
        brought.clear();
        for (brings, mask) in ports.brings.iter().zip(&self.key[ports.uses().len() + 1..]) {
            let (at, mut own) = (brings.slot.at(record), [Wanter::default(); _]);
            each_bit(*mask, |byte| own[byte as usize] = stored.who(at.wrapping_add(byte.into())));
            brought.push(own);
        }
        for (number, mask, by) in &self.asides {
            let aside = ports.asides[usize::from(*number)];
            let at = aside.at(record);
            let mut add =
                |bit: u32, wanter| stored.add_some(at.wrapping_add(bit.into()), 1, wanter);
            match *by {
                By::Instruction(rank) => stored.add_some(at, *mask, wanters[usize::from(rank)]),
                By::Before => each_bit(*mask, |bit| {
                    add(bit, touched.who_wanted_cell(aside.first + bit as Cell));
                }),
                By::Aside(number) => {
                    let own = &brought[usize::from(number)];
                    each_bit(*mask, |bit| add(bit, own[bit as usize]));
                }
            }
        }
        let defines = ports.defines();
        for (number, mask, by) in &self.made {
            let test = &defines[usize::from(*number)];
            match (*by, test) {
                (By::Instruction(rank), test) => {
                    test.want(*mask, wanters[usize::from(rank)], record, touched);
                }
                (By::Before, Test::Cells { word, .. }) => {
                    touched.registers.cells[usize::from(*word)] |= mask;
                }
                (By::Aside(number), Test::Cells { word, .. }) => {
                    let (own, word) = (&brought[usize::from(number)], usize::from(*word));
                    let first = usize::from(ports.brings[usize::from(number)].slot.first);
                    each_bit(*mask, |bit| {
                        let wanter = own[64 * word + bit as usize - first];
                        touched.registers.want(word, 1 << bit, wanter);
                    });
                }
                // Whoever writes to memory is an instruction.
                (By::Before | By::Aside(_), Test::Bytes { .. }) => {}
            }
        }
    }
}

/// What a unit defines is not what was touched any more. Who touched it can still be asked.
#[inline]
pub fn redefine(ports: &Ports, record: &Record, across: &mut Across, noted: &mut Noted) {
    let Across { touched, stored, .. } = across;
    for brings in &*ports.brings {
        noted.slice.positions.remove(record.restored[usize::from(brings.number)].saved());
    }
    ports.defines().iter().for_each(|test| test.redefine(record, touched));
    for aside in &*ports.asides {
        stored.remove(aside.at(record), bits(REGISTER));
    }
}

/// How many of these instructions are in front of one.
pub fn rank(met: u64, index: u32) -> usize {
    (met & bits(index)).count_ones() as usize
}
