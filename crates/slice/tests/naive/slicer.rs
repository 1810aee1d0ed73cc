//! The naive slicer: every step as the rules of instructions say, forwards, and then whatever
//! can be reached backwards.

use super::decided::decided;
use super::hidden::Hidden;
use super::kept::Keeping;
use super::kernel;
use super::machine::Machine;
use super::product::Seen;
use super::shadow::{At, Graph, Instance, Node, Registers, Shadow, Sources};
use super::stepped::Stepped;
use super::{arithmetic, bits, floats, lanes, masked, moves, others, stack, strings, vectors};
use iced_x86::{FlowControl, Mnemonic};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

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
    /// Where each step is.
    addresses: Vec<u64>,
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

/// What depends on a source.
pub struct Touched {
    nodes: Vec<bool>,
    pub steps: BTreeSet<Instance>,
}

/// What counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counts {
    pub addresses: bool,
    pub control: bool,
}

impl Naive {
    /// Follows a run, and notes what is wanted on the way. Who made the source does not count:
    /// it is made by nobody. Some functions bind others.
    pub fn of(
        run: &Stepped,
        program: &Seen<'_>,
        wanted: &[Wanted],
        source: Option<&Wanted>,
        binding: &[Range<u64>],
    ) -> Naive {
        let mut naive = Naive {
            graph: Graph::default(),
            decided: decided(run, program),
            decisions: Vec::new(),
            found: vec![Vec::new(); wanted.len()],
            pairs: BTreeSet::new(),
            addresses: run.steps.iter().map(|step| step.insn.ip()).collect(),
            source: None,
        };
        // What was in the registers of a thread when it began to bind a function.
        let mut before: HashMap<u64, Vec<Registers>> = HashMap::new();
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
            let binds = binding.iter().find(|code| code.contains(&step.insn.ip()));
            if binds.is_some_and(|code| code.start == step.insn.ip()) {
                before.entry(step.thread).or_default().push(shadow.take(step.thread));
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
            if let Some((from, to)) = kernel::moved(step) {
                let known: Vec<_> =
                    from.clone().map(|at| shadow.get(step.thread, At::Memory(at))).collect();
                from.for_each(|at| shadow.set(step.thread, At::Memory(at), None));
                let known = known.into_iter().chain(std::iter::repeat(None));
                to.zip(known).for_each(|(at, node)| shadow.set(step.thread, At::Memory(at), node));
            }
            if binds.is_some() && step.insn.flow_control() == FlowControl::IndirectBranch {
                shadow.take(step.thread);
                let before = before.get_mut(&step.thread).and_then(Vec::pop);
                before.into_iter().flatten().for_each(|(at, node)| {
                    shadow.set(step.thread, at, Some(node));
                });
            }
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

    /// Whether a step is not looked into.
    fn is_hidden(&self, step: Instance, hidden: &Hidden) -> bool {
        hidden.has(self.addresses[step as usize])
    }

    /// What decided over a step; instead of what is not looked into, what decided over that.
    fn decided(&self, step: Instance, hidden: &Hidden) -> Option<Instance> {
        let mut by = self.decided[step as usize];
        while let Some(passed) = by.filter(|by| self.is_hidden(*by, hidden)) {
            by = self.decided[passed as usize];
        }
        by
    }

    /// What can be reached backwards, and the steps that made it.
    fn reached(
        &self,
        from: &[Node],
        counts: Counts,
        hidden: &Hidden,
    ) -> (Vec<bool>, BTreeSet<Instance>) {
        let mut open: Vec<Node> = from.to_vec();
        let mut reached = vec![false; self.graph.size()];
        let mut slice = BTreeSet::new();
        while let Some(node) = open.pop() {
            let step = self.graph.by(node);
            if self.graph.is_frame(node)
                || self.is_hidden(step, hidden)
                || std::mem::replace(&mut reached[node as usize], true)
            {
                continue;
            }
            open.extend(self.graph.values(node));
            if counts.addresses {
                open.extend(self.graph.addresses(node));
            }
            if slice.insert(step)
                && counts.control
                && let Some(branch) = self.decided(step, hidden)
            {
                open.push(self.decisions[branch as usize]);
            }
        }
        (reached, slice)
    }

    /// What the source can be reached from, and the steps that made it: each thing is made after
    /// what it is made from, and a step after what decided over it.
    pub fn touched(&self, counts: Counts, hidden: &Hidden) -> Touched {
        let source = self.source.expect("a source");
        let mut touched = vec![false; self.graph.size()];
        let mut belongs = vec![false; self.decided.len()];
        touched[source as usize] = true;
        for node in (source + 1)..self.graph.size() as Node {
            let step = self.graph.by(node);
            if self.is_hidden(step, hidden) || self.graph.is_frame(node) {
                continue;
            }
            let decided = self.decided(step, hidden).is_some_and(|by| belongs[by as usize]);
            let is_touched = |list: &[Node]| list.iter().any(|source| touched[*source as usize]);
            let made = is_touched(self.graph.values(node))
                || counts.addresses && is_touched(self.graph.addresses(node));
            if made || counts.control && decided {
                touched[node as usize] = true;
                belongs[step as usize] |= !self.pairs.contains(&step);
            }
        }
        let steps = (0..belongs.len() as Instance).filter(|step| belongs[*step as usize]);
        Touched { nodes: touched, steps: steps.collect() }
    }

    pub fn slice(&self, from: &[Node], counts: Counts, hidden: &Hidden) -> BTreeSet<Instance> {
        self.reached(from, counts, hidden).1
    }

    /// The steps of which something is both.
    pub fn chop(
        &self,
        touched: &Touched,
        from: &[Node],
        counts: Counts,
        hidden: &Hidden,
    ) -> BTreeSet<Instance> {
        let (reached, _) = self.reached(from, counts, hidden);
        let is_both = |node: &Node| touched.nodes[*node as usize] && reached[*node as usize];
        // The source itself is made by nobody.
        let behind = self.source.map_or(0, |source| source + 1);
        let both = (behind..self.graph.size() as Node).filter(is_both);
        both.map(|node| self.graph.by(node)).filter(|step| touched.steps.contains(step)).collect()
    }
}
