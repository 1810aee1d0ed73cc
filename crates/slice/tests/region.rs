//! Slices of real programs, compared with the naive way: every byte remembers which step has
//! defined it last, and over a step decided the last branch of the same call on which its
//! block depends by definition. A register that a function loads again from where it stored it,
//! with what it had before the call, has again the definition that it had then.

use iced_x86::{FlowControl, InstructionInfoFactory, Register, UsedMemory};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use why_effects::{Cell, Effects, Place, Size, effects};
use why_flow::{Graph, PostDominators};
use why_slice::Ways;
use why_slice::reasons::{Reason, Why};
use why_slice::region::{Builder, Criterion, Options, Region, Slice};
use why_trace::shape::{Planner, Shape};
use why_trace::{FIRST_UNIT_ID, STACK, THREAD};

#[path = "../../flow/tests/support/image.rs"]
mod image;
#[path = "region/stepped.rs"]
mod stepped;

use image::Image;
use stepped::{Step, Stepped, stepped};

const PROGRAMS: [(&str, &str); 7] = [
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

/// The product's way: the steps as records of a trace.
fn region(run: &Stepped) -> Region {
    let file = tempfile::tempfile().unwrap();
    let ways = OfImage { image: &run.image };
    let mut builder = Builder::create(ways, CHUNK, file.try_clone().unwrap()).unwrap();
    let mut ids: HashMap<(u64, usize), u32> = HashMap::new();
    let mut next_id = FIRST_UNIT_ID;
    builder.record(THREAD, &[1]).unwrap();
    builder.record(STACK, &[run.steps[0].registers.rsp]).unwrap();
    let mut at = 0;
    while at < run.steps.len() {
        let mut length = 1;
        while length < 12
            && run.steps[at + length - 1].insn.flow_control() == FlowControl::Next
            && at + length < run.steps.len()
        {
            length += 1;
        }
        let steps = &run.steps[at..at + length];
        let mut planner = Planner::default();
        steps.iter().for_each(|step| planner.instruction(&step.insn));
        let shape: Arc<Shape> = Arc::new(planner.finish());
        let first = *ids.entry((steps[0].insn.ip(), length)).or_insert_with(|| {
            builder.learn(&[Arc::clone(&shape)]);
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
            let region = region(&run);
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

/// What is made of some operands, each as it was before a step read it.
#[test]
fn forward_slices_are_those_of_the_naive_way() {
    let mut factory = InstructionInfoFactory::new();
    let mut compared = 0;
    for (name, source) in PROGRAMS {
        for level in ["-O0", "-O2"] {
            let run = stepped(source, &[level]);
            let region = region(&run);
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
                for data in [false, true] {
                    let source = Criterion {
                        position: step as u64,
                        thread: 1,
                        memory: std::iter::once(at..at + size).collect(),
                        ..Criterion::default()
                    };
                    let options = Options { data, ..Options::default() };
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
                }
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}

/// A string instruction that is interrupted is not known to have done what it did.
#[test]
fn what_is_not_known_is_named() {
    let insn = iced_x86::Decoder::with_ip(64, &[0xf3, 0xa4], 0x1000, 0).decode(); // rep movsb
    let mut planner = Planner::default();
    planner.instruction(&insn);
    let shape = Arc::new(planner.finish());
    struct Nowhere;
    impl Ways for Nowhere {
        fn meet(&self, _: u64) -> Option<u64> {
            None
        }
    }
    let mut builder = Builder::new(Nowhere, CHUNK);
    builder.learn(&[Arc::clone(&shape)]);
    let slots = vec![0x5000; shape.told[0].len()];
    builder.record(FIRST_UNIT_ID, &slots).unwrap();
    builder.record(why_trace::REPEATED, &[0x5004]).unwrap();
    let slots = vec![0x5004; shape.slots_before(1) + 1];
    builder.record(FIRST_UNIT_ID + 1, &slots).unwrap();
    let region = builder.finish().unwrap();
    let criterion = Criterion { position: 1, ..Criterion::default() };
    for slice in [region.slice(&criterion, Options::default()), {
        let source = Criterion { position: 0, ..criterion };
        region.forward(&source, Options::default())
    }] {
        assert_eq!(slice.unwrap().passed_over, BTreeSet::from([0x1000]));
    }
}
