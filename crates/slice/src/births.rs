//! What a new thread begins with: the registers that its creator has behind the call, but for the
//! stack pointer, which carries no dependence.

use crate::calls::{Object, Told, What};
use crate::control::Position;
use crate::wanted::{Wanted, Wanter};
use iced_x86::Register;
use rustc_hash::FxHashMap;
use why_effects::{Cell, cells};

/// Registers of threads by the call that created them, and by whom they are wanted.
#[derive(Default)]
pub struct Births(FxHashMap<Position, Vec<(Cell, Wanter)>>);

impl Births {
    /// Backwards: what is wanted of a thread that begins is wanted of its creator, behind the call.
    pub fn back_over(&mut self, told: &Told, wanted: &mut Wanted) {
        if let What::Begins(Some(creator)) = told.what {
            wanted.turn_to(told.thread);
            self.0.entry(creator.call).or_default().extend(inherited(wanted));
        }
    }

    /// Backwards again: the unit that ends there may end with such a call, and its thread is the
    /// one whose registers are meant.
    #[inline]
    pub fn back_to(&mut self, end: Position, wanted: &mut Wanted) {
        if !self.0.is_empty() {
            want(self.0.remove(&end.wrapping_sub(1)), wanted);
        }
    }

    /// Forwards: what is touched of a thread that creates another one is so of that, too.
    pub fn over(&mut self, told: &Told, touched: &mut Wanted) {
        match told.what {
            What::Releases(Object::Birth(call)) => {
                touched.turn_to(told.thread);
                let registers = inherited(touched);
                want(Some(registers.clone()), touched);
                self.0.insert(call, registers);
            }
            What::Begins(Some(creator)) => {
                touched.turn_to(told.thread);
                want(self.0.remove(&creator.call), touched);
            }
            _ => {}
        }
    }
}

/// All registers that a new thread has of its creator and that are wanted; they are so no more.
fn inherited(wanted: &mut Wanted) -> Vec<(Cell, Wanter)> {
    let mut registers = wanted.take_registers();
    let stack = cells::of(Register::RSP).expect("a general register");
    registers.retain(|(cell, _)| !stack.contains(cell));
    registers
}

fn want(registers: Option<Vec<(Cell, Wanter)>>, wanted: &mut Wanted) {
    for (cell, wanter) in registers.into_iter().flatten() {
        wanted.turn_to_wanter(wanter);
        wanted.want_cells(cell..cell + 1);
    }
}
