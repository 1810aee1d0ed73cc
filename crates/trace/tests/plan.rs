//! What is planned of a unit is what following its records instruction by instruction finds.

use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory};
use object::{Object, ObjectSection};
use std::sync::Arc;
use why_trace::follow::Follower;
use why_trace::plan::{Before, Plan, Values};
use why_trace::shape::{Planner, Shape};
use why_trace::{FIRST_UNIT_ID, FS_BASE, STACK, THREAD, header};

/// Stretches of a library's code, as units have them.
fn shapes() -> Vec<Arc<Shape>> {
    let library = "/usr/lib/x86_64-linux-gnu/libc.so.6";
    let bytes = std::fs::read(library).expect("a library of this machine");
    let file = object::File::parse(&*bytes).expect("an ELF file");
    let text = file.section_by_name(".text");
    let code = text.expect("code").data().expect("its bytes").to_vec();
    let mut shapes = Vec::new();
    let mut planner = Planner::default();
    let mut count = 0;
    for insn in &mut Decoder::with_ip(64, &code, 0x1000, DecoderOptions::NONE) {
        let ends = insn.is_invalid() || insn.flow_control() != FlowControl::Next || count == 20;
        if ends || planner.slots > 40 {
            shapes.push(Arc::new(std::mem::take(&mut planner).finish()));
            count = 0;
        } else {
            planner.instruction(&insn);
            count += 1;
        }
    }
    shapes
}

#[test]
fn addresses_are_those_that_are_followed() {
    let mut random = 1u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        random >> 7
    };
    let (mut compared, mut unplanned) = (0, 0);
    let mut factory = InstructionInfoFactory::new();
    let mut values = Values::default();
    for shape in shapes() {
        let plan = Plan::of(&shape, &mut factory);
        let mut follower = Follower::default();
        follower.learn(&[Arc::clone(&shape)]);
        let executed = match next() % 3 {
            0 => next() as usize % (shape.instructions.len() + 1),
            _ => shape.instructions.len(),
        };
        let told = shape.slots_before(executed)
            + shape.told[executed].iter().map(|register| register.size() / 8).sum::<usize>();
        let slots: Vec<u64> = (0..told).map(|_| next()).collect();
        let before = Before { stack: next() & !7, fs: next(), gs: 0 };
        let mut words: Vec<u64> = Vec::new();
        for (id, value) in [(THREAD, 7), (STACK, before.stack), (FS_BASE, before.fs)] {
            words.extend([i64::from(header(id, 1)) as u64, value]);
        }
        words.push(i64::from(header(FIRST_UNIT_ID + executed as u32, told)) as u64);
        words.extend(&slots);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut followed: Vec<(u64, u64, u64)> = Vec::new();
        let mut sink = |access: &why_trace::access::Access| {
            followed.push((access.pc, access.address, access.size));
        };
        follower.read(&bytes, &mut sink).expect("a well formed record");
        follower.finish(&mut sink);

        plan.compute(before, executed, &slots, &mut values);
        let mut planned: Vec<(u64, u64, u64)> = Vec::new();
        for access in &plan.accesses {
            let index = usize::from(access.instruction);
            if index < executed {
                let (address, size) = access.range(&values);
                planned.push((shape.instructions[index].ip(), address, size));
            }
        }
        planned.retain(|(_, _, size)| *size > 0);
        unplanned += plan.unplanned.len();
        let without: Vec<u64> =
            plan.unplanned.iter().map(|i| shape.instructions[usize::from(*i)].ip()).collect();
        followed.retain(|(pc, _, size)| !without.contains(pc) && *size > 0);
        planned.sort_unstable();
        followed.sort_unstable();
        compared += planned.len();
        assert_eq!(planned, followed, "{:x?}", shape.instructions.first().map(|insn| insn.ip()));
    }
    println!("{compared} accesses, {unplanned} instructions are not planned");
    assert!(compared > 50_000);
}
