//! Vector instructions that do the same to each lane, and general ones that do so to each byte.

use crate::general::{self, read_operands};
use crate::parts::{Part, Place, cleared, place};
use iced_x86::{Instruction, InstructionInfo, Mnemonic as M, OpKind};

pub fn parts(insn: &Instruction, info: &InstructionInfo) -> Option<Vec<Part>> {
    if insn.op_count() == 0 {
        return None;
    }
    let to = place(insn, info, 0)?;
    if let M::And | M::Andn | M::Or | M::Xor | M::Not = insn.mnemonic() {
        let sources = read_operands(insn, info);
        let mut parts = of_lanes(insn, to, 1, sources.clone())?;
        parts.extend(general::flags(insn, &sources));
        return Some(parts);
    }
    let width = width(insn.mnemonic())?;
    if insn.op0_kind() != OpKind::Register || !insn.op0_register().is_vector_register() {
        return None;
    }
    let mut lanes = read_operands(insn, info);
    let mut whole = Vec::new();
    if is_shift(insn.mnemonic())
        && let Some(count) = place(insn, info, insn.op_count() - 1)
    {
        // The last operand says by how much, for all lanes.
        lanes.retain(|place| *place != count || Some(place) == first_source(insn, info).as_ref());
        whole.push(count.bytes(0..8));
    }
    let mut parts = of_lanes(insn, to, width, lanes)?;
    parts[0].whole = whole;
    Some(parts)
}

fn of_lanes(insn: &Instruction, to: Place, width: u32, lanes: Vec<Place>) -> Option<Vec<Part>> {
    if lanes.iter().any(|lane| lane.size() != to.size()) {
        return None;
    }
    let mut parts = vec![Part::lanes(to, width, lanes)];
    if insn.op0_kind() == OpKind::Register {
        parts.extend(cleared(insn, insn.op0_register()));
    }
    Some(parts)
}

/// What is shifted.
fn first_source(insn: &Instruction, info: &InstructionInfo) -> Option<Place> {
    place(insn, info, if insn.op_count() == 3 { 1 } else { 0 })
}

fn is_shift(mnemonic: M) -> bool {
    matches!(
        mnemonic,
        M::Psllw
            | M::Pslld
            | M::Psllq
            | M::Psrlw
            | M::Psrld
            | M::Psrlq
            | M::Psraw
            | M::Psrad
            | M::Vpsllw
            | M::Vpslld
            | M::Vpsllq
            | M::Vpsrlw
            | M::Vpsrld
            | M::Vpsrlq
            | M::Vpsraw
            | M::Vpsrad
    )
}

/// How many bytes there are in a lane.
fn width(mnemonic: M) -> Option<u32> {
    match mnemonic {
        M::Pand
        | M::Pandn
        | M::Por
        | M::Pxor
        | M::Andps
        | M::Andpd
        | M::Andnps
        | M::Andnpd
        | M::Orps
        | M::Orpd
        | M::Xorps
        | M::Xorpd
        | M::Vpand
        | M::Vpandn
        | M::Vpor
        | M::Vpxor
        | M::Vandps
        | M::Vandpd
        | M::Vandnps
        | M::Vandnpd
        | M::Vorps
        | M::Vorpd
        | M::Vxorps
        | M::Vxorpd
        | M::Paddb
        | M::Paddsb
        | M::Paddusb
        | M::Psubb
        | M::Psubsb
        | M::Psubusb
        | M::Pavgb
        | M::Pmaxub
        | M::Pmaxsb
        | M::Pminub
        | M::Pminsb
        | M::Pabsb
        | M::Psignb
        | M::Pcmpeqb
        | M::Pcmpgtb
        | M::Vpaddb
        | M::Vpaddsb
        | M::Vpaddusb
        | M::Vpsubb
        | M::Vpsubsb
        | M::Vpsubusb
        | M::Vpavgb
        | M::Vpmaxub
        | M::Vpmaxsb
        | M::Vpminub
        | M::Vpminsb
        | M::Vpabsb
        | M::Vpsignb
        | M::Vpcmpeqb
        | M::Vpcmpgtb => Some(1),
        M::Paddw
        | M::Paddsw
        | M::Paddusw
        | M::Psubw
        | M::Psubsw
        | M::Psubusw
        | M::Pavgw
        | M::Pmaxuw
        | M::Pmaxsw
        | M::Pminuw
        | M::Pminsw
        | M::Pabsw
        | M::Psignw
        | M::Pmullw
        | M::Pmulhw
        | M::Pmulhuw
        | M::Pmulhrsw
        | M::Pmaddubsw
        | M::Pcmpeqw
        | M::Pcmpgtw
        | M::Psllw
        | M::Psrlw
        | M::Psraw
        | M::Vpaddw
        | M::Vpaddsw
        | M::Vpaddusw
        | M::Vpsubw
        | M::Vpsubsw
        | M::Vpsubusw
        | M::Vpavgw
        | M::Vpmaxuw
        | M::Vpmaxsw
        | M::Vpminuw
        | M::Vpminsw
        | M::Vpabsw
        | M::Vpsignw
        | M::Vpmullw
        | M::Vpmulhw
        | M::Vpmulhuw
        | M::Vpmulhrsw
        | M::Vpmaddubsw
        | M::Vpcmpeqw
        | M::Vpcmpgtw
        | M::Vpsllw
        | M::Vpsrlw
        | M::Vpsraw => Some(2),
        M::Paddd
        | M::Psubd
        | M::Pmaxud
        | M::Pmaxsd
        | M::Pminud
        | M::Pminsd
        | M::Pabsd
        | M::Psignd
        | M::Pmulld
        | M::Pmaddwd
        | M::Pcmpeqd
        | M::Pcmpgtd
        | M::Pslld
        | M::Psrld
        | M::Psrad
        | M::Addps
        | M::Subps
        | M::Mulps
        | M::Divps
        | M::Maxps
        | M::Minps
        | M::Sqrtps
        | M::Rcpps
        | M::Rsqrtps
        | M::Cmpps
        | M::Roundps
        | M::Cvtdq2ps
        | M::Cvtps2dq
        | M::Cvttps2dq
        | M::Vpaddd
        | M::Vpsubd
        | M::Vpmaxud
        | M::Vpmaxsd
        | M::Vpminud
        | M::Vpminsd
        | M::Vpabsd
        | M::Vpsignd
        | M::Vpmulld
        | M::Vpmaddwd
        | M::Vpcmpeqd
        | M::Vpcmpgtd
        | M::Vpslld
        | M::Vpsrld
        | M::Vpsrad
        | M::Vpsllvd
        | M::Vpsrlvd
        | M::Vpsravd
        | M::Vaddps
        | M::Vsubps
        | M::Vmulps
        | M::Vdivps
        | M::Vmaxps
        | M::Vminps
        | M::Vsqrtps
        | M::Vrcpps
        | M::Vrsqrtps
        | M::Vcmpps
        | M::Vroundps
        | M::Vcvtdq2ps
        | M::Vcvtps2dq
        | M::Vcvttps2dq
        | M::Vfmadd132ps
        | M::Vfmadd213ps
        | M::Vfmadd231ps
        | M::Vfmsub132ps
        | M::Vfmsub213ps
        | M::Vfmsub231ps
        | M::Vfnmadd132ps
        | M::Vfnmadd213ps
        | M::Vfnmadd231ps
        | M::Vfnmsub132ps
        | M::Vfnmsub213ps
        | M::Vfnmsub231ps => Some(4),
        M::Paddq
        | M::Psubq
        | M::Pmuludq
        | M::Pmuldq
        | M::Psadbw
        | M::Pcmpeqq
        | M::Pcmpgtq
        | M::Psllq
        | M::Psrlq
        | M::Addpd
        | M::Subpd
        | M::Mulpd
        | M::Divpd
        | M::Maxpd
        | M::Minpd
        | M::Sqrtpd
        | M::Cmppd
        | M::Roundpd
        | M::Vpaddq
        | M::Vpsubq
        | M::Vpmuludq
        | M::Vpmuldq
        | M::Vpsadbw
        | M::Vpcmpeqq
        | M::Vpcmpgtq
        | M::Vpsllq
        | M::Vpsrlq
        | M::Vpsllvq
        | M::Vpsrlvq
        | M::Vaddpd
        | M::Vsubpd
        | M::Vmulpd
        | M::Vdivpd
        | M::Vmaxpd
        | M::Vminpd
        | M::Vsqrtpd
        | M::Vcmppd
        | M::Vroundpd
        | M::Vfmadd132pd
        | M::Vfmadd213pd
        | M::Vfmadd231pd
        | M::Vfmsub132pd
        | M::Vfmsub213pd
        | M::Vfmsub231pd
        | M::Vfnmadd132pd
        | M::Vfnmadd213pd
        | M::Vfnmadd231pd
        | M::Vfnmsub132pd
        | M::Vfnmsub213pd
        | M::Vfnmsub231pd => Some(8),
        _ => None,
    }
}
