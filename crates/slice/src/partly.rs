//! Instructions of which not all depends on a source: what of them does, byte by byte.

use crate::backward::Area;
use crate::control::Position;
use crate::forward::Becomes;
use crate::large;
use crate::memory::bits;
use crate::positions::Positions;
use rustc_hash::FxHashMap;
use why_effects::{Effects, Size};

/// What depends on a source of those that were asked for, where that is not all.
///
/// Instructions of most programs are of this kind, as what is written with 32 bits has an upper half
/// that depends on nothing. But there are few shapes of what depends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partly {
    /// The number of a shape for each position, from 1 on, or one of these.
    known: Vec<u64>,
    shapes: Vec<Shape>,
    numbers: FxHashMap<Shape, u8>,
    /// Those that have no shape.
    positions: Positions,
    others: FxHashMap<Position, Depending>,
    /// How much memory is taken by what is known of each.
    size: usize,
}

/// Nothing is known of it.
const ALL: u8 = 0;
/// It has no shape.
const OTHER: u8 = u8::MAX;

/// So many have room in a word.
const IN_WORD: usize = 8;

/// Which bytes depend on it of each thing that an instruction defines, a bit for each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    parts: Box<[u64]>,
    decides: bool,
}

/// What of an instruction depends on it.
pub(crate) enum Share<'a> {
    Shape(&'a Shape),
    Other(&'a Depending),
}

/// The same of one that has no shape: it writes much, or several things to one place, or was
/// interrupted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Depending {
    cells: Vec<Becomes>,
    memory: Vec<Becomes>,
    /// What is in memory comes in order, so that it is found at once: strings consist of many lanes.
    is_in_order: bool,
    /// Where it led, or what it asked for.
    decides: bool,
}

impl Partly {
    /// Room for positions below this one.
    pub(crate) fn up_to(end: Position) -> Partly {
        let known = large::zeros(end as usize / IN_WORD + 1);
        Partly { known, positions: Positions::up_to(end), ..Partly::default() }
    }

    /// What an instruction made. Of one that was interrupted, the parts come one after the other.
    pub(crate) fn add(
        &mut self,
        position: Position,
        effects: &Effects,
        made: &[Becomes],
        decides: bool,
    ) {
        let shape = Shape::of(effects, made, decides);
        if let Some(number) = shape.and_then(|shape| self.number(shape)) {
            return self.set(position, number);
        }
        self.set(position, OTHER);
        self.positions.add(position);
        let depending = self.others.entry(position).or_default();
        let before = depending.size();
        depending.add(made);
        depending.decides |= decides;
        self.size += depending.size() - before;
    }

    /// The number of a shape, if there are not too many.
    pub(crate) fn number(&mut self, shape: Shape) -> Option<u8> {
        if let Some(known) = self.numbers.get(&shape) {
            return Some(*known);
        }
        let next = u8::try_from(self.shapes.len() + 1).ok().filter(|next| *next != OTHER)?;
        self.shapes.push(shape.clone());
        self.numbers.insert(shape, next);
        Some(next)
    }

    /// Of an instruction it is known which number its shape has.
    #[inline]
    pub(crate) fn set(&mut self, position: Position, number: u8) {
        let (word, byte) = (position as usize / IN_WORD, position as usize % IN_WORD);
        self.known[word] |= u64::from(number) << (8 * byte);
    }

    fn get(&self, position: Position) -> u8 {
        let (word, byte) = (position as usize / IN_WORD, position as usize % IN_WORD);
        self.known.get(word).map_or(ALL, |word| (word >> (8 * byte)) as u8)
    }

    /// None if all that an instruction made depends on it.
    pub(crate) fn of(&self, position: Position) -> Option<Share<'_>> {
        match self.get(position) {
            ALL => None,
            OTHER => self.others.get(&position).map(Share::Other),
            number => self.shapes.get(usize::from(number) - 1).map(Share::Shape),
        }
    }

    /// Whether nothing is known of any.
    pub(crate) fn is_empty(&self) -> bool {
        self.shapes.is_empty() && self.others.is_empty()
    }

    /// Whether one of so many positions has no shape.
    #[inline]
    pub(crate) fn has_other(&self, position: Position, count: usize) -> bool {
        self.positions.has_some(position, count)
    }

    /// The numbers of the shapes of so many positions.
    #[inline]
    pub(crate) fn describe(&self, position: Position, count: usize, to: &mut Vec<u64>) {
        let shift = 8 * (position as usize % IN_WORD) as u32;
        let first = position as usize / IN_WORD;
        for (number, begin) in (first..).zip((0..count).step_by(IN_WORD)) {
            let at = |word: usize| self.known.get(word).copied().unwrap_or(0);
            let both = u128::from(at(number)) | u128::from(at(number + 1)) << 64;
            let there = bits(8 * (count - begin).min(IN_WORD) as u32);
            to.push((both >> shift) as u64 & there);
        }
    }

    /// How much memory that takes, or a little less.
    pub(crate) fn size(&self) -> usize {
        let each = size_of::<(Position, Depending)>();
        let known = size_of_val(self.known.as_slice());
        known + self.positions.size() + self.others.len() * each + self.size
    }
}

impl Shape {
    /// None if what was made has none. What goes through strings may have been interrupted, even if it
    /// only compares them.
    pub fn of(effects: &Effects, made: &[Becomes], decides: bool) -> Option<Shape> {
        let is_string = effects.operands.iter().any(|of| matches!(of.size, Size::String(_)));
        let has_bits = |made: &Becomes| made.size() <= 64;
        let overlaps = |(number, one): (usize, &Becomes)| {
            made[..number].iter().any(|other| one.area.overlaps(&other.area))
        };
        let has_shape = made.len() == effects.parts.len()
            && !is_string
            && made.iter().all(has_bits)
            && !made.iter().enumerate().any(overlaps);
        has_shape.then(|| Shape { parts: made.iter().map(|made| made.touched).collect(), decides })
    }

    /// Which bytes of each thing that the instruction defines.
    pub fn parts(&self) -> &[u64] {
        &self.parts
    }
}

impl Share<'_> {
    /// Where it led, or what it asked for.
    pub fn decides(&self) -> bool {
        match self {
            Share::Shape(shape) => shape.decides,
            Share::Other(depending) => depending.decides,
        }
    }
}

impl Depending {
    fn add(&mut self, made: &[Becomes]) {
        for made in made {
            match made.area {
                Area::Cells(_) => self.cells.push(made.clone()),
                Area::Memory(_) if self.memory.last_mut().is_some_and(|last| last.join(made)) => {}
                Area::Memory(_) => self.memory.push(made.clone()),
            }
        }
        let ends = |made: &Becomes| match &made.area {
            Area::Cells(cells) => (cells.start.into(), cells.end.into()),
            Area::Memory(bytes) => (bytes.start, bytes.end),
        };
        self.is_in_order = self.memory.is_sorted_by(|one, other| {
            let (start, end) = ends(one);
            start < end && end <= ends(other).0
        });
    }

    fn size(&self) -> usize {
        size_of_val(self.cells.as_slice()) + size_of_val(self.memory.as_slice())
    }

    /// Whether a byte of an area does. Where two parts are at the same place, the first one is what
    /// is there then.
    pub fn has(&self, area: &Area, byte: u64) -> bool {
        match area {
            Area::Cells(cells) => {
                let at = u64::from(cells.start) + byte;
                self.cells.iter().find_map(|made| made.has(at)).unwrap_or(false)
            }
            Area::Memory(bytes) => {
                let at = bytes.start.wrapping_add(byte);
                let behind = |made: &Becomes| match &made.area {
                    Area::Memory(bytes) => bytes.start <= at,
                    Area::Cells(_) => false,
                };
                let some = match self.is_in_order {
                    true => {
                        let behind = self.memory.partition_point(behind);
                        &self.memory[behind.saturating_sub(1)..behind]
                    }
                    false => &self.memory,
                };
                some.iter().find_map(|made| made.has(at)).unwrap_or(false)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};

    /// The shape of an instruction of which nothing depends on the source, if it has one.
    fn shape(code: &[u8]) -> Option<Shape> {
        let insn = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE).decode();
        let effects = why_effects::effects(&insn, &mut InstructionInfoFactory::new());
        let apart = (0..).step_by(2).map(|at| Area::Cells(at..at + 1));
        let made = apart.take(effects.parts.len()).map(|area| Becomes { area, touched: 0 });
        Shape::of(&effects, &made.collect::<Vec<_>>(), false)
    }

    #[test]
    fn what_may_be_interrupted_has_no_shape() {
        assert!(shape(&[0x01, 0xd8]).is_some()); // add eax, ebx
        assert!(shape(&[0xf3, 0xa6]).is_none()); // repe cmpsb
        assert!(shape(&[0xf2, 0xae]).is_none()); // repne scasb
        assert!(shape(&[0xf3, 0xa4]).is_none()); // rep movsb
    }
}
