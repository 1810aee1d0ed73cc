//! What a slice knows of the ways over units that it shares with others: how often it went each, and
//! by whom what is made there is touched.

use crate::control::Position;
use crate::events::Record;
use crate::memory::each_bit;
use crate::partly::Shape;
use crate::spread::Noted;
use crate::wanted::Wanter;
use crate::way::{Way, rank};

/// What a slice knows of ways, by their numbers.
pub struct Own {
    pub may_pass: bool,
    gone: Vec<Gone>,
    size: usize,
}

#[derive(Default)]
pub struct Gone {
    is_known: bool,
    pub times: u64,
    /// Who touches what instructions make, of those that were met, in order.
    pub wanters: Box<[Wanter]>,
    /// The same of those that decide.
    pub deciders: Box<[Wanter]>,
    /// The instructions of which not all depends on the source, by the numbers of their shapes; none
    /// if one has none.
    shapes: Option<Box<[(u8, u8)]>>,
}

impl Gone {
    /// Notes what of some instructions depends on the source; whether that is known.
    #[inline]
    pub fn note(&self, record: &Record, noting: u64, noted: &mut Noted) -> bool {
        let Some(shapes) = &self.shapes else { return false };
        for (index, number) in shapes.iter().filter(|(index, _)| noting >> index & 1 == 1) {
            noted.slice.partly.set(record.position + Position::from(*index), *number);
        }
        true
    }
}

impl Own {
    /// Maybe there are no ways for it.
    pub fn new(may_pass: bool) -> Own {
        Own { may_pass, gone: Vec::new(), size: 0 }
    }

    /// How much memory that takes.
    pub fn size(&self) -> usize {
        size_of_val(self.gone.as_slice()) + self.size
    }

    /// Counts what was gone by ways.
    pub fn count(&self, noted: &mut Noted) {
        let Some(reasons) = &mut noted.reasons else { return };
        for Gone { times, wanters, .. } in &self.gone {
            wanters.iter().for_each(|wanter| reasons.again(*wanter, *times));
        }
    }

    /// What is known of a way, if it was gone.
    #[inline]
    pub fn find(&mut self, way: &Way) -> Option<&mut Gone> {
        self.gone.get_mut(way.number).filter(|gone| gone.is_known)
    }

    /// A way was gone instruction by instruction, so that each has a reason.
    pub fn learn(&mut self, way: &Way, record: &Record, noted: &mut Noted) {
        let Some(wanters) = wanters(way.met, record, noted) else { return };
        if self.gone.len() <= way.number {
            self.gone.resize_with(way.number + 1, Gone::default);
        }
        let mut deciders = Vec::new();
        each_bit(way.decide & way.met, |index| deciders.push(wanters[rank(way.met, index)]));
        let deciders: Box<[Wanter]> = deciders.into();
        self.size += size_of_val(&*wanters) + size_of_val(&*deciders);
        let numbered = |(index, shape): &(u8, Shape)| {
            noted.slice.partly.number(shape.clone()).map(|number| (*index, number))
        };
        // Nothing is noted where nobody asks for it.
        let shapes = match noted.noting.and(way.partly.as_ref()) {
            Some(partly) => partly.iter().map(numbered).collect(),
            None => None,
        };
        self.gone[way.number] = Gone { is_known: true, times: 0, wanters, deciders, shapes };
    }
}

/// Who touches what these instructions make; none if one has no reason.
fn wanters(met: u64, record: &Record, noted: &mut Noted) -> Option<Box<[Wanter]>> {
    let mut wanters = Vec::new();
    for index in (0..record.count).filter(|index| met >> index & 1 == 1) {
        wanters.push(match &mut noted.reasons {
            Some(reasons) => {
                let insn = &record.unit.instructions[index];
                reasons.find(insn, record.site(index).filter(|_| !insn.shown))?
            }
            None => Wanter::default(),
        });
    }
    Some(wanters.into())
}
