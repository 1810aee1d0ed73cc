//! Follows a trace instruction by instruction and rebuilds every address.

use crate::access::{Access, Registers, Repetition, accesses};
use crate::known::Known;
use crate::register::{RSP, number};
use crate::shape::{Kind, Shape, repeated_pointer};
use crate::{
    CALLED, CAME_BACK, ENDED, FIRST_UNIT_ID, FS_BASE, GS_BASE, HANDLER, Header, MOMENT, MOVED,
    Malformed, OTHERS_WROTE, READ, RECOUNT, REPEATED, RETURNED, STACK, THREAD, UNDO, WROTE, Word,
};
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, Register};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What the reader carries from record to record of a thread.
#[derive(Clone, Copy, Default)]
struct Thread {
    stack: u64,
    fs: u64,
    gs: u64,
}

pub struct Follower {
    /// The units, by their numbers.
    shapes: Vec<Arc<Shape>>,
    /// For each id of a unit's record: the unit, and the instructions it stands for.
    kinds: Vec<Kind>,
    threads: FxHashMap<u64, Thread>,
    thread: u64,
    /// What the last unit's record says, with the number of the instruction; it may be
    /// undone.
    last: Vec<(usize, Access)>,
    executed: usize,
    /// A string instruction behind the last record, which was interrupted.
    interrupted: Option<Repetition>,
    factory: InstructionInfoFactory,
}

/// The registers at an instruction.
struct State {
    known: Known<u64>,
    thread: Thread,
    vectors: Vec<(Register, Vec<u64>)>,
}

impl Registers for State {
    fn value(&self, register: Register) -> u64 {
        match register {
            Register::FS => self.thread.fs,
            Register::GS => self.thread.gs,
            _ if register.is_gpr() => {
                self.known.value(number(register)).expect("what addresses need is told")
            }
            // The other segments begin at zero; displacements from RIP include it.
            _ => 0,
        }
    }

    fn vector(&self, register: Register) -> &[u64] {
        let told = self.vectors.iter().rev().find(|(told, _)| *told == register);
        &told.expect("what addresses need is told").1
    }
}

impl State {
    /// Takes a register's value from the record.
    fn tell(&mut self, register: Register, slots: &mut std::slice::Iter<'_, Word>) -> Option<u64> {
        let mut words = Vec::with_capacity(register.size() / 8);
        for _ in 0..register.size() / 8 {
            words.push(u64::from_le_bytes(*slots.next()?));
        }
        let first = words[0];
        if register.is_gpr() {
            self.known.tell(number(register), first);
        } else {
            self.vectors.push((register, words));
        }
        Some(first)
    }
}

impl Default for Follower {
    fn default() -> Follower {
        Follower {
            shapes: Vec::new(),
            kinds: Vec::new(),
            threads: FxHashMap::default(),
            thread: 0,
            last: Vec::new(),
            executed: 0,
            interrupted: None,
            factory: InstructionInfoFactory::new(),
        }
    }
}

impl Follower {
    /// Makes the next units and ids known.
    pub fn learn(&mut self, shapes: &[Arc<Shape>], kinds: &[Kind]) {
        self.shapes.extend_from_slice(shapes);
        self.kinds.extend_from_slice(kinds);
    }

    /// Reads a whole number of records; `sink` gets what is certain by now.
    pub fn read(&mut self, bytes: &[u8], sink: &mut dyn FnMut(&Access)) -> Result<(), Malformed> {
        let (words, _) = bytes.as_chunks();
        let mut at = 0;
        while at < words.len() {
            let header = Header::at(words[at]);
            let malformed = Malformed { offset: 8 * at, id: header.id() };
            let end = at + 1 + header.slots();
            let Some(slots) = words.get(at + 1..end) else {
                return Err(malformed);
            };
            let unit = (header.id() as usize).checked_sub(FIRST_UNIT_ID as usize);
            let read = match unit.and_then(|unit| self.kinds.get(unit)).copied() {
                Some(kind) => {
                    let shape = Arc::clone(&self.shapes[kind.unit()]);
                    self.unit(&shape, kind.executed(), slots, sink)
                }
                None => self.special(header.id() as u32, slots),
            };
            read.ok_or(malformed)?;
            at = end;
        }
        Ok(())
    }

    /// There are no more records.
    pub fn finish(&mut self, sink: &mut dyn FnMut(&Access)) {
        self.last.drain(..).for_each(|(_, access)| sink(&access));
    }

    fn special(&mut self, id: u32, slots: &[Word]) -> Option<()> {
        // Whoever wrote to memory had no instruction for it.
        if matches!(
            (id, slots.len()),
            (WROTE | OTHERS_WROTE | MOMENT, 2) | (READ | MOVED, 4) | (CALLED, 6) | (CAME_BACK, 3)
        ) {
            return Some(());
        }
        let &[value] = slots else {
            return None;
        };
        let value = u64::from_le_bytes(value);
        if id == THREAD {
            self.thread = value;
            return Some(());
        }
        let thread = self.threads.entry(self.thread).or_default();
        match id {
            STACK => thread.stack = value,
            FS_BASE => thread.fs = value,
            GS_BASE => thread.gs = value,
            UNDO => {
                let left = self.executed.checked_sub(value as usize)?;
                self.last.retain(|(index, _)| *index < left);
            }
            REPEATED => {
                let repetition = self.interrupted.take()?;
                self.note_repetition(self.executed, &repetition, value);
            }
            // Of calls, which have no addresses.
            RECOUNT | HANDLER | RETURNED | CAME_BACK | ENDED => {}
            _ => return None,
        }
        Some(())
    }

    fn unit(
        &mut self,
        shape: &Shape,
        executed: usize,
        slots: &[Word],
        sink: &mut dyn FnMut(&Access),
    ) -> Option<()> {
        self.finish(sink);
        self.executed = executed;
        let thread = *self.threads.entry(self.thread).or_default();
        let known = Known::at_start(thread.stack);
        let mut state = State { known, thread, vectors: Vec::new() };
        let mut slots = slots.iter();
        self.interrupted = None;
        for (index, told) in shape.told[..=executed].iter().enumerate() {
            for &register in told {
                // Of what comes behind the last instruction, only some may be there.
                if index == executed && slots.len() == 0 {
                    break;
                }
                let value = state.tell(register, &mut slots)?;
                if let Some(repetition) = self.interrupted.take() {
                    self.note_repetition(index - 1, &repetition, value);
                }
            }
            let Some(insn) = shape.instructions.get(index) else {
                break;
            };
            if index < executed {
                self.instruction(index, insn, &mut state);
            } else if slots.len() == 0 {
                self.may_be_interrupted(insn, told, &state);
            }
        }
        let thread = self.threads.entry(self.thread).or_default();
        *thread = state.thread;
        // Otherwise the supervisor tells before the thread goes on.
        thread.stack = state.known.value(RSP).unwrap_or(0);
        (slots.len() == 0).then_some(())
    }

    fn instruction(&mut self, index: usize, insn: &Instruction, state: &mut State) {
        let info = self.factory.info(insn);
        if let Some(pointer) = repeated_pointer(insn) {
            self.interrupted = Some(Repetition::new(insn, pointer, info.used_memory(), state));
        } else {
            let thread = self.thread;
            let pieces = accesses(insn, info.used_memory(), state).into_iter();
            self.last.extend(pieces.map(|(address, size, kind)| {
                (index, Access { thread, pc: insn.ip(), kind, address, size })
            }));
        }
        match insn.mnemonic() {
            Mnemonic::Wrfsbase => state.thread.fs = base(insn, state),
            Mnemonic::Wrgsbase => state.thread.gs = base(insn, state),
            _ => {}
        }
        state.known.execute(insn, info.used_registers());
    }

    /// The instruction behind the record's last one has perhaps begun.
    fn may_be_interrupted(&mut self, insn: &Instruction, told: &[Register], state: &State) {
        let all_known = |register: &Register| state.known.value(number(*register)).is_some();
        if let Some(pointer) = repeated_pointer(insn)
            && told.iter().all(all_known)
        {
            let info = self.factory.info(insn);
            self.interrupted = Some(Repetition::new(insn, pointer, info.used_memory(), state));
        }
    }

    fn note_repetition(&mut self, index: usize, repetition: &Repetition, pointer: u64) {
        let (thread, pc) = (self.thread, repetition.pc);
        let pieces = repetition.accesses(pointer).into_iter();
        self.last.extend(
            pieces.map(|(address, size, kind)| (index, Access { thread, pc, kind, address, size })),
        );
    }
}

fn base(insn: &Instruction, state: &State) -> u64 {
    let register = insn.op0_register();
    crate::register::part(register, state.value(register.full_register()))
}
