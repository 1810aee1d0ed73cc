//! Slices of real programs, compared with the naive way: every byte remembers which step has
//! defined it last, and over a step decided the last branch of the same call on which its
//! block depends by definition. A register that a function loads again from where it stored it,
//! with what it had before the call, has again the definition that it had then.

use iced_x86::{FlowControl, InstructionInfoFactory, Register, UsedMemory};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use why_effects::{Cell, Effects, Place, Size, cells, effects};
use why_flow::{Graph, PostDominators};
use why_slice::Ways;
use why_slice::reasons::{Reason, Why};
use why_slice::region::{Builder, Criterion, Only, Options, Region, Slice};
use why_trace::shape::{Kind, Planner, Shape};
use why_trace::{FIRST_UNIT_ID, REPEATED, STACK, THREAD};

#[path = "region/chops.rs"]
mod chops;
#[path = "../../flow/tests/support/image.rs"]
mod image;
#[path = "region/learnt.rs"]
mod learnt;
#[path = "region/remembered.rs"]
mod remembered;
#[path = "region/stepped.rs"]
mod stepped;

use image::Image;
use stepped::{Step, Stepped, stepped};

const PROGRAMS: [(&str, &str); 8] = [
    (
        "loop",
        "int result, other; int main(void) { int s = 0, t = 1; for (int i = 0; i < 20; i++) { if (i % 3) s += i; else t ^= i; } other = t; result = s; return 0; }",
    ),
    (
        "recursion",
        "int result; int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); } int main(void) { volatile int depth = 6; result = fib(depth); return 0; }",
    ),
    (
        "pointers",
        "int result, noise; static int twice(int n) { return 2 * n; } static int half(int n) { noise++; return n / 2; } static int (*table[2])(int) = { twice, half }; int main(void) { int n = 3; for (int i = 0; i < 8; i++) n += table[i & 1](n); result = n; return 0; }",
    ),
    (
        "structs",
        "struct s { long a, b, c; char name[16]; }; int result; static struct s all[4]; static struct s made(long n) { struct s it = { n, n * n, 7, \"name\" }; it.name[n] = 'x'; return it; } int main(void) { for (int i = 0; i < 4; i++) all[i] = made(i); struct s copy = all[2]; result = copy.b + copy.name[2]; return 0; }",
    ),
    (
        "copies",
        "int result; static char from[32] = \"what is to be copied\", to[32]; int main(void) { int n = 0; while (from[n]) { to[n] = from[n]; n++; } for (int i = 0; i < n; i++) if (to[i] == 'o') result += i; return 0; }",
    ),
    (
        "switch",
        "int result; static int choose(int n, int m) { switch (n) { case 0: return m * 3; case 1: return m + 17; case 2: m ^= 5; break; case 3: m -= 9; break; case 4: return m / 3; case 5: m += n * m; break; case 6: return ~m; default: return 1; } return m + 1; } int main(void) { int m = 5; for (volatile int i = 0; i < 9; i++) m = choose(i, m); result = m; return 0; }",
    ),
    (
        "floats",
        "int result; static double at[8]; int main(void) { double s = 0; for (int i = 0; i < 8; i++) at[i] = i * 0.5 + 1; for (int i = 0; i < 8; i++) if (at[i] > 2.0) s += at[i] * at[7 - i]; result = (int)s; return 0; }",
    ),
    (
        "slots",
        "int result; volatile long in[4] = { 3, 5, 7, 9 }, noise; __attribute__((noipa)) static void one(void) { __asm__ volatile(\"\" ::: \"rbx\", \"r12\"); } __attribute__((noipa)) static void other(int i) { __asm__ volatile(\"\" ::: \"r13\", \"r14\"); if (i & 1) noise++; __asm__ volatile(\"\" ::: \"r13\", \"r14\"); } int main(void) { long late = 0; for (int i = 0; i < 20; i++) { long a = in[0], b = in[1], c = in[2], d = in[3]; if (noise < 0) noise = 1; one(); other(i); if (i == 16) late = ~a; if (i == 17) late = ~b; if (i == 18) late = ~c; if (i == 19) late = ~d; in[0] = a * 3 + d; in[1] = b + a; in[2] = c ^ b; in[3] = d - c; } result = in[0] + late; return 0; }",
    ),
];

/// There are several, even of short runs.
const CHUNK: u64 = 50;

/// Where ways meet, by the functions that were executed.
struct OfImage<'a> {
    image: &'a Image,
}

impl Ways for OfImage<'_> {
    fn meet(&self, branch: u64) -> Option<u64> {
        let graph = Graph::of(self.image, self.image.function(branch)?);
        let block = graph.blocks.iter().position(|block| block.last == branch)?;
        let meet = PostDominators::of(&graph).behind(why_flow::BlockId(block))?;
        Some(graph.block(meet).start)
    }
}

fn value(registers: &libc::user_regs_struct, register: Register) -> u64 {
    let r = registers;
    let all = [
        r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12,
        r.r13, r.r14, r.r15,
    ];
    match register.is_gpr() {
        true => all[register.full_register().number()],
        false => 0,
    }
}

/// How far a unit of a trace goes.
#[derive(Clone, Copy)]
enum Units {
    /// To where execution may go on elsewhere.
    Straight,
    /// Through jumps, calls and returns.
    Long,
}

impl Units {
    /// How many steps from one on are a unit.
    fn length(self, steps: &[Step]) -> usize {
        use FlowControl as F;
        let goes_on = |step: &Step| match (self, step.insn.flow_control()) {
            (_, F::Next) | (Units::Long, F::UnconditionalBranch | F::Call | F::Return) => true,
            (Units::Straight | Units::Long, _) => false,
        };
        let longest = match self {
            Units::Straight => 12,
            Units::Long => 60,
        };
        let others = steps.len().min(longest) - 1;
        1 + steps.iter().take(others).take_while(|step| goes_on(step)).count()
    }
}

/// The product's way: the steps as records of a trace.
fn region(run: &Stepped, units: Units) -> Region {
    let file = tempfile::tempfile().unwrap();
    let ways = OfImage { image: &run.image };
    let mut builder = Builder::create(ways, CHUNK, file.try_clone().unwrap()).unwrap();
    let mut ids: HashMap<Vec<u64>, u32> = HashMap::new();
    let mut next_id = FIRST_UNIT_ID;
    builder.record(THREAD, &[1]).unwrap();
    builder.record(STACK, &[run.steps[0].registers.rsp]).unwrap();
    let mut at = 0;
    while at < run.steps.len() {
        let length = units.length(&run.steps[at..]);
        let steps = &run.steps[at..at + length];
        let mut planner = Planner::default();
        steps.iter().for_each(|step| planner.instruction(&step.insn));
        let shape: Arc<Shape> = Arc::new(planner.finish());
        let addresses = steps.iter().map(|step| step.insn.ip()).collect();
        let number = ids.len();
        let first = *ids.entry(addresses).or_insert_with(|| {
            builder.learn(&[Arc::clone(&shape)], &Kind::all(number, &shape));
            let first = next_id;
            next_id += length as u32 + 1;
            first
        });
        let mut slots = Vec::new();
        for (index, told) in shape.told.iter().enumerate() {
            let registers = match run.steps.get(at + index) {
                Some(step) => &step.registers,
                None => &run.end,
            };
            for register in told {
                assert!(register.is_gpr(), "no vectors select addresses here");
                slots.push(value(registers, *register));
            }
        }
        builder.record(first + length as u32, &slots).unwrap();
        at += length;
    }
    builder.finish().unwrap();
    Region::open(file).unwrap()
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Byte {
    Cell(Cell),
    Memory(u64),
}

/// A step, and which of the bytes that it defined.
type Definition = (usize, usize);

/// A register that was stored, and what its bytes had been defined by.
type Stored = (Register, Vec<Option<Definition>>);

/// What a byte is defined by from now on.
type Defined = (Byte, Option<Definition>);

/// The naive way.
struct Naive {
    /// What each step was computed from: by value, by address, and by decision.
    data: Vec<Vec<Option<Dependent>>>,
    last: HashMap<Byte, Definition>,
    decided: Vec<Option<usize>>,
    decisions: BTreeMap<usize, Vec<Definition>>,
    /// What the bytes of a register had been defined by when a step stored it.
    stored: HashMap<usize, Stored>,
    /// The steps that called what is executed now, and those of their calls that stored.
    calls: Vec<(usize, BTreeSet<usize>)>,
    /// Steps that loaded a register again, and those that had stored it.
    pairs: BTreeSet<usize>,
}

/// What is made of something: these bytes, before a step.
struct Source {
    step: usize,
    bytes: Vec<Byte>,
}

/// The definition of a source's bytes.
const SOURCE: Definition = (usize::MAX, 0);

/// A byte that a step defined: the definitions that it depends on.
struct Dependent {
    values: Vec<Definition>,
    addresses: Vec<Definition>,
    frame: bool,
}

impl Naive {
    fn of(run: &Stepped, source: Option<&Source>) -> Naive {
        let mut factory = InstructionInfoFactory::new();
        let mut naive = Naive {
            data: Vec::new(),
            last: HashMap::new(),
            decided: decided(run),
            decisions: BTreeMap::new(),
            stored: HashMap::new(),
            calls: Vec::new(),
            pairs: BTreeSet::new(),
        };
        for (number, step) in run.steps.iter().enumerate() {
            if let Some(source) = source.filter(|source| source.step == number) {
                naive.last.extend(source.bytes.iter().map(|byte| (*byte, SOURCE)));
            }
            let told = effects(&step.insn, &mut factory);
            let operands = operands(step, &mut factory, &told, run.steps.get(number + 1));
            let bytes = |place: &Place| -> Vec<Byte> {
                match place {
                    Place::Cells(cells) => cells.clone().map(Byte::Cell).collect(),
                    Place::Memory { operand, bytes } => bytes
                        .clone()
                        .map(|byte| Byte::Memory(operands[*operand].0 + u64::from(byte)))
                        .collect(),
                    Place::String { operand } => {
                        let (at, size) = operands[*operand];
                        (at..at + size).map(Byte::Memory).collect()
                    }
                }
            };
            let address = |place: &Place| -> Vec<Byte> {
                match place {
                    Place::Memory { operand, .. } | Place::String { operand } => {
                        let cells = told.operands[*operand].address.iter().cloned();
                        cells.flatten().map(Byte::Cell).collect()
                    }
                    Place::Cells(_) => Vec::new(),
                }
            };
            let last = |naive: &Naive, bytes: Vec<Byte>| -> Vec<Definition> {
                bytes.iter().filter_map(|byte| naive.last.get(byte).copied()).collect()
            };
            let mut decision = Vec::new();
            for place in &told.decides {
                decision.extend(last(&naive, bytes(place)));
                decision.extend(last(&naive, address(place)));
            }
            naive.decisions.insert(number, decision);
            let (mut defined, mut new) = (Vec::new(), Vec::new());
            for part in &told.parts {
                let places = [&part.to].into_iter().chain(&part.lanes).chain(&part.whole);
                let addresses: Vec<_> =
                    places.flat_map(|place| last(&naive, address(place))).collect();
                for (index, byte) in bytes(&part.to).into_iter().enumerate() {
                    let lane = index / part.width as usize * part.width as usize;
                    let mut values = Vec::new();
                    for place in &part.lanes {
                        let all = bytes(place);
                        let end = all.len().min(lane + part.width as usize);
                        values.extend(last(&naive, all[lane..end].to_vec()));
                    }
                    for place in &part.whole {
                        values.extend(last(&naive, bytes(place)));
                    }
                    new.push((byte, (number, defined.len())));
                    let addresses = addresses.clone();
                    defined.push(Some(Dependent { values, addresses, frame: part.frame }));
                }
            }
            let restored = naive.restored(number, step, &operands);
            naive.store(number, step);
            naive.last.extend(new);
            for (byte, definition) in restored.into_iter().flatten() {
                match definition {
                    Some(definition) => drop(naive.last.insert(byte, definition)),
                    None => drop(naive.last.remove(&byte)),
                }
            }
            naive.data.push(defined);
            match step.insn.flow_control() {
                FlowControl::Call | FlowControl::IndirectCall => {
                    naive.calls.push((number, BTreeSet::new()));
                }
                FlowControl::Return => drop(naive.calls.pop()),
                _ => {}
            }
        }
        naive
    }

    fn register_bytes(register: Register) -> impl Iterator<Item = Byte> {
        why_effects::cells::of(register).expect("a register").map(Byte::Cell)
    }

    /// If the step stores a register that has what it had before the call, remembers that.
    fn store(&mut self, number: usize, step: &Step) {
        use iced_x86::{Mnemonic as M, OpKind as K};
        let insn = &step.insn;
        let register = match (insn.mnemonic(), insn.op0_kind(), insn.op_count()) {
            (M::Push, K::Register, _) => insn.op0_register(),
            (M::Mov, K::Memory, _) if insn.op1_kind() == K::Register => insn.op1_register(),
            _ => return,
        };
        let Some((call, stores)) = self.calls.last_mut().filter(|_| is_kept(register)) else {
            return;
        };
        let bytes = Naive::register_bytes(register);
        let last: Vec<_> = bytes.map(|byte| self.last.get(&byte).copied()).collect();
        if last.iter().flatten().all(|(step, _)| step < call) {
            stores.insert(number);
            self.stored.insert(number, (register, last));
        }
    }

    /// If the step loads a register from where it was stored, what its bytes are defined by.
    fn restored(
        &mut self,
        number: usize,
        step: &Step,
        operands: &[(u64, u64)],
    ) -> Option<Vec<Defined>> {
        use iced_x86::{Mnemonic as M, OpKind as K};
        let insn = &step.insn;
        let register = match (insn.mnemonic(), insn.op_count()) {
            (M::Leave, _) => Register::RBP,
            (M::Pop, 1) if insn.op0_kind() == K::Register => insn.op0_register(),
            (M::Mov, 2) if insn.op0_kind() == K::Register && insn.op1_kind() == K::Memory => {
                insn.op0_register()
            }
            _ => return None,
        };
        let (at, 8) = operands[0] else {
            return None;
        };
        let by: Vec<_> = (at..at + 8).map(|byte| self.last.get(&Byte::Memory(byte))).collect();
        let by: BTreeSet<usize> =
            by.into_iter().map(|by| by.map(|by| by.0)).collect::<Option<_>>()?;
        let (_, stores) = self.calls.last()?;
        let stored = by.first().filter(|stored| by.len() == 1 && stores.contains(stored))?;
        let (kept, definitions) = &self.stored[stored];
        if *kept != register {
            return None;
        }
        self.pairs.extend([number, *stored]);
        // All eight bytes come from the eight that were stored.
        Some(Naive::register_bytes(register).zip(definitions.iter().copied()).collect())
    }

    /// The steps that make something of the source, or are made because of it.
    fn forward(&self, start: usize, control: bool) -> BTreeSet<usize> {
        let mut touched = BTreeSet::from([SOURCE]);
        let mut slice = BTreeSet::new();
        for step in start..self.data.len() {
            let decided = control && self.decided[step].is_some_and(|by| slice.contains(&by));
            let mut belongs = decided;
            for (index, dependent) in self.data[step].iter().flatten().enumerate() {
                let mut sources = dependent.values.iter().chain(&dependent.addresses);
                let is_touched = decided || sources.any(|source| touched.contains(source));
                if is_touched && !dependent.frame {
                    touched.insert((step, index));
                    belongs = true;
                }
            }
            belongs |= self.decisions[&step].iter().any(|source| touched.contains(source));
            if belongs {
                slice.insert(step);
            }
        }
        &slice - &self.pairs
    }

    fn slice(&self, criterion: &[Byte], options: Options) -> BTreeSet<usize> {
        let mut open: Vec<Definition> =
            criterion.iter().filter_map(|byte| self.last.get(byte).copied()).collect();
        let (mut seen, mut slice, mut deciding) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        while let Some(definition) = open.pop() {
            let (step, index) = definition;
            let dependent = self.data[step][index].as_ref().expect("it was defined");
            if dependent.frame || !seen.insert(definition) {
                continue;
            }
            open.extend(&dependent.values);
            if !options.thin {
                open.extend(&dependent.addresses);
            }
            let mut belongs = step;
            while slice.insert(belongs) && !options.thin && !options.data {
                let Some(branch) = self.decided[belongs] else {
                    break;
                };
                if deciding.insert(branch) {
                    open.extend(&self.decisions[&branch]);
                }
                belongs = branch;
            }
        }
        slice
    }
}

/// Whether functions have to bring a register back.
fn is_kept(register: Register) -> bool {
    use Register as R;
    [R::RBX, R::RBP, R::R12, R::R13, R::R14, R::R15].contains(&register)
}

/// Where the operands of a step were.
fn operands(
    step: &Step,
    factory: &mut InstructionInfoFactory,
    told: &Effects,
    next: Option<&Step>,
) -> Vec<(u64, u64)> {
    use iced_x86::OpAccess as A;
    let never = [A::None, A::NoMemAccess];
    let memory = factory.info(&step.insn).used_memory().iter();
    let memory = memory.filter(|memory| !never.contains(&memory.access()));
    let place = |(memory, operand): (&UsedMemory, &why_effects::Operand)| {
        let at = memory.virtual_address(0, |register, _, _| Some(value(&step.registers, register)));
        let at = at.expect("an address");
        match operand.size {
            Size::Bytes(size) => (at, size.into()),
            Size::String(_) => {
                let after = value(&next.expect("a next step").registers, memory.base());
                (at, after.wrapping_sub(at))
            }
        }
    };
    memory.zip(&told.operands).map(place).collect()
}

/// What decided over each step, by the definition.
fn decided(run: &Stepped) -> Vec<Option<usize>> {
    let mut graphs: HashMap<u64, Graph> = HashMap::new();
    let mut decided = Vec::new();
    // Of each call: the step that made it, and its branches so far.
    let mut calls = vec![(None, Vec::new())];
    for (number, step) in run.steps.iter().enumerate() {
        let address = step.insn.ip();
        let function = run.image.function(address).expect("a function");
        let graph = graphs.entry(function).or_insert_with(|| Graph::of(&run.image, function));
        let (call, branches) = calls.last_mut().expect("a call");
        let branch = branches.iter().rev().find(|(_, branch)| depends(graph, address, *branch));
        decided.push(branch.map(|(step, _)| *step).or(*call));
        match step.insn.flow_control() {
            FlowControl::ConditionalBranch | FlowControl::IndirectBranch => {
                branches.push((number, address));
            }
            FlowControl::Call | FlowControl::IndirectCall => {
                calls.push((Some(number), Vec::new()));
            }
            FlowControl::Return => drop(calls.pop()),
            _ => {}
        }
    }
    decided
}

fn depends(graph: &Graph, address: u64, branch: u64) -> bool {
    let block = |address: u64| {
        let mut blocks = graph.blocks.iter();
        blocks.position(|block| (block.start..=block.last).contains(&address)).expect("a block")
    };
    let (to, from) = (block(address), block(branch));
    let ends_without = |from: usize| {
        let mut seen = vec![false; graph.blocks.len()];
        let mut open = vec![from];
        while let Some(block) = open.pop() {
            if block == to || std::mem::replace(&mut seen[block], true) {
                continue;
            }
            if graph.blocks[block].ends {
                return true;
            }
            open.extend(graph.blocks[block].successors.iter().map(|successor| successor.0));
        }
        false
    };
    let always: Vec<bool> = graph.blocks[from]
        .successors
        .iter()
        .map(|successor| successor.0 == to || !ends_without(successor.0))
        .collect();
    always.contains(&true) && always.contains(&false)
}

#[test]
fn slices_are_those_of_the_naive_way() {
    for (name, source) in PROGRAMS {
        for level in ["-O0", "-O1", "-O2"] {
            let run = stepped(source, &[level]);
            let region = region(&run, Units::Straight);
            let naive = Naive::of(&run, None);
            assert_eq!(region.length, run.steps.len() as u64);
            let at = run.image.symbol("result");
            let all = [(false, false), (false, true), (true, false)];
            for options in all.map(|(thin, data)| Options {
                thin,
                data,
                reasons: Why::Code,
                ..Options::default()
            }) {
                let criterion = Criterion {
                    position: region.length,
                    thread: 1,
                    memory: std::iter::once(at..at + 4).collect(),
                    ..Criterion::default()
                };
                let slice = region.slice(&criterion, options).unwrap();
                assert!(slice.passed_over.is_empty());
                has_reasons(&slice);
                let instances = Options { reasons: Why::Instances, ..options };
                let instances = region.slice(&criterion, instances).unwrap();
                are_those_of_instances(&slice, &instances);
                let without = Options { reasons: Why::Nothing, ..options };
                let bare = region.slice(&criterion, without).unwrap();
                assert_eq!(bare, Slice { reasons: Vec::new(), ..slice.clone() });
                let found: BTreeSet<usize> =
                    slice.instructions.iter().map(|(position, _)| *position as usize).collect();
                let bytes: Vec<Byte> = (at..at + 4).map(Byte::Memory).collect();
                let expected = naive.slice(&bytes, options);
                let missing: Vec<_> = expected.difference(&found).collect();
                let more: Vec<_> = found.difference(&expected).collect();
                assert!(
                    missing.is_empty() && more.is_empty(),
                    "{name} {level} {} {}: missing {missing:?}, more {more:?}, of {}",
                    options.thin,
                    options.data,
                    run.steps.len()
                );
                assert!(!expected.is_empty(), "{name} {level}");
                println!("{name} {level}: {} of {}", found.len(), run.steps.len());
            }
        }
    }
}

/// Each instruction has one, and whoever wanted it came later.
fn has_reasons(slice: &Slice) {
    let mut times: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for (position, address) in &slice.instructions {
        // The last one comes first.
        times.entry(*address).or_insert((*position, 0)).1 += 1;
    }
    let told: BTreeMap<u64, (u64, u64)> = slice
        .reasons
        .iter()
        .map(|reason| (reason.address, (reason.position, reason.times)))
        .collect();
    assert_eq!(times, told);
    for reason in &slice.reasons {
        let wanter = reason.wanter.map(|wanter| &slice.reasons[wanter]);
        assert!(wanter.is_none_or(|wanter| wanter.position > reason.position), "{reason:x?}");
    }
}

/// The reasons of code are those of each instruction's last instance. Instances are gone over one by
/// one, the others by shortcuts.
fn are_those_of_instances(slice: &Slice, instances: &Slice) {
    let known_by = |reason: &Reason| (reason.address, reason.site);
    assert_eq!(slice.instructions, instances.instructions);
    for reason in &slice.reasons {
        let mut same = instances.reasons.iter().filter(|r| known_by(r) == known_by(reason));
        let last = same.next().expect("an instance");
        let wanter = |of: &Slice, wanter: Option<usize>| wanter.map(|w| known_by(&of.reasons[w]));
        assert_eq!(wanter(slice, reason.wanter), wanter(instances, last.wanter), "{reason:x?}");
        let (times, wanter) = (1 + same.count() as u64, reason.wanter);
        assert_eq!(*reason, Reason { times, wanter, ..last.clone() });
    }
}

/// The same forwards, where it is the first instance that counts, which comes first there.
fn are_those_of_first_instances(slice: &Slice, instances: &Slice) {
    let told = |slice: &Slice| -> BTreeSet<_> {
        slice.reasons.iter().map(|reason| (reason.address, reason.site)).collect()
    };
    assert_eq!(told(slice), told(instances));
    are_those_of_instances(slice, instances);
}

/// A register that was put aside when it was touched, and at the same place again when it was not.
const PUT_ASIDE_AGAIN: &str = "volatile int source = 3, other = 4, noise; int result, clean; __attribute__((noipa)) static int used(int n) { noise = n; return n; } __attribute__((noipa)) static int keeps(int n) { int k = noise; used(n); return k; } __attribute__((noipa)) static void overwrites(void) { volatile long all[32]; for (int i = 0; i < 32; i++) all[i] = 0; } __attribute__((noipa)) static int around(volatile int *from) { int a = *from; keeps(1); return a; } int main(void) { result = around(&source); overwrites(); clean = around(&other); return 0; }";

#[test]
fn what_is_put_aside_again_is_not_what_was_touched() {
    let run = stepped(PUT_ASIDE_AGAIN, &["-O2"]);
    let at = run.image.symbol("source");
    let mut factory = InstructionInfoFactory::new();
    let reads = |step: &usize| {
        let told = effects(&run.steps[*step].insn, &mut factory);
        let next = run.steps.get(step + 1);
        operands(&run.steps[*step], &mut factory, &told, next).contains(&(at, 4))
    };
    let step = (0..run.steps.len()).find(reads).expect("it is read");
    let bytes = (at..at + 4).map(Byte::Memory).collect();
    let expected = Naive::of(&run, Some(&Source { step, bytes })).forward(step, false);
    let memory = std::iter::once(at..at + 4).collect();
    let source = Criterion { position: step as u64, thread: 1, memory, ..Criterion::default() };
    for units in [Units::Straight, Units::Long] {
        let options = Options { thin: true, ..Options::default() };
        let slice = region(&run, units).forward(&source, options).unwrap();
        let found = slice.instructions.iter().map(|(position, _)| *position as usize);
        assert_eq!(found.collect::<BTreeSet<usize>>(), expected);
    }
}

/// Several slices that are made in one go are the same as one by one.
#[test]
fn forward_slices_at_once_are_those_of_each() {
    for (name, source) in PROGRAMS {
        let run = stepped(source, &["-O1"]);
        let region = region(&run, Units::Long);
        let at = |step: usize| Criterion {
            position: step as u64,
            thread: 1,
            cells: vec![0..8, 24..32, 128..136],
            ..Criterion::default()
        };
        let steps = (0..run.steps.len()).step_by(1 + run.steps.len() / 12);
        let sources: Vec<Vec<Criterion>> = steps.map(|step| vec![at(step), at(step + 9)]).collect();
        let sources: Vec<&[Criterion]> = sources.iter().map(Vec::as_slice).collect();
        let options = Options { reasons: Why::Code, ..Options::default() };
        let together = region.forward_each(&sources, options).unwrap();
        assert!(together.iter().any(|slice| slice.count > 0), "{name}");
        for (source, slice) in sources.iter().zip(&together) {
            assert_eq!(*slice, region.forward_of(source, options).unwrap(), "{name}");
        }
    }
}

/// What slices learn of a region that is kept makes others faster, and nothing else.
#[test]
fn further_slices_are_those_of_a_first_one() {
    for (name, source) in PROGRAMS {
        let run = stepped(source, &["-O1"]);
        let (kept, fresh) = (region(&run, Units::Long), region(&run, Units::Long));
        kept.keep_decoded(1 << 30);
        let at = run.image.symbol("result");
        let ends: Vec<usize> = (1..=6).map(|sixth| run.steps.len() * sixth / 6).rev().collect();
        let code = run.steps[run.steps.len() / 2].insn.ip();
        let (mut found, mut repeated) = (0, 0);
        for end in ends.iter().chain(&ends) {
            let criterion = Criterion {
                position: *end as u64,
                thread: 1,
                cells: vec![0..8, 128..136],
                memory: std::iter::once(at..at + 4).collect(),
                ..Criterion::default()
            };
            let pruned = std::iter::once(code..code + 64).collect();
            let pruned = Criterion { pruned, ..criterion.clone() };
            let plain = Options { reasons: Why::Code, ..Options::default() };
            let first = fresh.slice(&criterion, plain).unwrap();
            let only = Only { told: &first.positions, goes_on: false, partly: None };
            let thin = fresh.slice(&criterion, Options { thin: true, ..plain }).unwrap();
            let passing = Only { told: &thin.positions, goes_on: true, partly: None };
            for (criterion, options) in [
                (&criterion, plain),
                (&pruned, plain),
                (&criterion, Options { data: true, ..plain }),
                (&criterion, Options { thin: true, ..plain }),
                (&criterion, Options { only: Some(only), ..plain }),
                (&criterion, Options { only: Some(passing), ..plain }),
                (&criterion, Options { reasons: Why::Nothing, count_only: true, ..plain }),
            ] {
                let slice = kept.slice(criterion, options).unwrap();
                assert_eq!(slice, fresh.slice(criterion, options).unwrap(), "{name} {end}");
                found += slice.count;
                repeated += slice.reasons.iter().filter(|reason| reason.times > 1).count();
            }
        }
        assert!(found > 0 && repeated > 0, "{name}");
    }
}

/// What is made of some operands, each as it was before a step read it.
#[test]
fn forward_slices_are_those_of_the_naive_way() {
    let mut factory = InstructionInfoFactory::new();
    let mut compared = 0;
    for (name, source) in PROGRAMS {
        for level in ["-O0", "-O2"] {
            let run = stepped(source, &[level]);
            let regions = [Units::Straight, Units::Long].map(|units| region(&run, units));
            // What is only brought back is nothing to begin with.
            let pairs = Naive::of(&run, None).pairs;
            let some = (0..run.steps.len()).step_by(1 + run.steps.len() / 24);
            for step in some.filter(|step| !pairs.contains(step)) {
                let told = effects(&run.steps[step].insn, &mut factory);
                let next = run.steps.get(step + 1);
                let operands = operands(&run.steps[step], &mut factory, &told, next);
                let Some((at, size)) = operands.first().copied() else {
                    continue;
                };
                let bytes = (at..at + size).map(Byte::Memory).collect();
                let naive = Naive::of(&run, Some(&Source { step, bytes }));
                let source = Criterion {
                    position: step as u64,
                    thread: 1,
                    memory: std::iter::once(at..at + size).collect(),
                    ..Criterion::default()
                };
                let all = regions.iter().flat_map(|region| [(region, false), (region, true)]);
                for (region, data) in all {
                    let options = Options { data, reasons: Why::Code, ..Options::default() };
                    let slice = region.forward(&source, options).unwrap();
                    let found: BTreeSet<usize> =
                        slice.instructions.iter().map(|(position, _)| *position as usize).collect();
                    let expected = naive.forward(step, !data);
                    let missing: Vec<_> = expected.difference(&found).collect();
                    let more: Vec<_> = found.difference(&expected).collect();
                    assert!(
                        missing.is_empty() && more.is_empty(),
                        "{name} {level} {step} {data}: missing {missing:?}, more {more:?}, of {}",
                        run.steps.len()
                    );
                    compared += expected.len();
                    let instances = Options { reasons: Why::Instances, ..options };
                    let instances = region.forward(&source, instances).unwrap();
                    are_those_of_first_instances(&slice, &instances);
                }
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}

/// A string instruction of one thread that is interrupted with four of its eight bytes copied from
/// 0x4000 to 0x5000, then an instruction of another thread, then the rest of the first unless it is
/// never completed.
fn interrupted(between: &[u8], is_completed: bool) -> Region {
    struct Nowhere;
    impl Ways for Nowhere {
        fn meet(&self, _: u64) -> Option<u64> {
            None
        }
    }
    let shape = |at: u64, code: &[u8]| {
        let mut planner = Planner::default();
        planner.instruction(&iced_x86::Decoder::with_ip(64, code, at, 0).decode());
        Arc::new(planner.finish())
    };
    let copy = shape(0x1000, &[0xf3, 0xa4]); // rep movsb
    let between = shape(0x2000, between);
    let mut builder = Builder::new(Nowhere, CHUNK);
    for (number, shape) in [Arc::clone(&copy), between].into_iter().enumerate() {
        builder.learn(&[Arc::clone(&shape)], &Kind::all(number, &shape));
    }
    let pointers = |done: u64| {
        let value = |register: &iced_x86::Register| match register {
            iced_x86::Register::RDI => 0x5000 + done,
            _ => 0x4000 + done,
        };
        copy.told[0].iter().map(value).collect::<Vec<u64>>()
    };
    let mut record = |id: u32, slots: &[u64]| builder.record(id, slots).unwrap();
    record(THREAD, &[1]);
    record(FIRST_UNIT_ID, &pointers(0));
    record(REPEATED, &[0x5004]);
    record(THREAD, &[2]);
    record(FIRST_UNIT_ID + 3, &[0x5002]);
    record(THREAD, &[1]);
    if is_completed {
        record(FIRST_UNIT_ID + 1, &[pointers(4), vec![0x5008]].concat());
    }
    builder.finish().unwrap()
}

/// What one thread sees of a copy that is interrupted is made by it, though it is completed later.
#[test]
fn what_was_interrupted_is_one_instance() {
    let copied = |region: &Region, at: u64| {
        let memory = std::iter::once(at..at + 1).collect();
        let criterion = Criterion { position: 2, thread: 1, memory, ..Criterion::default() };
        region.slice(&criterion, Options::default()).unwrap()
    };
    let stored = interrupted(&[0x88, 0x03], true); // mov [rbx], al
    for (at, instructions) in
        [(0x5001, vec![(1, 0x1000)]), (0x5002, vec![(0, 0x2000)]), (0x5006, vec![(1, 0x1000)])]
    {
        let slice = copied(&stored, at);
        assert_eq!((slice.count, slice.instructions), (1, instructions), "{at:x}");
        assert!(slice.passed_over.is_empty());
    }
    let loaded = interrupted(&[0x8a, 0x03], true); // mov al, [rbx]
    let cells = vec![cells::of(iced_x86::Register::AL).unwrap()];
    let criterion = Criterion { position: 2, thread: 2, cells, ..Criterion::default() };
    let slice = loaded.slice(&criterion, Options::default()).unwrap();
    assert_eq!(slice.instructions, [(1, 0x1000), (0, 0x2000)]);
    let source = |at: u64| {
        let memory = std::iter::once(at..at + 1).collect();
        let source = Criterion { thread: 1, memory, ..Criterion::default() };
        loaded.forward(&source, Options::default()).unwrap().instructions
    };
    assert_eq!(source(0x4002), [(1, 0x1000), (0, 0x2000)]);
    assert_eq!(source(0x4006), [(1, 0x1000)]);
    assert_eq!(source(0x5002), []);
}

/// Of a string instruction that was interrupted and not completed there is no instance.
#[test]
fn what_is_not_known_is_named() {
    let named = BTreeSet::from([0x1000]);
    let [never, later] = [false, true].map(|is_completed| {
        interrupted(&[0x8a, 0x03], is_completed) // mov al, [rbx]
    });
    let (source, criterion) =
        (Criterion::default(), Criterion { position: 1, ..Criterion::default() });
    for slice in [
        never.slice(&criterion, Options::default()),
        never.forward(&source, Options::default()),
        later.slice(&criterion, Options::default()),
    ] {
        assert_eq!(slice.unwrap().passed_over, named);
    }
}
