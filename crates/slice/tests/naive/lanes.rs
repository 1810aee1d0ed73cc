//! Vector instructions that bring bytes elsewhere.

use super::machine::{Machine, Value};
use super::shadow::{At, Sources};
use iced_x86::{OpKind, Register};

/// Whether the instruction was one of these.
pub fn execute(m: &mut Machine<'_>) -> bool {
    moves(m) || shuffles(m) || gathered(m)
}

fn zeros(count: usize) -> Value {
    vec![Sources::default(); count]
}

/// A number that the instruction holds.
fn immediate(m: &Machine<'_>) -> usize {
    m.insn().immediate(m.insn().op_count() - 1) as u8 as usize
}

fn is_memory(m: &Machine<'_>, operand: u32) -> bool {
    m.insn().op_kind(operand) == OpKind::Memory
}

fn moves(m: &mut Machine<'_>) -> bool {
    let (plain, vex) = (m.name(), m.is_vex());
    // With three operands one is only there for the rest of the result.
    let last = m.insn().op_count() - m.insn().op_count().min(1);
    match plain.as_str() {
        "Movaps" | "Movapd" | "Movups" | "Movupd" | "Movdqa" | "Movdqu" | "Lddqu" | "Movntdq"
        | "Movntps" | "Movntpd" | "Movntdqa" | "Movdqu8" | "Movdqu16" | "Movdqu32" | "Movdqu64"
        | "Movdqa32" | "Movdqa64" => {
            m.write(0, m.read(1));
        }
        "Movd" | "Movq" => {
            let mut value = m.read(1);
            let size = if plain == "Movd" { 4 } else { 8 };
            value.truncate(size);
            value.resize(m.size(0).max(size), Sources::default());
            m.write(0, value);
        }
        "Movss" | "Movsd" => {
            let size = if plain == "Movss" { 4 } else { 8 };
            let mut value = m.read(last);
            value.truncate(size);
            if is_memory(m, last) {
                value.extend(zeros(16 - size));
            } else if !is_memory(m, 0) {
                value.extend(m.read(last - 1)[size..16].to_vec());
            }
            m.write(0, value);
        }
        "Movlps" | "Movlpd" | "Movhlps" => {
            let from = m.read(last);
            if is_memory(m, 0) {
                m.write(0, from);
                return true;
            }
            let low = if plain == "Movhlps" { 8..16 } else { 0..8 };
            let rest = m.read(if vex { 1 } else { 0 });
            m.write(0, [&from[low], &rest[8..16]].concat());
        }
        "Movhps" | "Movhpd" | "Movlhps" => {
            let from = m.read(last);
            if is_memory(m, 0) {
                m.write(0, from[8..16].to_vec());
                return true;
            }
            let rest = m.read(if vex { 1 } else { 0 });
            m.write(0, [&rest[0..8], &from[0..8]].concat());
        }
        "Movmskps" | "Movmskpd" | "Pmovmskb" => {
            let from = Sources::all(&m.read(1));
            m.write_all(0, &from);
        }
        "Cvttsd2si" | "Cvtsd2si" => number(m, 8),
        "Cvttss2si" | "Cvtss2si" => number(m, 4),
        "Zeroupper" => {
            for register in 0..16 {
                (16..64).for_each(|byte| m.set(At::Vector(register, byte), Sources::default()));
            }
        }
        "Zeroall" => {
            for register in 0..16 {
                (0..64).for_each(|byte| m.set(At::Vector(register, byte), Sources::default()));
            }
        }
        "Ptest" => {
            let from = Sources::all([&Sources::all(&m.read(0)), &Sources::all(&m.read(1))]);
            m.set_flags("cz", &from);
            m.set_flags("paso", &Sources::default());
        }
        "Pcmpistri" | "Pcmpestri" | "Pcmpistrm" => {
            let mut from = Sources::all([&Sources::all(&m.read(0)), &Sources::all(&m.read(1))]);
            if plain == "Pcmpestri" {
                from.add(&Sources::all(&m.register(Register::EAX)));
                from.add(&Sources::all(&m.register(Register::EDX)));
            }
            match plain.ends_with('m') {
                true => m.set_register(Register::XMM0, vec![from.clone(); 16]),
                false => m.set_register(Register::ECX, vec![from.clone(); 4]),
            }
            m.set_flags("czso", &from);
            m.set_flags("pa", &Sources::default());
        }
        _ => return false,
    }
    true
}

/// A whole number of a floating one.
fn number(m: &mut Machine<'_>, size: usize) {
    let from = Sources::all(&m.read(1)[..size]);
    m.write_all(0, &from);
}

fn shuffles(m: &mut Machine<'_>) -> bool {
    let (plain, vex) = (m.name(), m.is_vex());
    let size = m.size(0);
    // The operands that are read: the result's own place where there is no other for it.
    let (one, other) = if vex { (1, 2) } else { (0, 1) };
    let by = |m: &Machine<'_>| immediate(m);
    // For each block of 16 bytes: the block of each operand, to that of the result.
    let blocks =
        |m: &mut Machine<'_>, a: Value, b: Value, f: &dyn Fn(&[Sources], &[Sources]) -> Value| {
            let of = |value: &Value, block: usize| value[16 * block..16 * block + 16].to_vec();
            let value =
                (0..size / 16).flat_map(|block| f(&of(&a, block), &of(&b, block))).collect();
            m.write(0, value);
        };
    let pick = |from: &[Sources], width: usize, index: usize| {
        from[width * index..width * (index + 1)].to_vec()
    };
    match plain.as_str() {
        "Pshufd" | "Permilps"
            if !matches!(m.insn().op_kind(2), OpKind::Register | OpKind::Memory) =>
        {
            let by = by(m);
            let a = m.read(1);
            blocks(m, a.clone(), a, &|a, _| {
                (0..4).flat_map(|lane| pick(a, 4, by >> (2 * lane) & 3)).collect()
            });
        }
        "Pshuflw" | "Pshufhw" => {
            let (by, a) = (by(m), m.read(1));
            let low = plain == "Pshuflw";
            blocks(m, a.clone(), a, &|a, _| {
                let (kept, first) = if low { (a[8..].to_vec(), 0) } else { (a[..8].to_vec(), 4) };
                let moved: Value =
                    (0..4).flat_map(|lane| pick(a, 2, first + (by >> (2 * lane) & 3))).collect();
                if low { [moved, kept].concat() } else { [kept, moved].concat() }
            });
        }
        "Shufps" => {
            let by = by(m);
            let (a, b) = (m.read(one), m.read(other));
            blocks(m, a, b, &|a, b| {
                let from = |lane| if lane < 2 { a } else { b };
                (0..4).flat_map(|lane| pick(from(lane), 4, by >> (2 * lane) & 3)).collect()
            });
        }
        "Shufpd" => {
            let by = by(m);
            let (a, b) = (m.read(one), m.read(other));
            let at = |block: usize, index: usize| 16 * block + 8 * (by >> (2 * block + index) & 1);
            let value = (0..size / 16)
                .flat_map(|block| {
                    let (low, high) = (at(block, 0), at(block, 1));
                    [a[low..low + 8].to_vec(), b[high..high + 8].to_vec()].concat()
                })
                .collect();
            m.write(0, value);
        }
        "Punpcklbw" | "Punpcklwd" | "Punpckldq" | "Punpcklqdq" | "Unpcklps" | "Unpcklpd"
        | "Punpckhbw" | "Punpckhwd" | "Punpckhdq" | "Punpckhqdq" | "Unpckhps" | "Unpckhpd" => {
            let width = match &plain[plain.len() - 2..] {
                "bw" => 1,
                "wd" => 2,
                "ps" => 4,
                "dq" if !plain.ends_with("qdq") => 4,
                _ => 8,
            };
            let first = if plain.contains("ckh") { 8 / width } else { 0 };
            let (a, b) = (m.read(one), m.read(other));
            blocks(m, a, b, &|a, b| {
                (first..first + 8 / width)
                    .flat_map(|lane| [pick(a, width, lane), pick(b, width, lane)].concat())
                    .collect()
            });
        }
        "Palignr" => {
            let by = by(m);
            let (a, b) = (m.read(one), m.read(other));
            blocks(m, a, b, &|a, b| {
                let all = [b.to_vec(), a.to_vec(), zeros(256)].concat();
                all[by..by + 16].to_vec()
            });
        }
        "Pslldq" | "Psrldq" => {
            let by = by(m).min(16);
            let a = m.read(one);
            let up = plain == "Pslldq";
            blocks(m, a.clone(), a, &|a, _| match up {
                true => [zeros(by), a[..16 - by].to_vec()].concat(),
                false => [a[by..].to_vec(), zeros(by)].concat(),
            });
        }
        "Movddup" => {
            let a = m.read(1);
            let value = (0..size / 16)
                .flat_map(|block| [pick(&a, 8, 2 * block), pick(&a, 8, 2 * block)].concat());
            let value = value.collect();
            m.write(0, value);
        }
        "Movsldup" | "Movshdup" => {
            let odd = usize::from(plain == "Movshdup");
            let a = m.read(1);
            let value = (0..size / 4).flat_map(|lane| pick(&a, 4, lane / 2 * 2 + odd)).collect();
            m.write(0, value);
        }
        "Pblendw" | "Blendps" | "Blendpd" | "Pblendd" => {
            let width = match plain.as_str() {
                "Pblendw" => 2,
                "Blendpd" => 8,
                _ => 4,
            };
            let by = by(m);
            let (a, b) = (m.read(one), m.read(other));
            let bit = |lane: usize| if width == 2 { lane % 8 } else { lane };
            let value = (0..size / width)
                .flat_map(|lane| pick(if by >> bit(lane) & 1 == 1 { &b } else { &a }, width, lane))
                .collect();
            m.write(0, value);
        }
        "Inserti128" | "Insertf128" => {
            let at = 16 * (by(m) & 1);
            let (mut value, new) = (m.read(1), m.read(2));
            value.splice(at..at + 16, new);
            m.write(0, value);
        }
        "Extracti128" | "Extractf128" => {
            let at = 16 * (by(m) & 1);
            let value = m.read(1)[at..at + 16].to_vec();
            m.write(0, value);
        }
        "Perm2i128" | "Perm2f128" => {
            let by = by(m);
            let all = [m.read(1), m.read(2)].concat();
            let half = |control: usize| match control & 8 {
                0 => pick(&all, 16, control & 3),
                _ => zeros(16),
            };
            let value = [half(by), half(by >> 4)].concat();
            m.write(0, value);
        }
        "Permq" | "Permpd" if !matches!(m.insn().op_kind(2), OpKind::Register | OpKind::Memory) => {
            let (by, a) = (by(m), m.read(1));
            let value = (0..4).flat_map(|lane| pick(&a, 8, by >> (2 * lane) & 3)).collect();
            m.write(0, value);
        }
        "Pbroadcastb" | "Pbroadcastw" | "Pbroadcastd" | "Pbroadcastq" | "Broadcastss"
        | "Broadcastsd" | "Broadcasti128" | "Broadcastf128" => {
            let width = match plain.chars().last() {
                _ if plain.ends_with("128") => 16,
                Some('b') => 1,
                Some('w') => 2,
                Some('q') => 8,
                _ if plain == "Broadcastsd" => 8,
                _ => 4,
            };
            let a = pick(&m.read(1), width, 0);
            let value = a.iter().cycle().take(size).cloned().collect();
            m.write(0, value);
        }
        "Pinsrb" | "Pinsrw" | "Pinsrd" | "Pinsrq" => {
            let width = 1 << "bwdq".find(&plain[5..]).expect("a width");
            let at = width * (by(m) & (16 / width - 1));
            let (mut value, mut new) = (m.read(one), m.read(other));
            new.truncate(width);
            value.splice(at..at + width, new);
            m.write(0, value);
        }
        "Pextrb" | "Pextrw" | "Pextrd" | "Pextrq" => {
            let width = 1 << "bwdq".find(&plain[5..]).expect("a width");
            let at = width * (by(m) & (16 / width - 1));
            let mut value = m.read(1)[at..at + width].to_vec();
            value.resize(m.size(0).max(width), Sources::default());
            m.write(0, value);
        }
        "Extractps" => {
            let at = 4 * (by(m) & 3);
            let mut value = m.read(1)[at..at + 4].to_vec();
            value.resize(m.size(0), Sources::default());
            m.write(0, value);
        }
        _ => return false,
    }
    true
}

/// Where values say which lane is taken, or many lanes make one, all of a result is made from
/// all of the operands.
fn gathered(m: &mut Machine<'_>) -> bool {
    let (plain, vex) = (m.name(), m.is_vex());
    let reads: &[u32] = match plain.as_str() {
        "Pshufb" | "Packsswb" | "Packssdw" | "Packuswb" | "Packusdw" | "Phaddw" | "Phaddd"
        | "Haddps" | "Haddpd" | "Insertps" | "Permd" | "Permps" | "Dpps" | "Dppd" => {
            if vex {
                &[1, 2]
            } else {
                &[0, 1]
            }
        }
        "Pblendvb" | "Blendvps" | "Blendvpd" => {
            if vex {
                &[1, 2, 3]
            } else {
                &[0, 1, 2]
            }
        }
        "Addsubps" | "Addsubpd" => {
            if vex {
                &[1, 2]
            } else {
                &[0, 1]
            }
        }
        _ => return false,
    };
    let mut from = Sources::default();
    reads.iter().for_each(|operand| from.add(&Sources::all(&m.read(*operand))));
    m.write_all(0, &from);
    true
}
