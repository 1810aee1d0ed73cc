//! Where a value comes from at a moment: the bytes of registers and memory that it consists of.

use crate::criterion::Value as Wanted;
use iced_x86::{
    Code, Decoder, DecoderOptions, InstructionInfoFactory, OpAccess, Register, UsedMemory,
};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use why_effects::{Cell, Place, cells, effects};
use why_engine::Scene;
use why_record::registers::{FLAGS, RAX, RIP};
use why_symbols::{Memory, Origin, Value};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origins {
    pub cells: Vec<Range<Cell>>,
    pub memory: Vec<Range<u64>>,
    /// The value itself is nowhere: the debug information tells how to compute it from these.
    #[serde(default)]
    pub is_computed: bool,
}

impl Origins {
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty() && self.memory.is_empty()
    }

    /// Of what is called by a name.
    pub fn of_value(value: &Value, memory: &dyn Memory) -> Origins {
        Origins { is_computed: value.is_computed(), ..Origins::of_places(&value.origins(memory)) }
    }

    fn of_places(places: &[Origin]) -> Origins {
        let mut origins = Origins::default();
        for place in places {
            match *place {
                Origin::Memory(at) => match origins.memory.last_mut() {
                    Some(last) if last.end == at => last.end += 1,
                    _ => origins.memory.push(at..at.wrapping_add(1)),
                },
                Origin::Register(number, byte) => {
                    let first = by_dwarf(number).and_then(cells::of).map(|cells| cells.start);
                    let cell = first.map(|first| first + Cell::from(byte));
                    origins.cells.extend(cell.map(|cell| cell..cell + 1));
                }
            }
        }
        origins
    }

    /// Where they are, in words.
    pub fn told(&self) -> String {
        let register = |cells: &Range<Cell>| cells::name(cells.start);
        let memory = |bytes: &Range<u64>| format!("memory at {:#x}", bytes.start);
        let mut all: Vec<String> =
            self.cells.iter().map(register).chain(self.memory.iter().map(memory)).collect();
        all.dedup();
        let last = all.pop().unwrap_or_default();
        if all.is_empty() { last } else { format!("{} and {last}", all.join(", ")) }
    }

    /// Of a register or of memory that was named as such.
    pub fn of_named(wanted: &Wanted) -> Origins {
        match wanted {
            Wanted::Register(index) if *index < 16 => {
                let first = 8 * *index as Cell;
                Origins { cells: std::iter::once(first..first + 8).collect(), ..Origins::default() }
            }
            Wanted::Register(FLAGS) => {
                let flags = cells::CARRY..cells::DIRECTION + 1;
                Origins { cells: std::iter::once(flags).collect(), ..Origins::default() }
            }
            Wanted::Memory(range) => {
                Origins { memory: std::iter::once(range.clone()).collect(), ..Origins::default() }
            }
            Wanted::Register(_) | Wanted::Expression(_) => Origins::default(),
        }
    }

    /// All that the next instruction reads, and what decides where it leads. Of a call of the system
    /// by which the program ends, that is the status; a thread that ends itself otherwise came
    /// there, and that is all there is to ask.
    pub fn of_instruction(scene: &Scene) -> Origins {
        /// The calls that a program ends by.
        const ENDS: [i64; 2] = [libc::SYS_exit_group, libc::SYS_exit];
        let mut bytes = [0; 15];
        let got = scene.read(scene.registers.0[RIP], &mut bytes);
        let at = scene.registers.0[RIP];
        let insn = Decoder::with_ip(64, &bytes[..got], at, DecoderOptions::NONE).decode();
        let mut origins = Origins::default();
        if insn.code() == Code::Syscall && ENDS.contains(&scene.registers.0[RAX].cast_signed()) {
            origins.cells.extend(cells::of(Register::EDI));
        }
        if insn.is_invalid() || insn.code() == Code::Syscall {
            return origins;
        }
        let mut factory = InstructionInfoFactory::new();
        let told = effects(&insn, &mut factory);
        let never = [OpAccess::None, OpAccess::NoMemAccess];
        let accessed = factory.info(&insn).used_memory().iter();
        let addresses: Vec<u64> = accessed
            .filter(|memory| !never.contains(&memory.access()))
            .map(|memory| address(scene, memory))
            .collect();
        let parts = told.parts.iter().flat_map(|part| part.lanes.iter().chain(&part.whole));
        // Flags that it may leave as they were it does not use.
        let flags = cells::CARRY..cells::DIRECTION + 1;
        let leaves_flags = insn.rflags_read() == 0;
        for place in parts.chain(&told.decides) {
            match place {
                Place::Cells(cells) if leaves_flags && flags.contains(&cells.start) => {}
                Place::Cells(cells) => origins.cells.push(cells.clone()),
                Place::Memory { operand, bytes } => {
                    let start = addresses[*operand];
                    let byte = |byte: u32| start.wrapping_add(byte.into());
                    origins.memory.push(byte(bytes.start)..byte(bytes.end));
                }
                Place::String { operand } => {
                    let start = addresses[*operand];
                    origins.memory.push(start..start.wrapping_add(1));
                }
            }
        }
        origins.cells.extend(told.operands.iter().flat_map(|operand| operand.address.clone()));
        origins
    }
}

fn address(scene: &Scene, memory: &UsedMemory) -> u64 {
    /// Where the bases of FS and GS are among the recorded registers.
    const BASES: [(Register, usize); 2] = [(Register::FS, 18), (Register::GS, 19)];
    let value = |register: Register| match register {
        Register::None | Register::RIP | Register::EIP => 0,
        register if register.is_gpr() => scene.registers.0[register.full_register().number()],
        register => {
            let base = BASES.iter().find(|(segment, _)| *segment == register);
            base.map_or(0, |(_, index)| scene.registers.0[*index])
        }
    };
    value(memory.segment())
        .wrapping_add(value(memory.base()))
        .wrapping_add(value(memory.index()).wrapping_mul(memory.scale().into()))
        .wrapping_add(memory.displacement())
}

/// The register that has a number in DWARF.
fn by_dwarf(number: u16) -> Option<Register> {
    use Register as R;
    const FIRST: [Register; 8] = [R::RAX, R::RDX, R::RCX, R::RBX, R::RSI, R::RDI, R::RBP, R::RSP];
    match number {
        0..=7 => Some(FIRST[usize::from(number)]),
        8..=15 => Some(Register::R8 + u32::from(number - 8)),
        17..=32 => Some(Register::XMM0 + u32::from(number - 17)),
        _ => None,
    }
}
