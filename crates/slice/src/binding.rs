//! Functions that are bound when they are first called. The linker does so between the call and the
//! function, and leaves all registers as they were: whoever made them before that made them.

use crate::units::Known;
use crate::wanted::{Wanted, Wanter};
use iced_x86::FlowControl;
use rustc_hash::FxHashMap;
use std::ops::Range;
use why_effects::Cell;

/// What binds functions, and what is wanted of registers, or touched, on the other side of that.
pub struct Binding<'a> {
    code: &'a [Range<u64>],
    /// By thread: to find out where one is may take another one, which is over first.
    aside: FxHashMap<u64, Vec<Vec<(Cell, Wanter)>>>,
}

/// An end of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Its first instruction is next.
    First,
    /// Its last instruction jumped to the function.
    Last,
}

impl<'a> Binding<'a> {
    pub fn new(code: &'a [Range<u64>]) -> Binding<'a> {
        Binding { code, aside: FxHashMap::default() }
    }

    /// Whether binding begins in front of an instruction, or is over behind it.
    #[inline]
    pub fn end(&self, insn: &Known) -> Option<End> {
        let own = self.code.iter().find(|code| code.contains(&insn.address))?;
        let leaves = insn.insn.flow_control() == FlowControl::IndirectBranch;
        match insn.address == own.start {
            true => Some(End::First),
            false => leaves.then_some(End::Last),
        }
    }

    /// One comes to the linker: what it finds in registers is of no interest.
    pub fn come(&mut self, thread: u64, wanted: &mut Wanted) {
        self.aside.entry(thread).or_default().push(wanted.take_registers());
    }

    /// One leaves it, and registers are what they were. Whoever began within it never came.
    pub fn leave(&mut self, thread: u64, wanted: &mut Wanted) {
        wanted.take_registers();
        let aside = self.aside.get_mut(&thread).and_then(Vec::pop);
        for (cell, wanter) in aside.into_iter().flatten() {
            wanted.turn_to_wanter(wanter);
            wanted.want_cells(cell..cell + 1);
        }
    }
}
