//! Vector instructions that do the same to each lane, or compute one number.

use super::machine::{Machine, Value};
use super::shadow::{At, Sources};
use iced_x86::{OpKind, Register};

/// How the result of an instruction is made.
#[derive(Clone, Copy)]
enum Made {
    /// Each lane of so many bytes from the same lanes of two operands.
    Both(usize),
    /// From those of one.
    One(usize),
    /// From those of three, the result's old ones among them.
    Three(usize),
    /// A number of so many bytes in the lowest lane, from two.
    Scalar(usize),
    /// From one.
    ScalarOfOne {
        to: usize,
        from: usize,
    },
    ScalarOfThree(usize),
    /// Each lane shifted, by a number or by one count for all.
    Shifted(usize),
    /// Flags from numbers of so many bytes.
    Compared(usize),
    /// Lanes of one width from lanes of another: all from all.
    Converted,
}

fn made(plain: &str) -> Option<Made> {
    use Made::*;
    Some(match plain {
        "Pand" | "Pandn" | "Por" | "Pxor" | "Andps" | "Andpd" | "Andnps" | "Andnpd" | "Orps"
        | "Orpd" | "Xorps" | "Xorpd" | "Paddb" | "Psubb" | "Paddsb" | "Paddusb" | "Psubsb"
        | "Psubusb" | "Pcmpeqb" | "Pcmpgtb" | "Pminub" | "Pmaxub" | "Pminsb" | "Pmaxsb"
        | "Pavgb" | "Psignb" | "Pxord" | "Pxorq" => Both(1),
        "Paddw" | "Psubw" | "Paddsw" | "Paddusw" | "Psubsw" | "Psubusw" | "Pmullw" | "Pmulhw"
        | "Pmulhuw" | "Pmulhrsw" | "Pcmpeqw" | "Pcmpgtw" | "Pminsw" | "Pmaxsw" | "Pminuw"
        | "Pmaxuw" | "Pavgw" | "Psignw" | "Pmaddubsw" => Both(2),
        "Paddd" | "Psubd" | "Pmulld" | "Pcmpeqd" | "Pcmpgtd" | "Pminsd" | "Pmaxsd" | "Pminud"
        | "Pmaxud" | "Psignd" | "Pmaddwd" | "Addps" | "Subps" | "Mulps" | "Divps" | "Minps"
        | "Maxps" | "Cmpps" | "Psllvd" | "Psrlvd" | "Psravd" => Both(4),
        "Paddq" | "Psubq" | "Pmuludq" | "Pmuldq" | "Pcmpeqq" | "Pcmpgtq" | "Addpd" | "Subpd"
        | "Mulpd" | "Divpd" | "Minpd" | "Maxpd" | "Cmppd" | "Psadbw" | "Psllvq" | "Psrlvq" => {
            Both(8)
        }
        "Pabsb" => One(1),
        "Pabsw" => One(2),
        "Pabsd" | "Sqrtps" | "Rcpps" | "Rsqrtps" | "Cvtdq2ps" | "Cvtps2dq" | "Cvttps2dq"
        | "Roundps" => One(4),
        "Sqrtpd" | "Roundpd" => One(8),
        "Addss" | "Subss" | "Mulss" | "Divss" | "Minss" | "Maxss" | "Cmpss" => Scalar(4),
        "Addsd" | "Subsd" | "Mulsd" | "Divsd" | "Minsd" | "Maxsd" | "Cmpsd" => Scalar(8),
        "Sqrtss" | "Rcpss" | "Rsqrtss" | "Roundss" => ScalarOfOne { to: 4, from: 4 },
        "Sqrtsd" | "Roundsd" => ScalarOfOne { to: 8, from: 8 },
        "Cvtss2sd" => ScalarOfOne { to: 8, from: 4 },
        "Cvtsd2ss" => ScalarOfOne { to: 4, from: 8 },
        // The size of the number is that of the general register.
        "Cvtsi2ss" => ScalarOfOne { to: 4, from: 0 },
        "Cvtsi2sd" => ScalarOfOne { to: 8, from: 0 },
        "Psllw" | "Psrlw" | "Psraw" => Shifted(2),
        "Pslld" | "Psrld" | "Psrad" => Shifted(4),
        "Psllq" | "Psrlq" => Shifted(8),
        "Ucomiss" | "Comiss" => Compared(4),
        "Ucomisd" | "Comisd" => Compared(8),
        "Cvtdq2pd" | "Cvtps2pd" | "Cvtpd2ps" | "Cvtpd2dq" | "Cvttpd2dq" => Converted,
        _ if plain.starts_with("Pmovzx") || plain.starts_with("Pmovsx") => Converted,
        _ if plain.starts_with("Fmadd")
            || plain.starts_with("Fmsub")
            || plain.starts_with("Fnm") =>
        {
            match &plain[plain.len() - 2..] {
                "ps" => Three(4),
                "pd" => Three(8),
                "ss" => ScalarOfThree(4),
                _ => ScalarOfThree(8),
            }
        }
        _ => return None,
    })
}

fn lane(value: &[Sources], width: usize, index: usize) -> Sources {
    Sources::all(value.iter().skip(index * width).take(width))
}

/// Whether the instruction was one of these.
pub fn execute(m: &mut Machine<'_>) -> bool {
    let insn = m.insn();
    let Some(made) = made(&m.name()) else {
        return false;
    };
    // The two operands of which a result is made.
    let (one, other) = if m.is_vex() { (1, 2) } else { (0, 1) };
    let size = m.size(0);
    let each = |sources: &[Value], width: usize| -> Value {
        let of_lane =
            |index| Sources::all(&sources.iter().map(|v| lane(v, width, index)).collect::<Value>());
        (0..size).map(|byte| of_lane(byte / width)).collect()
    };
    match made {
        Made::Both(_) if is_constant(m, one, other) => m.write_all(0, &Sources::default()),
        Made::Both(width) => {
            let value = each(&[m.read(one), m.read(other)], width);
            m.write(0, value);
        }
        Made::One(width) => {
            let value = each(&[m.read(1)], width);
            m.write(0, value);
        }
        Made::Three(width) => {
            let value = each(&[m.read(0), m.read(1), m.read(2)], width);
            m.write(0, value);
        }
        Made::Scalar(width) => {
            let from =
                Sources::all([&lane(&m.read(one), width, 0), &lane(&m.read(other), width, 0)]);
            scalar(m, one, vec![from; width]);
        }
        Made::ScalarOfThree(width) => {
            let read: Value = (0..3).map(|operand| lane(&m.read(operand), width, 0)).collect();
            scalar(m, 0, vec![Sources::all(&read); width]);
        }
        Made::ScalarOfOne { to, from } => {
            let source = m.read(other);
            let from = if from == 0 { source.len() } else { from };
            let number = lane(&source, from, 0);
            scalar(m, one, vec![number; to]);
        }
        Made::Shifted(width) => {
            let by = match insn.op_kind(other) {
                OpKind::Register | OpKind::Memory => lane(&m.read(other), 8, 0),
                _ => Sources::default(),
            };
            let value = each(&[m.read(one)], width);
            m.write(0, value.iter().map(|byte| Sources::all([byte, &by])).collect());
        }
        Made::Compared(width) => {
            let from = Sources::all([&lane(&m.read(0), width, 0), &lane(&m.read(1), width, 0)]);
            m.set_flags("cpz", &from);
            m.set_flags("aso", &Sources::default());
        }
        Made::Converted => {
            let from = Sources::all(&m.read(1));
            m.write_all(0, &from);
        }
    }
    true
}

/// A result in the lowest lane, and the rest as in another operand, or as it was.
fn scalar(m: &mut Machine<'_>, rest: u32, number: Value) {
    let register = m.insn().op0_register();
    if rest == 0 {
        let kept = number.len();
        At::of(register).into_iter().zip(number).for_each(|(at, byte)| m.set(at, byte));
        let above = if m.is_vex() { 16.max(kept) as u8..64 } else { 0..0 };
        let at = |byte| At::Vector(register.number() as u8, byte);
        above.for_each(|byte| m.set(at(byte), Sources::default()));
        return;
    }
    let mut value = m.read(rest);
    value.truncate(16);
    value.splice(..number.len(), number);
    m.write(0, value);
}

/// Whether the result is the same whatever the operands are, if they are one register.
fn is_constant(m: &Machine<'_>, one: u32, other: u32) -> bool {
    let insn = m.insn();
    let plain = m.name();
    let constant = plain.starts_with("Pcmpeq")
        || plain.starts_with("Pcmpgt")
        || plain.starts_with("Psub")
        || matches!(
            plain.as_str(),
            "Pxor" | "Pxord" | "Pxorq" | "Xorps" | "Xorpd" | "Pandn" | "Andnps" | "Andnpd"
        );
    let register = |operand| match insn.op_kind(operand) {
        OpKind::Register => insn.op_register(operand),
        _ => Register::None,
    };
    constant && register(one) != Register::None && register(one) == register(other)
}
