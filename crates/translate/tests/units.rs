//! What translation promises, on small pieces of code.

use iced_x86::{CpuidFeature, Decoder, DecoderOptions, Mnemonic};
use why_translate::context::CallClass;
use why_translate::{ExitKind, Features, Place, Request, Tool, TranslateError, Unit, translate};

const PC: u64 = 0x5555_0000_1000;
const AT: u64 = 0x5554_c000_0000;

fn request(tool: Tool) -> Request<'static> {
    Request {
        pc: PC,
        at: AT,
        tool,
        at_most: None,
        call_class: |_| CallClass::Direct,
        shapes: Box::leak(Box::default()),
        longer: false,
        taken: &|_, _| false,
        leads_to: &|_, _| None,
        leave_before: why_translate::LeaveBefore::Nothing,
        expected: Features::ALL,
        shown: Features::ALL,
        limit_xsave: false,
        calls: why_translate::Calls::Logged,
        transactions: false,
        verify: false,
        gs_base_writable: true,
    }
}

fn unit(code: &[u8], tool: Tool) -> Unit {
    translated(code, &request(tool)).expect("the code can be translated")
}

fn translated(code: &[u8], request: &Request) -> Result<Unit, TranslateError> {
    let fetch = &mut |pc: u64, buffer: &mut [u8]| {
        let from = pc.checked_sub(PC).and_then(|o| code.get(o as usize..)).unwrap_or_default();
        let length = from.len().min(buffer.len());
        buffer[..length].copy_from_slice(&from[..length]);
        length
    };
    translate(request, fetch)
}

/// `lea rax, [rip+0x1234]; cmp rax, rbx; je +0x20; add rax, rbx; jne -16; ret`
const BRANCHES: &[u8] = &[
    0x48, 0x8d, 0x05, 0x34, 0x12, 0, 0, 0x48, 0x39, 0xd8, 0x74, 0x20, 0x48, 0x01, 0xd8, 0x75, 0xef,
    0xc3,
];

#[test]
fn operands_relative_to_rip_keep_their_target() {
    for tool in [Tool::None, Tool::Count, Tool::Exact, Tool::Trace, Tool::ExactTrace] {
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
    for tool in [Tool::None, Tool::Count, Tool::Exact, Tool::Trace, Tool::ExactTrace] {
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
fn a_short_loop_is_repeated_when_counting() {
    // lea rdi, [rdi + 8]; cmp rdi, rsi; jne to the beginning; ret
    let code = [0x48, 0x8d, 0x7f, 8, 0x48, 0x39, 0xf7, 0x75, 0xf7, 0xc3];
    assert_eq!(unit(&code, Tool::None).spans.len(), 3);
    let unit = unit(&code, Tool::Count);
    let turns = unit.spans.iter().filter(|span| span.pc == PC).count();
    assert!(turns > 4 && unit.spans.len() == 3 * turns, "{turns} turns");
    // Each turn may be the last one; only the last one leads back.
    let ends = |exit: &&why_translate::Exit| exit.kind == ExitKind::Direct(PC + 9);
    assert_eq!(unit.exits.iter().filter(ends).count(), turns);
    assert!(unit.exits.iter().all(|exit| exit.site.is_some()), "{:?}", unit.exits);
}

#[test]
fn a_unit_goes_on_where_a_branch_mostly_leads() {
    // inc eax; jz +1; ret; dec eax; jnz to the beginning; ret
    let mut code = vec![0xff, 0xc0, 0x74, 1, 0xc3, 0xff, 0xc8, 0x75, 0xf7, 0xc3];
    code.resize(30, 0);
    let translated = |taken: &dyn Fn(u64, usize) -> bool| {
        let unit = translated(&code, &Request { taken, ..request(Tool::None) }).unwrap();
        let order: Vec<u64> = unit.spans.iter().map(|span| span.pc - PC).collect();
        let exits: Vec<ExitKind> = unit.exits.iter().map(|exit| exit.kind).collect();
        (order, exits)
    };
    let (order, exits) = translated(&|_, _| false);
    assert_eq!(order, [0, 2, 4]);
    assert_eq!(exits, [ExitKind::Direct(PC + 5)]);
    let (order, exits) = translated(&|branch, _| branch == PC + 2);
    assert_eq!(order, [0, 2, 5, 7]);
    assert!(exits.contains(&ExitKind::Direct(PC + 4)), "{exits:?}");
}

#[test]
fn a_longer_unit_goes_on_behind_a_loop() {
    let last = |longer| {
        let request = Request { longer, ..request(Tool::ExactTrace) };
        let unit = translated(BRANCHES, &request).unwrap();
        unit.spans.iter().map(|span| span.pc).max().unwrap()
    };
    assert_eq!(last(false) - PC, 15);
    assert!(last(true) - PC > 15);
}

#[test]
fn a_register_that_holds_the_sum_is_given_back_at_a_fault() {
    // mov rax, [rdi]; nop up to the greatest length: nothing frees the flags.
    let mut code = vec![0x48, 0x8b, 0x07];
    code.resize(100, 0x90);
    let unit = unit(&code, Tool::Count);
    let mut decoder = Decoder::with_ip(64, &unit.code, 0, DecoderOptions::NONE);
    let load = decoder.iter().find(|i| i.memory_base() == iced_x86::Register::RDI).unwrap();
    let Place::Within(0, loans) = unit.place(load.ip() as u32) else {
        panic!("the load is the first instruction's");
    };
    assert_eq!(loans[0].map(|(register, _)| register), Some(0));
    assert_eq!(unit.uncounted(load.ip() as u32, 0), -(unit.spans.len() as i64));
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

/// What becomes of `call callee; ret`, with the callee behind it.
fn called(callee: &[u8]) -> Vec<Mnemonic> {
    let mut code = vec![0xe8, 1, 0, 0, 0, 0xc3];
    code.extend(callee);
    code.resize(60, 0);
    let unit = unit(&code, Tool::None);
    let mut decoder = Decoder::with_ip(64, &unit.code, AT, DecoderOptions::NONE);
    let mut order = Vec::new();
    while decoder.position() < unit.stubs as usize {
        order.push(decoder.decode().mnemonic());
    }
    order
}

#[test]
fn a_return_address_that_nobody_can_have_changed_is_not_read() {
    // Until the unit's last return: push rbx; mov [rsp - 8], rax; pop rbx; ret
    let kept = called(&[0x53, 0x48, 0x89, 0x44, 0x24, 0xf8, 0x5b, 0xc3]);
    assert_eq!(kept.iter().filter(|&&m| m == Mnemonic::Jrcxz).count(), 0, "{kept:?}");
    for changing in [
        &[0x48, 0x89, 0x04, 0x24, 0xc3][..], // mov [rsp], rax; ret
        &[0x53, 0x48, 0x89, 0x44, 0x24, 4, 0x5b, 0xc3], // push rbx; mov [rsp + 4], rax; pop rbx; ret
        &[0x48, 0x89, 0x07, 0xc3],                      // mov [rdi], rax; ret
        &[0x53, 0xc3],                                  // push rbx; ret
        &[0x48, 0x89, 0xfc, 0xc3],                      // mov rsp, rdi; ret
    ] {
        let checked = called(changing);
        assert!(checked.contains(&Mnemonic::Jrcxz), "{changing:x?}: {checked:?}");
    }
}

#[test]
fn an_instruction_cut_off_is_none() {
    let fetch = &mut |_: u64, buffer: &mut [u8]| {
        buffer[0] = 0x48;
        1
    };
    assert!(translate(&request(Tool::None), fetch).is_err());
}

/// `xsave [rax + rdx*2]`, `xsavec64 [rsp]`, `xrstor64 [rip]`, `xsaveopt gs:[rcx]`.
const SAVES: [&[u8]; 4] = [
    &[0x0f, 0xae, 0x24, 0x50],
    &[0x48, 0x0f, 0xc7, 0x24, 0x24],
    &[0x48, 0x0f, 0xae, 0x2d, 0, 0, 0, 0],
    &[0x65, 0x0f, 0xae, 0x31],
];

#[test]
fn saving_registers_is_limited_and_a_fault_finds_the_registers_borrowed() {
    for code in SAVES {
        let limited = Request { limit_xsave: true, ..request(Tool::Exact) };
        let unit = translated(code, &limited).unwrap();
        let mut decoder = Decoder::with_ip(64, &unit.code, AT, DecoderOptions::NONE);
        let save = decoder
            .iter()
            .find(|insn| format!("{:?}", insn.mnemonic()).starts_with('X'))
            .expect("the instruction is still there");
        let offset = (save.ip() - AT) as u32;
        let Place::Within(0, loans) = unit.place(offset) else {
            panic!("{:?}", unit.place(offset));
        };
        let borrowed: Vec<u8> = loans.iter().flatten().map(|&(register, _)| register).collect();
        assert!(borrowed.len() == 3 && borrowed.contains(&0) && borrowed.contains(&2), "{loans:?}");
    }
}

#[test]
fn a_unit_ends_before_an_instruction_that_is_not_expected() {
    // mov eax, 1; vpaddd zmm0, zmm0, zmm0
    let code = &[0xb8, 1, 0, 0, 0, 0x62, 0xf1, 0x7d, 0x48, 0xfe, 0xc0];
    let mut shown = Features::ALL;
    shown.remove(CpuidFeature::AVX512F);
    let unexpected = Request { expected: shown, shown, ..request(Tool::Exact) };
    let unit = translated(code, &unexpected).unwrap();
    assert_eq!(unit.instructions(), 1);
    assert!(unit.exits.iter().any(|exit| exit.kind == ExitKind::Direct(PC + 5)) && !unit.beyond);
    let error = translated(&code[5..], &unexpected).err();
    assert_eq!(error, Some(TranslateError::Unexpected(PC)));
    let unit = translated(code, &Request { shown, ..request(Tool::Exact) }).unwrap();
    assert!(unit.instructions() == 2 && unit.beyond);
}

#[test]
fn who_tells_what_comes_of_an_instruction_counts_it() {
    // rdtsc, alone and behind `mov rax, rbx`
    for (code, before) in [(&[0x0f, 0x31][..], 0), (&[0x48, 0x89, 0xd8, 0x0f, 0x31], 1)] {
        for tool in [Tool::Exact, Tool::ExactTrace] {
            let leave_before = why_translate::LeaveBefore::Varying;
            let unit = translated(code, &Request { leave_before, ..request(tool) }).unwrap();
            let counted = unit.counted.last().map_or(0, |&(_, instructions)| instructions);
            assert_eq!(counted, before, "{tool:?}: {code:02x?}");
        }
    }
}
