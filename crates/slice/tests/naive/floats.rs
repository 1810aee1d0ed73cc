//! The x87, of which all belongs together, and the register that says how vectors compute.

use super::machine::Machine;
use super::shadow::{At, Sources};
use iced_x86::{Mnemonic as M, OpKind, Register};

/// Whether the instruction was one of these.
pub fn execute(m: &mut Machine<'_>) -> bool {
    let insn = m.insn();
    let mnemonic = insn.mnemonic();
    let x87 = m.get(At::X87);
    match mnemonic {
        M::Stmxcsr | M::Vstmxcsr => {
            let from = m.get(At::Mxcsr);
            m.write_all(0, &from);
        }
        M::Ldmxcsr | M::Vldmxcsr => {
            let from = Sources::all(&m.read(0));
            m.set(At::Mxcsr, from);
        }
        M::Fnstsw | M::Fnstcw => m.write_all(0, &x87),
        M::Fnstenv => {
            m.write_all(0, &x87);
            // It masks exceptions.
            m.set(At::X87, x87);
        }
        M::Fcomi | M::Fcomip | M::Fucomi | M::Fucomip => {
            m.set_flags("cpz", &x87);
            m.set_flags("aso", &Sources::default());
            m.set(At::X87, x87);
        }
        M::Fld | M::Fild | M::Fldcw | M::Fldenv => {
            let from = Sources::all([&x87, &Sources::all(&m.read(0))]);
            m.set(At::X87, from);
        }
        M::Fst | M::Fstp | M::Fist | M::Fistp | M::Fisttp if insn.op0_kind() == OpKind::Memory => {
            m.write_all(0, &x87);
            m.set(At::X87, x87);
        }
        M::Emms | M::Wait => {}
        _ if format!("{mnemonic:?}").starts_with("Fcmov") => {
            let flags = match mnemonic {
                M::Fcmovb | M::Fcmovnb => "c",
                M::Fcmove | M::Fcmovne => "z",
                M::Fcmovbe | M::Fcmovnbe => "cz",
                _ => "p",
            };
            let from = Sources::all([&x87, &m.flags(flags)]);
            m.set(At::X87, from);
        }
        _ if is_x87(m) => {
            let mut from = x87;
            if (0..insn.op_count()).any(|operand| insn.op_kind(operand) == OpKind::Memory) {
                from.add(&Sources::all(&m.memory(
                    m.named_address(),
                    insn.memory_size().size() as u64,
                    &m.named_registers(),
                )));
            }
            m.set(At::X87, from);
        }
        _ => return false,
    }
    true
}

fn is_x87(m: &Machine<'_>) -> bool {
    let insn = m.insn();
    format!("{:?}", insn.mnemonic()).starts_with('F')
        && !(0..insn.op_count()).any(|operand| {
            insn.op_kind(operand) == OpKind::Register
                && !insn.op_register(operand).is_st()
                && insn.op_register(operand) != Register::AX
        })
}
