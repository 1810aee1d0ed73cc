//! What goes to the stack and comes from there. Where the stack is, nobody depends on.

use crate::general::read_operands;
use crate::parts::{Part, Place, accessed, cleared, explicit, place};
use iced_x86::{Instruction, InstructionInfo, Mnemonic as M, OpAccess, OpKind, Register};

pub fn parts(insn: &Instruction, info: &InstructionInfo) -> Option<Vec<Part>> {
    let moved = Part::constant(Place::of(Register::RSP)?);
    match insn.mnemonic() {
        M::Push => {
            let to = on_stack(insn, info, OpAccess::Write)?;
            let pushed = match place(insn, info, 0) {
                Some(from) if from.size() == to.size() => Part::copy(to, from),
                // A number, or a segment.
                _ => Part::constant(to),
            };
            Some(vec![pushed, moved])
        }
        M::Pop => {
            let (to, from) = (place(insn, info, 0)?, on_stack(insn, info, OpAccess::Read)?);
            let register = (insn.op0_kind() == OpKind::Register).then(|| insn.op0_register());
            let mut parts = vec![Part::copy(to, from)];
            parts.extend(register.and_then(|register| cleared(insn, register)));
            if register != Some(Register::RSP) {
                parts.push(moved);
            }
            Some(parts)
        }
        // The return address is a constant, and where it leads is control.
        M::Call => Some(vec![Part::constant(on_stack(insn, info, OpAccess::Write)?), moved]),
        M::Ret => Some(vec![moved]),
        M::Leave => {
            let from = Place::Memory { operand: 0, bytes: 0..size_of_only(info)? };
            let to = Place::of(Register::RBP)?.bytes(0..from.size()?);
            Some(vec![Part::copy(to, from), moved])
        }
        M::Add | M::Sub | M::And | M::Lea if writes_stack_pointer(insn) => {
            let mut parts = vec![moved];
            parts.extend(crate::general::flags(insn, &read_operands(insn, info)));
            Some(parts)
        }
        _ => None,
    }
}

/// The size of the only memory that is accessed.
fn size_of_only(info: &InstructionInfo) -> Option<u32> {
    accessed(info).next().map(|memory| memory.memory_size().size() as u32)
}

fn writes_stack_pointer(insn: &Instruction) -> bool {
    insn.op0_kind() == OpKind::Register && insn.op0_register() == Register::RSP
}

/// The memory on the stack that the instruction does not name.
fn on_stack(insn: &Instruction, info: &InstructionInfo, access: OpAccess) -> Option<Place> {
    let named = explicit(insn, info);
    let mut all = accessed(info).enumerate();
    let (operand, memory) = all.find(|(index, memory)| {
        Some(*index) != named && memory.access() == access && memory.base() == Register::RSP
    })?;
    Some(Place::Memory { operand, bytes: 0..memory.memory_size().size() as u32 })
}
