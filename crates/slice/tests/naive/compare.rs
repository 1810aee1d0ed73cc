//! Slices of many values of a run, by both ways.

use super::hidden::Hidden;
use super::machine::Machine;
use super::product::{Seen, region};
use super::shadow::{At, Instance, Shadow};
use super::slicer::{Counts, Naive, Wanted};
use super::stepped::Stepped;
use iced_x86::{OpKind, Register};
use std::collections::BTreeSet;
use std::fmt;
use why_slice::positions::Positions;
use why_slice::region::{Criterion, Only, Options, Region};

/// What came of comparing.
pub struct Comparison {
    pub steps: usize,
    pub slices: usize,
    /// How many instances the slices had together.
    pub instances: usize,
    pub differs: Option<String>,
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparison { steps, slices, instances, differs } = self;
        write!(f, "{steps} steps, {slices} slices with {instances} instances")?;
        differs.iter().try_for_each(|differs| write!(f, "\n{differs}"))
    }
}

/// A value that both are asked for.
struct Asked {
    what: String,
    wanted: Wanted,
    criterion: Criterion,
}

/// What counts: with addresses and decisions, without what decided, and without both.
const KINDS: [(bool, bool); 3] = [(false, false), (false, true), (true, true)];

/// So many times some code is not looked into.
const PRUNED: usize = 2;

/// Compares slices of `result`, and of other values at some moments: of long runs, at fewer. Each is
/// also compared when some code is not looked into.
pub fn compare(run: &Stepped) -> Comparison {
    let moments = if run.steps.len() < 20_000 { 16 } else { 4 };
    let program = Seen::of(run);
    let region = region(run, &program);
    assert_eq!(region.length, run.steps.len() as u64);
    let mut random = Random(run.steps.len() as u64 ^ 0x5851_f42d_4c95_7f2d);
    let linker = Hidden::of_linker(run);
    let some = (0..PRUNED).map(|_| linker.with_some(run, &mut random));
    let all_hidden: Vec<Hidden> = std::iter::once(linker.clone()).chain(some).collect();
    let asked = asked(run, moments);
    let wanted: Vec<Wanted> = asked.iter().map(|asked| asked.wanted.clone()).collect();
    let naive = Naive::of(run, &program, &wanted, None, &linker.binding);
    let mut comparison =
        Comparison { steps: run.steps.len(), slices: 0, instances: 0, differs: None };
    for (index, asked) in asked.iter().enumerate() {
        // Where nothing is pruned all are compared, else some.
        let hidden = all_hidden.iter().enumerate();
        for (number, hidden) in
            hidden.filter(|(number, _)| (number + index) % 3 == 0 || *number == 0)
        {
            for (thin, data) in KINDS {
                let counts = Counts { addresses: !thin, control: !data };
                let expected = naive.slice(&naive.found[index], counts, hidden);
                let options = Options { thin, data, ..Options::default() };
                let found = found(run, &region, &asked.pruned(hidden), options);
                let what = || format!("{} {counts:?} without {number}", asked.what);
                comparison.add(run, &what, &expected, &found);
            }
        }
    }
    // Each source takes another look at the whole run. What has to be brought back would not be
    // what was put aside if it were made to be a source in between.
    let (of_main, all_asked) = (operands_of_main(run), &asked);
    let few = asked.iter().skip(1).step_by(1 + asked.len() / 4).chain(&of_main);
    let few = few.filter(|asked| !asked.wanted.places.iter().any(|at| at.is_kept()));
    for asked in few.filter(|_| run.steps.len() < 10_000) {
        let naive = Naive::of(run, &program, &wanted, Some(&asked.wanted), &linker.binding);
        for (number, hidden) in all_hidden.iter().enumerate() {
            for (thin, data) in KINDS {
                let counts = Counts { addresses: !thin, control: !data };
                let touched = naive.touched(counts, hidden);
                let options = Options { thin, data, ..Options::default() };
                let source = asked.pruned(hidden);
                let slice = region.forward(&source, options).expect("a slice");
                let found = slice.instructions.iter().map(|(position, _)| *position as Instance);
                let what = || format!("from {} {counts:?} without {number}", asked.what);
                comparison.add(run, &what, &touched.steps, &found.collect());
                // A chop is found by several slices.
                let few = all_asked.iter().enumerate().step_by(1 + all_asked.len() / 3);
                for (index, to) in few.filter(|(index, _)| number == 0 || *index == 0) {
                    let expected = naive.chop(&touched, &naive.found[index], counts, hidden);
                    let (ends, depending) = ((&source, &to.pruned(hidden)), &slice.positions);
                    let found = chop(&region, ends, depending, options);
                    let what = || format!("{} to {}", what(), all_asked[index].what);
                    comparison.add(run, &what, &expected, &found);
                }
            }
        }
    }
    comparison
}

impl Asked {
    /// The same where some code is not looked into.
    fn pruned(&self, hidden: &Hidden) -> Criterion {
        let Hidden { code, binding } = hidden.clone();
        Criterion { pruned: code, binding, ..self.criterion.clone() }
    }
}

impl Comparison {
    /// Another slice is compared.
    fn add(
        &mut self,
        run: &Stepped,
        what: &dyn Fn() -> String,
        expected: &BTreeSet<Instance>,
        found: &BTreeSet<Instance>,
    ) {
        self.slices += 1;
        self.instances += expected.len();
        if found != expected && self.differs.is_none() {
            self.differs = Some(format!("{}: {}", what(), difference(run, expected, found)));
        }
    }
}

fn found(
    run: &Stepped,
    region: &Region,
    criterion: &Criterion,
    options: Options,
) -> BTreeSet<Instance> {
    let slice = region.slice(criterion, options).expect("a slice");
    assert!(slice.passed_over.is_empty(), "{:x?} is known", slice.passed_over);
    let instances = slice.instructions.iter().map(|(position, address)| {
        assert_eq!(run.steps[*position as usize].insn.ip(), *address);
        *position as Instance
    });
    instances.collect()
}

/// What lies between a source and a criterion.
fn chop(
    region: &Region,
    (source, to): (&Criterion, &Criterion),
    depending: &Positions,
    options: Options,
) -> BTreeSet<Instance> {
    let between = |partly| {
        let only = Some(Only { told: depending, goes_on: false, partly });
        region.slice(to, Options { only, ..options }).expect("a slice")
    };
    let noting = Some(&between(None).positions);
    let partly = region.forward(source, Options { noting, ..options }).expect("a slice").partly;
    let instances = between(Some(&partly)).instructions;
    instances.iter().map(|(position, _)| *position as Instance).collect()
}

/// The last instances that only one of both has.
fn difference(run: &Stepped, expected: &BTreeSet<Instance>, found: &BTreeSet<Instance>) -> String {
    let told = |some: &Instance| {
        let step = &run.steps[*some as usize];
        let ip = step.insn.ip();
        let function = run.image.functions.iter().find(|(_, range)| range.contains(&ip));
        let name = function.map_or("", |(name, _)| name);
        format!("\n    {some} {ip:x} {name}: {}", step.insn)
    };
    let some = |one: &BTreeSet<Instance>, other: &BTreeSet<Instance>| -> String {
        (one - other).iter().rev().take(6).map(told).collect()
    };
    let (missing, more) = (some(expected, found), some(found, expected));
    let sizes = format!("naive {}, product {}", expected.len(), found.len());
    format!("{sizes}\n  the product lacks{missing}\n  and has{more}")
}

/// The end's `result`, and at some moments a register, flags, a vector and memory.
fn asked(run: &Stepped, moments: usize) -> Vec<Asked> {
    let end = run.steps.len();
    let at = run.image.symbol("result");
    let mut all = vec![of_memory(end, 1, at, 4, "result".into())];
    let mut random = Random(end as u64 ^ 0x9e37_79b9_7f4a_7c15);
    for _ in 0..moments {
        let before = random.below(end as u64) as usize;
        let thread = run.steps[before].thread;
        let what = |name: String| format!("{name} before {before} of {end}");
        let general = GENERAL[random.below(15) as usize];
        all.push(of_register(before, thread, general, what(format!("{general:?}"))));
        let vector = Register::XMM0 + random.below(4) as u32;
        all.push(of_register(before, thread, vector, what(format!("{vector:?}"))));
        let flag = random.below(6) as usize;
        all.push(of_flag(before, thread, flag, what(format!("{}f", FLAGS[flag]))));
        all.extend(operand(run, before));
    }
    all
}

/// What an instruction names in memory, before it is executed.
fn operand(run: &Stepped, before: usize) -> Option<Asked> {
    let (step, insn) = (&run.steps[before], &run.steps[before].insn);
    (0..insn.op_count()).find(|operand| insn.op_kind(*operand) == OpKind::Memory)?;
    let at = Machine::new(step, &Shadow::default()).named_address();
    let size = insn.memory_size().size().max(1) as u64;
    let what = format!("{at:x}+{size} before {before} of {}", run.steps.len());
    Some(of_memory(before, step.thread, at, size, what))
}

/// Some of what `main` names in memory: most of what is made of anything is made of that.
fn operands_of_main(run: &Stepped) -> Vec<Asked> {
    let main = run.image.functions.iter().find(|(name, _)| name == "main");
    let (_, main) = main.expect("a function");
    let own = (0..run.steps.len()).filter(|step| main.contains(&run.steps[*step].insn.ip()));
    let all: Vec<Asked> = own.filter_map(|step| operand(run, step)).collect();
    let between = 1 + all.len() / 4;
    all.into_iter().step_by(between).collect()
}

/// All but the stack pointer.
const GENERAL: [Register; 15] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RBX,
    Register::RBP,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

fn of_memory(before: usize, thread: u64, at: u64, size: u64, what: String) -> Asked {
    let places = (at..at + size).map(At::Memory).collect();
    let memory = std::iter::once(at..at + size).collect();
    let criterion = Criterion { position: before as u64, thread, memory, ..Criterion::default() };
    Asked { what, wanted: Wanted { before, thread, places }, criterion }
}

fn of_register(before: usize, thread: u64, register: Register, what: String) -> Asked {
    let cells = vec![why_effects::cells::of(register).expect("a register")];
    let criterion = Criterion { position: before as u64, thread, cells, ..Criterion::default() };
    Asked { what, wanted: Wanted { before, thread, places: At::of(register) }, criterion }
}

/// In the order of the product's cells.
const FLAGS: [char; 6] = ['c', 'p', 'a', 'z', 's', 'o'];

fn of_flag(before: usize, thread: u64, flag: usize, what: String) -> Asked {
    let cell = why_effects::cells::CARRY + flag as why_effects::Cell;
    let cells = std::iter::once(cell..cell + 1).collect();
    let criterion = Criterion { position: before as u64, thread, cells, ..Criterion::default() };
    let places = vec![At::Flag(FLAGS[flag])];
    Asked { what, wanted: Wanted { before, thread, places }, criterion }
}

/// Numbers that look random (xorshift).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
