//! Vector instructions that compute one number, in the lowest lane or from it.

use crate::general;
use crate::parts::{Part, Place, cleared, is_vex, place};
use iced_x86::{Instruction, InstructionInfo, Mnemonic as M, OpKind};

pub fn parts(insn: &Instruction, info: &InstructionInfo) -> Option<Vec<Part>> {
    let Scalar { to: size, from, numbers } = scalar(insn.mnemonic())?;
    let to = place(insn, info, 0)?;
    let number = |operand: u32, size: u32| {
        let place = place(insn, info, operand)?;
        Some(place.bytes(0..size.min(place.size()?)))
    };
    if size == 0 {
        // A comparison, of which only flags stay.
        return Some(general::flags(insn, &[number(0, from)?, number(1, from)?]));
    }
    if insn.op0_kind() == OpKind::Register && insn.op0_register().is_gpr() {
        let parts = [Part::computed(to, vec![number(1, from)?])];
        return Some(parts.into_iter().chain(cleared(insn, insn.op0_register())).collect());
    }
    // Whatever is behind the last one is a number.
    let is_number =
        |operand: u32| !matches!(insn.op_kind(operand), OpKind::Register | OpKind::Memory);
    let last = (0..insn.op_count()).rev().find(|operand| !is_number(*operand))?;
    let mut sources = vec![number(last, from)?];
    let named_before = if is_vex(insn) { 1 } else { 0 };
    if numbers > 1 {
        sources.push(number(named_before, size)?);
    }
    if numbers > 2 {
        sources.push(number(0, size)?);
    }
    let mut parts = vec![Part::computed(to.bytes(0..size), sources)];
    if is_vex(insn) && last == 2 && numbers < 3 {
        let rest: Place = place(insn, info, 1)?.bytes(size..16);
        parts.push(Part::copy(to.bytes(size..16), rest));
    }
    parts.extend(cleared(insn, insn.op0_register()));
    Some(parts)
}

struct Scalar {
    /// Bytes of the result; none where it is flags.
    to: u32,
    /// Bytes of what it is computed from.
    from: u32,
    /// Of how many numbers it is computed; of three, the result's place holds one.
    numbers: u32,
}

fn scalar(mnemonic: M) -> Option<Scalar> {
    let (to, from, numbers) = match mnemonic {
        M::Addss
        | M::Subss
        | M::Mulss
        | M::Divss
        | M::Maxss
        | M::Minss
        | M::Cmpss
        | M::Vaddss
        | M::Vsubss
        | M::Vmulss
        | M::Vdivss
        | M::Vmaxss
        | M::Vminss
        | M::Vcmpss => (4, 4, 2),
        M::Vfmadd132ss
        | M::Vfmadd213ss
        | M::Vfmadd231ss
        | M::Vfmsub132ss
        | M::Vfmsub213ss
        | M::Vfmsub231ss
        | M::Vfnmadd132ss
        | M::Vfnmadd213ss
        | M::Vfnmadd231ss
        | M::Vfnmsub132ss
        | M::Vfnmsub213ss
        | M::Vfnmsub231ss => (4, 4, 3),
        M::Addsd
        | M::Subsd
        | M::Mulsd
        | M::Divsd
        | M::Maxsd
        | M::Minsd
        | M::Cmpsd
        | M::Vaddsd
        | M::Vsubsd
        | M::Vmulsd
        | M::Vdivsd
        | M::Vmaxsd
        | M::Vminsd
        | M::Vcmpsd => (8, 8, 2),
        M::Vfmadd132sd
        | M::Vfmadd213sd
        | M::Vfmadd231sd
        | M::Vfmsub132sd
        | M::Vfmsub213sd
        | M::Vfmsub231sd
        | M::Vfnmadd132sd
        | M::Vfnmadd213sd
        | M::Vfnmadd231sd
        | M::Vfnmsub132sd
        | M::Vfnmsub213sd
        | M::Vfnmsub231sd => (8, 8, 3),
        M::Sqrtss
        | M::Rcpss
        | M::Rsqrtss
        | M::Roundss
        | M::Vsqrtss
        | M::Vrcpss
        | M::Vrsqrtss
        | M::Vroundss => (4, 4, 1),
        M::Sqrtsd | M::Roundsd | M::Vsqrtsd | M::Vroundsd => (8, 8, 1),
        M::Cvtss2sd | M::Vcvtss2sd => (8, 4, 1),
        M::Cvtsd2ss | M::Vcvtsd2ss => (4, 8, 1),
        M::Cvtsi2ss | M::Vcvtsi2ss => (4, 8, 1),
        M::Cvtsi2sd | M::Vcvtsi2sd => (8, 8, 1),
        M::Cvtss2si | M::Cvttss2si | M::Vcvtss2si | M::Vcvttss2si => (8, 4, 1),
        M::Cvtsd2si | M::Cvttsd2si | M::Vcvtsd2si | M::Vcvttsd2si => (8, 8, 1),
        M::Comiss | M::Ucomiss | M::Vcomiss | M::Vucomiss => (0, 4, 2),
        M::Comisd | M::Ucomisd | M::Vcomisd | M::Vucomisd => (0, 8, 2),
        _ => return None,
    };
    Some(Scalar { to, from, numbers })
}
