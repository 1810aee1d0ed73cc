//! The product's way: steps as records of a trace, and branches by the product's own graphs.

use super::image::Image;
use super::kernel;
use super::stepped::{Registers, Step, Stepped};
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use why_flow::{Graph, PostDominators, Program};
use why_slice::Ways;
use why_slice::region::{Builder, Region};
use why_symbols::Landing;
use why_trace::shape::{Kind, Planner, Shape};
use why_trace::{CALLED, FIRST_UNIT_ID, FS_BASE, MOVED, REPEATED, STACK, THREAD, WROTE};

/// There are several, even of short runs.
const CHUNK: u64 = 300;
const LONGEST_UNIT: usize = 12;

/// A program and where its indirect jumps were seen to lead.
pub struct Seen<'a> {
    pub image: &'a Image,
    landings: &'a [Landing],
    pub targets: HashMap<u64, Vec<u64>>,
}

impl<'a> Seen<'a> {
    pub fn of(run: &'a Stepped) -> Seen<'a> {
        let mut targets: HashMap<u64, Vec<u64>> = HashMap::new();
        for (step, next) in with_next(&run.steps) {
            if step.insn.flow_control() == FlowControl::IndirectBranch {
                let all = targets.entry(step.insn.ip()).or_default();
                if !all.contains(&next.insn.ip()) {
                    all.push(next.insn.ip());
                }
            }
        }
        Seen { image: &run.image, landings: &run.landings, targets }
    }

    /// Where a call goes on if what it called throws.
    pub fn pad(&self, call: u64) -> Option<u64> {
        let mut landings = self.landings.iter();
        landings.find(|landing| landing.calls.contains(&call)).map(|landing| landing.pad.0)
    }
}

/// Each step with the next one of its thread.
fn with_next(steps: &[Step]) -> impl Iterator<Item = (&Step, &Step)> {
    let mut last: HashMap<u64, usize> = HashMap::new();
    steps
        .iter()
        .enumerate()
        .filter_map(move |(number, step)| Some((&steps[last.insert(step.thread, number)?], step)))
}

/// Calls of these do not come back.
const NEVER_RETURN: [&str; 8] = [
    "abort",
    "exit",
    "_exit",
    "__assert_fail",
    "__stack_chk_fail",
    "__cxa_throw",
    "__cxa_rethrow",
    "_Unwind_Resume",
];

pub fn may_return(image: &Image, callee: u64) -> bool {
    let mut functions = image.functions.iter();
    let function = functions.find(|(_, range)| range.start == callee);
    !function.is_some_and(|(name, _)| NEVER_RETURN.contains(&name.as_str()))
}

impl Program for SoFar<'_> {
    fn read(&self, at: u64, into: &mut [u8]) -> usize {
        self.program.image.read(at, into)
    }

    fn is_within(&self, entry: u64, address: u64) -> bool {
        self.program.image.is_within(entry, address)
    }

    fn may_return(&self, callee: u64) -> bool {
        may_return(self.program.image, callee)
    }

    fn landing_pad(&self, call: u64) -> Option<u64> {
        self.program.pad(call)
    }

    fn seen_targets(&self, jump: u64) -> Vec<u64> {
        self.targets.get(&jump).cloned().unwrap_or_default()
    }
}

/// Where jumps lead is learnt in the course of the run.
struct OfProgram<'a> {
    program: &'a Seen<'a>,
    targets: HashMap<u64, Vec<u64>>,
    graphs: RefCell<HashMap<u64, (Graph, PostDominators)>>,
}

struct SoFar<'a> {
    program: &'a Seen<'a>,
    targets: &'a HashMap<u64, Vec<u64>>,
}

impl OfProgram<'_> {
    /// Looks at the function that an address lies in.
    fn with_graph(
        &self,
        address: u64,
        look: impl FnOnce(&Graph, &PostDominators) -> Option<u64>,
    ) -> Option<u64> {
        let function = self.program.image.function(address)?;
        let mut graphs = self.graphs.borrow_mut();
        let (graph, post_dominators) = graphs.entry(function).or_insert_with(|| {
            let so_far = SoFar { program: self.program, targets: &self.targets };
            let graph = Graph::of(&so_far, function);
            let post_dominators = PostDominators::of(&graph);
            (graph, post_dominators)
        });
        look(graph, post_dominators)
    }
}

impl Ways for OfProgram<'_> {
    fn meet(&self, branch: u64) -> Option<u64> {
        self.with_graph(branch, |graph, post_dominators| {
            let block = graph.blocks.iter().position(|block| block.last == branch)?;
            let meet = post_dominators.behind(why_flow::BlockId(block))?;
            Some(graph.block(meet).start)
        })
    }

    fn lands(&self, pad: u64) -> Option<u64> {
        self.with_graph(pad, |graph, post_dominators| {
            why_flow::landings(graph, post_dominators).get(&pad).copied()
        })
    }

    /// What has no symbol is what linkers make to lead to functions.
    fn decides(&self, jump: u64) -> bool {
        self.program.image.function(jump).is_some()
    }

    fn learn_targets(&mut self, seen: &[(u64, u64)]) -> Vec<u64> {
        for (jump, target) in seen {
            self.targets.entry(*jump).or_default().push(*target);
            if let Some(function) = self.program.image.function(*jump) {
                self.graphs.get_mut().remove(&function);
            }
        }
        let mut changed = Vec::new();
        for (jump, _) in seen {
            self.with_graph(*jump, |graph, _| {
                changed.extend(graph.blocks.iter().flat_map(|block| [block.start, block.last]));
                None
            });
        }
        changed
    }
}

pub fn region(run: &Stepped, program: &Seen<'_>) -> Region {
    let mut builder = Builder::new(
        OfProgram { program, targets: HashMap::new(), graphs: RefCell::default() },
        CHUNK,
    );
    let mut ids: HashMap<Vec<u64>, u32> = HashMap::new();
    let mut next_id = FIRST_UNIT_ID;
    let mut thread = None;
    let (mut at, mut strings) = (0, 0);
    // Registers before the rest of a string instruction.
    let mut resumed: Option<Registers> = None;
    while at < run.steps.len() {
        let first = &run.steps[at];
        if thread.replace(first.thread) != Some(first.thread) {
            builder.record(THREAD, &[first.thread]).unwrap();
            builder.record(STACK, &[first.before.stack()]).unwrap();
            builder.record(FS_BASE, &[first.before.value(Register::FS)]).unwrap();
        }
        let length = unit(&run.steps[at..]);
        let steps = &run.steps[at..at + length];
        let shape = shape(steps.iter().map(|step| &step.insn));
        let addresses = steps.iter().map(|step| step.insn.ip()).collect();
        let number = ids.len();
        let first = *ids.entry(addresses).or_insert_with(|| {
            builder.learn(&[Arc::clone(&shape)], &Kind::all(number, &shape));
            let first = next_id;
            next_id += length as u32 + 1;
            first
        });
        let told = |count: usize| told(&shape, steps, resumed.as_ref(), count);
        let halfway = |(index, step): (usize, &Step)| {
            let is_rest = index == 0 && resumed.is_some();
            step.halfway().filter(|_| !is_rest).map(|halfway| (index, halfway))
        };
        // Every other string instruction is interrupted, which makes no difference to its instance.
        let interrupted = steps.iter().enumerate().find_map(halfway);
        strings += usize::from(interrupted.is_some());
        if let Some((index, halfway)) = interrupted.filter(|_| strings % 2 == 1) {
            builder.record(first + index as u32, &told(index)).unwrap();
            builder.record(REPEATED, &[halfway.value(leading(&steps[index].insn))]).unwrap();
            resumed = Some(halfway);
            at += index;
            continue;
        }
        builder.record(first + length as u32, &told(length)).unwrap();
        resumed = None;
        for wrote in &steps[length - 1].wrote {
            builder.record(WROTE, &[wrote.start, wrote.end - wrote.start]).unwrap();
        }
        let last = &steps[length - 1];
        if let Some((from, to)) = kernel::moved(last) {
            let sizes = [from.end - from.start, to.end - to.start];
            builder.record(MOVED, &[from.start, sizes[0], to.start, sizes[1]]).unwrap();
        }
        if let Some(created) = &last.creates {
            let (call, flags) = (libc::SYS_clone as u64, libc::CLONE_THREAD as u64);
            builder.record(CALLED, &[call, flags, created.stack, 0, 0, 0]).unwrap();
        } else if last.insn.mnemonic() == Mnemonic::Syscall {
            let call = last.before.value(Register::RAX);
            builder.record(CALLED, &[call, 0, 0, 0, 0, 0]).unwrap();
        }
        at += length;
    }
    builder.finish().unwrap()
}

/// What a record tells of so many steps.
fn told(shape: &Shape, steps: &[Step], resumed: Option<&Registers>, count: usize) -> Vec<u64> {
    let mut slots = Vec::new();
    for (index, told) in shape.told[..=count].iter().enumerate() {
        let registers = match (steps.get(index), resumed) {
            (Some(_), Some(resumed)) if index == 0 => resumed,
            (Some(step), _) => &step.before,
            (None, _) => &steps[index - 1].after,
        };
        for register in told {
            if register.is_gpr() {
                slots.push(registers.value(*register));
            } else {
                let bytes = steps[index].vector(*register);
                let words = bytes.chunks(8).map(|word| word.try_into().expect("a word"));
                slots.extend(words.map(u64::from_le_bytes));
            }
        }
    }
    slots
}

/// The pointer by which a trace tells how far a string instruction has come.
fn leading(insn: &Instruction) -> Register {
    let is_destination = |kind| matches!(kind, OpKind::MemoryESRDI | OpKind::MemoryESEDI);
    match (0..insn.op_count()).any(|operand| is_destination(insn.op_kind(operand))) {
        true => Register::RDI,
        false => Register::RSI,
    }
}

fn shape<'a>(instructions: impl Iterator<Item = &'a Instruction>) -> Arc<Shape> {
    let mut planner = Planner::default();
    instructions.for_each(|insn| planner.instruction(insn));
    Arc::new(planner.finish())
}

/// How many of these steps are one unit. Some end with any branch; others go on wherever it leads.
fn unit(steps: &[Step]) -> usize {
    let follows = !steps[0].insn.ip().is_multiple_of(3);
    let goes_on = |pair: &[Step]| {
        let [step, next] = pair else { return false };
        let is_alone = step.wrote.is_empty() && step.creates.is_none();
        let is_simple = match step.insn.flow_control() {
            FlowControl::Next => true,
            _ => follows && is_alone && step.insn.mnemonic() != Mnemonic::Syscall,
        };
        is_simple && step.thread == next.thread
    };
    1 + steps.windows(2).take(LONGEST_UNIT - 1).take_while(|pair| goes_on(pair)).count()
}
