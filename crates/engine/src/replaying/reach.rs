//! Running up to a place that only a count of instructions tells.

use super::Stop;
use crate::memory::Address;
use crate::ptrace::Registers;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use iced_x86::{Decoder, DecoderOptions, Instruction};
use why_record::registers::{RCX, RIP};

impl Supervisor {
    /// Runs the thread until the process has executed so many instructions.
    pub(crate) fn run_up_to(&mut self, tid: Tid, registers: Registers, at: u64) -> Outcome<()> {
        let count = self.space_of(tid).count();
        let left = at.wrapping_sub(count);
        let replayer = self.replayer(tid);
        let is_look = replayer.look_at == Some(at);
        let is_stop = |stop: &Stop| stop.at == at && !stop.cause.is_own();
        let is_copy = !is_look && replayer.next.as_ref().is_some_and(|stop| !is_stop(stop));
        if is_copy && left <= self.near_copy() {
            return self.go_on(tid, registers);
        }
        self.task(tid).stops_at = Some(at);
        self.choose_gait(tid, count, left)?;
        if left == 0 && is_look {
            return self.replay_arrived(tid, registers);
        }
        if left == 0 {
            let stop = self.replayer(tid).next.clone().expect("a stop was set");
            let repetitions = registers.rcx.wrapping_sub(stop.registers.0[RCX]);
            let repeats = |insn: Instruction| {
                insn.is_string_instruction() && (insn.has_rep_prefix() || insn.has_repne_prefix())
            };
            if repetitions != 0
                && registers.rip == stop.registers.0[RIP]
                && repeats(self.instruction_at(tid, registers.rip))
            {
                // It was stopped within a string instruction.
                return self.enter_part(tid, registers, repetitions);
            }
            if self.reaches_to_fault(tid, registers.rip) {
                self.reached(tid, &registers)?;
            }
            return self.replay_stop(tid, &registers, stop.cause);
        }
        if self.is_watched(tid, registers.rip) {
            self.reached(tid, &registers)?;
            return self.enter_few(tid, registers, 1, false);
        }
        if self.goes_unlooked(tid) {
            self.space_of(tid).stop_nowhere();
            return self.enter(tid, registers);
        }
        self.approach(tid, registers, count, at)
    }

    /// Lets the thread run with units that look at the count, which is this now, nearer to where it
    /// is to stop.
    pub(crate) fn approach(
        &mut self,
        tid: Tid,
        registers: Registers,
        count: u64,
        at: u64,
    ) -> Outcome<()> {
        /// A unit may have executed so many before it looks.
        const FEW: u64 = 64;
        let left = at.wrapping_sub(count);
        self.task(tid).stops_at = Some(at);
        let progress = self.task(tid).looked_at.replace(count) != Some(count);
        if left <= FEW || !progress {
            return self.enter_few(tid, registers, left.min(FEW) as usize, false);
        }
        self.space_of(tid).look_before(at.wrapping_sub(FEW));
        self.enter(tid, registers)
    }

    pub(crate) fn instruction_at(&mut self, tid: Tid, pc: Address) -> Instruction {
        let mut bytes = [0; 15];
        let got = self.space_of(tid).memory.read(pc, &mut bytes).unwrap_or(0);
        Decoder::with_ip(64, &bytes[..got], pc, DecoderOptions::NONE).decode()
    }

    /// Lets a string instruction repeat itself only so often.
    pub(super) fn enter_part(
        &mut self,
        tid: Tid,
        registers: Registers,
        repetitions: u64,
    ) -> Outcome<()> {
        let left = registers.rcx.wrapping_sub(repetitions);
        self.task(tid).in_part = Some((registers.rip, left));
        self.enter_few(tid, Registers { rcx: repetitions, ..registers }, 1, false)
    }

    /// A thread has come to where somebody has to look how far it has come.
    pub(crate) fn stopped_on_the_way(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        if self.space_of(tid).schedule.is_some() {
            return self.run_stretch(tid, registers);
        }
        if !self.replays() {
            return self.stopped_at_border(tid, registers);
        }
        if let Some((rip, rcx)) = self.task(tid).in_part.take() {
            self.adjust_count(tid, -1);
            let cause = self.replayer(tid).next.as_ref().map(|stop| stop.cause);
            let registers = Registers { rip, rcx, ..registers };
            return self.replay_stop(tid, &registers, cause.expect("a stop was set"));
        }
        let stops_at = self.task(tid).stops_at;
        match stops_at {
            Some(at) => self.run_up_to(tid, registers, at),
            None if self.is_watched(tid, registers.rip) => {
                self.reached(tid, &registers)?;
                self.enter_few(tid, registers, 1, false)
            }
            None => self.enter(tid, registers),
        }
    }
}
