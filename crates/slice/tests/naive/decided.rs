//! What had it that a step was executed: the last branch of the same call that it depends on,
//! else the call.

use super::product::Seen;
use super::shadow::Instance;
use super::stepped::{Step, Stepped};
use super::ways::Function;
use iced_x86::{FlowControl, Instruction};
use std::collections::HashMap;

/// Code of which no symbol tells which function it is: what linkers make to lead to others, which
/// is part of the call.
const NAMELESS: u64 = 0;

/// A function that runs, from a call or a jump out of another function.
struct Activation {
    /// What decided that it runs.
    because: Option<Instance>,
    function: u64,
    /// The stack pointer before the call, and where the caller goes on.
    stack: u64,
    back: u64,
    /// It only leads back to a function from which others were called in between.
    passes: bool,
    /// When each of its branches was executed last.
    branches: HashMap<u64, Instance>,
    /// Where it was, in order.
    history: Vec<(u64, Instance)>,
    /// Once it went on elsewhere than behind a call, the definition does not tell enough: the
    /// branches, and such jumps, whose ways have not met, and where they do.
    open: Option<Vec<(Instance, Option<u64>)>>,
}

fn is_branch(insn: &Instruction) -> bool {
    matches!(insn.flow_control(), FlowControl::ConditionalBranch | FlowControl::IndirectBranch)
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
        let landed = arrive(activations, step, entry, last, &decided);
        let activation = activations.last_mut().expect("something runs");
        let function = functions.entry(entry).or_insert_with(|| Function::of(program, entry));
        if let Some(jump) = landed {
            // What happens is what the tables say.
            assert!(!run.throws || function.is_landing_pad(address), "{address:x}");
            activation.lands(function, jump, address);
        }
        decided.push(activation.decides(function, address));
        activation.executes(function, address, number as Instance, &step.insn);
    }
    decided
}

/// Finds or begins the activation that a step belongs to. The jump that led there, if it was to
/// elsewhere than behind a call.
fn arrive(
    activations: &mut Vec<Activation>,
    step: &Step,
    entry: u64,
    last: Option<(Instance, &Step)>,
    decided: &[Option<Instance>],
) -> Option<Instance> {
    let new = |because, stack, back| Activation {
        because,
        function: entry,
        stack,
        back,
        passes: false,
        branches: HashMap::new(),
        history: Vec::new(),
        open: None,
    };
    let Some((number, last)) = last else {
        activations.push(new(None, u64::MAX, 0));
        return None;
    };
    if last.insn.flow_control() == FlowControl::IndirectCall || last.insn.is_call_near() {
        activations.push(new(Some(number), last.before.stack(), last.insn.next_ip()));
        return None;
    }
    // Where the stack pointer is again where it was before a call, that is over.
    let stack = step.before.stack();
    let mut back = None;
    while activations.len() > 1 && activations.last().is_some_and(|top| top.stack <= stack) {
        back = activations.pop().map(|over| over.back);
    }
    let lands = back.is_some_and(|back| back != step.insn.ip());
    let top = activations.last().expect("something runs");
    let jumps = top.function != NAMELESS && is_branch(&last.insn);
    if top.function == entry {
        return lands.then_some(number);
    }
    let (stack, back) = (top.stack, top.back);
    if top.passes && activations[activations.len() - 2].function == entry {
        let jump = if jumps { Some(number) } else { top.because };
        activations.pop();
        return jump;
    }
    // A jump to another function, as if it had been called instead of this one.
    let because = if jumps || lands { Some(number) } else { decided[number as usize] };
    let passes = lands;
    activations.push(Activation { passes, ..new(because, stack, back) });
    None
}

impl Activation {
    fn decides(&mut self, function: &mut Function, address: u64) -> Option<Instance> {
        if !function.contains(address) {
            // No known way leads here.
            self.opens(function);
        }
        if let Some(open) = &mut self.open {
            if let Some(met) = open.iter().position(|(_, meet)| *meet == Some(address)) {
                open.truncate(met);
            }
            return open.last().map(|(number, _)| *number).or(self.because);
        }
        let depends = function.depends(address);
        let branches = depends.iter().filter_map(|branch| self.branches.get(branch));
        branches.max().copied().or(self.because)
    }

    fn executes(
        &mut self,
        function: &Function,
        address: u64,
        number: Instance,
        insn: &Instruction,
    ) {
        if self.function != NAMELESS && is_branch(insn) {
            self.branches.insert(address, number);
            if let Some(open) = &mut self.open {
                open.push((number, function.meet(address)));
            }
        }
        self.history.push((address, number));
    }

    /// A jump from elsewhere leads here.
    fn lands(&mut self, function: &Function, jump: Instance, address: u64) {
        let meet = function.landing_meet(address);
        self.opens(function).push((jump, meet));
    }

    /// The branches whose ways have not met, in order.
    fn opens(&mut self, function: &Function) -> &mut Vec<(Instance, Option<u64>)> {
        let (history, branches) = (&self.history, &self.branches);
        self.open.get_or_insert_with(|| {
            let mut open: Vec<(Instance, Option<u64>)> = Vec::new();
            for (address, number) in history {
                if let Some(met) = open.iter().position(|(_, meet)| *meet == Some(*address)) {
                    open.truncate(met);
                }
                if branches.contains_key(address) {
                    open.push((*number, function.meet(*address)));
                }
            }
            open
        })
    }
}
