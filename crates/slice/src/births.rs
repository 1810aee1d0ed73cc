//! What a new thread begins with: the registers that its creator has behind the call, but for the
//! stack pointer, which carries no dependence. A forked process begins with these and with its
//! creator's memory, which is in another region.

use crate::backward::Area;
use crate::calls::{Object, Told, What};
use crate::control::Position;
use crate::wanted::{Role, Wanted, Wanter};
use iced_x86::Register;
use rustc_hash::FxHashMap;
use why_effects::{Cell, cells};

/// Bytes that were there when a region began, and what they are wanted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inherited {
    pub area: Area,
    pub role: Role,
}

impl Inherited {
    /// What is still wanted when all has been gone over: of this thread's registers, and of memory.
    pub(crate) fn still_wanted(thread: u64, wanted: &mut Wanted) -> Vec<Inherited> {
        wanted.turn_to(thread);
        let mut found: Vec<Inherited> = Vec::new();
        for (cell, wanter) in inherited(wanted) {
            let role = wanter.role();
            match found.last_mut() {
                Some(Inherited { area: Area::Cells(cells), role: last })
                    if cells.end == cell && *last == role =>
                {
                    cells.end += 1;
                }
                _ => found.push(Inherited { area: Area::Cells(cell..cell + 1), role }),
            }
        }
        let memory = wanted.memory.runs().into_iter();
        found.extend(
            memory.map(|(bytes, wanter)| Inherited {
                area: Area::Memory(bytes),
                role: wanter.role(),
            }),
        );
        found
    }

    /// It is wanted where the region ends in which it was made.
    pub(crate) fn want(&self, wanted: &mut Wanted) {
        wanted.turn_to_wanter(Wanter::default().with(self.role));
        match &self.area {
            Area::Cells(cells) => wanted.want_cells(cells.clone()),
            Area::Memory(bytes) => wanted.want_memory(bytes.clone()),
        }
    }
}

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
