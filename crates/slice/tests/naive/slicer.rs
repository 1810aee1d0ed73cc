//! The naive slicer: every step as the rules of instructions say, forwards, and then whatever
//! can be reached backwards.

use super::decided::decided;
use super::kept::Keeping;
use super::machine::Machine;
use super::product::Seen;
use super::shadow::{At, Graph, Instance, Node, Shadow, Sources};
use super::stepped::Stepped;
use super::{arithmetic, bits, floats, lanes, masked, moves, others, stack, strings, vectors};
use iced_x86::Mnemonic;
use std::collections::BTreeSet;

/// Each knows some instructions, and does nothing with others. Strings and what has a mask come
/// first, since other vector instructions have the same names.
const RULES: [fn(&mut Machine<'_>) -> bool; 10] = [
    strings::execute,
    masked::execute,
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
    /// Steps that only put a register aside or brought it back.
    pairs: BTreeSet<Instance>,
    /// The source of what is followed forwards.
    source: Option<Node>,
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
    /// Follows a run, and notes what is wanted on the way. Who made the source does not count:
    /// it is made by nobody.
    pub fn of(
        run: &Stepped,
        program: &Seen<'_>,
        wanted: &[Wanted],
        source: Option<&Wanted>,
    ) -> Naive {
        let mut naive = Naive {
            graph: Graph::default(),
            decided: decided(run, program),
            decisions: Vec::new(),
            found: vec![Vec::new(); wanted.len()],
            pairs: BTreeSet::new(),
            source: None,
        };
        let mut shadow = Shadow::default();
        let mut keeping = Keeping::default();
        for (number, step) in run.steps.iter().enumerate() {
            naive.note(&shadow, wanted, number);
            let instance = number as Instance;
            if let Some(source) = source.filter(|source| source.before == number) {
                let node = naive.graph.add(instance, Sources::default());
                source.places.iter().for_each(|at| shadow.set(source.thread, *at, Some(node)));
                naive.source = Some(node);
            }
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
            if let Some(created) = step.creates {
                shadow.inherit(created.thread, step.thread);
            }
        }
        naive.note(&shadow, wanted, run.steps.len());
        naive.pairs = keeping.pairs;
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

    /// The steps that the source can be reached from: each thing is made after what it is made
    /// from, and a step after what decided over it.
    pub fn forward(&self, counts: Counts) -> BTreeSet<Instance> {
        let source = self.source.expect("a source");
        let mut touched = vec![false; self.graph.size()];
        let mut belongs = vec![false; self.decided.len()];
        touched[source as usize] = true;
        for node in (source + 1)..self.graph.size() as Node {
            let step = self.graph.by(node) as usize;
            let decided = self.decided[step].is_some_and(|by| belongs[by as usize]);
            let is_touched = |list: &[Node]| list.iter().any(|source| touched[*source as usize]);
            let made = is_touched(self.graph.values(node))
                || counts.addresses && is_touched(self.graph.addresses(node));
            if (made || counts.control && decided) && !self.graph.is_frame(node) {
                touched[node as usize] = true;
                belongs[step] |= !self.pairs.contains(&(step as Instance));
            }
        }
        (0..belongs.len() as Instance).filter(|step| belongs[*step as usize]).collect()
    }
}
