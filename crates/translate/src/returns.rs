//! Whether a return finds the address that its call pushed, for certain.
//!
//! Within a unit nothing else writes to memory than the unit's own instructions: a thread
//! that is interrupted goes on in another unit. So if none of them can have written to
//! the place of the return address, it need not be read.

use crate::gs::touches_memory;
use crate::scan::{Flow, Scanned};
use iced_x86::{
    Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedMemory,
};

/// The bytes of the return address, relative to where it lies.
const PLACE: std::ops::Range<i64> = 0..8;

/// Whether the return address is still what was pushed when these instructions, from
/// the one behind the call to the one before the return, have executed, and is what the
/// return pops.
pub fn is_intact(between: &[Scanned]) -> bool {
    let mut factory = InstructionInfoFactory::new();
    // The stack pointer, relative to the place.
    let mut stack = 0;
    for scanned in between {
        let insn = &scanned.insn;
        let simple = matches!(
            scanned.flow,
            Flow::Next
                | Flow::Conditional(..)
                | Flow::Counted(_)
                | Flow::Jump(_)
                | Flow::Call(_)
                | Flow::Return(_)
        );
        let info = factory.info(insn);
        if !simple || info.used_memory().iter().any(|memory| may_overwrite(memory, stack)) {
            return false;
        }
        if matches!(insn.segment_prefix(), Register::FS | Register::GS) && touches_memory(insn) {
            return false;
        }
        let moves = info
            .used_registers()
            .iter()
            .any(|u| u.register().full_register() == Register::RSP && writes(u.access()));
        if moves {
            let Some(distance) = distance(insn) else {
                return false;
            };
            stack += distance;
        }
    }
    stack == 0
}

fn writes(access: OpAccess) -> bool {
    !matches!(access, OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess)
}

fn may_overwrite(memory: &UsedMemory, stack: i64) -> bool {
    if !writes(memory.access()) {
        return false;
    }
    let size = memory.memory_size().size() as i64;
    if memory.base() != Register::RSP || memory.index() != Register::None || size == 0 {
        return true;
    }
    let from = stack + memory.displacement() as i64;
    from < PLACE.end && PLACE.start < from + size
}

/// How far the instruction moves the stack pointer, if that is a constant.
fn distance(insn: &Instruction) -> Option<i64> {
    use Mnemonic as M;
    let of_stack =
        insn.op0_kind() == OpKind::Register && insn.op0_register().full_register() == Register::RSP;
    match insn.mnemonic() {
        M::Push | M::Call | M::Ret => Some(i64::from(insn.stack_pointer_increment())),
        M::Pop if !of_stack => Some(i64::from(insn.stack_pointer_increment())),
        M::Add | M::Sub if of_stack => {
            let constant = match insn.op1_kind() {
                OpKind::Immediate8to64 => insn.immediate8to64(),
                OpKind::Immediate32to64 => insn.immediate32to64(),
                _ => return None,
            };
            Some(if insn.mnemonic() == M::Add { constant } else { -constant })
        }
        _ => None,
    }
}
