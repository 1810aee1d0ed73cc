//! The ways over units that were gone before.
//!
//! What going back over a unit does to what is wanted depends on little: which of the bytes that
//! it makes are wanted, which of its instructions belong to the slice anyway, and which of its
//! accesses are to the same memory. Most units are met in few such ways again and again, so what
//! follows is found once for each ([`crate::sketch`]) and then only done.

use crate::backward::Dependences;
use crate::control::Position;
use crate::events::Record;
use crate::memory::each_bit;
use crate::search::Noted;
use crate::sketch::{Behind, By, Found, MOST, Sketcher};
use crate::waiting::Aside;
use crate::wanted::{Wanted, Wanter, cell_words};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use why_effects::{Cell, Place};

/// What came of looking for a shortcut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// The unit was passed.
    Passed,
    /// It has to be gone over, and should be learnt.
    New,
    /// It has to be gone over.
    Unknown,
}

/// More ways of a unit are not remembered.
const MOST_WAYS: usize = 64;

pub struct Shortcuts {
    /// By the ids of records.
    crossings: Vec<Option<Box<Crossing>>>,
    sketcher: Sketcher,
    control: bool,
    /// Of the record that is looked at.
    key: Vec<u64>,
    once: Once,
}

/// Keys that were met before, or some of them: what comes once is not worth it.
struct Once(Vec<u32>);

impl Once {
    const SIZE: usize = 1 << 16;

    /// Whether a key is there; it is from now on.
    fn is_there(&mut self, id: usize, key: &[u64]) -> bool {
        let mut hasher = FxHasher::default();
        (id, key).hash(&mut hasher);
        let hash = hasher.finish();
        let seen = &mut self.0[(hash >> 32) as usize % Once::SIZE];
        std::mem::replace(seen, hash as u32) == hash as u32
    }
}

/// A unit, or its first instructions.
struct Crossing {
    /// Whether it is so simple that there are shortcuts at all.
    is_plain: bool,
    /// Some of its instructions are not shown: then what is shown for them counts, too.
    hides: bool,
    /// The cells that it defines, by the word that they are in.
    defines: Vec<(usize, u64)>,
    writes: Vec<Write>,
    /// What stands for its accesses when it is sketched: somewhere else what is at one address
    /// now may be at two.
    stand_ins: Vec<Range<u64>>,
    /// A write, and a later access that may but need not be to the same memory.
    apart: Vec<(u16, u16)>,
    /// The last one that was taken is first.
    ways: Vec<Way>,
}

/// Bytes that a unit writes.
struct Write {
    access: usize,
    offset: u64,
    size: u32,
}

/// What going back over a unit does, met so.
struct Way {
    key: Box<[u64]>,
    times: u64,
    /// The instructions that belong to the slice, and the numbers of those who want what they
    /// are made of.
    members: u64,
    wanters: Vec<u32>,
    cells: Vec<(usize, u64, Wanter)>,
    memory: Vec<(usize, u64, Wanter)>,
    decided: Vec<(usize, Wanter)>,
    restored: Vec<(usize, [Option<For>; 8])>,
    /// Registers that were put aside, by instruction: the cells that are wanted in front of the
    /// unit, with their numbers.
    asides: Vec<(usize, Vec<(Cell, usize)>)>,
}

/// Who wants something.
#[derive(Clone, Copy)]
enum For {
    Somebody(Wanter),
    /// Whoever wanted it behind the unit.
    SameAsBefore,
}

impl Crossing {
    fn of(record: &Record, noted: &Noted) -> Crossing {
        let (unit, count) = (record.unit, record.count);
        let instructions = &unit.instructions[..count];
        let (mut defines, mut writes): (Vec<(usize, u64)>, Vec<Write>) = (Vec::new(), Vec::new());
        let mut is_plain = count <= MOST;
        for (index, insn) in instructions.iter().enumerate() {
            let first = unit.first_access[index];
            is_plain &= record.operands(index).is_some() && !noted.is_pruned(insn.address);
            for part in &insn.effects.parts {
                match &part.to {
                    Place::Cells(cells) => {
                        for (word, mask) in cell_words(cells.clone()) {
                            match defines.iter_mut().find(|(at, _)| *at == word) {
                                Some((_, all)) => *all |= mask,
                                None => defines.push((word, mask)),
                            }
                        }
                    }
                    Place::Memory { operand, bytes } => writes.push(Write {
                        access: first + operand,
                        offset: bytes.start.into(),
                        size: bytes.end - bytes.start,
                    }),
                    Place::String { .. } => is_plain = false,
                }
            }
        }
        let accesses = &unit.plan.accesses[..unit.first_access[count]];
        let stand_ins = unit.plan.stand_ins(accesses.len()).unwrap_or_default();
        is_plain &= stand_ins.len() == accesses.len();
        is_plain &= stand_ins.iter().all(|bytes| bytes.end - bytes.start <= MOST as u64);
        let mut apart = Vec::new();
        for write in &writes {
            let wrote = &accesses[write.access];
            let later = accesses.iter().enumerate().filter(|(_, access)| {
                access.instruction > wrote.instruction && !access.moves_with(wrote)
            });
            apart.extend(later.map(|(number, _)| (write.access as u16, number as u16)));
        }
        apart.dedup();
        let hides = instructions.iter().any(|insn| !insn.shown);
        let ways = Vec::new();
        Crossing { is_plain, hides, defines, writes, stand_ins, apart, ways }
    }

    /// Whether no access is to the same memory as an earlier write unless it always is.
    #[inline]
    fn is_apart(&self, record: &Record) -> bool {
        self.apart.iter().all(|(write, access)| {
            let (write, access) =
                (&record.accesses[usize::from(*write)], &record.accesses[usize::from(*access)]);
            let wraps = write.end < write.start || access.end < access.start;
            !wraps && (write.end <= access.start || access.end <= write.start)
        })
    }

    /// Begins a key with what is wanted of it; whether anything is.
    #[inline]
    fn look(&self, record: &Record, wanted: &Wanted, noted: &Noted, key: &mut Vec<u64>) -> bool {
        key.clear();
        let mut any = 0;
        for (word, mask) in &self.defines {
            let cells = wanted.registers.cells[*word] & mask;
            any |= cells;
            key.push(cells);
        }
        for write in &self.writes {
            let bytes = wanted.memory.mask(write.at(record), write.size);
            any |= bytes;
            key.push(bytes);
        }
        let (decide, aside) = noted.waiting.masks(record.position, record.count as u32);
        key.extend([decide, aside]);
        any | decide | aside != 0
    }

    /// Ends a key with what else counts.
    #[inline]
    fn describe(&self, record: &Record, noted: &Noted, control: bool, key: &mut Vec<u64>) {
        /// Instructions of the unit itself are told by their numbers, others are alike.
        fn index(position: Position, record: &Record) -> u64 {
            position.checked_sub(record.position).unwrap_or(OTHER)
        }
        const OTHER: u64 = 0xff;
        each_bit(key[key.len() - 1], |index| {
            let aside = noted.waiting.aside(record.position + Position::from(index));
            key.push(aside.map_or(0, |aside| aside.cells.into()));
        });
        let decided = if control { record.decided } else { &[] };
        key.push((record.restored.len() << 32 | decided.len()) as u64);
        for restored in record.restored {
            key.push(index(restored.by, record) << 32 | index(restored.saved, record));
        }
        for decided in decided {
            let by = decided.by.map_or(OTHER + 1, |by| index(by, record));
            key.push(u64::from(decided.from) << 32 | by);
        }
        if self.hides {
            key.extend(record.sites.iter().map(|site| u64::from(site.from) << 48 ^ site.call));
        }
        if let Some(only) = noted.only {
            key.push(only.mask(record.position, record.count as u32));
        }
    }
}

impl Write {
    #[inline]
    fn at(&self, record: &Record) -> u64 {
        record.accesses[self.access].start.wrapping_add(self.offset)
    }
}

impl Way {
    /// None if there is more to it than can be told.
    fn of(
        found: Found,
        key: Box<[u64]>,
        aside: u64,
        record: &Record,
        noted: &Noted,
    ) -> Option<Way> {
        let told = match noted.only {
            Some(only) => found.members & only.mask(record.position, record.count as u32),
            None => found.members,
        };
        let mut numbers = [Some(0); MOST];
        if let Some(reasons) = &noted.reasons {
            each_bit(told, |index| {
                let insn = &record.unit.instructions[index as usize];
                let site = if insn.shown { None } else { record.site(index as usize) };
                numbers[index as usize] = reasons.find(insn, site).map(|number| number + 1);
            });
        }
        let numbers: [u32; MOST] = {
            let mut all = [0; MOST];
            for (number, known) in all.iter_mut().zip(numbers) {
                *number = known?;
            }
            all
        };
        let wanter = |by: By| match by {
            By::Instruction(index, role) => Some(Wanter::new(numbers[index], role)),
            By::Behind | By::Aside(..) => None,
        };
        let mut asides = Vec::new();
        each_bit(aside, |index| asides.push((index as usize, Vec::new())));
        let mut cells = Vec::new();
        for (word, mask, by) in found.cells {
            if let By::Aside(index, number) = by {
                let own: &mut (usize, Vec<_>) = asides.iter_mut().find(|(at, _)| *at == index)?;
                each_bit(mask, |bit| own.1.push(((64 * word) as Cell + bit as Cell, number)));
            } else {
                cells.push((word, mask, wanter(by)?));
            }
        }
        let mut restored = Vec::new();
        for (number, wanters) in found.restored {
            let mut own = [None; 8];
            for (own, by) in own.iter_mut().zip(wanters) {
                *own = match by {
                    None => None,
                    Some(By::Behind) => Some(For::SameAsBefore),
                    Some(by) => Some(For::Somebody(wanter(by)?)),
                };
            }
            restored.push((number, own));
        }
        let memory = found.memory.into_iter().map(|(at, mask, by)| Some((at, mask, wanter(by)?)));
        let decided = found.decided.into_iter().map(|(number, by)| Some((number, wanter(by)?)));
        let (memory, decided) = (memory.collect::<Option<_>>()?, decided.collect::<Option<_>>()?);
        let mut wanters = Vec::new();
        each_bit(told, |index| wanters.push(numbers[index as usize]));
        let (times, members) = (0, told);
        Some(Way { key, times, members, wanters, cells, memory, decided, restored, asides })
    }

    /// Goes it.
    #[inline]
    fn go(
        &mut self,
        record: &Record,
        crossing: (&[(usize, u64)], &[Write]),
        wanted: &mut Wanted,
        noted: &mut Noted,
    ) {
        self.times += 1;
        let (defines, writes) = crossing;
        for (number, wanters) in &self.restored {
            let restored = &record.restored[*number];
            let aside = aside_of(restored.kept.cells().start, wanters, wanted);
            noted.waiting.put_aside(restored.saved, &aside);
        }
        for (word, mask) in defines {
            wanted.registers.cells[*word] &= !mask;
        }
        for (write, mask) in writes.iter().zip(&self.key[defines.len()..]) {
            if *mask != 0 {
                wanted.memory.remove(write.at(record), *mask);
            }
        }
        for (word, mask, wanter) in &self.cells {
            wanted.registers.want(*word, *mask, *wanter);
        }
        for (access, mask, wanter) in &self.memory {
            wanted.memory.add_some(record.accesses[*access].start, *mask, *wanter);
        }
        for (index, cells) in &self.asides {
            let aside = noted.waiting.take_aside(record.position + *index as Position);
            for (cell, number) in cells {
                let wanter = aside.as_ref().map_or(Wanter::default(), |own| own.wanters[*number]);
                wanted.registers.want(usize::from(cell / 64), 1 << (cell % 64), wanter);
            }
        }
        for (number, wanter) in &self.decided {
            if let Some(by) = record.decided[*number].by {
                noted.waiting.decide(by, *wanter);
            }
        }
        if noted.lists {
            let mut left = self.members;
            while left != 0 {
                let index = (63 - left.leading_zeros()) as usize;
                let address = record.unit.instructions[index].address;
                noted.slice.instructions.push((record.position + index as Position, address));
                left &= !(1 << index);
            }
        }
    }
}

/// What is wanted of a register that was brought back.
fn aside_of(first: Cell, wanters: &[Option<For>; 8], wanted: &Wanted) -> Aside {
    let mut aside = Aside::default();
    for (cell, wanter) in wanters.iter().enumerate() {
        if let Some(wanter) = wanter {
            aside.cells |= 1 << cell;
            aside.wanters[cell] = match wanter {
                For::Somebody(wanter) => *wanter,
                For::SameAsBefore => wanted.who_wanted_cell(first + cell as Cell),
            };
        }
    }
    aside
}

impl Shortcuts {
    pub fn new(ids: usize, dependences: Dependences, control: bool) -> Shortcuts {
        let mut crossings = Vec::new();
        crossings.resize_with(ids, || None);
        let (sketcher, once) = (Sketcher::new(dependences), Once(vec![0; Once::SIZE]));
        Shortcuts { crossings, sketcher, control, key: Vec::new(), once }
    }

    /// Goes back over a unit if the way is known.
    pub fn over(&mut self, record: &Record, wanted: &mut Wanted, noted: &mut Noted) -> Met {
        let crossing = &mut self.crossings[record.id];
        let crossing = crossing.get_or_insert_with(|| Box::new(Crossing::of(record, noted)));
        if !crossing.is_plain {
            return Met::Unknown;
        }
        let key = &mut self.key;
        if !crossing.look(record, wanted, noted, key) {
            return Met::Passed;
        }
        crossing.describe(record, noted, self.control, key);
        if !crossing.is_apart(record) {
            return Met::Unknown;
        }
        let Some(found) = crossing.ways.iter().position(|way| *way.key == **key) else {
            let is_worth = self.once.is_there(record.id, key) && crossing.ways.len() < MOST_WAYS;
            return if is_worth { Met::New } else { Met::Unknown };
        };
        if found > 0 {
            crossing.ways.swap(found, found / 2);
        }
        let Crossing { ways, defines, writes, .. } = &mut **crossing;
        ways[found / 2].go(record, (defines, writes), wanted, noted);
        Met::Passed
    }

    /// The unit was gone over: next time that will be known.
    pub fn learn(&mut self, record: &Record, noted: &Noted) {
        let Some(crossing) = &mut self.crossings[record.id] else { return };
        let record = &Record { accesses: &crossing.stand_ins, ..*record };
        let (mut key, mut cells, mut memory) = (self.key.iter(), Vec::new(), Vec::new());
        let mut next = || key.next().copied().unwrap_or(0);
        for (word, _) in &crossing.defines {
            cells.push((*word, next()));
        }
        for write in &crossing.writes {
            memory.push((write.at(record), next()));
        }
        let (decide, aside) = (next(), next());
        let mut asides = Vec::new();
        each_bit(aside, |index| asides.push((index as usize, next() as u8)));
        let behind = Behind { cells: &cells, memory: &memory, decide, asides: &asides };
        let found = self.sketcher.sketch(record, &behind, self.control);
        let key = self.key.as_slice().into();
        crossing.ways.extend(Way::of(found, key, aside, record, noted));
    }

    /// Counts what was gone by shortcuts.
    pub fn count(&self, noted: &mut Noted) {
        for way in self.crossings.iter().flatten().flat_map(|crossing| &crossing.ways) {
            noted.slice.count += way.times * u64::from(way.members.count_ones());
            if let Some(reasons) = &mut noted.reasons {
                way.wanters.iter().for_each(|number| reasons.again(*number - 1, way.times));
            }
        }
    }
}
