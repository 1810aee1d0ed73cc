//! Instructions that access memory lane by lane: which lanes, a register tells, and for gathers and
//! scatters where each of them is, too.
//!
//! Each lane is an operand of its own, which is nowhere when it is left out. So the mask selects
//! what is accessed, and what is left out stays made by whoever made it.

use crate::cells::{self, Cell};
use crate::parts::{Operand, Part, Place, Size, accessed, cleared};
use iced_x86::{
    EncodingKind, Instruction, InstructionInfo, Mnemonic as M, OpKind, Register, UsedMemory,
};
use std::ops::Range;

/// The lanes of an operand in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    pub count: u32,
    /// The bytes of each.
    pub size: u32,
    /// The register that tells which of them are accessed: by a bit for each lane, or by the
    /// highest bit of each lane.
    pub mask: Register,
    pub order: Order,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Each is at its place.
    Each,
    /// Those that are accessed lie side by side.
    Packed,
    /// A vector tells where each of them is.
    Indexed,
}

impl Lanes {
    /// None if an instruction accesses its operands as a whole. That is also said of those that
    /// compute something of all of an operand and mask only the result.
    pub fn of(insn: &Instruction) -> Option<Lanes> {
        // No others of the old encoding do.
        let is_old = insn.encoding() == EncodingKind::Legacy;
        if is_old && !matches!(insn.mnemonic(), M::Maskmovq | M::Maskmovdqu) {
            return None;
        }
        let (bytes, element) = (insn.memory_size().size(), insn.memory_size().element_size());
        let each = |mask, size: usize| {
            let (count, size) = ((bytes / size) as u32, size as u32);
            Lanes { count, size, mask, order: Order::Each }
        };
        match insn.mnemonic() {
            M::Maskmovq | M::Maskmovdqu | M::Vmaskmovdqu => Some(each(insn.op2_register(), 1)),
            M::Vmaskmovps | M::Vmaskmovpd | M::Vpmaskmovd | M::Vpmaskmovq => {
                Some(each(insn.op1_register(), element))
            }
            _ if insn.is_vsib() => {
                let is_vex = insn.encoding() == EncodingKind::VEX;
                let mask = if is_vex { insn.op2_register() } else { insn.op_mask() };
                let indices = insn.memory_index().size() / if insn.is_vsib32() { 4 } else { 8 };
                let count = indices.min(data(insn).size() / element) as u32;
                (mask != Register::None).then_some(Lanes {
                    count,
                    size: element as u32,
                    mask,
                    order: Order::Indexed,
                })
            }
            _ if insn.op_mask() == Register::None || !names_memory(insn) => None,
            _ if packs(insn) => {
                Some(Lanes { order: Order::Packed, ..each(insn.op_mask(), element) })
            }
            _ if masks(insn) => Some(each(insn.op_mask(), element)),
            _ => None,
        }
    }

    /// Where it is said whether a lane is accessed.
    fn mask(&self, lane: u32) -> Option<Place> {
        let all = Place::of(self.mask)?;
        Some(if self.order == Order::Packed || self.mask.is_mm() {
            all
        } else if self.mask.is_k() {
            all.bytes(lane / 8..lane / 8 + 1)
        } else {
            let sign = (lane + 1) * self.size - 1;
            all.bytes(sign..sign + 1)
        })
    }

    fn memory(&self, lane: u32) -> Place {
        Place::Memory { operand: lane as usize, bytes: 0..self.size }
    }

    /// The bytes of a lane in a register.
    fn bytes(&self, lane: u32) -> Range<u32> {
        lane * self.size..(lane + 1) * self.size
    }
}

/// The register that memory is loaded to or stored from.
fn data(insn: &Instruction) -> Register {
    match insn.mnemonic() {
        M::Maskmovq | M::Maskmovdqu | M::Vmaskmovdqu => insn.op1_register(),
        _ if insn.op0_kind() == OpKind::Register => insn.op0_register(),
        _ => insn.op_register(insn.op_count() - 1),
    }
}

fn names_memory(insn: &Instruction) -> bool {
    (0..insn.op_count()).any(|operand| insn.op_kind(operand) == OpKind::Memory)
}

pub(crate) fn parts(insn: &Instruction) -> Option<Vec<Part>> {
    let lanes = Lanes::of(insn)?;
    let data = data(insn);
    let mut parts = if insn.op0_kind() != OpKind::Register {
        stored(&lanes, Place::of(data)?)
    } else if data.is_k() {
        compared(insn, &lanes, Place::of(data)?)
    } else {
        loaded(insn, &lanes, data)?
    };
    if lanes.order == Order::Indexed {
        // Nothing is left to be done.
        parts.push(Part::constant(Place::of(lanes.mask)?));
        parts.extend(cleared(insn, lanes.mask));
    }
    Some(parts)
}

fn stored(lanes: &Lanes, data: Place) -> Vec<Part> {
    // Where several lanes are at the same place, the highest is what is there then.
    let all = (0..lanes.count).rev().map(|lane| {
        let (to, mask) = (lanes.memory(lane), lanes.mask(lane));
        let is_one = data.size() == Some(1);
        match lanes.order {
            Order::Packed => Part::computed(to, [data.clone()].into_iter().chain(mask).collect()),
            _ if is_one => Part::computed(to, [data.clone()].into_iter().chain(mask).collect()),
            _ => {
                let whole = mask.into_iter().collect();
                Part { whole, ..Part::copy(to, data.bytes(lanes.bytes(lane))) }
            }
        }
    });
    all.collect()
}

fn loaded(insn: &Instruction, lanes: &Lanes, data: Register) -> Option<Vec<Part>> {
    let to = Place::of(data)?;
    let is_vex_move = insn.encoding() == EncodingKind::VEX && lanes.order != Order::Indexed;
    let keeps_old = !insn.zeroing_masking() && !is_vex_move;
    let lane = |lane: u32| {
        let own = to.bytes(lanes.bytes(lane));
        let old = keeps_old.then(|| own.clone());
        let mask = lanes.mask(lane).into_iter();
        match lanes.order {
            Order::Packed => {
                // Those below may be left out.
                let memory = (0..=lane).map(|lane| lanes.memory(lane));
                Part::computed(own, memory.chain(mask).chain(old).collect())
            }
            _ => {
                let from = [lanes.memory(lane)].into_iter().chain(old).collect();
                Part { whole: mask.collect(), ..Part::lanes(own, 1, from) }
            }
        }
    };
    let mut parts: Vec<Part> = (0..lanes.count).map(lane).collect();
    let (end, size) = (lanes.count * lanes.size, data.size() as u32);
    if end < size {
        parts.push(Part::constant(to.bytes(end..size)));
    }
    parts.extend(cleared(insn, data));
    Some(parts)
}

/// A mask of which lanes are so.
fn compared(insn: &Instruction, lanes: &Lanes, to: Place) -> Vec<Part> {
    let memory = (0..lanes.count).map(|lane| lanes.memory(lane));
    let other = Place::of(insn.op1_register());
    let sources = memory.chain(other).chain(Place::of(lanes.mask)).collect();
    vec![Part::computed(to, sources)]
}

pub(crate) fn operands(insn: &Instruction, info: &InstructionInfo) -> Option<Vec<Operand>> {
    let lanes = Lanes::of(insn)?;
    let memory: &UsedMemory = accessed(info).next()?;
    let index = |lane: u32| -> Option<Range<Cell>> {
        let index = memory.index();
        if lanes.order != Order::Indexed {
            return cells::of(index);
        }
        let size = if insn.is_vsib32() { 4 } else { 8 };
        match Place::of(index)?.bytes(lane * size..(lane + 1) * size) {
            Place::Cells(cells) => Some(cells),
            _ => None,
        }
    };
    let operand = |lane: u32| {
        let registers = [cells::of(memory.base()), index(lane)].into_iter().flatten();
        let address = registers.filter(|cells| !cells::is_stack_pointer(cells)).collect();
        Operand { address, size: Size::Bytes(lanes.size) }
    };
    Some((0..lanes.count).map(operand).collect())
}

/// Elements that are not masked lie side by side in memory.
fn packs(insn: &Instruction) -> bool {
    matches!(
        insn.mnemonic(),
        M::Vpcompressb
            | M::Vpcompressw
            | M::Vpcompressd
            | M::Vpcompressq
            | M::Vcompressps
            | M::Vcompresspd
            | M::Vpexpandb
            | M::Vpexpandw
            | M::Vpexpandd
            | M::Vpexpandq
            | M::Vexpandps
            | M::Vexpandpd
    )
}

/// Each element in memory has its bit in the mask.
fn masks(insn: &Instruction) -> bool {
    !insn.is_broadcast()
        && matches!(
            insn.mnemonic(),
            M::Vmovdqu8
                | M::Vmovdqu16
                | M::Vmovdqu32
                | M::Vmovdqu64
                | M::Vmovdqa32
                | M::Vmovdqa64
                | M::Vmovups
                | M::Vmovupd
                | M::Vmovaps
                | M::Vmovapd
                | M::Vmovss
                | M::Vmovsd
                | M::Vpcmpb
                | M::Vpcmpw
                | M::Vpcmpd
                | M::Vpcmpq
                | M::Vpcmpub
                | M::Vpcmpuw
                | M::Vpcmpud
                | M::Vpcmpuq
                | M::Vpcmpeqb
                | M::Vpcmpeqw
                | M::Vpcmpeqd
                | M::Vpcmpeqq
                | M::Vpcmpgtb
                | M::Vpcmpgtw
                | M::Vpcmpgtd
                | M::Vpcmpgtq
        )
}
