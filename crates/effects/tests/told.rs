//! What is told of some instructions, byte by byte: no more than there is.

use iced_x86::{Decoder, InstructionInfoFactory, Register};
use why_effects::cells::{self, Cell};
use why_effects::{Effects, Place, effects};

fn told(code: &[u8]) -> Effects {
    effects(&Decoder::new(64, code, 0).decode(), &mut InstructionInfoFactory::new())
}

/// What a byte behind the instruction depends on; none if it stays what it was.
fn sources(told: &Effects, cell: Cell) -> Option<Vec<Place>> {
    let part = told.parts.iter().find(|part| match &part.to {
        Place::Cells(cells) => cells.contains(&cell),
        _ => false,
    })?;
    let Place::Cells(cells) = &part.to else { unreachable!() };
    Some(part.sources(u32::from(cell - cells.start)).collect())
}

fn cell(register: Register, byte: Cell) -> Cell {
    cells::of(register).expect("it has cells").start + byte
}

fn bytes(register: Register, from: Cell, to: Cell) -> Place {
    Place::Cells(cell(register, from)..cell(register, to))
}

fn memory(operand: usize, byte: u32) -> Place {
    Place::Memory { operand, bytes: byte..byte + 1 }
}

#[test]
fn a_load_depends_byte_by_byte_and_clears_the_rest() {
    let told = told(&[0x8b, 0x43, 0x10]); // mov eax, [rbx+16]
    assert_eq!(sources(&told, cell(Register::RAX, 2)), Some(vec![memory(0, 2)]));
    assert_eq!(sources(&told, cell(Register::RAX, 5)), Some(vec![]));
    assert_eq!(sources(&told, cell(Register::RBX, 0)), None);
    assert_eq!(told.operands[0].address, [cells::of(Register::RBX).unwrap()]);
}

#[test]
fn bytes_that_change_places_do_so_one_by_one() {
    let told = told(&[0x0f, 0xc8]); // bswap eax
    assert_eq!(sources(&told, cell(Register::RAX, 3)), Some(vec![bytes(Register::RAX, 0, 1)]));
    assert_eq!(sources(&told, cell(Register::RAX, 5)), Some(vec![]));
}

#[test]
fn a_comparison_of_scalars_leaves_the_rest() {
    let told = told(&[0xf2, 0x0f, 0xc2, 0xc1, 0x01]); // cmpltsd xmm0, xmm1
    let low = |register| bytes(register, 0, 8);
    assert_eq!(
        sources(&told, cell(Register::XMM0, 3)),
        Some(vec![low(Register::XMM1), low(Register::XMM0)])
    );
    assert_eq!(sources(&told, cell(Register::XMM0, 9)), None);
}

#[test]
fn parts_of_registers_leave_the_rest() {
    let told = told(&[0x88, 0xcc]); // mov ah, cl
    assert_eq!(sources(&told, cell(Register::RAX, 1)), Some(vec![bytes(Register::RCX, 0, 1)]));
    assert_eq!(sources(&told, cell(Register::RAX, 0)), None);
    assert_eq!(sources(&told, cell(Register::RAX, 2)), None);
}

#[test]
fn what_is_zero_depends_on_nothing() {
    let told = told(&[0x31, 0xc0]); // xor eax, eax
    assert_eq!(sources(&told, cell(Register::RAX, 7)), Some(vec![]));
    assert_eq!(sources(&told, cells::CARRY), Some(vec![]));
}

#[test]
fn vectors_go_by_lanes() {
    let added = told(&[0x66, 0x0f, 0xfe, 0xc1]); // paddd xmm0, xmm1
    let lane = |register| bytes(register, 4, 8);
    assert_eq!(
        sources(&added, cell(Register::XMM0, 6)),
        Some(vec![lane(Register::XMM0), lane(Register::XMM1)])
    );
    assert_eq!(sources(&added, cell(Register::XMM0, 16)), None);
    let shuffled = told(&[0x66, 0x0f, 0x70, 0xc1, 0x1b]); // pshufd xmm0, xmm1, 0x1b
    assert_eq!(
        sources(&shuffled, cell(Register::XMM0, 1)),
        Some(vec![bytes(Register::XMM1, 13, 14)])
    );
}

#[test]
fn a_scalar_of_avx_takes_the_rest_from_another() {
    let told = told(&[0xc5, 0xf3, 0x58, 0xc2]); // vaddsd xmm0, xmm1, xmm2
    let low = |register| bytes(register, 0, 8);
    assert_eq!(
        sources(&told, cell(Register::XMM0, 3)),
        Some(vec![low(Register::XMM2), low(Register::XMM1)])
    );
    assert_eq!(sources(&told, cell(Register::XMM0, 9)), Some(vec![bytes(Register::XMM1, 9, 10)]));
    assert_eq!(sources(&told, cell(Register::XMM0, 40)), Some(vec![]));
}

#[test]
fn where_a_frame_is_nobody_depends_on() {
    let call = told(&[0xe8, 0, 0, 0, 0]); // call
    assert!(call.parts.iter().all(|part| part.lanes.is_empty() && part.whole.is_empty()));
    let frame = told(&[0x48, 0x89, 0xe5]); // mov rbp, rsp
    assert!(frame.parts.iter().all(|part| part.frame));
    let address = told(&[0x48, 0x8d, 0x7c, 0x24, 0x08]); // lea rdi, [rsp+8]
    assert_eq!(sources(&address, cell(Register::RDI, 0)), Some(vec![]));
    assert!(!address.parts[0].frame);
    let pushed = told(&[0x53]); // push rbx
    assert_eq!(pushed.parts[0].sources(3).collect::<Vec<_>>(), [bytes(Register::RBX, 3, 4)]);
    assert_eq!(pushed.operands[0].address, []);
}

#[test]
fn an_exchange_with_a_sum_keeps_what_was_there() {
    let told = told(&[0x48, 0x0f, 0xc1, 0xc1]); // xadd rcx, rax
    assert_eq!(sources(&told, cell(Register::RAX, 2)), Some(vec![bytes(Register::RCX, 2, 3)]));
    assert!(sources(&told, cells::CARRY).unwrap().contains(&bytes(Register::RAX, 0, 8)));
}

#[test]
fn a_whole_number_comes_from_the_lowest_lane() {
    let told = told(&[0xf2, 0x0f, 0x2c, 0xc1]); // cvttsd2si eax, xmm1
    assert_eq!(sources(&told, cell(Register::RAX, 1)), Some(vec![bytes(Register::XMM1, 0, 8)]));
    assert_eq!(sources(&told, cell(Register::RAX, 6)), Some(vec![]));
}

#[test]
fn only_a_shift_by_a_register_may_leave_flags() {
    let carry = Place::Cells(cells::CARRY..cells::CARRY + 1);
    let by_number = told(&[0xc0, 0xe9, 0x02]); // shr cl, 2
    assert_eq!(sources(&by_number, cells::CARRY), Some(vec![bytes(Register::RCX, 0, 1)]));
    let by_register = told(&[0xd2, 0xe8]); // shr al, cl
    assert!(sources(&by_register, cells::CARRY).unwrap().contains(&carry));
}

#[test]
fn flags_go_to_the_stack_and_back() {
    let carry = Place::Cells(cells::CARRY..cells::CARRY + 1);
    let pushed = told(&[0x9c]); // pushfq
    let to_memory = pushed.parts.iter().find(|part| matches!(part.to, Place::Memory { .. }));
    assert!(to_memory.unwrap().whole.contains(&carry));
    let popped = told(&[0x9d]); // popfq
    let stack = Place::Memory { operand: 0, bytes: 0..8 };
    assert_eq!(sources(&popped, cells::CARRY), Some(vec![stack]));
}

#[test]
fn a_conditional_move_depends_on_both_and_on_the_condition() {
    let told = told(&[0x48, 0x0f, 0x44, 0xc1]); // cmove rax, rcx
    let zero = Place::Cells(cells::CARRY + 3..cells::CARRY + 4);
    assert_eq!(
        sources(&told, cell(Register::RAX, 4)),
        Some(vec![bytes(Register::RCX, 4, 5), bytes(Register::RAX, 4, 5), zero])
    );
}

#[test]
fn strings_go_byte_by_byte() {
    let told = told(&[0xf3, 0xa4]); // rep movsb
    assert_eq!(told.parts[0].sources(0).collect::<Vec<_>>(), [Place::String { operand: 1 }]);
    assert_eq!(sources(&told, cell(Register::RCX, 0)), Some(vec![]));
    let count = cells::of(Register::RCX).unwrap();
    assert!(told.operands.iter().all(|operand| operand.address.contains(&count)));
}

#[test]
fn a_system_call_depends_on_what_it_is_told() {
    let told = told(&[0x0f, 0x05]); // syscall
    let given = Place::of(Register::RDI).unwrap();
    assert!(sources(&told, cell(Register::RAX, 0)).unwrap().contains(&given));
    assert!(told.decides.contains(&given));
    assert_eq!(sources(&told, cell(Register::RCX, 0)), Some(vec![]));
    assert_eq!(sources(&told, cell(Register::RDI, 0)), None);
}

#[test]
fn lanes_of_memory_are_operands_that_the_mask_selects_one_by_one() {
    let loaded = told(&[0xc4, 0xe2, 0x6d, 0x8c, 0x08]); // vpmaskmovd ymm1, ymm2, [rax]
    let sign = bytes(Register::YMM2, 11, 12);
    assert_eq!(sources(&loaded, cell(Register::YMM1, 9)), Some(vec![memory(2, 1), sign]));
    assert_eq!(loaded.operands.len(), 8);
    // vpgatherdd xmm1, [rax+xmm2*4], xmm3
    let gathered = told(&[0xc4, 0xe2, 0x61, 0x90, 0x0c, 0x90]);
    let (old, sign) = (bytes(Register::XMM1, 9, 10), bytes(Register::XMM3, 11, 12));
    assert_eq!(sources(&gathered, cell(Register::XMM1, 9)), Some(vec![memory(2, 1), old, sign]));
    assert_eq!(sources(&gathered, cell(Register::XMM3, 9)), Some(vec![]));
    let index = cell(Register::XMM2, 8)..cell(Register::XMM2, 12);
    assert_eq!(gathered.operands[2].address, [cells::of(Register::RAX).unwrap(), index]);
}
