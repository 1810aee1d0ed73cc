//! A way back over a unit that was gone before: what it is known by, and what is to be done.

use crate::backward::Area;
use crate::control::Position;
use crate::course;
use crate::events::{Alike, Record};
use crate::families::{Bytes, Member};
use crate::memory::each_bit;
use crate::patterns::{MOST, Pattern, Test};
use crate::reasons::{UNTOLD, Via};
use crate::search::Noted;
use crate::sketch::{By, Cause, Found};
use crate::units::Unit;
use crate::waiting::Aside;
use crate::wanted::{GROUP, Role, Wanted, Wanter, groups};
use serde::{Deserialize, Serialize};

/// So many words of cells, those of general registers and flags, are nearly always looked at.
pub const FIRST: usize = 3;

/// So many words are enough for most that is known of what a unit makes in memory.
pub const PACKED: usize = 3;

/// What a way is known by.
#[derive(Default, Hash)]
pub struct Key {
    /// What is wanted of cells that the unit may make; which of its instructions belong to the slice
    /// whatever they make, and which have put aside something that is wanted; and what is wanted of
    /// memory that it may make, a bit for each byte.
    pub first: [u64; FIRST + 2 + PACKED],
    /// The same of what had no room there; what is wanted of registers that were put aside; and
    /// which of the instructions are told of, if not all are.
    pub rest: Vec<u64>,
}

impl Key {
    pub const DECIDE: usize = FIRST;
    pub const ASIDE: usize = FIRST + 1;
    pub const BYTES: usize = FIRST + 2;

    /// A number that keys which differ often differ in.
    #[inline]
    pub fn hash(&self) -> u64 {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = self.first.iter().fold(0u64, |mixed, word| mixed.rotate_left(7) ^ word);
        mixed.wrapping_mul(ODD) >> 32
    }
}

/// What going back over a unit does, met so.
#[derive(Serialize, Deserialize)]
pub struct Shortcut {
    first: [u64; FIRST + 2 + PACKED],
    /// Cells that are still wanted in front of the unit: they were put aside and brought back.
    kept: [u64; FIRST],
    /// The instructions that are told of.
    members: u64,
    /// First what is made and wanted, then what is wanted because of it: cells, memory, and what
    /// decided; and where each of these ends. To tell them apart would take as long as to do them.
    acts: Box<[Act]>,
    ends: [u16; 3],
    /// Nothing but that is to be done.
    is_simple: bool,
    /// How often it was gone for the slice of this number.
    #[serde(skip)]
    slice: u32,
    #[serde(skip)]
    times: u64,
    rest: Box<[u64]>,
    more: Box<More>,
}

/// Some of a word's cells, or of an access's bytes; or what is told of the unit.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Act {
    mask: u64,
    wanter: Wanter,
    at: u16,
    offset: u16,
}

/// What is needed seldom.
#[derive(Default, Serialize, Deserialize)]
struct More {
    /// The same of cells in other words: those that are wanted and made, and those that are kept.
    others: Vec<(u16, u64, u64)>,
    /// Why each instruction belongs to a slice, the last first; and who it is.
    causes: Vec<(usize, Cause, Wanter)>,
    restored: Vec<Brought>,
    /// Registers that were put aside, by instruction: the cells of a group that are wanted in front
    /// of the unit.
    asides: Vec<(usize, usize, u8)>,
}

/// A register that was brought back, and put aside before: what is told of when that was.
#[derive(Serialize, Deserialize)]
struct Brought {
    told: u16,
    group: usize,
    cells: u8,
    by: BroughtFor,
}

/// For whom.
#[derive(Serialize, Deserialize)]
enum BroughtFor {
    /// All for those who wanted them behind the unit,
    Before,
    /// or who want those of a register that an instruction put aside,
    Aside(usize),
    /// or each for somebody.
    Each(Box<[Option<For>; GROUP]>),
}

impl BroughtFor {
    fn of(each: [Option<For>; GROUP]) -> BroughtFor {
        let all_are = |is: &dyn Fn(usize, For) -> bool| {
            let mut cells = each.iter().enumerate();
            cells.all(|(cell, who)| who.is_none_or(|who| is(cell, who)))
        };
        let first_aside = each.iter().flatten().find_map(|who| match who {
            For::SameAsAside(index, _) => Some(*index),
            _ => None,
        });
        if all_are(&|_, who| matches!(who, For::SameAsBefore)) {
            return BroughtFor::Before;
        }
        match first_aside {
            Some(index) if all_are(&|cell, who| who == For::SameAsAside(index, cell)) => {
                BroughtFor::Aside(index)
            }
            _ => BroughtFor::Each(Box::new(each)),
        }
    }
}

/// Who wants something.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum For {
    Somebody(Wanter),
    /// Whoever wanted it behind the unit.
    SameAsBefore,
    /// Whoever wants a cell of a register that an instruction put aside.
    SameAsAside(usize, usize),
}

impl Shortcut {
    /// A rough size.
    pub const SIZE: usize = size_of::<Shortcut>() + size_of::<More>() + 16 * size_of::<Act>();

    /// Whether the way over a unit is this one.
    #[inline(always)]
    pub fn is_met(&self, key: &Key) -> bool {
        let pairs = self.first.iter().zip(&key.first);
        let differs = pairs.fold(0, |differs, (own, other)| differs | own ^ other);
        // Of slices of few numbers this is faster than to compare them as a whole.
        differs == 0 && self.rest.iter().eq(&key.rest)
    }

    /// What was found of a unit that is met so; none if there is more to it than can be told.
    pub fn of(
        key: &Key,
        tests: &[(Test, u64)],
        found: Found,
        record: &Record,
        pattern: &Pattern,
        noted: &mut Noted,
    ) -> Option<Shortcut> {
        let members = match noted.only {
            Some(only) => found.members & only.told.mask(record.position, record.count as u32),
            None => found.members,
        };
        let names = names(found.members, members, record, noted);
        let wanter = |by: By| match by {
            By::Instruction(index, role) => Some(names[index].with(role)),
            By::Behind | By::Aside(..) => None,
        };
        let mut more = More::default();
        let (mut made, mut kept) = (Vec::new(), [0; FIRST]);
        for (test, found) in tests.iter().copied().filter(|(_, found)| *found != 0) {
            match test {
                Test::Cells { word, .. } if usize::from(word) >= FIRST => {
                    more.others.push((word, found, 0));
                }
                Test::Cells { .. } => {}
                Test::Bytes { access, offset, .. } => {
                    made.push(Bytes { at: pattern.place(access, offset), mask: found });
                }
            }
        }
        let takes = |Bytes { at: Member { family: at, offset }, mask }: Bytes| Act {
            mask,
            wanter: Wanter::default(),
            at,
            offset,
        };
        let mut acts: Vec<Act> = Bytes::together(made).into_iter().map(takes).collect();
        let mut ends = [acts.len() as u16; 3];
        each_bit(key.first[Key::ASIDE], |index| more.asides.push((index as usize, 0, 0)));
        for (word, mask, by) in found.cells {
            match by {
                By::Aside(index, number) => {
                    let (_, group, cells) = more.asides.iter_mut().find(|(at, ..)| *at == index)?;
                    // What was put aside was that register's.
                    let (of, cell) = groups(word, mask).next()?;
                    if cell != 1 << number || *cells != 0 && *group != of {
                        return None;
                    }
                    (*group, *cells) = (of, *cells | cell);
                }
                By::Behind if word < FIRST => kept[word] |= mask,
                By::Behind => {
                    let mut others = more.others.iter_mut();
                    others.find(|(at, ..)| usize::from(*at) == word)?.2 |= mask;
                }
                _ => {
                    let wanter = wanter(by)?;
                    acts.extend(groups(word, mask).map(|(group, mask)| Act {
                        mask: mask.into(),
                        wanter,
                        at: group as u16,
                        offset: 0,
                    }));
                }
            }
        }
        ends[1] = acts.len() as u16;
        for (access, mask, by) in found.memory {
            let Member { family: at, offset } = pattern.place(access as u16, 0);
            acts.push(Act { mask, wanter: wanter(by)?, at, offset });
        }
        ends[2] = acts.len() as u16;
        let told = |by: course::By| match by {
            course::By::Told(number) => Some(number as u16),
            course::By::Never | course::By::Own(_) => None,
        };
        for (number, by) in found.decided {
            let at = told(pattern.decided[number].1)?;
            acts.push(Act { mask: 0, wanter: wanter(by)?, at, offset: 0 });
        }
        for (number, wanters) in found.restored {
            let mut own = [None; GROUP];
            for (own, by) in own.iter_mut().zip(wanters) {
                *own = match by {
                    None => None,
                    Some(By::Behind) => Some(For::SameAsBefore),
                    Some(By::Aside(index, cell)) => Some(For::SameAsAside(index, cell)),
                    Some(by) => Some(For::Somebody(wanter(by)?)),
                };
            }
            let (_, kept, saved) = pattern.restored[number];
            more.restored.push(Brought {
                told: told(saved)?,
                group: kept.group(),
                cells: (0..GROUP)
                    .fold(0, |cells, cell| cells | u8::from(own[cell].is_some()) << cell),
                by: BroughtFor::of(own),
            });
        }
        if noted.reasons.is_some() {
            let causes = found.causes.into_iter();
            more.causes.extend(causes.map(|(index, cause)| (index, cause, names[index])));
        }
        let is_simple =
            more.restored.is_empty() && more.asides.is_empty() && more.others.is_empty();
        Some(Shortcut {
            first: key.first,
            kept,
            members,
            acts: acts.into(),
            ends,
            is_simple,
            slice: 0,
            times: 0,
            rest: key.rest.as_slice().into(),
            more: Box::new(more),
        })
    }

    /// Goes it.
    #[inline]
    pub fn go(&mut self, alike: &Alike, wanted: &mut Wanted, noted: &mut Noted) {
        self.times += 1;
        noted.slice.positions.add_mask(alike.position, self.members);
        if !self.is_simple {
            self.more.before(alike, wanted, noted);
        }
        let words = wanted.registers.cells.iter_mut();
        for ((word, found), kept) in words.zip(&self.first[..FIRST]).zip(&self.kept) {
            *word = *word & !found | kept;
        }
        let [taken, cells, memory] = self.ends.map(usize::from);
        for Act { mask, at, offset, .. } in &self.acts[..taken] {
            let member = Member { family: *at, offset: *offset };
            wanted.memory.remove_at(alike.place(member), *mask);
        }
        for Act { mask, wanter, at, .. } in &self.acts[taken..cells] {
            wanted.registers.want_group(usize::from(*at), *mask as u8, [*wanter; GROUP]);
        }
        for Act { mask, wanter, at, offset } in &self.acts[cells..memory] {
            let member = Member { family: *at, offset: *offset };
            wanted.memory.add_at(alike.place(member), *mask, *wanter);
        }
        for Act { wanter, at, .. } in &self.acts[memory..] {
            noted.waiting.decide(alike.told(*at), *wanter);
        }
        if !self.is_simple {
            self.more.behind(alike, wanted, noted);
        }
    }

    /// Lists the instructions of the unit that belong to the slice.
    pub fn list(&self, position: Position, unit: &Unit, noted: &mut Noted) {
        let indices = (0..MOST).rev().filter(|index| self.members >> index & 1 == 1);
        noted.slice.instructions.extend(
            indices.map(|index| (position + index as Position, unit.instructions[index].address)),
        );
    }

    /// Whether it was gone for a slice.
    #[inline(always)]
    pub fn is_gone_for(&self, slice: u32) -> bool {
        self.slice == slice
    }

    /// It will be gone for the first time for a slice: says why its instructions belong to that.
    pub fn begin(&mut self, slice: u32, record: &Record, wanted: &Wanted, noted: &mut Noted) {
        (self.slice, self.times) = (slice, 0);
        let Noted { reasons: Some(reasons), waiting, .. } = noted else { return };
        for (index, cause, _) in &self.more.causes {
            let insn = &*record.unit.instructions[*index];
            let site = site(self.members, record, *index);
            let position = record.position + *index as Position;
            reasons.add_first((insn, site), (record.thread, position), || {
                let who = |by: &By, behind: Wanter| match *by {
                    By::Behind => behind,
                    By::Instruction(index, role) => self.more.name(index).with(role),
                    By::Aside(index, cell) => {
                        let aside = waiting.aside(record.position + index as Position);
                        aside.map_or(Wanter::default(), |aside| aside.wanters[cell])
                    }
                };
                match cause {
                    Cause::Cells { made, by } => {
                        let behind = wanted.who_wanted_cell(made.start);
                        (who(by, behind), Via::Made(Area::Cells(made.clone())))
                    }
                    Cause::Memory { access, made, by } => {
                        let at = |byte: u64| record.starts[*access].wrapping_add(byte);
                        let behind = wanted.who_wanted_memory(at(made.start));
                        (who(by, behind), Via::Made(Area::Memory(at(made.start)..at(made.end))))
                    }
                    Cause::Decided(by) => (who(by, Wanter::default()), Via::Decided),
                    Cause::Anyway => match waiting.decision(position) {
                        Some((wanter, Some(byte))) => (wanter, Via::Wrote(byte)),
                        decision => (decision.unwrap_or_default().0, Via::Decided),
                    },
                }
            });
        }
    }

    /// Counts how often it was gone for a slice.
    pub fn count(&self, slice: u32, noted: &mut Noted) {
        if !self.is_gone_for(slice) {
            return;
        }
        noted.slice.count += self.times * u64::from(self.members.count_ones());
        if let Some(reasons) = &mut noted.reasons {
            self.more.causes.iter().for_each(|(.., name)| reasons.again(*name, self.times));
        }
    }
}

impl More {
    /// Who an instruction is.
    fn name(&self, index: usize) -> Wanter {
        let own = self.causes.iter().find(|(other, ..)| *other == index);
        own.map_or(Wanter::default(), |(.., name)| *name)
    }

    /// Before anything is taken: what was brought back is wanted where it was put aside.
    fn before(&self, alike: &Alike, wanted: &mut Wanted, noted: &mut Noted) {
        for Brought { told, group, cells, by } in &self.restored {
            let aside = |index: usize| {
                let aside = noted.waiting.aside(alike.position + index as Position);
                aside.map_or([Wanter::default(); GROUP], |aside| aside.wanters)
            };
            let before = wanted.registers.who_of_group(*group);
            let wanters = match by {
                BroughtFor::Before => before,
                BroughtFor::Aside(index) => aside(*index),
                BroughtFor::Each(each) => std::array::from_fn(|cell| match each[cell] {
                    None => Wanter::default(),
                    Some(For::Somebody(wanter)) => wanter,
                    Some(For::SameAsBefore) => before[cell],
                    Some(For::SameAsAside(index, cell)) => aside(index)[cell],
                }),
            };
            noted.waiting.put_aside(alike.told(*told), &Aside { cells: *cells, wanters });
        }
        for (word, found, kept) in &self.others {
            let word = &mut wanted.registers.cells[usize::from(*word)];
            *word = *word & !found | kept;
        }
    }

    fn behind(&self, alike: &Alike, wanted: &mut Wanted, noted: &mut Noted) {
        for (index, group, cells) in &self.asides {
            let aside = noted.waiting.take_aside(alike.position + *index as Position);
            let wanters = aside.map_or([Wanter::default(); GROUP], |aside| aside.wanters);
            wanted.registers.want_group(*group, *cells, wanters);
        }
    }
}

/// The call that is shown instead of an instruction, of which these are told of.
fn site(told: u64, record: &Record, index: usize) -> Option<u64> {
    match told >> index & 1 == 1 {
        true => record.site(index).filter(|_| !record.unit.instructions[index].shown),
        false => Some(UNTOLD),
    }
}

/// Who these instructions are, of which some are told of, if anybody asks.
fn names(members: u64, told: u64, record: &Record, noted: &mut Noted) -> [Wanter; MOST] {
    let mut names = [Wanter::default(); MOST];
    if let Some(reasons) = &mut noted.reasons {
        for index in (0..record.count).filter(|index| members >> index & 1 == 1) {
            let insn = &record.unit.instructions[index];
            let site = site(told, record, index);
            names[index] = Wanter::new(reasons.names.number(insn, site) + 1, Role::Value);
        }
    }
    names
}
