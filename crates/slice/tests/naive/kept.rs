//! Registers that a function puts aside and brings back: they have again what made them before
//! the call.

use super::shadow::{At, Instance, Node, Shadow};
use super::stepped::Step;
use iced_x86::{FlowControl, Mnemonic as M, OpKind, Register};
use std::collections::{BTreeSet, HashMap};

/// The registers that functions have to bring back.
const KEPT: [Register; 6] =
    [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];

type Bytes = Vec<Option<Node>>;

#[derive(Default)]
pub struct Keeping {
    threads: HashMap<u64, Vec<Call>>,
    /// Who wrote each byte of memory last.
    writers: HashMap<u64, Instance>,
    /// Steps that put a register aside or brought it back.
    pub pairs: BTreeSet<Instance>,
}

/// A call that is not over.
struct Call {
    stack: u64,
    /// What had made the registers when it was made.
    before: HashMap<Register, Bytes>,
    /// Steps that put a register aside.
    put_aside: HashMap<Instance, (Register, u64)>,
}

fn bytes(shadow: &Shadow, thread: u64, register: Register) -> Bytes {
    At::of(register).into_iter().map(|at| shadow.get(thread, at)).collect()
}

/// The register that a step stores as a whole, and where.
fn stores(step: &Step) -> Option<(Register, u64)> {
    let insn = &step.insn;
    let (register, at) = match insn.mnemonic() {
        M::Push if insn.op0_kind() == OpKind::Register => (insn.op0_register(), step.after.stack()),
        M::Mov if insn.op0_kind() == OpKind::Memory && insn.op1_kind() == OpKind::Register => {
            (insn.op1_register(), named(step))
        }
        _ => return None,
    };
    KEPT.contains(&register).then_some((register, at))
}

/// The register that a step loads as a whole, and from where.
fn loads(step: &Step) -> Option<(Register, u64)> {
    let insn = &step.insn;
    let (register, at) = match insn.mnemonic() {
        M::Leave => (Register::RBP, step.before.value(Register::RBP)),
        M::Pop if insn.op0_kind() == OpKind::Register => (insn.op0_register(), step.before.stack()),
        M::Mov if insn.op0_kind() == OpKind::Register && insn.op1_kind() == OpKind::Memory => {
            (insn.op0_register(), named(step))
        }
        _ => return None,
    };
    KEPT.contains(&register).then_some((register, at))
}

fn named(step: &Step) -> u64 {
    let shadow = Shadow::default();
    super::machine::Machine::new(step, &shadow).named_address()
}

impl Keeping {
    /// A step has made all this; what it brings back is what it was.
    pub fn executed(
        &mut self,
        step: &Step,
        instance: Instance,
        shadow: &mut Shadow,
        made: Vec<(At, Node)>,
    ) {
        let thread = step.thread;
        let calls = self.threads.entry(thread).or_default();
        while calls.last().is_some_and(|call| call.stack <= step.before.stack()) {
            calls.pop();
        }
        let mut brought_back = None;
        if let Some(call) = calls.last_mut() {
            if let Some((register, at)) = loads(step) {
                let writer = self.writers.get(&at).copied();
                let only = (at..at + 8).all(|at| self.writers.get(&at).copied() == writer);
                let saved = writer.and_then(|writer| call.put_aside.get(&writer));
                if only && saved == Some(&(register, at)) {
                    self.pairs.extend(writer.into_iter().chain([instance]));
                    brought_back = Some((register, call.before[&register].clone()));
                }
            }
            if let Some((register, at)) = stores(step)
                && bytes(shadow, thread, register) == call.before[&register]
            {
                call.put_aside.insert(instance, (register, at));
            }
        }
        for (at, node) in made {
            if let At::Memory(at) = at {
                self.writers.insert(at, instance);
            }
            shadow.set(thread, at, Some(node));
        }
        if let Some((register, before)) = brought_back {
            let places = At::of(register).into_iter().zip(before);
            places.for_each(|(at, node)| shadow.set(thread, at, node));
        }
        let flow = step.insn.flow_control();
        if flow == FlowControl::IndirectCall || step.insn.is_call_near() {
            let before = KEPT.map(|register| (register, bytes(shadow, thread, register)));
            let (stack, before) = (step.before.stack(), before.into());
            calls.push(Call { stack, before, put_aside: HashMap::new() });
        }
    }
}
