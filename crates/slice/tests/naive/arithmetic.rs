//! Whole numbers: what is computed of them, and the flags of that.

use super::machine::Machine;
use super::shadow::Sources;
use super::sources::{all, bytewise, nothing};
use iced_x86::{Mnemonic as M, OpKind, Register};

const ARITHMETIC: &str = "cpazso";

/// Whether the instruction was one of these.
pub fn execute(m: &mut Machine<'_>) -> bool {
    let insn = m.insn();
    let carry = m.flags("c");
    match insn.mnemonic() {
        M::Xor | M::Sub if is_same(m) => constant(m),
        M::And if is_number(m, 0) => constant(m),
        M::Or if is_number(m, -1) => constant(m),
        M::Sbb if is_same(m) => {
            m.write_all(0, &carry);
            m.set_flags(ARITHMETIC, &carry);
        }
        M::Add | M::Sub | M::Adc | M::Sbb | M::Cmp => {
            let mut from = Sources::all([&all(&m.read(0)), &all(&m.read(1))]);
            if matches!(insn.mnemonic(), M::Adc | M::Sbb) {
                from.add(&carry);
            }
            if insn.mnemonic() != M::Cmp {
                m.write_all(0, &from);
            }
            m.set_flags(ARITHMETIC, &from);
        }
        M::Adcx | M::Adox => {
            let flag = if insn.mnemonic() == M::Adcx { "c" } else { "o" };
            let from = [all(&m.read(0)), all(&m.read(1)), m.flags(flag)];
            m.write_all(0, &Sources::all(&from));
            m.set_flags(flag, &Sources::all(&from));
        }
        M::Neg => {
            let from = all(&m.read(0));
            m.write_all(0, &from);
            m.set_flags(ARITHMETIC, &from);
        }
        M::Inc | M::Dec => {
            let from = all(&m.read(0));
            m.write_all(0, &from);
            m.set_flags("pazso", &from);
        }
        M::And | M::Or | M::Xor | M::Test => {
            let (one, other) = (m.read(0), m.read(1));
            let from = Sources::all([&all(&one), &all(&other)]);
            if insn.mnemonic() != M::Test {
                let size = m.size(0);
                m.write(0, bytewise(&one[..size].to_vec(), &other[..size].to_vec()));
            }
            m.set_flags("pzs", &from);
            m.set_flags("co", &nothing());
            m.touch_flags("a", &from);
        }
        M::Not => m.write(0, m.read(0)),
        M::Andn => {
            let (one, other) = (m.read(1), m.read(2));
            let from = Sources::all([&all(&one), &all(&other)]);
            m.write(0, bytewise(&one, &other));
            m.set_flags("zs", &from);
            m.set_flags("co", &nothing());
            m.touch_flags("ap", &from);
        }
        M::Xadd => {
            let (one, other) = (m.read(0), m.read(1));
            let from = Sources::all([&all(&one), &all(&other)]);
            // Where both are one register, it holds the sum.
            m.write(1, one);
            m.write_all(0, &from);
            m.set_flags(ARITHMETIC, &from);
        }
        M::Cmpxchg => {
            let there = all(&m.read(0));
            let expected = match m.size(0) {
                1 => Register::AL,
                2 => Register::AX,
                4 => Register::EAX,
                _ => Register::RAX,
            };
            let new = all(&m.read(1));
            let compared = Sources::all([&there, &all(&m.register(expected)), &new]);
            m.write_all(0, &compared);
            m.set_register(expected, vec![compared.clone(); 8]);
            m.set_flags(ARITHMETIC, &compared);
        }
        M::Cmpxchg16b => {
            let registers = |m: &Machine<'_>, low, high| {
                Sources::all([&all(&m.register(low)), &all(&m.register(high))])
            };
            let there = all(&m.read(0));
            let old = registers(m, Register::RAX, Register::RDX);
            let new = registers(m, Register::RBX, Register::RCX);
            let compared = Sources::all([&there, &old, &new]);
            m.write_all(0, &compared);
            m.set_register(Register::RAX, vec![compared.clone(); 8]);
            m.set_register(Register::RDX, vec![compared.clone(); 8]);
            m.set_flags("z", &compared);
        }
        M::Mul | M::Imul if insn.op_count() == 1 => multiply(m),
        M::Imul => {
            let first = if insn.op_count() == 2 { 0 } else { 1 };
            let from = Sources::all([&all(&m.read(first)), &all(&m.read(first + 1))]);
            m.write_all(0, &from);
            m.set_flags("co", &from);
            m.touch_flags("pazs", &from);
        }
        M::Mulx => {
            let implied = if m.size(0) == 4 { Register::EDX } else { Register::RDX };
            let from = Sources::all([&all(&m.read(2)), &all(&m.register(implied))]);
            m.write_all(1, &from);
            m.write_all(0, &from);
        }
        M::Div | M::Idiv => divide(m),
        M::Crc32 => {
            let from = Sources::all([&all(&m.read(0)), &all(&m.read(1))]);
            m.write_all(0, &from);
        }
        _ => return false,
    }
    true
}

/// Whether both operands are one register.
fn is_same(m: &Machine<'_>) -> bool {
    let insn = m.insn();
    insn.op0_kind() == OpKind::Register
        && insn.op1_kind() == OpKind::Register
        && insn.op0_register() == insn.op1_register()
}

/// Whether the second operand is this number.
fn is_number(m: &Machine<'_>, number: i64) -> bool {
    let insn = m.insn();
    let bits = 64 - 8 * m.size(0) as u32;
    !matches!(insn.op1_kind(), OpKind::Register | OpKind::Memory)
        && (insn.immediate(1) << bits) == ((number as u64) << bits)
        && insn.op0_kind() == OpKind::Register
}

/// A result that is the same whatever the operands are.
fn constant(m: &mut Machine<'_>) {
    m.write_all(0, &nothing());
    m.set_flags("cpzso", &nothing());
    match m.insn().mnemonic() {
        M::Sub => m.set_flags("a", &nothing()),
        _ => m.touch_flags("a", &nothing()),
    }
}

/// The registers of a product or a quotient: low, high.
fn wide(m: &Machine<'_>) -> (Register, Option<Register>) {
    match m.size(0) {
        1 => (Register::AX, None),
        2 => (Register::AX, Some(Register::DX)),
        4 => (Register::EAX, Some(Register::EDX)),
        _ => (Register::RAX, Some(Register::RDX)),
    }
}

fn multiply(m: &mut Machine<'_>) {
    let (low, high) = wide(m);
    let factor = if m.size(0) == 1 { Register::AL } else { low };
    let from = Sources::all([&all(&m.read(0)), &all(&m.register(factor))]);
    [Some(low), high].into_iter().flatten().for_each(|register| {
        m.set_register(register, vec![from.clone(); 8]);
    });
    m.set_flags("co", &from);
    m.touch_flags("pazs", &from);
}

fn divide(m: &mut Machine<'_>) {
    let (low, high) = wide(m);
    let mut from = Sources::all([&all(&m.read(0)), &all(&m.register(low))]);
    high.into_iter().for_each(|high| from.add(&all(&m.register(high))));
    [Some(low), high].into_iter().flatten().for_each(|register| {
        m.set_register(register, vec![from.clone(); 8]);
    });
    m.touch_flags(ARITHMETIC, &from);
}
