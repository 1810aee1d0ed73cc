//! What of a region is executed when only some of its instructions are, and what the others
//! wrote to memory meanwhile.
//!
//! An instruction of which nobody knows where it wrote is executed besides: what is executed too
//! much does what it did.

use crate::control::Position;
use crate::course::Moment;
use crate::events::{Happened as Told, Record};
use crate::region::{Region, RegionError};
use crate::units::Unit;
use iced_x86::{Code, Instruction, InstructionInfoFactory, UsedMemory};
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use why_effects::Lanes;
use why_trace::nowhere::is_nowhere;

/// Goes through a region from its beginning to its end.
pub struct Excerpt {
    region: Arc<Region>,
    /// Those that are to be executed, in the order of time, and how many of them are behind.
    wanted: Vec<Position>,
    passed: usize,
    /// The next chunk of the region, and what happened in those before it.
    chunk: usize,
    happened: VecDeque<Happened>,
    /// What the instructions of units do, by the first number of the unit's records.
    outside: FxHashMap<usize, Vec<(usize, Outside)>>,
    interrupted: BTreeSet<Position>,
    /// The first of the region's moments that is not before the event that was asked for last.
    moment: usize,
    /// What the instructions wrote that were left out, since this was last asked for.
    written: Ranges,
    /// How many instructions are executed besides.
    pub besides: u64,
}

enum Happened {
    /// The instruction there wrote to memory.
    Wrote { at: Position, bytes: Range<u64> },
    /// It wrote nobody knows where.
    Unknown { at: Position },
    /// It made a system call.
    Call { at: Position },
    /// Somebody else wrote to memory, when so many instructions had been executed: the kernel, or
    /// another process.
    Other { at: Position, bytes: Range<u64>, is_process: bool },
}

/// Instructions that follow each other.
#[derive(Debug, PartialEq, Eq)]
pub struct Passed {
    pub end: Position,
    /// How many system calls are among them, and whether the last one is.
    pub calls: u64,
    pub ends_with_call: bool,
}

impl Excerpt {
    pub fn new(region: Arc<Region>, mut wanted: Vec<Position>) -> Excerpt {
        wanted.sort_unstable();
        wanted.dedup();
        Excerpt {
            region,
            wanted,
            passed: 0,
            chunk: 0,
            happened: VecDeque::new(),
            outside: FxHashMap::default(),
            interrupted: BTreeSet::new(),
            moment: 0,
            written: Ranges::default(),
            besides: 0,
        }
    }

    /// The positions of what was executed behind an event; events are asked for in order.
    pub fn behind(&mut self, event: u64) -> Range<Position> {
        let moments = &self.region.moments;
        let start = |moment: &Moment| moment.position.saturating_sub(moment.ticks);
        let from = |index: usize| moments.get(index).map(start);
        let next = |index: usize, event: u64| {
            index + moments[index..].iter().take_while(|moment| moment.event < event).count()
        };
        self.moment = next(self.moment, event);
        let end = from(next(self.moment, event.saturating_add(1))).unwrap_or(self.region.length);
        from(self.moment).unwrap_or(end).min(end)..end
    }

    /// How many ticks behind its event a position is.
    pub fn ticks(&self, position: Position) -> Option<u64> {
        self.region.moment(position).map(|(_, ticks)| ticks)
    }

    /// A thread goes on at a position. What the kernel wrote just before is told otherwise, unless
    /// the last instruction was a call that was left out and of which nobody else tells. What other
    /// processes wrote nobody else tells.
    pub fn go_on(&mut self, position: Position, counts: bool) -> Result<(), RegionError> {
        while let Some(Happened::Other { at, .. }) = self.next()?
            && *at <= position
        {
            if let Some(Happened::Other { bytes, is_process, .. }) = self.happened.pop_front()
                && (counts || is_process)
            {
                self.written.add(bytes);
            }
        }
        Ok(())
    }

    /// Leaves out all up to the next instruction that is to be executed, but not more than up to
    /// this position.
    pub fn leave_out(&mut self, end: Position) -> Result<Passed, RegionError> {
        let limit = self.wanted.get(self.passed).map_or(end, |next| end.min(*next));
        let (mut calls, mut last_call) = (0, None);
        while let Some(next) = self.next()? {
            match next {
                Happened::Wrote { at, bytes } if *at < limit => {
                    let bytes = bytes.clone();
                    self.written.add(bytes);
                }
                Happened::Other { at, bytes, .. } if *at < end && *at <= limit => {
                    let bytes = bytes.clone();
                    self.written.add(bytes);
                }
                Happened::Call { at } if *at < limit => {
                    last_call = Some(*at);
                    calls += 1;
                }
                Happened::Unknown { at } if *at < limit => {
                    let end = *at;
                    return Ok(Passed { end, calls, ends_with_call: false });
                }
                _ => break,
            }
            self.happened.pop_front();
        }
        let ends_with_call = last_call.is_some_and(|at| at + 1 == limit);
        Ok(Passed { end: limit, calls, ends_with_call })
    }

    /// Goes over the instructions that are executed from this position on, where one is; not
    /// beyond another position.
    pub fn execute(&mut self, from: Position, end: Position) -> Result<Passed, RegionError> {
        let (mut at, mut calls, mut last_call) = (from, 0, None);
        while at < end {
            let is_wanted = self.wanted.get(self.passed) == Some(&at);
            let mut is_unknown = false;
            while let Some(next) = self.next()? {
                match next {
                    Happened::Wrote { at: of, .. } if *of <= at && is_wanted => {}
                    // What an instruction writes is behind it in the list.
                    Happened::Wrote { at: of, .. } if *of <= at && is_unknown => {}
                    Happened::Unknown { at: of } if *of <= at => is_unknown = true,
                    Happened::Call { at: of } if *of <= at && is_wanted => {
                        last_call = Some(*of);
                        calls += 1;
                    }
                    Happened::Other { at: of, .. } if *of <= at => {}
                    _ => break,
                }
                self.happened.pop_front();
            }
            match (is_wanted, is_unknown) {
                (true, _) => self.passed += 1,
                (false, true) => self.besides += 1,
                (false, false) => break,
            }
            at += 1;
        }
        let ends_with_call = last_call.is_some_and(|call| call + 1 == at);
        Ok(Passed { end: at, calls, ends_with_call })
    }

    /// Whether the instruction at a position, up to which all has been gone over, was interrupted
    /// in the middle.
    pub fn is_interrupted(&self, position: Position) -> bool {
        self.interrupted.contains(&position)
    }

    pub fn has_written(&self) -> bool {
        !self.written.all.is_empty()
    }

    /// What was written by what was left out, since this was last asked for.
    pub fn take_written(&mut self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.written).merged()
    }

    /// All memory is another one's now.
    pub fn forget_written(&mut self) {
        self.written = Ranges::default();
    }

    fn next(&mut self) -> Result<Option<&Happened>, RegionError> {
        while self.happened.is_empty() && self.chunk < self.region.chunks.len() {
            let region = Arc::clone(&self.region);
            let (events, book) = region.events(self.chunk)?;
            self.chunk += 1;
            self.interrupted.extend(&events.interrupted);
            events.forwards(&region.units, &book, |told| match told {
                Told::Executed(record) => self.add(record),
                // That it lies elsewhere somebody else tells.
                Told::Wrote(wrote) if wrote.moved.is_some() => {}
                Told::Wrote(wrote) => {
                    let (at, bytes, is_process) =
                        (wrote.at, wrote.bytes.clone(), wrote.by.is_none());
                    self.happened.push_back(Happened::Other { at, bytes, is_process });
                }
                // What was interrupted is executed in any case, as far as it came.
                Told::Interrupted(..) | Told::Signal(_) | Told::Told(_) => {}
            });
        }
        Ok(self.happened.front())
    }

    fn add(&mut self, record: &Record<'_>) {
        let unit = record.unit;
        let known = self.outside.entry(unit.first_id).or_insert_with(|| outside(unit));
        for (index, effect) in known.iter().take_while(|(index, _)| *index < record.count) {
            let at = record.position + *index as Position;
            self.happened.push_back(match effect {
                Outside::Unknown => Happened::Unknown { at },
                Outside::Call => Happened::Call { at },
                Outside::Write { access } if is_nowhere(record.starts[*access]) => continue,
                Outside::Write { access } => {
                    let fixed = unit.plan.accesses[*access].fixed_size().map(u64::from);
                    let size = fixed.unwrap_or_else(|| record.sizes[*access]);
                    let start = record.starts[*access];
                    Happened::Wrote { at, bytes: start..start.wrapping_add(size) }
                }
            });
        }
    }
}

/// What an instruction does outside of its thread's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outside {
    /// It writes to memory: which access of the plan.
    Write {
        access: usize,
    },
    /// It writes where the trace does not tell.
    Unknown,
    Call,
}

/// What the instructions of a unit do, in order.
fn outside(unit: &Unit) -> Vec<(usize, Outside)> {
    let (mut outside, mut factory) = (Vec::new(), InstructionInfoFactory::new());
    for (index, known) in unit.instructions.iter().enumerate() {
        let operands = unit.first_access[index]..unit.first_access[index + 1];
        let mut written: Vec<usize> = known.keeping.writes.clone();
        written.sort_unstable();
        written.dedup();
        let is_told = operands.len() == known.effects.operands.len();
        match written_operands(&known.insn, &mut factory) {
            Some(0) => {}
            Some(all) if is_told && written.len() == all => {
                let writes = written.iter().map(|operand| operands.start + operand);
                outside.extend(writes.map(|access| (index, Outside::Write { access })));
            }
            _ => outside.push((index, Outside::Unknown)),
        }
        if known.insn.code() == Code::Syscall {
            outside.push((index, Outside::Call));
        }
    }
    outside
}

/// How many operands in memory an instruction writes to; none if it depends on the CPU how much
/// of one.
fn written_operands(insn: &Instruction, factory: &mut InstructionInfoFactory) -> Option<usize> {
    use iced_x86::OpAccess as A;
    let lanes = Lanes::of(insn);
    let info = factory.info(insn);
    let is_written = |memory: &&UsedMemory| {
        matches!(memory.access(), A::Write | A::CondWrite | A::ReadWrite | A::ReadCondWrite)
    };
    let written = || info.used_memory().iter().filter(is_written);
    let is_sized = |memory: &UsedMemory| memory.memory_size().size() > 0;
    let each = lanes.map_or(1, |lanes| lanes.count as usize);
    (insn.is_string_instruction() || written().all(is_sized)).then(|| written().count() * each)
}

/// Ranges of bytes, many of which may be the same.
#[derive(Default)]
struct Ranges {
    all: Vec<Range<u64>>,
    /// How many there were when they were last put in order.
    merged: usize,
}

impl Ranges {
    fn add(&mut self, bytes: Range<u64>) {
        if bytes.start >= bytes.end {
            return;
        }
        match self.all.last_mut() {
            Some(last) if last.start <= bytes.start && bytes.start <= last.end => {
                last.end = last.end.max(bytes.end);
            }
            _ => self.all.push(bytes),
        }
        if self.all.len() > 2 * self.merged + 1024 {
            self.merge();
        }
    }

    fn merge(&mut self) {
        self.all.sort_unstable_by_key(|bytes| bytes.start);
        let mut merged: Vec<Range<u64>> = Vec::new();
        for bytes in self.all.drain(..) {
            match merged.last_mut() {
                Some(last) if bytes.start <= last.end => last.end = last.end.max(bytes.end),
                _ => merged.push(bytes),
            }
        }
        self.merged = merged.len();
        self.all = merged;
    }

    fn merged(mut self) -> Vec<Range<u64>> {
        self.merge();
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_each_byte_that_was_added_and_no_other() {
        let mut number = 88_172_645_463_325_252u64;
        let mut next = || {
            number ^= number << 13;
            number ^= number >> 7;
            number ^= number << 17;
            number
        };
        for _ in 0..20 {
            let (mut ranges, mut bytes) = (Ranges::default(), BTreeSet::new());
            for _ in 0..3000 {
                let (start, size) = (next() % 20_000, next() % 9);
                ranges.add(start..start + size);
                bytes.extend(start..start + size);
            }
            let merged = ranges.merged();
            assert!(merged.is_sorted_by(|one, other| one.end < other.start));
            assert_eq!(merged.into_iter().flatten().collect::<BTreeSet<u64>>(), bytes);
        }
    }
}
