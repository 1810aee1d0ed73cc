//! What makes a difference between the records of a unit: who decided over its instructions where
//! they do not do so themselves, and which of them brought a register back.

use super::Site;
use crate::control::Position;
use crate::saves::Kept;
use crate::units::{Turn, Unit};
use serde::{Deserialize, Serialize};

/// From an instruction on somebody else decided, or an instruction brought a register back; and who
/// decided, or put it aside. Those in the middle that decide over what is behind them are not noted:
/// they always do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note(u32);

/// When something was that belongs to a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Never,
    /// One of its own instructions.
    Own(usize),
    /// Before it: which of those that are told.
    Told(usize),
}

impl By {
    /// The position, in a unit that begins there.
    #[inline]
    pub fn position(self, first: Position, told: impl Fn(usize) -> Position) -> Option<Position> {
        match self {
            By::Never => None,
            By::Own(index) => Some(first + index as Position),
            By::Told(number) => Some(told(number)),
        }
    }
}

impl Note {
    const RESTORED: u32 = 1 << 31;
    const NEVER: u32 = 0xffff;
    const TOLD: u32 = 0xfffe;

    fn is_restored(self) -> bool {
        self.0 & Note::RESTORED != 0
    }

    pub fn index(self) -> usize {
        ((self.0 & !Note::RESTORED) >> 16) as usize
    }

    /// Whether it says no more than that something was before the unit.
    pub fn is_told(self) -> bool {
        self.0 & 0xffff == Note::TOLD
    }

    /// In one number.
    #[inline]
    pub fn number(self) -> u32 {
        self.0
    }

    pub fn numbered(number: u32) -> Note {
        Note(number)
    }
}

/// What is known of the unit that was executed last.
#[derive(Clone, Default)]
pub struct Room {
    /// Where it begins.
    first: Position,
    pub notes: Vec<Note>,
    /// When that was of which notes say no more than that it was before the unit.
    pub told: Vec<Position>,
    pub sites: Vec<Site>,
}

impl Room {
    /// A unit begins there.
    #[inline]
    pub fn begin(&mut self, first: Position) {
        self.first = first;
        self.notes.clear();
        self.told.clear();
        self.sites.clear();
    }

    /// From an instruction on somebody decided.
    #[inline]
    pub fn decided(&mut self, from: usize, by: Option<Position>) {
        let when = by.map_or(Note::NEVER, |by| self.when(by));
        self.notes.push(Note((from as u32) << 16 | when));
    }

    /// An instruction brought a register back that was put aside then.
    #[inline]
    pub fn restored(&mut self, index: usize, saved: Position) {
        let when = self.when(saved);
        self.notes.push(Note(Note::RESTORED | (index as u32) << 16 | when));
    }

    #[inline]
    fn when(&mut self, position: Position) -> u32 {
        match position.checked_sub(self.first) {
            Some(own) => own as u32,
            None => {
                self.told.push(position);
                Note::TOLD
            }
        }
    }
}

/// What notes say of the first instructions of a unit.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Unfolded {
    /// From which instruction on who decided,
    pub decided: Vec<(usize, By)>,
    /// and which instructions brought which register back, and when it was put aside.
    pub restored: Vec<(usize, Kept, By)>,
}

impl Unfolded {
    pub fn of(notes: &[Note], unit: &Unit, count: usize) -> Unfolded {
        let mut unfolded = Unfolded::default();
        let instructions = unit.instructions[..count].iter().enumerate();
        let deciding = instructions.filter(|(_, insn)| insn.turn != Turn::None);
        let mut deciding = deciding.map(|(index, _)| index).peekable();
        let mut told = 0;
        for note in notes {
            let by = match note.0 & 0xffff {
                Note::NEVER => By::Never,
                Note::TOLD => {
                    told += 1;
                    By::Told(told - 1)
                }
                own => By::Own(own as usize),
            };
            let index = note.index();
            if note.is_restored() {
                let loads = unit.instructions[index].keeping.loads;
                unfolded.restored.extend(loads.map(|(kept, _)| (index, kept, by)));
                continue;
            }
            while let Some(own) = deciding.next_if(|own| *own < index) {
                unfolded.decided.push((own + 1, By::Own(own)));
            }
            unfolded.decided.push((index, by));
        }
        unfolded.decided.extend(deciding.map(|own| (own + 1, By::Own(own))));
        unfolded
    }
}

/// From an instruction of a unit on, what decided over them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deciding(u64);

impl Deciding {
    pub fn new(from: usize, by: Option<Position>) -> Deciding {
        Deciding(by.map_or(0, |by| by + 1) << 16 | from as u64)
    }

    #[inline]
    pub fn from(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    #[inline]
    pub fn by(self) -> Option<Position> {
        (self.0 >> 16).checked_sub(1)
    }
}

/// An instruction of a unit that brought a register back, and when that had been put aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored(u64);

impl Restored {
    pub fn new(by: usize, kept: Kept, saved: Position) -> Restored {
        debug_assert!(by < 1 << 12);
        Restored(saved << 16 | u64::from(kept.number()) << 12 | by as u64)
    }

    #[inline]
    pub fn by(self) -> usize {
        (self.0 & 0xfff) as usize
    }

    #[inline]
    pub fn kept(self) -> Kept {
        Kept::numbered((self.0 >> 12) as u8 & 0xf)
    }

    #[inline]
    pub fn saved(self) -> Position {
        self.0 >> 16
    }
}
