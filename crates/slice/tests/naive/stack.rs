//! What goes to the stack and comes from there.

use super::machine::Machine;
use super::sources::{all, extended, nothing};
use iced_x86::{Mnemonic as M, OpKind, Register};

/// Whether the instruction was one of these.
pub fn execute(m: &mut Machine<'_>) -> bool {
    let insn = m.insn();
    let (before, after) = (m.step.before.stack(), m.step.after.stack());
    match insn.mnemonic() {
        M::Push | M::Pushfq => {
            let size = before.wrapping_sub(after);
            let value = match insn.mnemonic() {
                M::Pushfq => vec![m.flags("cpazsod"); 8],
                _ => extended(m.read(0), 8, &nothing()),
            };
            m.set_memory(after, value[..size as usize].to_vec(), &[]);
        }
        M::Pop => {
            let value = m.memory(before, m.size(0) as u64, &[]);
            if insn.op0_kind() == OpKind::Memory {
                // An address that the stack pointer makes has moved already.
                let moved = if insn.memory_base() == Register::RSP { m.size(0) as u64 } else { 0 };
                let (at, registers) = (m.named_address().wrapping_add(moved), m.named_registers());
                m.set_memory(at, value, &registers);
            } else {
                m.write(0, value);
            }
        }
        M::Popfq => {
            let from = all(&m.memory(before, 8, &[]));
            m.set_flags("cpazsod", &from);
        }
        M::Call => {
            m.set_memory(before.wrapping_sub(8), vec![nothing(); 8], &[]);
        }
        M::Leave => {
            let frame = m.step.before.value(Register::RBP);
            let value = m.memory(frame, 8, &[Register::RBP]);
            m.set_register(Register::RBP, value);
        }
        M::Ret => {}
        _ => return false,
    }
    true
}
