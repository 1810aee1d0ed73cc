//! Which memory one instruction accesses, given the registers before it. Repeated
//! string instructions are not treated here: how far they come, only their end tells.

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpKind, UsedMemory};

use crate::access::{Access, Kind};
use crate::lanes::Lanes;
use crate::registers::Registers;

/// In the order in which they are listed.
pub fn of(instruction: &Instruction, registers: &Registers) -> Vec<Access> {
    let mut accesses = Vec::new();
    for used in InstructionInfoFactory::new().info(instruction).used_memory() {
        let Some(kind) = Kind::of(used.access()) else {
            continue;
        };
        let pieces = pieces(instruction, used, registers);
        accesses.extend(pieces.into_iter().map(|Piece { address, size }| Access {
            pc: instruction.ip(),
            address,
            size,
            kind,
        }));
    }
    accesses.sort();
    accesses
}

struct Piece {
    address: u64,
    size: u64,
}

/// The parts of an operand that are accessed.
fn pieces(instruction: &Instruction, used: &UsedMemory, registers: &Registers) -> Vec<Piece> {
    if instruction.is_vsib() {
        return indexed(instruction, used, registers);
    }
    let address = registers.address(used, 0);
    let size = used.memory_size().size() as u64;
    let element = used.memory_size().element_size() as u64;
    if is_bit_in_a_string(instruction) {
        let distance = distance_to_bit(instruction, registers, size.cast_signed());
        return vec![Piece { address: registers.address_moved_by(used, distance), size }];
    }
    // The one element of a broadcast is read whatever the mask.
    if !instruction.is_broadcast() {
        if let Some(lanes) = lanes_of_masked_move(instruction, registers, element, size) {
            return runs(&lanes, address);
        }
        if is_packing(instruction) && instruction.has_op_mask() {
            let lanes = Lanes::of_mask(registers, instruction.op_mask(), element, size);
            let size = element * lanes.active().count() as u64;
            return if size > 0 { vec![Piece { address, size }] } else { vec![] };
        }
    }
    vec![Piece { address, size }]
}

/// A bit offset in a register reaches beyond the operand.
fn is_bit_in_a_string(instruction: &Instruction) -> bool {
    use Mnemonic::{Bt, Btc, Btr, Bts};
    matches!(instruction.mnemonic(), Bt | Bts | Btr | Btc)
        && instruction.op0_kind() == OpKind::Memory
        && instruction.op1_kind() == OpKind::Register
}

/// From the operand to the element of the same size that holds the bit.
fn distance_to_bit(instruction: &Instruction, registers: &Registers, size: i64) -> i64 {
    let unused_bits = 64 - 8 * size;
    let offset = registers.value(instruction.op1_register()).cast_signed();
    let offset = offset << unused_bits >> unused_bits;
    offset.div_euclid(8 * size) * size
}

/// Gathers and scatters: every active element for itself.
fn indexed(instruction: &Instruction, used: &UsedMemory, registers: &Registers) -> Vec<Piece> {
    let element = used.memory_size().element_size() as u64;
    let is_gather = instruction.op0_kind() == OpKind::Register;
    let data = instruction.op_register(if is_gather { 0 } else { 1 });
    let elements = (data.size() as u64 / element)
        .min(used.index().size() as u64 / u64::from(used.vsib_size()));
    let bytes = elements * element;
    let lanes = if instruction.has_op_mask() {
        Lanes::of_mask(registers, instruction.op_mask(), element, bytes)
    } else {
        Lanes::of_signs(registers, instruction.op2_register(), element, bytes)
    };
    lanes
        .active()
        .map(|lane| Piece { address: registers.address(used, lane), size: element })
        .collect()
}

/// Of a move or comparison that does without the elements its mask leaves out;
/// None for other instructions.
fn lanes_of_masked_move(
    instruction: &Instruction,
    registers: &Registers,
    element: u64,
    size: u64,
) -> Option<Lanes> {
    use Mnemonic::*;
    match instruction.mnemonic() {
        Vmovdqu8 | Vmovdqu16 | Vmovdqu32 | Vmovdqu64 | Vmovdqa32 | Vmovdqa64 | Vmovups
        | Vmovupd | Vmovaps | Vmovapd | Vmovss | Vmovsd | Vpcmpb | Vpcmpw | Vpcmpd | Vpcmpq
        | Vpcmpub | Vpcmpuw | Vpcmpud | Vpcmpuq | Vpcmpeqb | Vpcmpeqw | Vpcmpeqd | Vpcmpeqq
        | Vpcmpgtb | Vpcmpgtw | Vpcmpgtd | Vpcmpgtq
            if instruction.has_op_mask() =>
        {
            Some(Lanes::of_mask(registers, instruction.op_mask(), element, size))
        }
        Vmaskmovps | Vmaskmovpd | Vpmaskmovd | Vpmaskmovq => {
            Some(Lanes::of_signs(registers, instruction.op1_register(), element, size))
        }
        // Their operand is one number to the decoder; their mask counts bytes.
        Maskmovq | Maskmovdqu | Vmaskmovdqu => {
            Some(Lanes::of_signs(registers, instruction.op2_register(), 1, size))
        }
        _ => None,
    }
}

/// Does it move the active elements to or from adjacent places?
fn is_packing(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(
        instruction.mnemonic(),
        Vpcompressb
            | Vpcompressw
            | Vpcompressd
            | Vpcompressq
            | Vcompressps
            | Vcompresspd
            | Vpexpandb
            | Vpexpandw
            | Vpexpandd
            | Vpexpandq
            | Vexpandps
            | Vexpandpd
    )
}

/// Adjacent active elements are one access.
fn runs(lanes: &Lanes, address: u64) -> Vec<Piece> {
    let mut runs: Vec<Piece> = Vec::new();
    for lane in lanes.active() {
        let start = address.wrapping_add(lane as u64 * lanes.size);
        match runs.last_mut() {
            Some(run) if run.address.wrapping_add(run.size) == start => run.size += lanes.size,
            _ => runs.push(Piece { address: start, size: lanes.size }),
        }
    }
    runs
}
