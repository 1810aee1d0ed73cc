//! Shifts, rotations and single bits.

use super::machine::Machine;
use super::shadow::Sources;
use super::sources::{all, nothing};
use iced_x86::{Mnemonic as M, OpKind};

/// Whether the instruction was one of these.
pub fn execute(m: &mut Machine<'_>) -> bool {
    let insn = m.insn();
    match insn.mnemonic() {
        M::Shl
        | M::Sal
        | M::Shr
        | M::Sar
        | M::Rol
        | M::Ror
        | M::Rcl
        | M::Rcr
        | M::Shld
        | M::Shrd => {
            shift(m);
        }
        M::Shlx | M::Shrx | M::Sarx | M::Rorx | M::Pdep | M::Pext => {
            m.write_all(0, &Sources::all([&all(&m.read(1)), &all(&m.read(2))]));
        }
        M::Bt | M::Bts | M::Btr | M::Btc => {
            let from = bit(m);
            m.set_flags("c", &from);
            m.touch_flags("paso", &from);
        }
        M::Bsf | M::Bsr => {
            let from = all(&m.read(1));
            m.write_all(0, &Sources::all([&from, &all(&m.read(0))]));
            m.set_flags("z", &from);
            m.touch_flags("cpaso", &from);
        }
        M::Tzcnt | M::Lzcnt => {
            let from = all(&m.read(1));
            m.write_all(0, &from);
            m.set_flags("cz", &from);
            m.touch_flags("paso", &from);
        }
        M::Popcnt => {
            let from = all(&m.read(1));
            m.write_all(0, &from);
            m.set_flags("z", &from);
            m.set_flags("cpaso", &nothing());
        }
        M::Blsr | M::Blsi | M::Blsmsk => {
            let from = all(&m.read(1));
            m.write_all(0, &from);
            m.set_flags("czs", &from);
            m.set_flags("o", &nothing());
            m.touch_flags("pa", &from);
        }
        M::Bzhi | M::Bextr => {
            let from = Sources::all([&all(&m.read(1)), &all(&m.read(2))]);
            m.write_all(0, &from);
            m.set_flags(if insn.mnemonic() == M::Bzhi { "czs" } else { "z" }, &from);
            m.set_flags(if insn.mnemonic() == M::Bzhi { "o" } else { "co" }, &nothing());
            m.touch_flags(if insn.mnemonic() == M::Bzhi { "pa" } else { "pas" }, &from);
        }
        _ => return false,
    }
    true
}

/// Shifts and rotations, by a number or by CL.
fn shift(m: &mut Machine<'_>) {
    let insn = m.insn();
    let last = insn.op_count() - 1;
    let by_register = insn.op_kind(last) == OpKind::Register;
    let mut from = all(&m.read(0));
    (1..=last).for_each(|operand| from.add(&all(&m.read(operand))));
    let (rotates, through) = match insn.mnemonic() {
        M::Rol | M::Ror => (true, false),
        M::Rcl | M::Rcr => (true, true),
        _ => (false, false),
    };
    if through {
        from.add(&m.flags("c"));
    }
    let flags = if rotates { "c" } else { "cpzs" };
    m.write_all(0, &from);
    if by_register || through {
        // By nothing is possible, and leaves them as they are.
        m.touch_flags(flags, &from);
        m.touch_flags("o", &from);
        m.touch_flags(if rotates { "" } else { "a" }, &from);
        return;
    }
    let count = insn.immediate(last) & if m.size(0) == 8 { 63 } else { 31 };
    if count > 0 {
        m.set_flags(flags, &from);
        if count == 1 {
            m.set_flags("o", &from);
        } else {
            m.touch_flags("o", &from);
        }
        m.touch_flags(if rotates { "" } else { "a" }, &from);
    }
}

/// A bit of an operand, which a register may select anywhere in memory; what it is made from.
fn bit(m: &mut Machine<'_>) -> Sources {
    let insn = m.insn();
    let changes = insn.mnemonic() != M::Bt;
    if insn.op0_kind() == OpKind::Memory && insn.op1_kind() == OpKind::Register {
        let size = m.size(0) as u64;
        let full = m.step.before.value(insn.op1_register());
        let number = match size {
            2 => i64::from(full as i16),
            4 => i64::from(full as i32),
            _ => full as i64,
        };
        let word = number.div_euclid(8 * size as i64).wrapping_mul(size as i64);
        let at = m.named_address().wrapping_add_signed(word);
        let [base, index] = m.named_registers();
        let registers = [base, index, insn.op1_register()];
        let mut from = all(&m.memory(at, size, &registers));
        from.add(&all(&m.read(1)));
        if changes {
            m.set_memory(at, vec![from.clone(); size as usize], &registers);
        }
        return from;
    }
    let from = Sources::all([&all(&m.read(0)), &all(&m.read(1))]);
    if changes {
        m.write_all(0, &from);
    }
    from
}
