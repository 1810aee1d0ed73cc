//! Instructions of general registers and flags.

use super::machine::{Machine, Value};
use super::shadow::{At, Sources};
use iced_x86::{FlowControl, Mnemonic as M, OpKind, Register};

const ARITHMETIC: &str = "cpazso";

fn all(value: &Value) -> Sources {
    Sources::all(value)
}

fn nothing() -> Sources {
    Sources::default()
}

/// Each byte of two operands with the other's.
fn bytewise(one: &Value, other: &Value) -> Value {
    one.iter().zip(other).map(|(a, b)| Sources::all([a, b])).collect()
}

/// Whether the instruction was one of these.
pub fn execute(m: &mut Machine<'_>) -> bool {
    moves(m) || arithmetic(m) || bits(m) || stack(m) || others(m)
}

fn moves(m: &mut Machine<'_>) -> bool {
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
            // Each stands where the address of the other is known, too.
            let both = |value: Value, with: &Value| -> Value {
                let addresses = with.first().map(|byte| byte.addresses.clone()).unwrap_or_default();
                let address = Sources { addresses, ..nothing() };
                value.iter().map(|byte| Sources::all([byte, &address])).collect()
            };
            m.write(0, both(other.clone(), &one));
            m.write(1, both(one, &other));
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

fn extended(mut value: Value, size: usize, above: &Sources) -> Value {
    value.resize(size, above.clone());
    value
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

fn arithmetic(m: &mut Machine<'_>) -> bool {
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

fn bits(m: &mut Machine<'_>) -> bool {
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
    if by_register {
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

fn stack(m: &mut Machine<'_>) -> bool {
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

fn others(m: &mut Machine<'_>) -> bool {
    match m.insn().mnemonic() {
        M::Jmp
        | M::Jrcxz
        | M::Jecxz
        | M::Nop
        | M::Endbr64
        | M::Rdsspq
        | M::Pause
        | M::Lfence
        | M::Mfence
        | M::Sfence
        | M::Prefetcht0
        | M::Prefetcht1
        | M::Prefetcht2
        | M::Prefetchnta
        | M::Prefetchw
        | M::Ud2 => {}
        M::Loop => {
            let from = all(&m.register(Register::RCX));
            m.set_register(Register::RCX, vec![from; 8]);
        }
        M::Lahf => {
            let from = m.flags("cpazs");
            m.set_register(Register::AH, vec![from]);
        }
        M::Sahf => {
            let from = all(&m.register(Register::AH));
            m.set_flags("cpazs", &from);
        }
        M::Cld => m.set_flags("d", &nothing()),
        M::Std => m.set_flags("d", &nothing()),
        M::Clc => m.set_flags("c", &nothing()),
        M::Stc => m.set_flags("c", &nothing()),
        M::Cmc => {
            let from = m.flags("c");
            m.set_flags("c", &from);
        }
        M::Cpuid => {
            let from =
                Sources::all([&all(&m.register(Register::EAX)), &all(&m.register(Register::ECX))]);
            for register in [Register::EAX, Register::EBX, Register::ECX, Register::EDX] {
                m.set_register(register, vec![from.clone(); 4]);
            }
        }
        M::Xgetbv => {
            let from = all(&m.register(Register::ECX));
            m.set_register(Register::EAX, vec![from.clone(); 4]);
            m.set_register(Register::EDX, vec![from; 4]);
        }
        M::Rdtsc => {
            m.set_register(Register::EAX, vec![nothing(); 4]);
            m.set_register(Register::EDX, vec![nothing(); 4]);
        }
        M::Syscall => {
            let from = asked(m);
            m.set_register(Register::RAX, vec![from; 8]);
            m.set_register(Register::RCX, vec![nothing(); 8]);
            let flags = m.flags("cpazsod");
            m.set_register(Register::R11, vec![flags; 8]);
        }
        _ => return false,
    }
    true
}

/// What a system call is told.
pub fn asked(m: &Machine<'_>) -> Sources {
    use Register as R;
    let told = [R::RAX, R::RDI, R::RSI, R::RDX, R::R10, R::R8, R::R9];
    Sources::all(&told.iter().flat_map(|register| m.register(*register)).collect::<Value>())
}

/// What decided where a branch or a call led.
pub fn decision(m: &Machine<'_>) -> Sources {
    let insn = m.insn();
    match insn.flow_control() {
        FlowControl::IndirectBranch | FlowControl::IndirectCall => all(&m.read(0)),
        FlowControl::ConditionalBranch => match insn.mnemonic() {
            M::Jrcxz | M::Loop => all(&m.register(Register::RCX)),
            M::Jecxz => all(&m.register(Register::ECX)),
            M::Loope | M::Loopne => Sources::all([&all(&m.register(Register::RCX)), &m.flags("z")]),
            _ => condition(m),
        },
        _ => Sources::default(),
    }
}

/// The flag that string instructions go by.
pub fn direction(m: &Machine<'_>) -> Sources {
    m.get(At::Flag('d'))
}
