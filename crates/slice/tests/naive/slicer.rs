//! The naive slicer: every step as the rules of instructions say, forwards, and then whatever
//! can be reached backwards.

use super::decided::decided;
use super::kept::Keeping;
use super::machine::Machine;
use super::product::Seen;
use super::shadow::{At, Graph, Instance, Node, Shadow};
use super::stepped::Stepped;
use super::{arithmetic, bits, floats, lanes, moves, others, stack, strings, vectors};
use iced_x86::Mnemonic;
use std::collections::BTreeSet;

/// Each knows some instructions, and does nothing with others. Strings come first, since vector
/// instructions have the same names.
const RULES: [fn(&mut Machine<'_>) -> bool; 9] = [
    strings::execute,
    vectors::execute,
    lanes::execute,
    floats::execute,
    moves::execute,
    arithmetic::execute,
    bits::execute,
    stack::execute,
    others::execute,
];

pub struct Naive {
    graph: Graph,
    decided: Vec<Option<Instance>>,
    /// What decided where each step led.
    decisions: Vec<Node>,
    /// What was looked for, in the order in which it was asked for.
    pub found: Vec<Vec<Node>>,
}

/// What is looked for: these places before a step.
#[derive(Clone)]
pub struct Wanted {
    pub before: usize,
    pub thread: u64,
    pub places: Vec<At>,
}

/// What counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counts {
    pub addresses: bool,
    pub control: bool,
}

impl Naive {
    /// Follows a run, and notes what is wanted on the way.
    pub fn of(run: &Stepped, program: &Seen<'_>, wanted: &[Wanted]) -> Naive {
        let mut naive = Naive {
            graph: Graph::default(),
            decided: decided(run, program),
            decisions: Vec::new(),
            found: vec![Vec::new(); wanted.len()],
        };
        let mut shadow = Shadow::default();
        let mut keeping = Keeping::default();
        for (number, step) in run.steps.iter().enumerate() {
            naive.note(&shadow, wanted, number);
            let instance = number as Instance;
            let mut machine = Machine::new(step, &shadow);
            let decision = match step.insn.mnemonic() {
                Mnemonic::Syscall => others::asked(&machine),
                _ => others::decision(&machine),
            };
            let known = RULES.iter().any(|rule| rule(&mut machine));
            assert!(known, "nothing is known of {:?}", step.insn.code());
            let mut made = machine.finish(instance, &mut naive.graph);
            let decision = naive.graph.add(instance, decision);
            naive.decisions.push(decision);
            for at in step.wrote.iter().cloned().flatten() {
                made.push((At::Memory(at), decision));
            }
            keeping.executed(step, instance, &mut shadow, made);
        }
        naive.note(&shadow, wanted, run.steps.len());
        naive
    }

    fn note(&mut self, shadow: &Shadow, wanted: &[Wanted], now: usize) {
        for (index, wanted) in wanted.iter().enumerate().filter(|(_, w)| w.before == now) {
            let nodes = wanted.places.iter().filter(|at| !at.is_stack_pointer());
            self.found[index] = nodes.filter_map(|at| shadow.get(wanted.thread, *at)).collect();
        }
    }

    /// The steps that can be reached backwards.
    pub fn slice(&self, from: &[Node], counts: Counts) -> BTreeSet<Instance> {
        let mut open: Vec<Node> = from.to_vec();
        let mut seen = vec![false; self.graph.size()];
        let mut slice = BTreeSet::new();
        while let Some(node) = open.pop() {
            if self.graph.is_frame(node) || std::mem::replace(&mut seen[node as usize], true) {
                continue;
            }
            open.extend(self.graph.values(node));
            if counts.addresses {
                open.extend(self.graph.addresses(node));
            }
            let step = self.graph.by(node);
            if slice.insert(step)
                && counts.control
                && let Some(branch) = self.decided[step as usize]
            {
                open.push(self.decisions[branch as usize]);
            }
        }
        slice
    }
}
