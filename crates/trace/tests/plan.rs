//! What is planned of a unit is what following its records instruction by instruction finds.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory};
use object::{Object, ObjectSection};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use why_effects::{Lanes, effects};
use why_trace::follow::Follower;
use why_trace::nowhere::is_nowhere;
use why_trace::plan::{Before, Plan, Values};
use why_trace::shape::{Kind, Planner, Shape, slots};
use why_trace::{FIRST_UNIT_ID, FS_BASE, STACK, THREAD, header};

/// Code that accesses lanes: of each kind, with masks of each kind.
const LANES: &str = include_str!("../../effects/tests/perturbed/lanes.s");

/// Each instruction in a unit of its own, and with the next ones in another.
fn lanes() -> Vec<Arc<Shape>> {
    let directory = tempfile::tempdir().expect("a directory");
    let (source, object) = (directory.path().join("lanes.s"), directory.path().join("lanes.o"));
    std::fs::write(&source, LANES).expect("writing code");
    let assembler = Command::new("cc").arg("-c").arg(&source).arg("-o").arg(&object).status();
    assert!(assembler.expect("an assembler").success());
    let code = text(&std::fs::read(&object).expect("an object file"));
    let decoder = Decoder::with_ip(64, &code, 0x1000, DecoderOptions::NONE);
    let instructions: Vec<Instruction> = decoder.into_iter().collect();
    let lines = LANES.lines().filter(|line| line.starts_with("    "));
    assert_eq!(instructions.len(), lines.count());
    let shape = |some: &[Instruction]| {
        let mut planner = Planner::default();
        some.iter().for_each(|insn| planner.instruction(insn));
        Arc::new(planner.finish())
    };
    instructions.chunks(1).chain(instructions.windows(4)).map(shape).collect()
}

fn text(file: &[u8]) -> Vec<u8> {
    let file = object::File::parse(file).expect("an ELF file");
    file.section_by_name(".text").expect("code").data().expect("its bytes").to_vec()
}

/// Stretches of a library's code, as units have them.
fn shapes(library: &str) -> Vec<Arc<Shape>> {
    let directory = Path::new("/usr/lib/x86_64-linux-gnu");
    let code = text(&std::fs::read(directory.join(library)).expect("a library of this machine"));
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

/// Where an instruction accessed memory: its address, where, and how many bytes.
type Access = (u64, u64, u64);

/// The accesses of a record, those that are planned and those that are followed, and how many
/// instructions are not planned.
fn both(shape: &Arc<Shape>, random: &mut Random) -> (Vec<Access>, Vec<Access>, usize) {
    let plan = Plan::of(shape, &mut InstructionInfoFactory::new());
    let mut follower = Follower::default();
    follower.learn(&[Arc::clone(shape)], &Kind::all(0, shape));
    let executed = match random.next() % 3 {
        0 => random.next() as usize % (shape.instructions.len() + 1),
        _ => shape.instructions.len(),
    };
    let told = shape.slots_before(executed) + slots(&shape.told[executed]);
    let slots: Vec<u64> = (0..told).map(|_| random.next() ^ random.next() << 32).collect();
    let before = Before { stack: random.next() & !7, fs: random.next(), gs: 0 };
    let mut words: Vec<u64> = Vec::new();
    for (id, value) in [(THREAD, 7), (STACK, before.stack), (FS_BASE, before.fs)] {
        words.extend([i64::from(header(id, 1)) as u64, value]);
    }
    words.push(i64::from(header(FIRST_UNIT_ID + executed as u32, told)) as u64);
    words.extend(&slots);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut followed: Vec<Access> = Vec::new();
    let mut sink = |access: &why_trace::access::Access| {
        followed.push((access.pc, access.address, access.size));
    };
    follower.read(&bytes, &mut sink).expect("a well formed record");
    follower.finish(&mut sink);

    let mut values = Values::default();
    values.tell(&slots);
    plan.compute_part(before, executed, &mut values);
    let mut planned: Vec<Access> = Vec::new();
    for access in plan.accesses.iter().filter(|access| usize::from(access.instruction) < executed) {
        let (address, size) = access.range(&values);
        if !is_nowhere(address) {
            planned.push((shape.instructions[usize::from(access.instruction)].ip(), address, size));
        }
    }
    planned.retain(|(_, _, size)| *size > 0);
    let without: Vec<u64> =
        plan.unplanned.iter().map(|i| shape.instructions[usize::from(*i)].ip()).collect();
    followed.retain(|(pc, _, size)| !without.contains(pc) && *size > 0);
    // Lanes that lie side by side are one for who follows them.
    let is_lane = |(pc, _, _): &Access| {
        shape.instructions.iter().any(|insn| insn.ip() == *pc && Lanes::of(insn).is_some())
    };
    for accesses in [&mut planned, &mut followed] {
        let (lanes, others): (Vec<Access>, Vec<Access>) = accesses.iter().partition(|a| is_lane(a));
        let bytes = |(pc, at, size): Access| (0..size).map(move |i| (pc, at.wrapping_add(i), 1));
        *accesses = lanes.into_iter().flat_map(bytes).chain(others).collect();
        accesses.sort_unstable();
    }
    (planned, followed, plan.unplanned.len())
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.0 >> 7
    }
}

#[test]
fn addresses_are_those_that_are_followed() {
    let mut random = Random(1);
    let (mut compared, mut unplanned) = (0, 0);
    for shape in ["libc.so.6", "libmvec.so.1"].into_iter().flat_map(shapes) {
        let (planned, followed, without) = both(&shape, &mut random);
        compared += planned.len();
        unplanned += without;
        assert_eq!(planned, followed, "{:x?}", shape.instructions.first().map(|insn| insn.ip()));
    }
    println!("{compared} accesses, {unplanned} instructions are not planned");
    assert!(compared > 50_000);
    // Only what sets the base of a segment.
    assert!(unplanned < 10, "{unplanned}");
}

#[test]
fn lanes_are_those_that_are_followed() {
    let mut random = Random(1);
    let mut factory = InstructionInfoFactory::new();
    let mut compared = 0;
    for shape in lanes() {
        let all = shape.instructions.iter();
        let told: usize = all.map(|insn| effects(insn, &mut factory).operands.len()).sum();
        assert_eq!(
            Plan::of(&shape, &mut factory).accesses.len(),
            told,
            "{}",
            shape.instructions[0]
        );
        for _ in 0..40 {
            let (planned, followed, without) = both(&shape, &mut random);
            assert_eq!(planned, followed, "{}", shape.instructions[0]);
            assert_eq!(without, 0);
            compared += planned.len();
        }
    }
    assert!(compared > 20_000, "{compared}");
}
