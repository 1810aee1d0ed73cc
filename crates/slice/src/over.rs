//! What is wanted, and how going back over an instruction changes it.

use crate::backward::{Backward, Dependences, Executed, Made};
use crate::control::Position;
use crate::course::Restored;
use crate::events::Record;
use crate::partly::Share;
use crate::units::Known;
use crate::waiting::Aside;
use crate::wanted::{Wanted, Wanter};
use std::ops::Range;

pub struct Over {
    backward: Backward,
    pub wanted: Wanted,
    operands: Vec<Range<u64>>,
}

/// An instruction that was executed.
pub struct Instance<'a> {
    pub record: &'a Record<'a>,
    pub index: usize,
    pub position: Position,
    pub insn: &'a Known,
}

/// Who is told what follows from an instruction, and asked what is known of it.
pub trait Notes {
    /// Whether it belongs to the slice whatever it makes.
    fn decides(&mut self, instance: &Instance) -> bool;

    /// What of it depends on a source, if only that counts and it is not all.
    fn depending(&self, _position: Position) -> Option<Share<'_>> {
        None
    }

    /// It belongs to the slice: who wants what it was made of. None if it is not looked into.
    fn belongs(
        &mut self,
        instance: &Instance,
        made: Option<&Made>,
        wanted: &Wanted,
    ) -> Option<Wanter>;

    /// What decided over it belongs to the slice, too.
    fn is_decided(&mut self, instance: &Instance, wanter: Wanter);

    /// What it brought back is wanted where it was put aside.
    fn put_aside(&mut self, restored: &Restored, aside: &Aside);

    /// What was brought back later of the register that it put aside.
    fn brought_back(&mut self, instance: &Instance) -> Option<Aside>;
}

impl Over {
    pub fn new(dependences: Dependences, wanted: Wanted) -> Over {
        Over { backward: Backward::new(dependences), wanted, operands: Vec::new() }
    }

    /// Goes back over an instruction of a unit. Where its operands were may not be known: then it
    /// is passed over.
    pub fn instruction(&mut self, record: &Record, index: usize, notes: &mut impl Notes) {
        let Over { backward, wanted, operands } = self;
        if !record.operands(index, operands) {
            return;
        }
        let insn = &record.unit.instructions[index];
        let position = record.position + index as Position;
        let instance = &Instance { record, index, position, insn };
        if let Some(restored) = record.restored(insn, index) {
            let aside = Aside::take(restored.kept(), wanted);
            if aside.cells != 0 {
                notes.put_aside(restored, &aside);
            }
        }
        let executed = Executed { effects: &insn.effects, operands };
        let mut decides = notes.decides(instance);
        let mut made = backward.take(executed, wanted);
        if let Some(share) = notes.depending(position) {
            decides &= share.decides();
            made = backward.keep(executed, &share);
        }
        if (made.is_some() || decides)
            && let Some(wanter) = notes.belongs(instance, made.as_ref(), wanted)
        {
            wanted.turn_to_wanter(wanter);
            notes.is_decided(instance, wanter);
            if made.is_some() {
                backward.want_sources(executed, wanted);
            }
            if decides {
                backward.over_decision(executed, wanted);
            }
        }
        if let Some((kept, _)) = insn.keeping.stores
            && let Some(aside) = notes.brought_back(instance)
        {
            aside.want(kept, wanted);
        }
    }
}
