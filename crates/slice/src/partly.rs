//! Instructions of which not all depends on a source: what of them does, byte by byte.

use crate::backward::Area;
use crate::control::Position;
use crate::forward::Becomes;
use crate::positions::Positions;
use rustc_hash::FxHashMap;

/// What depends on a source of those that were asked for, where that is not all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partly {
    positions: Positions,
    by_position: FxHashMap<Position, Depending>,
}

/// What of an instruction depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Depending {
    made: Vec<Becomes>,
    /// Where it led, or what it asked for.
    pub decides: bool,
}

impl Partly {
    /// Room for positions below this one.
    pub(crate) fn up_to(end: Position) -> Partly {
        Partly { positions: Positions::up_to(end), by_position: FxHashMap::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.by_position.is_empty()
    }

    /// Of one that was interrupted, the parts come one after the other.
    pub(crate) fn add(&mut self, position: Position, made: &[Becomes], decides: bool) {
        self.positions.add(position);
        let depending = self.by_position.entry(position).or_default();
        depending.made.extend_from_slice(made);
        depending.decides |= decides;
    }

    pub(crate) fn of(&self, position: Position) -> Option<&Depending> {
        self.by_position.get(&position)
    }

    /// Whether one of so many positions is there.
    #[inline]
    pub(crate) fn has_some(&self, position: Position, count: usize) -> bool {
        self.positions.has_some(position, count)
    }

    pub(crate) fn size(&self) -> usize {
        let each = size_of::<(Position, Depending)>() + 4 * size_of::<Becomes>();
        self.positions.size() + self.by_position.len() * each
    }
}

impl Depending {
    /// Whether a byte of an area does. Where two parts are at the same place, the first one is what
    /// is there then.
    pub fn has(&self, area: &Area, byte: u64) -> bool {
        let found = self.made.iter().find_map(|made| {
            let (away, size) = match (area, &made.area) {
                (Area::Cells(area), Area::Cells(made)) => {
                    let at = u64::from(area.start) + byte;
                    (at.wrapping_sub(made.start.into()), u64::from(made.end - made.start))
                }
                (Area::Memory(area), Area::Memory(made)) => {
                    let at = area.start.wrapping_add(byte);
                    (at.wrapping_sub(made.start), made.end.wrapping_sub(made.start))
                }
                _ => return None,
            };
            // Of more than there are bits for, it is all or nothing.
            let is_touched = || match size {
                0..=64 => made.touched & 1 << away != 0,
                _ => made.touched != 0,
            };
            (away < size).then(is_touched)
        });
        found.unwrap_or(false)
    }
}
