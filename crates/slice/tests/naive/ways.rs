//! Control dependence by its definition, in graphs whose nodes are single instructions.
//!
//! An instruction depends on a branch if it is on every way from one of the branch's
//! successors to the function's end, and not on every way from another one.

use super::image::Image;
use super::product::{Seen, may_return};
use super::tables;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use why_flow::Program;

/// A function as it can be followed from its entry.
pub struct Function {
    instructions: BTreeMap<u64, Flow>,
    predecessors: HashMap<u64, Vec<u64>>,
    /// Instructions with which it may end.
    ends: Vec<u64>,
    depends: HashMap<u64, Rc<BTreeSet<u64>>>,
    /// The calls that may go on at each landing pad.
    landings: BTreeMap<u64, Vec<u64>>,
}

struct Flow {
    successors: BTreeSet<u64>,
    ends: bool,
    branches: bool,
    /// Where a call goes on if what it called throws.
    pad: Option<u64>,
    /// It is a jump within the function of which only seen targets are known.
    is_seen: bool,
    next: u64,
}

/// The lowest code that is not reached, behind some that is, and behind what only fills up.
fn gap(program: &Seen<'_>, entry: u64, flows: &BTreeMap<u64, Flow>) -> Option<u64> {
    let behind = |flow: &Flow| {
        let mut at = flow.next;
        while !flows.contains_key(&at) && program.image.is_within(entry, at) {
            let insn = decode(program.image, at);
            match insn.mnemonic() {
                Mnemonic::INVALID => return None,
                Mnemonic::Nop | Mnemonic::Int3 => at = insn.next_ip(),
                _ => return Some(at),
            }
        }
        None
    };
    flows.values().filter_map(behind).min()
}

impl Function {
    pub fn of(program: &Seen<'_>, entry: u64) -> Function {
        let mut known: BTreeMap<u64, Instruction> = BTreeMap::new();
        let mut flows = BTreeMap::new();
        // What a table holds can only be told once the code in front of it is known, so code
        // is followed until nothing new is found.
        let mut unreached = Vec::new();
        loop {
            let found = flows.len();
            flows = follow(program, entry, &mut known, &unreached);
            if flows.len() != found {
                continue;
            }
            // Where the table of a jump within the function is not known, it may lead to whatever
            // nothing else leads to.
            match flows.values().any(|flow| flow.is_seen).then(|| gap(program, entry, &flows)) {
                Some(Some(at)) => unreached.push(at),
                _ => break,
            }
        }
        let mut function = Function {
            instructions: flows,
            predecessors: HashMap::new(),
            ends: Vec::new(),
            depends: HashMap::new(),
            landings: BTreeMap::new(),
        };
        for (at, flow) in &function.instructions {
            if let Some(pad) = flow.pad {
                function.landings.entry(pad).or_default().push(*at);
            }
        }
        for (at, flow) in &function.instructions {
            for successor in &flow.successors {
                function.predecessors.entry(*successor).or_default().push(*at);
            }
            if flow.ends {
                function.ends.push(*at);
            }
        }
        function.end_loops();
        function
    }

    /// A loop that is never left ends nevertheless: with the instruction that is first found
    /// in it.
    fn end_loops(&mut self) {
        loop {
            let ending = self.ending_without(None);
            let mut stuck = self.instructions.keys().filter(|at| !ending.contains(at));
            let Some(first) = stuck.find(|at| self.reaches(**at, **at)).copied() else {
                return;
            };
            self.ends.push(first);
            self.instructions.get_mut(&first).expect("it is known").ends = true;
        }
    }

    fn reaches(&self, from: u64, to: u64) -> bool {
        let mut open: Vec<u64> = self.instructions[&from].successors.iter().copied().collect();
        let mut seen = HashSet::new();
        while let Some(at) = open.pop() {
            if at == to {
                return true;
            }
            if seen.insert(at) {
                open.extend(&self.instructions[&at].successors);
            }
        }
        false
    }

    /// What has a way to the end that does not come through an instruction.
    fn ending_without(&self, without: Option<u64>) -> HashSet<u64> {
        let mut open: Vec<u64> = self.ends.clone();
        let mut seen = HashSet::new();
        while let Some(at) = open.pop() {
            if Some(at) != without && seen.insert(at) {
                open.extend(self.predecessors.get(&at).into_iter().flatten());
            }
        }
        seen
    }

    pub fn contains(&self, address: u64) -> bool {
        self.instructions.contains_key(&address)
    }

    /// The branches that an instruction depends on.
    pub fn depends(&mut self, address: u64) -> Rc<BTreeSet<u64>> {
        if let Some(known) = self.depends.get(&address) {
            return Rc::clone(known);
        }
        let without = self.ending_without(Some(address));
        let decides = |flow: &Flow| {
            let always = |successor: &u64| !without.contains(successor);
            let leaves = flow.ends;
            flow.branches
                && flow.successors.iter().any(always)
                && (leaves || !flow.successors.iter().all(always))
        };
        let all = self.instructions.iter().filter(|(_, flow)| decides(flow));
        let depends = Rc::new(all.map(|(at, _)| *at).collect::<BTreeSet<u64>>());
        self.depends.insert(address, Rc::clone(&depends));
        depends
    }

    /// The nearest instruction that every way from a branch comes through.
    pub fn meet(&self, branch: u64) -> Option<u64> {
        if !self.contains(branch) {
            return None;
        }
        let always =
            |from: u64, at: &u64| from != *at && !self.ending_without(Some(*at)).contains(&from);
        let all: Vec<u64> =
            self.instructions.keys().copied().filter(|at| always(branch, at)).collect();
        // All others come behind it.
        all.iter().copied().find(|one| all.iter().all(|at| at == one || always(*one, at)))
    }
}

impl Function {
    pub fn is_landing_pad(&self, address: u64) -> bool {
        self.landings.contains_key(&address)
    }

    /// The nearest instruction that every way comes through, from a landing pad as from all calls
    /// that may go on there.
    pub fn landing_meet(&self, pad: u64) -> Option<u64> {
        let calls = self.landings.get(&pad)?;
        let always =
            |from: u64, at: &u64| from != *at && !self.ending_without(Some(*at)).contains(&from);
        let is_common = |at: &u64| {
            (*at == pad || always(pad, at)) && calls.iter().all(|call| always(*call, at))
        };
        let all: Vec<u64> = self.instructions.keys().copied().filter(is_common).collect();
        all.iter().copied().find(|one| all.iter().all(|at| at == one || always(*one, at)))
    }
}

/// What can be reached from the entry, and where each instruction leads.
fn follow(
    program: &Seen<'_>,
    entry: u64,
    known: &mut BTreeMap<u64, Instruction>,
    unreached: &[u64],
) -> BTreeMap<u64, Flow> {
    let mut flows = BTreeMap::new();
    let mut open = vec![entry];
    while let Some(at) = open.pop() {
        if flows.contains_key(&at) {
            continue;
        }
        let insn = *known.entry(at).or_insert_with(|| decode(program.image, at));
        if insn.is_invalid() {
            continue;
        }
        let flow = flow(program, entry, &insn, known, unreached);
        open.extend(&flow.successors);
        open.extend(flow.pad);
        flows.insert(at, flow);
    }
    flows
}

fn flow(
    program: &Seen<'_>,
    entry: u64,
    insn: &Instruction,
    known: &BTreeMap<u64, Instruction>,
    unreached: &[u64],
) -> Flow {
    use FlowControl as F;
    let next = insn.next_ip();
    let target = insn.near_branch_target();
    let calls = insn.is_call_near() || insn.flow_control() == F::IndirectCall;
    let pad = program.pad(insn.ip()).filter(|_| calls);
    let pad = pad.filter(|pad| program.image.is_within(entry, *pad));
    let mut is_seen = false;
    let (to, branches) = match insn.flow_control() {
        F::Call if insn.is_call_near() && !may_return(program.image, target) => {
            (pad.into_iter().collect(), false)
        }
        F::Call | F::IndirectCall | F::Next => (vec![next], false),
        F::UnconditionalBranch => (vec![target], false),
        F::ConditionalBranch => (vec![target, next], true),
        F::IndirectBranch => {
            let table = tables::targets(program.image, insn.ip(), known, entry);
            let mut to = program.targets.get(&insn.ip()).cloned().unwrap_or_default();
            let stays = to.iter().any(|to| program.image.is_within(entry, *to));
            is_seen = table.is_empty() && stays;
            to.extend(table);
            to.extend(unreached.iter().filter(|_| is_seen));
            (to, true)
        }
        F::Interrupt if insn.mnemonic() == Mnemonic::Int => (vec![next], false),
        _ => (vec![], false),
    };
    let inside =
        |to: &u64| program.image.is_within(entry, *to) && !decode(program.image, *to).is_invalid();
    let successors: BTreeSet<u64> = to.iter().copied().filter(inside).collect();
    // An indirect jump of which one target is known leads only to such ones.
    let indirect = insn.flow_control() == F::IndirectBranch && !successors.is_empty();
    let ends = !indirect && (to.is_empty() || !to.iter().all(inside));
    Flow { successors, ends, branches, pad, is_seen, next }
}

fn decode(image: &Image, at: u64) -> Instruction {
    let mut bytes = [0; 15];
    let got = image.read(at, &mut bytes);
    Decoder::with_ip(64, &bytes[..got], at, DecoderOptions::NONE).decode()
}
