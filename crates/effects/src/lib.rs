//! What an instruction computes from what: byte by byte of registers and memory, flag by flag.
//!
//! Nothing here knows a run. For each instruction, [`Effects`] tells what it defines and which
//! of the values before it each definition depends on. Where a table here is coarser than the
//! CPU, it names more; it never names less, which `tests/perturbed.rs` tries on the CPU itself.
//!
//! Left out on purpose:
//! - the stack pointer, as a source and in addresses: where a frame lies says nothing about
//!   what is in it;
//! - the rounding mode and the exceptions of floating point, except where they are loaded and
//!   stored as such;
//! - `xsave` and the like, which put aside what they later bring back.

pub mod cells;
mod general;
mod lanes;
mod moves;
mod packed;
mod parts;
mod scalars;
mod shuffles;
mod stack;
mod strings;
mod syscalls;
mod zeros;

pub use cells::Cell;
use iced_x86::{Instruction, InstructionInfo, InstructionInfoFactory};
pub use lanes::{Lanes, Order};
pub use parts::{Effects, Operand, Part, Place, Size};
pub use syscalls::{MOST_ARGUMENTS, arguments};

/// What an instruction does.
pub fn effects(insn: &Instruction, factory: &mut InstructionInfoFactory) -> Effects {
    let info = factory.info(insn);
    let parts = parts(insn, info);
    Effects {
        parts: parts.into_iter().map(Part::without_stack_pointer).collect(),
        operands: lanes::operands(insn, info).unwrap_or_else(|| parts::operands(insn, info)),
        decides: general::decides(insn, info),
    }
}

fn parts(insn: &Instruction, info: &InstructionInfo) -> Vec<Part> {
    if let Some(parts) = lanes::parts(insn) {
        return parts;
    }
    if insn.op_mask() != iced_x86::Register::None {
        return general::parts(insn, info);
    }
    zeros::parts(insn, info)
        .or_else(|| stack::parts(insn, info))
        .or_else(|| syscalls::parts(insn))
        .or_else(|| strings::parts(insn, info))
        .or_else(|| moves::parts(insn, info))
        .or_else(|| scalars::parts(insn, info))
        .or_else(|| packed::parts(insn, info))
        .or_else(|| shuffles::parts(insn, info))
        .unwrap_or_else(|| general::parts(insn, info))
}
