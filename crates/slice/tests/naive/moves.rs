//! Moves between general registers and memory.

use super::machine::{Machine, Value};
use super::shadow::{At, Sources};
use super::sources::{all, bytewise, extended, nothing};
use iced_x86::{FlowControl, Mnemonic as M, OpKind, Register};

/// Whether the instruction was one of these.
pub fn execute(m: &mut Machine<'_>) -> bool {
    let insn = m.insn();
    match insn.mnemonic() {
        // A segment register's number is made from nothing.
        M::Mov if insn.op_count() == 2 && m.read(1).is_empty() => m.write_all(0, &nothing()),
        M::Mov
            if insn.op0_kind() == OpKind::Register && insn.op0_register().is_segment_register() => {
        }
        M::Mov | M::Movnti => m.write(0, m.read(1)),
        M::Movzx => m.write(0, extended(m.read(1), m.size(0), &nothing())),
        M::Movsx | M::Movsxd => {
            let value = m.read(1);
            let sign = value[value.len() - 1].clone();
            m.write(0, extended(value, m.size(0), &sign));
        }
        M::Cbw => sign_extend(m, Register::AX, Register::AL),
        M::Cwde => sign_extend(m, Register::EAX, Register::AX),
        M::Cdqe => sign_extend(m, Register::RAX, Register::EAX),
        M::Cwd => sign(m, Register::DX, Register::AX),
        M::Cdq => sign(m, Register::EDX, Register::EAX),
        M::Cqo => sign(m, Register::RDX, Register::RAX),
        M::Bswap => m.write(0, m.read(0).into_iter().rev().collect()),
        M::Movbe => m.write(0, m.read(1).into_iter().rev().collect()),
        M::Xchg => {
            let (one, other) = (m.read(0), m.read(1));
            m.write(0, other);
            m.write(1, one);
        }
        M::Lea => {
            let mut registers: Value = m.register(insn.memory_base());
            registers.extend(m.register(insn.memory_index()));
            m.write_all(0, &all(&registers));
        }
        mnemonic if insn.condition_code() != iced_x86::ConditionCode::None => {
            let condition = condition(m);
            if is_conditional_move(mnemonic) {
                let either = bytewise(&m.read(0), &m.read(1));
                m.write(0, either.iter().map(|byte| Sources::all([byte, &condition])).collect());
            } else if insn.flow_control() == FlowControl::Next {
                m.write_all(0, &condition);
            }
        }
        _ => return false,
    }
    true
}

fn is_conditional_move(mnemonic: M) -> bool {
    format!("{mnemonic:?}").starts_with("Cmov")
}

/// What a condition is made from.
pub fn condition(m: &Machine<'_>) -> Sources {
    use iced_x86::ConditionCode as C;
    m.flags(match m.insn().condition_code() {
        C::o | C::no => "o",
        C::b | C::ae => "c",
        C::e | C::ne => "z",
        C::be | C::a => "cz",
        C::s | C::ns => "s",
        C::p | C::np => "p",
        C::l | C::ge => "so",
        C::le | C::g => "zso",
        C::None => "",
    })
}

/// The upper part of a register that gets the sign of the lower, which stays as it is.
fn sign_extend(m: &mut Machine<'_>, to: Register, from: Register) {
    let sign = m.register(from).pop().expect("its last byte");
    let all = At::of(to.full_register()).into_iter().enumerate();
    for (byte, at) in all.skip(from.size()) {
        match byte < to.size() {
            true => m.set(at, sign.clone()),
            false if to.size() == 4 => m.set(at, nothing()),
            false => {}
        }
    }
}

/// A register that only holds the sign of another.
fn sign(m: &mut Machine<'_>, to: Register, from: Register) {
    let value = m.register(from);
    m.set_register(to, vec![value[value.len() - 1].clone(); to.size()]);
}
