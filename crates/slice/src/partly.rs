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
    /// How much memory is taken by what is known of each.
    size: usize,
}

/// What of an instruction depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Depending {
    cells: Vec<Becomes>,
    memory: Vec<Becomes>,
    /// What is in memory comes in order, so that it is found at once: strings consist of many lanes.
    is_in_order: bool,
    /// Where it led, or what it asked for.
    pub decides: bool,
}

impl Partly {
    /// Room for positions below this one.
    pub(crate) fn up_to(end: Position) -> Partly {
        Partly { positions: Positions::up_to(end), ..Partly::default() }
    }

    /// Of one that was interrupted, the parts come one after the other.
    pub(crate) fn add(&mut self, position: Position, made: &[Becomes], decides: bool) {
        self.positions.add(position);
        let depending = self.by_position.entry(position).or_default();
        let before = depending.size();
        depending.add(made);
        depending.decides |= decides;
        self.size += depending.size() - before;
    }

    pub(crate) fn of(&self, position: Position) -> Option<&Depending> {
        self.by_position.get(&position)
    }

    /// Whether one of so many positions is there.
    #[inline]
    pub(crate) fn has_some(&self, position: Position, count: usize) -> bool {
        self.positions.has_some(position, count)
    }

    /// How much memory that takes, or a little less.
    pub(crate) fn size(&self) -> usize {
        let each = size_of::<(Position, Depending)>();
        self.positions.size() + self.by_position.len() * each + self.size
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
