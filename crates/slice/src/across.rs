//! What is touched, and how going over an instruction changes it.

use crate::backward::{Area, Dependences, Executed};
use crate::control::Position;
use crate::course::Restored;
use crate::events::Record;
use crate::forward::{Becomes, Forward};
use crate::memory::{Memory, bits, each_bit};
use crate::over::Instance;
use crate::reasons::Via;
use crate::saves::Kept;
use crate::units::{Known, Turn};
use crate::wanted::{Wanted, Wanter};
use std::ops::Range;
use why_effects::Cell;

pub struct Across {
    forward: Forward,
    /// What decides counts.
    control: bool,
    pub touched: Wanted,
    /// What was touched of registers that were put aside, where they were.
    pub stored: Memory,
    operands: Vec<Range<u64>>,
}

/// Who is told what follows from an instruction, and asked what is known of it.
pub trait Notes {
    /// Whether what decided over it belongs to the slice.
    fn is_decided(&self, instance: &Instance) -> bool;

    /// Whether it is not looked into.
    fn is_pruned(&self, _insn: &Known) -> bool {
        false
    }

    /// It is passed over, but not what it was called for.
    fn hands_on(&mut self, _instance: &Instance) {}

    /// It belongs to the slice: who touches what it makes.
    fn belongs(&mut self, instance: &Instance, cause: Cause) -> Wanter;

    /// What becomes of what it makes, where it was not executed because of the source.
    fn becomes(&mut self, _instance: &Instance, _made: &[Becomes], _decides: bool) {}

    /// What it decides over belongs to the slice, too.
    fn decides(&mut self, instance: &Instance, wanter: Wanter);

    /// It brought back a register. What only put it aside does not belong to the slice.
    fn brought_back(&mut self, restored: &Restored);
}

/// Why an instruction belongs to a slice.
pub struct Cause<'a> {
    executed: Executed<'a>,
    touched: &'a Wanted,
    made: Option<Area>,
    decides: bool,
}

impl Cause<'_> {
    /// Who has touched what it uses, unless it is only executed because of somebody, and what came
    /// of that.
    pub fn tell(self) -> (Option<Wanter>, Via) {
        let toucher = self.executed.touched_by(self.touched);
        let via = match (self.made, self.decides || toucher.is_some()) {
            (_, false) => Via::Decided,
            (Some(area), true) => Via::Made(area),
            (None, true) => Via::Tested,
        };
        (toucher, via)
    }
}

impl Across {
    /// Nothing is touched. It may be of interest by whom things are.
    pub fn new(dependences: Dependences, control: bool, asks: bool) -> Across {
        Across {
            forward: Forward::new(dependences),
            control,
            touched: Wanted::new(asks),
            stored: Memory::new(asks),
            operands: Vec::new(),
        }
    }

    /// Goes over an instruction of a unit. Where its operands were may not be known: then it is
    /// passed over.
    pub fn instruction(&mut self, record: &Record, index: usize, notes: &mut impl Notes) {
        let Across { forward, control, touched, stored, operands } = self;
        if !record.operands(index, operands) {
            return;
        }
        let insn = &record.unit.instructions[index];
        let position = record.position + index as Position;
        let instance = &Instance { record, index, position, insn };
        let executed = Executed { effects: &insn.effects, operands };
        let is_decided = notes.is_decided(instance);
        let is_pruned = notes.is_pruned(insn);
        let decides = !is_pruned && forward.decides(executed, touched);
        let made = match is_pruned {
            true => forward.of_nothing(executed),
            false => forward.of(executed, is_decided, touched),
        };
        if let Some(restored) = record.restored(insn, index) {
            // What was put aside comes back as it was, whoever had it brought back.
            forward.spread(touched);
            bring_back(restored.kept(), slot(record, index), touched, stored);
            notes.brought_back(restored);
            return;
        }
        if let Some((kept, operand)) = insn.keeping.stores {
            put_aside(kept, operands[operand].start, touched, stored);
        }
        if is_pruned {
            if is_decided && *control && may_decide(insn) {
                notes.hands_on(instance);
            }
        } else if made.is_some() || decides || is_decided {
            let wanter = notes.belongs(instance, Cause { executed, touched, made, decides });
            if !is_decided {
                notes.becomes(instance, forward.becomes(), decides);
            }
            touched.turn_to_wanter(wanter);
            let asks = insn.is_system_call() && (decides || is_decided);
            if asks || *control && may_decide(insn) {
                notes.decides(instance, wanter);
            }
        }
        forward.spread(touched);
    }

    /// How much memory is taken.
    pub fn size(&self) -> usize {
        self.touched.memory.size() + self.stored.size()
    }
}

/// How many bytes a register has.
pub const REGISTER: u32 = 8;

/// Notes what is touched of a register that is put aside.
fn put_aside(kept: Kept, at: u64, touched: &Wanted, stored: &mut Memory) {
    let first = kept.cells().start;
    stored.remove(at, bits(REGISTER));
    each_bit(touched.cells_mask(kept.cells()), |index| {
        let toucher = touched.who_wanted_cell(first + index as Cell);
        stored.add_some(at.wrapping_add(index.into()), 1, toucher);
    });
}

/// That is touched again.
fn bring_back(kept: Kept, at: u64, touched: &mut Wanted, stored: &Memory) {
    let first = kept.cells().start;
    touched.drop_cells(kept.cells());
    each_bit(stored.mask(at, REGISTER), |index| {
        touched.turn_to_wanter(stored.who(at.wrapping_add(index.into())));
        touched.want_some_cells(first + index as Cell, 1);
    });
}

/// Where an instruction brings a register back from.
fn slot(record: &Record, index: usize) -> u64 {
    slot_access(record, index).map_or(0, |access| record.starts[access])
}

/// Which access of the unit that is.
pub fn slot_access(record: &Record, index: usize) -> Option<usize> {
    let (_, operand) = record.unit.instructions[index].keeping.loads?;
    Some(record.unit.first_access[index] + operand)
}

/// Whether all that an instruction makes depends on the source.
pub fn is_whole(instance: &Instance, made: &[Becomes], decides: bool) -> bool {
    let leads = decides || instance.insn.effects.decides.is_empty();
    leads && made.iter().all(Becomes::is_whole)
}

/// Whether others may be executed because of an instruction: a branch, a call, or what ends calls
/// by moving the stack pointer.
fn may_decide(insn: &Known) -> bool {
    insn.turn != Turn::None || insn.moves_stack
}
