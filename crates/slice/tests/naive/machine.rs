//! One step, as the rules of instructions see it: operands to read and to write.

use super::shadow::{At, FRAME_POINTER, Graph, Instance, Node, Shadow, Sources};
use super::stepped::Step;
use iced_x86::{EncodingKind, Instruction, OpKind, Register};

/// Bytes and what each is made from.
pub type Value = Vec<Sources>;

pub struct Machine<'a> {
    pub step: &'a Step,
    shadow: &'a Shadow,
    /// What is made, all of it from what was there before.
    made: Vec<(At, Sources)>,
}

impl<'a> Machine<'a> {
    pub fn new(step: &'a Step, shadow: &'a Shadow) -> Machine<'a> {
        Machine { step, shadow, made: Vec::new() }
    }

    pub fn insn(&self) -> &'a Instruction {
        &self.step.insn
    }

    /// What was at a place.
    pub fn get(&self, at: At) -> Sources {
        if at.is_stack_pointer() {
            return Sources { stack: true, ..Sources::default() };
        }
        let values = self.shadow.get(self.step.thread, at).into_iter().collect();
        Sources { values, other: true, ..Sources::default() }
    }

    pub fn register(&self, register: Register) -> Value {
        At::of(register).into_iter().map(|at| self.get(at)).collect()
    }

    pub fn flags(&self, letters: &str) -> Sources {
        Sources::all(&letters.chars().map(|letter| self.get(At::Flag(letter))).collect::<Value>())
    }

    /// What registers make an address of.
    pub fn address_of(&self, registers: &[Register]) -> Sources {
        let all: Value = registers.iter().flat_map(|register| self.register(*register)).collect();
        Sources { addresses: Sources::all(&all).values, ..Sources::default() }
    }

    /// Memory that begins at an address, which registers make.
    pub fn memory(&self, at: u64, size: u64, registers: &[Register]) -> Value {
        let address = self.address_of(registers);
        let byte = |offset| {
            let mut sources = self.get(At::Memory(at.wrapping_add(offset)));
            sources.add(&address);
            sources
        };
        (0..size).map(byte).collect()
    }

    /// Where the operand in memory is that the instruction names.
    pub fn named_address(&self) -> u64 {
        let (insn, registers) = (self.insn(), &self.step.before);
        if insn.is_ip_rel_memory_operand() {
            return insn.ip_rel_memory_address();
        }
        let base = registers.value(insn.memory_base());
        let index = registers.value(insn.memory_index());
        let scaled = index.wrapping_mul(insn.memory_index_scale().into());
        let within = base.wrapping_add(scaled).wrapping_add(insn.memory_displacement64());
        let short = insn.memory_base().is_gpr32() || insn.memory_index().is_gpr32();
        let within = if short { within & 0xffff_ffff } else { within };
        within.wrapping_add(registers.value(insn.segment_prefix()))
    }

    pub fn named_registers(&self) -> [Register; 2] {
        [self.insn().memory_base(), self.insn().memory_index()]
    }

    /// An operand before the step; what a number is made from is nothing.
    pub fn read(&self, operand: u32) -> Value {
        let insn = self.insn();
        match insn.op_kind(operand) {
            OpKind::Register => self.register(insn.op_register(operand)),
            OpKind::Memory => {
                let size = insn.memory_size().size() as u64;
                self.memory(self.named_address(), size, &self.named_registers())
            }
            _ => vec![Sources::default(); 8],
        }
    }

    /// How many bytes an operand has.
    pub fn size(&self, operand: u32) -> usize {
        match self.insn().op_kind(operand) {
            OpKind::Register => self.insn().op_register(operand).size(),
            OpKind::Memory => self.insn().memory_size().size(),
            _ => 0,
        }
    }

    /// What the instruction is called, whichever its encoding.
    pub fn name(&self) -> String {
        let name = format!("{:?}", self.insn().mnemonic());
        match name.strip_prefix('V').filter(|_| self.is_vex()) {
            Some(plain) => plain[..1].to_uppercase() + &plain[1..],
            None => name,
        }
    }

    pub fn is_vex(&self) -> bool {
        !matches!(self.insn().encoding(), EncodingKind::Legacy | EncodingKind::D3NOW)
    }

    pub fn set(&mut self, at: At, sources: Sources) {
        self.made.push((at, sources));
    }

    /// Defines some bytes of memory.
    pub fn set_memory(&mut self, at: u64, value: Value, registers: &[Register]) {
        let address = self.address_of(registers);
        for (offset, mut sources) in value.into_iter().enumerate() {
            sources.add(&address);
            self.set(At::Memory(at.wrapping_add(offset as u64)), sources);
        }
    }

    /// Defines a register, and clears what the CPU clears above.
    pub fn set_register(&mut self, register: Register, value: Value) {
        let bytes = At::of(register);
        assert!(value.len() >= bytes.len(), "{} has all its bytes", self.insn().code() as u32);
        bytes.into_iter().zip(value).for_each(|(at, sources)| self.set(at, sources));
        let (number, size) = (register.number() as u8, register.size() as u8);
        if register.is_gpr32() {
            let full = register.full_register().number() as u8;
            (4..8).for_each(|byte| self.set(At::General(full, byte), Sources::default()));
        } else if register.is_vector_register() && self.is_vex() {
            (size..64).for_each(|byte| self.set(At::Vector(number, byte), Sources::default()));
        }
    }

    /// Defines an operand.
    pub fn write(&mut self, operand: u32, value: Value) {
        match self.insn().op_kind(operand) {
            OpKind::Register => self.set_register(self.insn().op_register(operand), value),
            OpKind::Memory => {
                let (at, registers) = (self.named_address(), self.named_registers());
                let size = self.insn().memory_size().size();
                self.set_memory(at, value[..size].to_vec(), &registers);
            }
            other => panic!("{other:?} is written"),
        }
    }

    /// Defines all of an operand from the same.
    pub fn write_all(&mut self, operand: u32, from: &Sources) {
        self.write(operand, vec![from.clone(); self.size(operand)]);
    }

    pub fn set_flags(&mut self, letters: &str, from: &Sources) {
        letters.chars().for_each(|letter| self.set(At::Flag(letter), from.clone()));
    }

    /// Flags that may also stay as they are, as those do that manuals call undefined.
    pub fn touch_flags(&mut self, letters: &str, from: &Sources) {
        for letter in letters.chars() {
            let both = Sources::all([from, &self.get(At::Flag(letter))]);
            self.set(At::Flag(letter), both);
        }
    }

    /// What has been made, as nodes; what has the same sources is one.
    pub fn finish(self, instance: Instance, graph: &mut Graph) -> Vec<(At, Node)> {
        let mut nodes: Vec<(Sources, Node)> = Vec::new();
        let mut made = Vec::new();
        for (at, sources) in self.made {
            let is_frame = matches!(at, At::General(FRAME_POINTER, _));
            if at.is_stack_pointer() || is_frame && sources.stack && !sources.other {
                made.push((at, graph.add_frame(instance)));
                continue;
            }
            let same = |(known, _): &&(Sources, Node)| {
                known.values == sources.values && known.addresses == sources.addresses
            };
            let known = nodes.iter().find(same).map(|(_, node)| *node);
            let node = known.unwrap_or_else(|| graph.add(instance, sources.clone()));
            nodes.push((sources, node));
            made.push((at, node));
        }
        made
    }
}
