//! The independent oracle for `--accesses`: every memory access of a program that
//! is executed natively, computed at each single step from the true registers.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use iced_x86::{
    CodeSize, Decoder, DecoderOptions, Formatter, Instruction, InstructionInfoFactory,
    IntelFormatter, Register,
};
use libc::user_regs_struct;
use nix::errno::Errno;
use nix::unistd::Pid;

use crate::access::{Access, Kind};
use crate::instruction_accesses;
use crate::registers::Registers;
use crate::reserve;
use crate::support::job::Job;
use crate::support::single_step::{self, Step, Visitor};

/// What is different for a program under `why`, and for the oracle's, too.
#[derive(Clone, Copy, Debug, Default)]
pub struct Surroundings {
    /// It maps memory below so many bytes that are not its own.
    pub reserved: u64,
    /// Entries of the auxiliary vector that it is not shown.
    pub hidden: &'static [u64],
}

/// What the job's program accesses.
pub fn record(job: &Job, surroundings: Surroundings) -> Result<Recorded, String> {
    let mut oracle = Oracle {
        surroundings,
        memory: None,
        announced: Announced::Nothing,
        recorded: Recorded::default(),
    };
    single_step::visit(job, &mut oracle)?;
    Ok(oracle.recorded)
}

#[derive(Default)]
pub struct Recorded {
    /// In program order.
    pub accesses: Vec<Access>,
    /// How many instructions had been executed before each.
    before: Vec<u64>,
    executed: u64,
    /// By address, as last executed there.
    instructions: HashMap<u64, Instruction>,
}

impl Recorded {
    /// Those of the first so many instructions.
    pub fn within(&self, instructions: u64) -> &[Access] {
        &self.accesses[..self.before.partition_point(|before| *before < instructions)]
    }

    fn add(&mut self, accesses: Vec<Access>) {
        self.before.extend(accesses.iter().map(|_| self.executed));
        self.accesses.extend(accesses);
    }

    pub fn disassembled(&self, pc: u64) -> String {
        let mut text = String::new();
        match self.instructions.get(&pc) {
            Some(instruction) => IntelFormatter::new().format(instruction, &mut text),
            None => text.push_str("never executed natively"),
        }
        text
    }
}

struct Oracle {
    surroundings: Surroundings,
    /// The stepped program's, from its first instruction on.
    memory: Option<File>,
    announced: Announced,
    recorded: Recorded,
}

/// What the instruction about to be executed will access.
enum Announced {
    Nothing,
    Once(Vec<Access>),
    Repeatedly(Box<Repetition>),
}

impl Visitor for Oracle {
    fn at_entry(&mut self, pid: Pid) -> nix::Result<()> {
        match self.surroundings.reserved {
            0 => Ok(()),
            bytes => reserve::reserve(pid, bytes),
        }
    }

    fn hidden(&self) -> &[u64] {
        self.surroundings.hidden
    }

    fn before(&mut self, pid: Pid, general: &user_regs_struct) -> nix::Result<()> {
        if let Announced::Repeatedly(repetition) = &self.announced
            && repetition.instruction.ip() == general.rip
        {
            return Ok(());
        }
        let instruction = self.instruction_at(pid, general.rip)?;
        self.recorded.instructions.insert(general.rip, instruction);
        let registers = Registers::before(&instruction, pid, general)?;
        self.announced = if is_repeated_string(&instruction) {
            Announced::Repeatedly(Box::new(Repetition { instruction, registers }))
        } else {
            Announced::Once(instruction_accesses::of(&instruction, &registers))
        };
        Ok(())
    }

    fn after(&mut self, step: Step, registers: &user_regs_struct) {
        if step == Step::Halfway {
            return;
        }
        match std::mem::replace(&mut self.announced, Announced::Nothing) {
            Announced::Repeatedly(repetition) => {
                self.recorded.add(repetition.accesses_until(registers));
            }
            Announced::Once(accesses) if step == Step::Executed => {
                self.recorded.add(accesses);
            }
            _ => {}
        }
        self.recorded.executed += u64::from(step == Step::Executed);
    }
}

impl Oracle {
    fn instruction_at(&mut self, pid: Pid, pc: u64) -> nix::Result<Instruction> {
        const LONGEST: usize = 15;
        let memory = match &mut self.memory {
            Some(memory) => memory,
            none => none.insert(File::open(format!("/proc/{pid}/mem")).map_err(errno)?),
        };
        let mut bytes = [0; LONGEST];
        // An instruction that cannot be fetched faults; it accesses nothing.
        let length = memory.read_at(&mut bytes, pc).unwrap_or(0);
        Ok(Decoder::with_ip(64, &bytes[..length], pc, DecoderOptions::NONE).decode())
    }
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(0))
}

/// With any of the two prefixes: they mean the same to those that do not compare.
fn is_repeated_string(instruction: &Instruction) -> bool {
    instruction.is_string_instruction()
        && (instruction.has_rep_prefix() || instruction.has_repne_prefix())
}

/// A string instruction with the registers before its first iteration, or before
/// the first after an interruption.
struct Repetition {
    instruction: Instruction,
    registers: Registers,
}

impl Repetition {
    /// One access for each pointer, over all iterations; none without any.
    fn accesses_until(&self, now: &user_regs_struct) -> Vec<Access> {
        let element = self.instruction.memory_size().size() as u64;
        let mut factory = InstructionInfoFactory::new();
        let pointers = factory.info(&self.instruction).used_memory();
        let iterations = self.iterations_until(now, pointers[0].address_size());
        if iterations == 0 {
            return Vec::new();
        }
        let below = if self.registers.direction_is_down() { (iterations - 1) * element } else { 0 };
        let mut accesses: Vec<Access> = pointers
            .iter()
            .map(|used| Access {
                pc: self.instruction.ip(),
                address: self.registers.address(used, 0) - below,
                size: iterations * element,
                kind: Kind::of(used.access()).expect("both pointers of a string are used"),
            })
            .collect();
        accesses.sort();
        accesses
    }

    fn iterations_until(&self, now: &user_regs_struct, address_size: CodeSize) -> u64 {
        let done = self.registers.value(Register::RCX).wrapping_sub(now.rcx);
        if address_size == CodeSize::Code32 { done & 0xffff_ffff } else { done }
    }
}
