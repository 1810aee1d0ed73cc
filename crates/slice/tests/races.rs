//! Races in slices of random runs of a few threads, compared with the naive way: all instances
//! and calls are nodes of a graph, what orders two of them is an edge by the rules of
//! `docs/slice.md`, and two are ordered if a way leads from one to the other.

use iced_x86::{Code, Instruction, MemoryOperand, Register};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use why_slice::Ways;
use why_slice::region::{Builder, Criterion, Options, Region};
use why_trace::shape::{Kind, Planner};
use why_trace::{CALLED, CAME_BACK, ENDED, FIRST_UNIT_ID, MOMENT, STACK, THREAD, WROTE};

const RUNS: u64 = 1000;
const STEPS: usize = 60;
const MOST_THREADS: u64 = 4;
const WORDS: u64 = 6;
const CODE: u64 = 0x40_0000;
/// The pipe that there is.
const PIPE: [u64; 2] = [3, 4];

struct Straight;

impl Ways for Straight {
    fn meet(&self, _: u64) -> Option<u64> {
        None
    }
}

fn word(number: u64) -> Range<u64> {
    let start = 0x1000_0000 + 8 * number;
    start..start + 4
}

fn stack(thread: u64) -> u64 {
    0x7000_0000 + 0x10_0000 * thread
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Load,
    Store,
    StoreByte,
    Add,
    Exchange,
    LockedAdd,
    Wake,
    Wait,
    WriteToPipe,
    ReadFromPipe,
    Create { thread: u64 },
    End,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    thread: u64,
    what: What,
    word: u64,
}

impl Step {
    fn instruction(self) -> Option<Code> {
        match self.what {
            What::Load => Some(Code::Mov_r32_rm32),
            What::Store => Some(Code::Mov_rm32_r32),
            What::StoreByte => Some(Code::Mov_rm8_r8),
            What::Add => Some(Code::Add_rm32_r32),
            What::Exchange => Some(Code::Xchg_rm32_r32),
            What::LockedAdd => Some(Code::Xadd_rm32_r32),
            What::End => None,
            _ => Some(Code::Syscall),
        }
    }

    fn reads(self) -> bool {
        matches!(self.what, What::Load | What::Add | What::Exchange | What::LockedAdd)
    }

    fn writes(self) -> Option<Range<u64>> {
        let word = word(self.word);
        match self.what {
            What::Store | What::Add | What::Exchange | What::LockedAdd => Some(word),
            What::StoreByte => Some(word.start..word.start + 1),
            _ => None,
        }
    }

    fn is_atomic(self) -> bool {
        matches!(self.what, What::Exchange | What::LockedAdd)
    }

    fn is_futex(self) -> bool {
        matches!(self.what, What::Wake | What::Wait)
    }
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

fn random_run(seed: u64) -> Vec<Step> {
    let random = &mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (mut alive, mut next) = (vec![1], 2);
    let mut steps = Vec::new();
    while steps.len() < STEPS {
        let thread = alive[random.below(alive.len() as u64) as usize];
        let number = random.below(WORDS);
        let what = match random.below(24) {
            0..8 => What::Load,
            8..14 => What::Store,
            14 => What::StoreByte,
            15 => What::Add,
            // Most words are plain.
            16 if number < 2 => What::Exchange,
            17 if number < 2 => What::LockedAdd,
            18 if number == 2 => What::Wake,
            19 if number == 2 => What::Wait,
            20 if random.below(4) == 0 => What::WriteToPipe,
            20 => What::ReadFromPipe,
            21 if next <= MOST_THREADS => {
                alive.push(next);
                next += 1;
                What::Create { thread: next - 1 }
            }
            22 if thread > 1 && random.below(4) == 0 => {
                alive.retain(|other| *other != thread);
                What::End
            }
            _ => continue,
        };
        // The kernel clears a word of its own for each thread.
        let word = if what == What::End { WORDS + thread } else { number };
        steps.push(Step { thread, what, word });
        if what == What::End {
            // Somebody looks whether it is over.
            let thread = alive[random.below(alive.len() as u64) as usize];
            steps.push(Step { thread, what: What::Load, word });
        }
    }
    steps
}

fn region(steps: &[Step]) -> Region {
    let mut builder = Builder::new(Straight, 7);
    let mut id = FIRST_UNIT_ID;
    let mut running = 0;
    let pipe = [libc::SYS_pipe as u64, 0, 0, 0, 0, 0];
    builder.record(THREAD, &[1]).unwrap();
    builder.record(STACK, &[stack(1)]).unwrap();
    builder.record(CALLED, &pipe).unwrap();
    builder.record(CAME_BACK, &[0, PIPE[0], PIPE[1]]).unwrap();
    for (number, step) in steps.iter().enumerate() {
        if step.what == What::End {
            builder.record(ENDED, &[step.thread]).unwrap();
            continue;
        }
        if std::mem::replace(&mut running, step.thread) != step.thread {
            builder.record(THREAD, &[step.thread]).unwrap();
            builder.record(STACK, &[stack(step.thread)]).unwrap();
        }
        let cleared = number.checked_sub(1).map(|before| steps[before]);
        if let Some(cleared) = cleared.filter(|before| before.what == What::End) {
            builder.record(WROTE, &[word(cleared.word).start, 4]).unwrap();
            builder.record(MOMENT, &[number as u64, 0]).unwrap();
        }
        let mut insn = instruction(*step);
        insn.set_len(8);
        insn.set_ip(CODE + 16 * number as u64);
        let mut planner = Planner::default();
        planner.instruction(&insn);
        let shape = planner.finish();
        assert!(shape.told.iter().all(Vec::is_empty), "addresses are constants");
        // Not every step is a unit; those that are have two ids each.
        let kinds = Kind::all((id - FIRST_UNIT_ID) as usize / 2, &shape);
        builder.learn(&[Arc::new(shape)], &kinds);
        builder.record(id + 1, &[]).unwrap();
        id += 2;
        let at = word(step.word).start;
        let (call, result): ([u64; 6], u64) = match step.what {
            What::Wake => ([libc::SYS_futex as u64, at, libc::FUTEX_WAKE as u64, 1, 0, 0], 0),
            What::Wait => ([libc::SYS_futex as u64, at, libc::FUTEX_WAIT as u64, 1, 0, 0], 0),
            What::WriteToPipe => ([libc::SYS_write as u64, PIPE[1], 0, 1, 0, 0], 1),
            What::ReadFromPipe => ([libc::SYS_read as u64, PIPE[0], 0, 1, 0, 0], 1),
            What::Create { thread } => {
                let flags = (libc::CLONE_THREAD | libc::CLONE_CHILD_CLEARTID) as u64;
                let cleared = word(WORDS + thread).start;
                ([libc::SYS_clone as u64, flags, stack(thread), 0, cleared, 0], thread)
            }
            _ => continue,
        };
        builder.record(CALLED, &call).unwrap();
        builder.record(CAME_BACK, &[result]).unwrap();
    }
    builder.finish().unwrap()
}

fn instruction(step: Step) -> Instruction {
    let at = word(step.word).start;
    let memory = MemoryOperand::with_displ(at, 4);
    let code = step.instruction().expect("an instruction");
    match step.what {
        What::Load => Instruction::with2(code, Register::EAX, memory).unwrap(),
        What::StoreByte => Instruction::with2(code, memory, Register::AL).unwrap(),
        What::Store | What::Add | What::Exchange => {
            Instruction::with2(code, memory, Register::EAX).unwrap()
        }
        What::LockedAdd => {
            let mut insn = Instruction::with2(code, memory, Register::EAX).unwrap();
            insn.set_has_lock_prefix(true);
            insn
        }
        _ => Instruction::with(Code::Syscall),
    }
}

/// From which nodes a way leads to each.
fn ordered(steps: &[Step]) -> Vec<BTreeSet<usize>> {
    let is_word_of_order = |word: u64| {
        word >= WORDS || steps.iter().any(|s| s.word == word && (s.is_atomic() || s.is_futex()))
    };
    let mut before: Vec<BTreeSet<usize>> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let earlier = || steps[..number].iter().enumerate().rev();
        let mut edges: BTreeSet<usize> = BTreeSet::new();
        edges.extend(earlier().find(|(_, other)| other.thread == step.thread).map(|(n, _)| n));
        let creates = |other: &Step| other.what == What::Create { thread: step.thread };
        edges.extend(earlier().find(|(_, other)| creates(other)).map(|(n, _)| n));
        if step.what == What::ReadFromPipe {
            let writes = |other: &Step| other.what == What::WriteToPipe;
            edges.extend(earlier().filter(|(_, other)| writes(other)).map(|(n, _)| n));
        }
        if is_word_of_order(step.word) && (step.reads() || step.what == What::Wait) {
            for (n, other) in earlier().filter(|(_, other)| other.word == step.word) {
                let wakes = matches!(other.what, What::Wake | What::End);
                if other.writes().is_some() || wakes {
                    edges.insert(n);
                }
                // Its value is the whole of it, whoever wrote before.
                if matches!(other.what, What::Store | What::Add) {
                    break;
                }
            }
        }
        let mut all: BTreeSet<usize> =
            edges.iter().flat_map(|edge| before[*edge].clone()).collect();
        all.extend(edges);
        before.push(all);
    }
    before
}

/// The races by the definition: addresses of a write and a read.
fn naive(steps: &[Step], slice: &BTreeSet<u64>) -> BTreeSet<(u64, u64)> {
    let before = ordered(steps);
    let address = |number: usize| CODE + 16 * number as u64;
    let mut races = BTreeSet::new();
    for (number, step) in steps.iter().enumerate().filter(|(_, step)| step.reads()) {
        for byte in word(step.word) {
            let writes = |other: &&(usize, &Step)| {
                let cleared = other.1.what == What::End && word(other.1.word).contains(&byte);
                cleared || other.1.writes().is_some_and(|bytes| bytes.contains(&byte))
            };
            let earlier: Vec<(usize, &Step)> = steps[..number].iter().enumerate().collect();
            let Some((writer, other)) = earlier.iter().rev().find(writes) else {
                continue;
            };
            let both = slice.contains(&address(number)) && slice.contains(&address(*writer));
            if both && other.thread != step.thread && !before[number].contains(writer) {
                races.insert((address(*writer), address(number)));
            }
        }
    }
    races
}

fn told(steps: &[Step]) -> String {
    let line =
        |(number, step): (usize, &Step)| format!("{:#x} {step:?}\n", CODE + 16 * number as u64);
    steps.iter().enumerate().map(line).collect()
}

#[test]
fn races_are_those_of_the_definition() {
    let (mut found, mut ordered) = (0, 0);
    for seed in 1..=RUNS {
        let steps = random_run(seed);
        let region = region(&steps);
        let criterion = Criterion {
            position: region.length,
            thread: 1,
            cells: vec![why_effects::cells::of(Register::EAX).unwrap()],
            memory: (0..WORDS).map(word).collect(),
            ..Criterion::default()
        };
        let slice = region.slice(&criterion, Options::default()).unwrap();
        let addresses: BTreeSet<u64> = slice.instructions.iter().map(|(_, at)| *at).collect();
        let races = region.races(&slice).unwrap();
        let product: BTreeSet<(u64, u64)> =
            races.iter().map(|race| (race.write.address, race.read.address)).collect();
        assert_eq!(product, naive(&steps, &addresses), "seed {seed}:\n{}", told(&steps));
        found += product.len();
        ordered += usize::from(product.is_empty() && addresses.len() > 8);
    }
    // Neither of both is rare.
    assert!(found > 300 && ordered > 30, "{found} {ordered}");
}
