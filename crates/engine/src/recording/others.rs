//! Memory that another process writes to, which is recorded as well: it stands still
//! meanwhile, and what it now has there is told in its own stream.

use super::memory::written_as_file;
use crate::outputs::Returned;
use crate::ptrace::Registers;
use crate::space::SpaceId;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;

impl Supervisor {
    /// The other process to whose memory a call writes, if it is one that is recorded.
    pub(crate) fn other_written(&mut self, tid: Tid, registers: &Registers) -> Option<SpaceId> {
        let pid = match registers.rax as i64 {
            libc::SYS_process_vm_writev => registers.rdi as Tid,
            _ => self.memory_written(tid, registers)?,
        };
        let task = self.tasks.values().find(|task| task.pid == pid || task.tid == pid)?;
        let space = task.space;
        let recorder = self.recorder.as_ref()?;
        (space != self.tasks[&tid].space && recorder.logs.contains_key(&space)).then_some(space)
    }

    /// Makes a call that writes to another process's memory.
    pub(crate) fn write_to_other(
        &mut self,
        tid: Tid,
        registers: Registers,
        other: SpaceId,
    ) -> Outcome<()> {
        let before = std::mem::replace(&mut self.stops_all, true);
        let stopped = self.stop_running(other);
        self.stops_all = before;
        stopped?;
        let result = self.make(tid, &registers)?;
        let written = match registers.rax as i64 {
            libc::SYS_process_vm_writev => {
                let r = registers;
                let arguments = [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9];
                let (name, memory) = ("process_vm_writev", &self.space_of(tid).memory);
                Returned { name, arguments, result, memory }.written().unwrap_or_default()
            }
            _ => vec![written_as_file(tid, &registers, result)],
        };
        for range in written {
            self.record_memory_of(other, range)?;
        }
        self.answer(tid, &registers, result)?;
        self.next_in(other)
    }
}
