//! The addresses of a unit's memory accesses, worked out once for all of its records.
//!
//! A record holds the values of some registers. Which address follows from which of them is
//! the same for each record of a unit, so it is found once, by executing the unit with
//! [`Symbol`]s; for a record only what is left is computed. Most addresses are a slot and a
//! number.

mod lanes;

use crate::known::Known;
use crate::number::Number;
use crate::register::{RSP, number, part};
use crate::shape::{Shape, bit_offset, is_access, repeated_pointer};
use crate::symbol::{Operation, Operations, Symbol, Term};
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, Register, UsedMemory};
use serde::{Deserialize, Serialize};
use why_effects::Lanes;

/// The first values of a record: what its thread had before.
const STACK: u16 = 0;
const FS: u16 = 1;
const GS: u16 = 2;
/// What is there is no value, and nothing is added to it.
const NOTHING: u16 = 3;
const FIRST_SLOT: u16 = 4;

pub struct Plan {
    operations: Vec<Operation>,
    /// The stack pointer behind all instructions; none where the trace tells it.
    last_stack: Option<Term>,
    /// How many values there are, with those that are computed.
    values: usize,
    /// What is known behind each number of instructions.
    behind: Vec<Behind>,
    pub accesses: Vec<Planned>,
    /// Instructions behind which what is planned may be wrong.
    pub unplanned: Vec<u8>,
}

/// What is known behind some of the instructions.
struct Behind {
    /// The stack pointer; none where the trace tells it.
    stack: Option<Term>,
    /// How many of the operations they need.
    operations: u16,
    /// Where what is told behind them begins among the values.
    first_slot: u16,
}

/// An access of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    pub instruction: u8,
    /// Among those of the instruction.
    pub operand: u8,
    address: Term,
    size: PlannedSize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlannedSize {
    Bytes(u16),
    /// The string is as long as its pointer moved; with elements of so many bytes.
    Moved {
        by: Term,
        element: u8,
    },
}

/// What a thread had before a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    pub stack: u64,
    pub fs: u64,
    pub gs: u64,
}

/// Where an access begins: one of the values, and how far behind that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    pub value: u16,
    pub plus: u64,
}

impl Term {
    fn start(self) -> Start {
        Start { value: self.value.unwrap_or(NOTHING), plus: self.plus }
    }
}

impl Start {
    #[inline]
    pub fn of(self, values: &Values) -> u64 {
        values.0[usize::from(self.value)].wrapping_add(self.plus)
    }
}

/// The values of a record. What is behind them is left from others.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Values(Vec<u64>);

impl Values {
    /// The slots of a record.
    #[inline]
    pub fn tell(&mut self, slots: &[u64]) {
        let first = usize::from(FIRST_SLOT);
        if self.0.len() < first + slots.len() {
            self.0.resize(first + slots.len(), 0);
        }
        let told = &mut self.0[first..];
        // Most are few, and to copy these one by one is faster.
        match *slots {
            [] => {}
            [one] => told[0] = one,
            [one, two] => told[..2].copy_from_slice(&[one, two]),
            [one, two, three] => told[..3].copy_from_slice(&[one, two, three]),
            _ => told[..slots.len()].copy_from_slice(slots),
        }
    }
}

impl Plan {
    pub fn of(shape: &Shape, factory: &mut InstructionInfoFactory) -> Plan {
        let slots: usize = shape.told.iter().map(|told| crate::shape::slots(told)).sum();
        let operations = Operations::on(FIRST_SLOT + slots as u16);
        let mut planner = Planner {
            known: Known::at_start(operations.given(STACK)),
            operations: &operations,
            next_slot: FIRST_SLOT,
            accesses: Vec::new(),
            unplanned: Vec::new(),
            repeated: None,
            vectors: Vec::new(),
        };
        let mut behind = Vec::with_capacity(shape.told.len());
        for (index, told) in shape.told.iter().enumerate() {
            let first_slot = planner.next_slot;
            told.iter().for_each(|register| planner.tell(*register));
            let stack = planner.known.value(RSP).map(|symbol| symbol.term);
            behind.push(Behind { stack, operations: operations.count() as u16, first_slot });
            if let Some(insn) = shape.instructions.get(index) {
                planner.instruction(index as u8, insn, factory);
            }
        }
        let Planner { mut accesses, unplanned, .. } = planner;
        accesses.sort_by_key(|planned| (planned.instruction, planned.operand));
        let operations = operations.into_all();
        let values = usize::from(FIRST_SLOT) + slots + operations.len();
        let last_stack = behind.last().and_then(|last| last.stack);
        Plan { operations, last_stack, values, behind, accesses, unplanned }
    }

    /// Computes what the addresses of a record's accesses follow from, whose slots were told, if
    /// all instructions were executed. The stack pointer behind it, if it is known.
    #[inline]
    pub fn compute(&self, before: Before, values: &mut Values) -> Option<u64> {
        self.compute_some(before, self.operations.len(), values);
        self.last_stack.map(|stack| stack.of(&values.0))
    }

    /// The same for so many executed instructions: the others have told nothing.
    #[inline]
    pub fn compute_part(
        &self,
        before: Before,
        executed: usize,
        values: &mut Values,
    ) -> Option<u64> {
        let Behind { stack, operations, .. } = self.behind[executed];
        self.compute_some(before, operations.into(), values);
        stack.map(|stack| stack.of(&values.0))
    }

    /// The same if the instruction behind these was interrupted when its pointer was this.
    pub fn compute_interrupted(
        &self,
        before: Before,
        executed: usize,
        pointer: u64,
        values: &mut Values,
    ) {
        let Behind { operations, first_slot: slot, .. } = self.behind[executed + 1];
        if values.0.len() < self.values {
            values.0.resize(self.values, 0);
        }
        // It is what would be told first behind the instruction.
        if let Some(value) = values.0.get_mut(usize::from(slot)) {
            *value = pointer;
        }
        self.compute_some(before, operations.into(), values);
    }

    #[inline]
    fn compute_some(&self, before: Before, operations: usize, Values(values): &mut Values) {
        if values.len() < self.values {
            values.resize(self.values, 0);
        }
        values[..4].copy_from_slice(&[before.stack, before.fs, before.gs, 0]);
        let first = self.values - self.operations.len();
        for (operation, at) in self.operations[..operations].iter().zip(first..) {
            values[at] = operation.compute(values);
        }
    }
}

impl Plan {
    /// The stack pointer before an instruction, if it is known.
    pub fn stack_before(&self, instruction: usize, values: &Values) -> Option<u64> {
        self.behind[instruction].stack.map(|stack| stack.of(&values.0))
    }
}

impl Plan {
    /// The stack pointer before an instruction, if that is known and may be above what it was before
    /// the one in front.
    pub fn raised_stack(&self, instruction: usize) -> Option<Start> {
        let behind = self.behind[instruction].stack?;
        let is_below = self.behind[instruction - 1].stack.is_some_and(|before| {
            let raised = behind.plus.wrapping_sub(before.plus) as i64;
            before.value == behind.value && raised <= 0
        });
        (!is_below).then_some(behind.start())
    }
}

/// Addresses that stand for others are so far away from each other unless they move together.
const FAR: u32 = 48;

/// The same for all that stand for accesses which move together.
pub fn neighbourhood(stand_in: u64) -> u64 {
    stand_in.wrapping_add(1 << (FAR - 1)) >> FAR
}

impl Plan {
    /// Addresses that stand for those of the first accesses: as far away from those that move with
    /// them as they always are, and far away from all others. None if one is too far away.
    pub fn stand_ins(&self, count: usize) -> Option<Vec<u64>> {
        const NEAR: u64 = 1 << (FAR - 2);
        let accesses = &self.accesses[..count];
        let stand_in = |access: &Planned| {
            let first = accesses.iter().position(|other| other.moves_with(access))?;
            let away = access.address.plus.wrapping_sub(accesses[first].address.plus);
            let start = ((first as u64 + 1) << FAR).wrapping_add(away);
            let is_near = away.wrapping_add(NEAR) < 2 * NEAR;
            is_near.then_some(start)
        };
        accesses.iter().map(stand_in).collect()
    }
}

impl Planned {
    /// Its size, if that is always the same.
    #[inline]
    pub fn fixed_size(&self) -> Option<u16> {
        match self.size {
            PlannedSize::Bytes(size) => Some(size),
            PlannedSize::Moved { .. } => None,
        }
    }

    /// Where it begins, if its size is always the same.
    pub fn fixed_start(&self) -> Option<Start> {
        self.fixed_size().map(|_| self.address.start())
    }

    /// Its lowest address.
    #[inline]
    pub fn start(&self, values: &Values) -> u64 {
        match self.size {
            PlannedSize::Bytes(_) => self.address.of(&values.0),
            PlannedSize::Moved { .. } => self.range(values).0,
        }
    }

    /// Whether it is always as far away from another access as it was once.
    pub fn moves_with(&self, other: &Planned) -> bool {
        self.address.value == other.address.value
    }

    /// Its bytes.
    #[inline]
    pub fn at(&self, values: &Values) -> std::ops::Range<u64> {
        let (address, size) = self.range(values);
        address..address.wrapping_add(size)
    }

    /// The lowest address and the size.
    #[inline]
    pub fn range(&self, values: &Values) -> (u64, u64) {
        let address = self.address.of(&values.0);
        match self.size {
            PlannedSize::Bytes(size) => (address, size.into()),
            PlannedSize::Moved { by, element } => {
                let moved = by.of(&values.0) as i64;
                let bytes = moved.unsigned_abs();
                let down = if moved < 0 { bytes.wrapping_sub(element.into()) } else { 0 };
                (address.wrapping_sub(down), bytes)
            }
        }
    }
}

struct Planner<'a> {
    known: Known<Symbol<'a>>,
    operations: &'a Operations,
    next_slot: u16,
    accesses: Vec<Planned>,
    unplanned: Vec<u8>,
    /// A string instruction whose pointer is told next: where it began.
    repeated: Option<Repeated<'a>>,
    /// Vectors and masks that were told for the next instruction, and the first slot of each.
    vectors: Vec<(Register, u16)>,
}

struct Repeated<'a> {
    instruction: u8,
    start: Symbol<'a>,
    short: bool,
    /// The strings: operand, address, and the size of elements.
    strings: Vec<(u8, Symbol<'a>, u8)>,
}

impl<'a> Planner<'a> {
    fn tell(&mut self, register: Register) {
        let first = self.next_slot;
        let value = self.operations.given(first);
        self.next_slot += (register.size() / 8) as u16;
        if !register.is_gpr() {
            self.vectors.push((register, first));
            return;
        }
        self.known.tell(number(register), value);
        if let Some(Repeated { instruction, start, short, strings }) = self.repeated.take() {
            let moved = value.minus(start);
            let by = if short { moved.sign_extended(4) } else { moved }.term;
            self.accesses.extend(strings.into_iter().map(|(operand, address, element)| Planned {
                instruction,
                operand,
                address: address.term,
                size: PlannedSize::Moved { by, element },
            }));
        }
    }

    fn instruction(&mut self, index: u8, insn: &Instruction, factory: &mut InstructionInfoFactory) {
        let info = factory.info(insn);
        let mut memory = info.used_memory().iter().filter(|memory| is_access(memory.access()));
        if let Some(lanes) = Lanes::of(insn) {
            if let Some(memory) = memory.next() {
                self.lanes(index, &lanes, memory);
            }
        } else if let Some(pointer) = repeated_pointer(insn) {
            let element = insn.memory_size().size() as u8;
            let start = self.known.value(pointer).expect("what addresses need is told");
            let strings = (0..).zip(memory);
            let strings = strings.map(|(i, memory)| (i, self.address(memory), element)).collect();
            let short = insn.memory_base().is_gpr32()
                || info.used_memory().iter().any(|memory| memory.base().is_gpr32());
            let start = if short { start.lowest(32) } else { start };
            self.repeated = Some(Repeated { instruction: index, start, short, strings });
        } else {
            for (operand, memory) in (0..).zip(memory) {
                let mut address = self.address(memory);
                let size = memory.memory_size().size() as u16;
                if let Some(bit) = bit_offset(insn) {
                    address = address.plus(self.element(bit, size));
                }
                self.accesses.push(Planned {
                    instruction: index,
                    operand,
                    address: address.term,
                    size: PlannedSize::Bytes(size),
                });
            }
        }
        if matches!(insn.mnemonic(), Mnemonic::Wrfsbase | Mnemonic::Wrgsbase) {
            self.unplanned.push(index);
        }
        self.vectors.clear();
        self.known.execute(insn, info.used_registers());
    }

    fn address(&self, memory: &UsedMemory) -> Symbol<'a> {
        self.sum(memory, self.value(memory.index()))
    }

    fn value(&self, register: Register) -> Symbol<'a> {
        match register.is_gpr() {
            true => {
                let whole = self.known.value(number(register));
                part(register, whole.expect("what addresses need is told"))
            }
            false => Symbol::constant(0),
        }
    }

    fn sum(&self, memory: &UsedMemory, index: Symbol<'a>) -> Symbol<'a> {
        let sum = self
            .value(memory.base())
            .plus(index.times(u64::from(memory.scale())))
            .plus(Symbol::constant(memory.displacement()));
        let short = memory.base().is_gpr32() || memory.index().is_gpr32();
        let address = if short { sum.lowest(32) } else { sum };
        match memory.segment() {
            Register::FS => address.plus(self.operations.given(FS)),
            Register::GS => address.plus(self.operations.given(GS)),
            _ => address,
        }
    }

    /// How far away the element is that holds a selected bit.
    fn element(&self, register: Register, size: u16) -> Symbol<'a> {
        let whole = self.known.value(number(register)).expect("what addresses need is told");
        let offset = part(register, whole).sign_extended(size.into());
        let bits = (8 * size).trailing_zeros();
        offset.shifted_right_signed(Symbol::constant(bits.into())).times(size.into())
    }
}
