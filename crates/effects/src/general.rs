//! What iced's tables say: everything that is written depends on everything that is read.

use crate::cells::{self, Cell, MXCSR, X87};
use crate::parts::{Part, Place, accessed, cleared, explicit, place};
use crate::syscalls;
use iced_x86::{
    CpuidFeature, FlowControl, Instruction, InstructionInfo, Mnemonic as M, OpAccess, OpKind,
    Register, RflagsBits,
};

pub fn parts(insn: &Instruction, info: &InstructionInfo) -> Vec<Part> {
    match insn.mnemonic() {
        // They put aside and bring back what others then use as if nothing had been done.
        M::Xsave
        | M::Xsave64
        | M::Xsavec
        | M::Xsavec64
        | M::Xsaveopt
        | M::Xsaveopt64
        | M::Xsaves
        | M::Xsaves64
        | M::Xrstor
        | M::Xrstor64
        | M::Xrstors
        | M::Xrstors64
        | M::Fxsave
        | M::Fxsave64
        | M::Fxrstor
        | M::Fxrstor64 => return Vec::new(),
        M::Vzeroupper | M::Vzeroall => return zeroed(insn.mnemonic() == M::Vzeroall),
        M::Nop | M::Endbr64 | M::Pause => return Vec::new(),
        _ => {}
    }
    let mut sources = read_operands(insn, info);
    sources.extend(implicit(insn, info, reads));
    sources.extend(cells::flags(read_flags(insn)).map(Place::flag));
    let memory = |access: fn(OpAccess) -> bool| {
        let named = explicit(insn, info);
        accessed(info)
            .enumerate()
            .filter(move |(index, memory)| access(memory.access()) && Some(*index) != named)
    };
    let whole = |(operand, memory): (usize, &iced_x86::UsedMemory)| Place::Memory {
        operand,
        bytes: 0..memory.memory_size().size() as u32,
    };
    sources.extend(memory(reads).map(whole));

    let mut targets: Vec<(Place, bool)> = Vec::new();
    let mut parts = Vec::new();
    for operand in 0..insn.op_count() {
        let access = info.op_access(operand);
        if !writes(access) {
            continue;
        }
        let keeps_old = keeps_old(insn, access);
        targets.extend(place(insn, info, operand).map(|place| (place, keeps_old)));
        if insn.op_kind(operand) == OpKind::Register
            && let Some(cleared) = cleared(insn, insn.op_register(operand))
        {
            // What is not written is not cleared either.
            match keeps_old {
                true => targets.push((cleared.to, true)),
                false => parts.push(cleared),
            }
        }
    }
    targets.extend(implicit(insn, info, writes).into_iter().map(|place| (place, false)));
    targets.extend(memory(writes).map(|memory| (whole(memory), false)));
    if uses_x87(insn) {
        sources.push(Place::flag(X87));
        targets.push((Place::flag(X87), false));
    }
    match insn.mnemonic() {
        M::Stmxcsr | M::Vstmxcsr => sources.push(Place::flag(MXCSR)),
        M::Ldmxcsr | M::Vldmxcsr => targets.push((Place::flag(MXCSR), false)),
        _ => {}
    }
    for (to, keeps_old) in targets {
        let old = keeps_old.then(|| to.clone());
        parts.push(Part::computed(to, sources.iter().cloned().chain(old).collect()));
    }
    parts.extend(flags(insn, &sources));
    parts
}

/// A rotation through the carry reads it even where iced says that nothing is rotated.
fn read_flags(insn: &Instruction) -> u32 {
    let carry = if rotates_carry(insn) { RflagsBits::CF } else { 0 };
    insn.rflags_read() | carry
}

fn rotates_carry(insn: &Instruction) -> bool {
    matches!(insn.mnemonic(), M::Rcl | M::Rcr)
}

/// What a branch or a call depends on, be it the system's; a return always leads back.
pub fn decides(insn: &Instruction, info: &InstructionInfo) -> Vec<Place> {
    use FlowControl as F;
    match insn.flow_control() {
        F::ConditionalBranch => {
            // Some count.
            let mut sources = implicit(insn, info, reads);
            sources.extend(cells::flags(insn.rflags_read()).map(Place::flag));
            sources
        }
        _ if syscalls::is_one(insn) => syscalls::told(),
        F::IndirectBranch | F::IndirectCall => place(insn, info, 0).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// What becomes of the flags.
pub fn flags(insn: &Instruction, sources: &[Place]) -> Vec<Part> {
    let set = insn.rflags_cleared() | insn.rflags_set();
    let mut computed = insn.rflags_modified() & !set;
    if rotates_carry(insn) {
        // Even by as much as brings all bits back.
        computed |= RflagsBits::CF | RflagsBits::OF;
    }
    let mut parts: Vec<Part> =
        cells::flags(set).map(|flag| Part::constant(Place::flag(flag))).collect();
    // What is undefined is often left as it is.
    let undefined: Vec<Cell> = cells::flags(insn.rflags_undefined()).collect();
    for flag in cells::flags(computed) {
        let may_stay = may_leave_flags(insn) || undefined.contains(&flag);
        let old = may_stay.then(|| Place::flag(flag));
        parts.push(Part::computed(Place::flag(flag), sources.iter().cloned().chain(old).collect()));
    }
    parts
}

/// The operands that are read.
pub fn read_operands(insn: &Instruction, info: &InstructionInfo) -> Vec<Place> {
    let read = (0..insn.op_count()).filter(|operand| reads(info.op_access(*operand)));
    read.filter_map(|operand| place(insn, info, operand)).collect()
}

/// Registers that the instruction uses without naming them, apart from addresses.
fn implicit(insn: &Instruction, info: &InstructionInfo, used: fn(OpAccess) -> bool) -> Vec<Place> {
    let named: Vec<Register> = (0..insn.op_count())
        .filter(|operand| insn.op_kind(*operand) == OpKind::Register)
        .filter(|operand| used(info.op_access(*operand)))
        .map(|operand| insn.op_register(operand).full_register())
        .collect();
    let addresses: Vec<Register> = accessed(info)
        .chain(info.used_memory())
        .flat_map(|memory| [memory.base().full_register(), memory.index().full_register()])
        .collect();
    let registers = info.used_registers().iter().filter(|register| {
        let full = register.register().full_register();
        let only_address = addresses.contains(&full) && !writes(register.access());
        used(register.access()) && !named.contains(&full) && !only_address
    });
    registers.filter_map(|register| Place::of(register.register())).collect()
}

pub fn reads(access: OpAccess) -> bool {
    use OpAccess as A;
    matches!(access, A::Read | A::CondRead | A::ReadWrite | A::ReadCondWrite)
}

pub fn writes(access: OpAccess) -> bool {
    use OpAccess as A;
    matches!(access, A::Write | A::CondWrite | A::ReadWrite | A::ReadCondWrite)
}

/// Whether what is written may stay what it was, all or some of it.
fn keeps_old(insn: &Instruction, access: OpAccess) -> bool {
    matches!(access, OpAccess::CondWrite | OpAccess::ReadCondWrite)
        || insn.op_mask() != Register::None
        || matches!(insn.mnemonic(), M::Bsf | M::Bsr)
}

/// Whether an instruction may leave the flags as they are: a shift by nothing does.
fn may_leave_flags(insn: &Instruction) -> bool {
    use M::{Rol, Ror, Sal, Sar, Shl, Shld, Shr, Shrd};
    let shifts = matches!(insn.mnemonic(), Rol | Ror | Sal | Sar | Shl | Shld | Shr | Shrd)
        && insn.op_kind(insn.op_count() - 1) == OpKind::Register;
    shifts || rotates_carry(insn)
}

fn uses_x87(insn: &Instruction) -> bool {
    let features = insn.cpuid_features();
    use CpuidFeature as F;
    let x87 = [F::FPU, F::FPU287, F::FPU387, F::MMX];
    features.iter().any(|feature| x87.contains(feature))
        || insn.mnemonic() == M::Emms
        || (0..insn.op_count()).any(|operand| {
            insn.op_kind(operand) == OpKind::Register && insn.op_register(operand).is_mm()
        })
}

fn zeroed(all: bool) -> Vec<Part> {
    let registers = (0..16).map(|number| Register::XMM0 + number);
    let above =
        registers.clone().map(|register| Part::constant(Place::Cells(cells::above(register))));
    let low =
        registers.filter(|_| all).filter_map(|register| Place::of(register).map(Part::constant));
    above.chain(low).collect()
}
