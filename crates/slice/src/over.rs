//! What is wanted, and how going back over an instruction changes it.

use crate::backward::{Backward, Executed, Made};
use crate::control::Position;
use crate::course::Restored;
use crate::events::Record;
use crate::units::Known;
use crate::waiting::Aside;
use crate::wanted::{Wanted, Wanter};
use std::ops::Range;

pub struct Over {
    pub backward: Backward,
    pub wanted: Wanted,
}

/// An instruction that was executed.
pub struct Instance<'a> {
    pub record: &'a Record<'a>,
    pub index: usize,
    pub position: Position,
    pub insn: &'a Known,
    pub operands: &'a [Range<u64>],
}

/// Who is told what follows from an instruction, and asked what is known of it.
pub trait Notes {
    /// Whether it belongs to the slice whatever it makes.
    fn decides(&mut self, instance: &Instance) -> bool;

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
    /// Goes back over an instruction.
    pub fn instruction(&mut self, instance: &Instance, notes: &mut impl Notes) {
        let Instance { record, index, insn, operands, .. } = *instance;
        let wanted = &mut self.wanted;
        if let Some(restored) = record.restored(insn, index) {
            let aside = Aside::take(restored.kept, wanted);
            if aside.cells != 0 {
                notes.put_aside(restored, &aside);
            }
        }
        let executed = Executed { effects: &insn.effects, operands };
        let decides = notes.decides(instance);
        let made = self.backward.take(executed, wanted);
        if (made.is_some() || decides)
            && let Some(wanter) = notes.belongs(instance, made.as_ref(), wanted)
        {
            wanted.turn_to_wanter(wanter);
            notes.is_decided(instance, wanter);
            if made.is_some() {
                self.backward.want_sources(executed, wanted);
            }
            if decides {
                self.backward.over_decision(executed, wanted);
            }
        }
        if let Some((kept, _)) = insn.keeping.stores
            && let Some(aside) = notes.brought_back(instance)
        {
            aside.want(kept, wanted);
        }
    }
}
