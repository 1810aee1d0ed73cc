//! The addresses of lanes that a mask selects, and of those that a vector tells.

use super::{Planned, PlannedSize, Planner};
use crate::nowhere::Use;
use crate::number::Number;
use crate::symbol::Symbol;
use iced_x86::{OpAccess, Register, UsedMemory};
use why_effects::{Lanes, Order};

impl<'a> Planner<'a> {
    /// Each lane is an access; one that is left out is nowhere.
    pub(super) fn lanes(&mut self, index: u8, lanes: &Lanes, memory: &UsedMemory) {
        let is_read = matches!(memory.access(), OpAccess::Read | OpAccess::CondRead);
        let used = if is_read { Use::Read } else { Use::Write };
        let size = u64::from(lanes.size);
        for lane in 0..lanes.count as u8 {
            let address = match lanes.order {
                Order::Indexed => self.indexed(memory, lane.into()),
                Order::Each | Order::Packed => {
                    self.address(memory).plus(Symbol::constant(u64::from(lane) * size))
                }
            };
            let nowhere = used.nowhere(lane);
            let away = address.minus(Symbol::constant(nowhere)).and(self.selects(lanes, lane));
            self.accesses.push(Planned {
                instruction: index,
                operand: lane,
                address: away.plus(Symbol::constant(nowhere)).term,
                size: PlannedSize::Bytes(lanes.size as u16),
            });
        }
    }

    /// All bits if a lane takes part, else none.
    fn selects(&self, lanes: &Lanes, lane: u8) -> Symbol<'a> {
        let sign = if lanes.order == Order::Packed {
            // As many as the mask has are in front.
            let count = self.element_of(lanes.mask, 0, 8).lowest(lanes.count).set_bits();
            Symbol::constant(lane.into()).minus(count)
        } else if lanes.mask.is_k() {
            self.element_of(lanes.mask, 0, 8).shifted_left(Symbol::constant(63 - u64::from(lane)))
        } else {
            self.element_of(lanes.mask, lane.into(), lanes.size as usize)
        };
        sign.shifted_right_signed(Symbol::constant(63))
    }

    /// An element of a vector, as a signed number.
    fn element_of(&self, vector: Register, index: usize, size: usize) -> Symbol<'a> {
        let told = self.vectors.iter().find(|(told, _)| *told == vector);
        let (_, first) = *told.expect("what addresses need is told");
        let (word, byte) = (size * index / 8, size * index % 8);
        let word = self.operations.given(first + word as u16);
        let below = Symbol::constant(8 * byte as u64);
        if size == 8 { word } else { word.shifted_right(below).sign_extended(size) }
    }

    /// Where the lane is that an element of a vector tells.
    fn indexed(&self, memory: &UsedMemory, lane: usize) -> Symbol<'a> {
        let index = self.element_of(memory.index(), lane, memory.vsib_size() as usize);
        self.sum(memory, index)
    }
}
