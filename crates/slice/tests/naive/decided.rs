//! What had it that a step was executed: the last branch of the same call that it depends on,
//! else the call.

use super::product::Seen;
use super::shadow::Instance;
use super::stepped::{Step, Stepped};
use super::ways::Function;
use iced_x86::FlowControl;
use std::collections::{BTreeSet, HashMap};

/// Code of which no symbol tells which function it is, as stubs that linkers make.
const NAMELESS: u64 = 0;

/// A function that runs, from a call or a jump out of another function.
struct Activation {
    /// What decided that it runs.
    because: Option<Instance>,
    function: u64,
    /// The stack pointer before the call.
    stack: u64,
    /// When each of its branches was executed last.
    branches: HashMap<u64, Instance>,
    /// Where it was, in order.
    history: Vec<(u64, Instance)>,
}

/// For each step what decided over it.
pub fn decided(run: &Stepped, program: &Seen<'_>) -> Vec<Option<Instance>> {
    let mut functions: HashMap<u64, Function> = HashMap::new();
    let mut threads: HashMap<u64, Vec<Activation>> = HashMap::new();
    let mut decided: Vec<Option<Instance>> = Vec::new();
    let mut before: HashMap<u64, Instance> = HashMap::new();
    for (number, step) in run.steps.iter().enumerate() {
        let address = step.insn.ip();
        let entry = run.image.function(address).unwrap_or(NAMELESS);
        let activations = threads.entry(step.thread).or_default();
        let last = before.insert(step.thread, number as Instance);
        let last = last.map(|last| (last, &run.steps[last as usize]));
        arrive(activations, step, entry, last, &decided);
        let function = functions.entry(entry).or_insert_with(|| Function::of(program, entry));
        let activation = activations.last_mut().expect("something runs");
        decided.push(activation.decides(function, address));
        let flow = step.insn.flow_control();
        if matches!(flow, FlowControl::ConditionalBranch | FlowControl::IndirectBranch) {
            activation.branches.insert(address, number as Instance);
        }
        activation.history.push((address, number as Instance));
    }
    decided
}

/// Finds or begins the activation that a step belongs to.
fn arrive(
    activations: &mut Vec<Activation>,
    step: &Step,
    entry: u64,
    last: Option<(Instance, &Step)>,
    decided: &[Option<Instance>],
) {
    let stack = step.before.stack();
    let called = last.filter(|(_, last)| {
        matches!(last.insn.flow_control(), FlowControl::IndirectCall) || last.insn.is_call_near()
    });
    let new = |because, stack| Activation {
        because,
        function: entry,
        stack,
        branches: HashMap::new(),
        history: Vec::new(),
    };
    if let Some((number, last)) = called {
        activations.push(new(Some(number), last.before.stack()));
        return;
    }
    // Where the stack pointer is again where it was before a call, that is over.
    while activations.len() > 1 && activations.last().is_some_and(|top| top.stack <= stack) {
        activations.pop();
    }
    let Some(top) = activations.last() else {
        activations.push(new(None, u64::MAX));
        return;
    };
    if top.function == entry {
        return;
    }
    // A jump to another function, as if it had been called instead of this one.
    let (number, jump) = last.expect("what jumped");
    let because = match jump.insn.flow_control() {
        FlowControl::ConditionalBranch | FlowControl::IndirectBranch => Some(number),
        _ => decided[number as usize],
    };
    let stack = top.stack;
    activations.push(new(because, stack));
}

impl Activation {
    fn decides(&self, function: &mut Function, address: u64) -> Option<Instance> {
        if !function.contains(address) {
            // No known way leads here.
            return self.open(function);
        }
        let depends = function.depends(address);
        let branches = depends.iter().filter_map(|branch| self.branches.get(branch));
        branches.max().copied().or(self.because)
    }

    /// The last branch since which nothing was executed that all ways from it come through.
    fn open(&self, function: &Function) -> Option<Instance> {
        let mut since: BTreeSet<u64> = BTreeSet::new();
        for (address, number) in self.history.iter().rev() {
            let is_branch = self.branches.contains_key(address);
            if is_branch && !since.iter().any(|other| function.always_follows(*address, *other)) {
                return Some(*number);
            }
            since.insert(*address);
        }
        self.because
    }
}
