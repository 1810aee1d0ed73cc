//! Instructions that write to memory what no program can compute: `sgdt`, `sidt` and the
//! like.

use super::recorded;
use crate::ptrace::Registers;
use crate::supervisor::Supervisor;
use crate::task::Tid;
use iced_x86::{OpKind, Register};
use why_record::registers::{FS_BASE, GS_BASE, Registers as Recorded};
use why_translate::context::APP_GS;

impl Supervisor {
    /// The thread is about to execute an instruction whose result varies: where it writes to
    /// memory is told when it goes on.
    pub(crate) fn record_varying(&mut self, tid: Tid, registers: &Registers) {
        /// `sgdt` and `sidt` write as much, all others less.
        const MOST: u64 = 10;
        let insn = self.instruction_at(tid, registers.rip);
        if self.recorder.is_none() || insn.op_count() == 0 || insn.op0_kind() != OpKind::Memory {
            return;
        }
        let registers = recorded(registers, self.space_of(tid).read_slot(APP_GS));
        let written = insn.virtual_address(0, 0, |register, _, _| value(&registers, register));
        self.task(tid).frame = written.map(|at| at..at.saturating_add(MOST));
    }
}

/// What an address is made of.
fn value(registers: &Recorded, register: Register) -> Option<u64> {
    Some(match register {
        Register::FS => registers.0[FS_BASE],
        Register::GS => registers.0[GS_BASE],
        _ if register.is_segment_register() => 0,
        _ if register.is_gpr64() => registers.0[register.number()],
        _ if register.is_gpr32() => registers.0[register.number()] & u64::from(u32::MAX),
        _ => return None,
    })
}
