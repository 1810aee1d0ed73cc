//! What translation promises, on small pieces of code.

use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use why_translate::context::CallClass;
use why_translate::{ExitKind, Place, Request, Tool, Unit, translate};

const PC: u64 = 0x5555_0000_1000;
const AT: u64 = 0x5554_c000_0000;

fn request(tool: Tool) -> Request {
    Request {
        pc: PC,
        at: AT,
        tool,
        at_most: None,
        call_class: |_| CallClass::Direct,
        trace_id: 16,
        transactions: false,
        verify: false,
        gs_base_writable: true,
    }
}

fn unit(code: &[u8], tool: Tool) -> Unit {
    let fetch = &mut |pc: u64, buffer: &mut [u8]| {
        let from = pc.checked_sub(PC).and_then(|o| code.get(o as usize..)).unwrap_or_default();
        let length = from.len().min(buffer.len());
        buffer[..length].copy_from_slice(&from[..length]);
        length
    };
    translate(&request(tool), fetch).expect("the code can be translated")
}

/// `lea rax, [rip+0x1234]; cmp rax, rbx; je +0x20; add rax, rbx; jne -16; ret`
const BRANCHES: &[u8] = &[
    0x48, 0x8d, 0x05, 0x34, 0x12, 0, 0, 0x48, 0x39, 0xd8, 0x74, 0x20, 0x48, 0x01, 0xd8, 0x75, 0xef,
    0xc3,
];

#[test]
fn operands_relative_to_rip_keep_their_target() {
    for tool in [Tool::None, Tool::Count, Tool::Trace] {
        let unit = unit(BRANCHES, tool);
        let mut decoder = Decoder::with_ip(64, &unit.code, AT, DecoderOptions::NONE);
        let lea = decoder
            .iter()
            .find(|insn| insn.mnemonic() == Mnemonic::Lea && insn.is_ip_rel_memory_operand())
            .expect("the instruction is still there");
        assert_eq!(lea.memory_displacement64(), PC + 7 + 0x1234, "{tool:?}");
    }
}

#[test]
fn a_back_edge_ends_a_unit_and_both_ways_are_exits() {
    let unit = unit(BRANCHES, Tool::None);
    let targets: Vec<_> = unit.exits.iter().map(|exit| exit.kind).collect();
    let expected = [PC + 12 + 0x20, PC, PC + 17].map(ExitKind::Direct);
    assert_eq!(targets.len(), 3);
    assert!(expected.iter().all(|kind| targets.contains(kind)), "{targets:x?}");
}

#[test]
fn every_instruction_begins_at_a_boundary() {
    for tool in [Tool::None, Tool::Count, Tool::Trace] {
        let unit = unit(BRANCHES, tool);
        for (index, span) in unit.spans.iter().enumerate() {
            assert_eq!(unit.place(span.code), Place::Before(index), "{tool:?}");
        }
    }
}

#[test]
fn the_count_misses_nothing_at_linkable_exits() {
    let unit = unit(BRANCHES, Tool::Count);
    // Both comparisons offer a place to count before, so no exit has to correct.
    assert!(unit.exits.iter().all(|exit| exit.site.is_some()), "{:?}", unit.exits);
    assert_eq!(unit.uncounted(0, 0), 0);
    let last = unit.spans[4];
    assert_eq!(unit.uncounted(last.code, 4), -1, "the last branch is counted in advance");
}

#[test]
fn a_call_and_its_return_stay_in_the_unit() {
    // call +1; ret; nop; ret — the call's target is the nop.
    let unit = unit(
        &[0xe8, 1, 0, 0, 0, 0xc3, 0x90, 0xc3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        Tool::None,
    );
    let order: Vec<u64> = unit.spans.iter().map(|span| span.pc - PC).collect();
    assert_eq!(order, [0, 6, 7, 5]);
}

#[test]
fn an_instruction_cut_off_is_none() {
    let fetch = &mut |_: u64, buffer: &mut [u8]| {
        buffer[0] = 0x48;
        1
    };
    assert!(translate(&request(Tool::None), fetch).is_err());
}
