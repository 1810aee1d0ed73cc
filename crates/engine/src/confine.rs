//! Lets nothing out of a replayed process, and nothing in: of its system calls only those are made
//! that the supervisor makes there, and others who look at it change nothing.

use crate::error::Halt;
use crate::glue::GLUE;
use crate::memory::PAGE;
use crate::space::SCRATCH;
use crate::stub::HOME;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;

/// Offsets in what the kernel shows to a filter: the two halves of the address behind the
/// `syscall`.
const ADDRESS_LOW: u32 = 8;
const ADDRESS_HIGH: u32 = 12;

const LOAD: u16 = 0x20;
const IF_EQUAL: u16 = 0x15;
const IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;

impl Supervisor {
    /// From now on a call that is not made by the glue ends the process.
    pub(crate) fn confine(&mut self, tid: Tid) -> Outcome<()> {
        let glue = self.space_of(tid).glue.call();
        let (low, high) = (glue as u32, (glue >> 32) as u32);
        // Code, if so, if not, operand: `sock_filter`. Arenas do not lie across 4 GiB.
        let filter: [(u16, u8, u8, u32); 7] = [
            (LOAD, 0, 0, ADDRESS_HIGH),
            (IF_EQUAL, 0, 4, high),
            (LOAD, 0, 0, ADDRESS_LOW),
            (IF_AT_LEAST, 0, 2, low),
            (IF_AT_LEAST, 1, 0, low + GLUE.len() as u32 + 1),
            (RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
            (RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        ];
        let at = self.space_of(tid).context + SCRATCH;
        let mut bytes = (filter.len() as u64).to_le_bytes().to_vec();
        bytes.extend((at + 16).to_le_bytes());
        for (code, yes, no, operand) in filter {
            bytes.extend(code.to_le_bytes());
            bytes.extend([yes, no]);
            bytes.extend(operand.to_le_bytes());
        }
        self.space_of(tid).memory.write(at, &bytes).map_err(|_| Halt::Gone)?;
        let no_new_privileges = [libc::PR_SET_NO_NEW_PRIVS as u64, 1, 0, 0, 0, 0];
        self.must(tid, "confining the replay", libc::SYS_prctl, no_new_privileges)?;
        let set = [u64::from(libc::SECCOMP_SET_MODE_FILTER), 0, at, 0, 0, 0];
        self.must(tid, "confining the replay", libc::SYS_seccomp, set)?;
        Ok(())
    }

    /// Lets the kernel forget where arguments and environment were of the program that the
    /// replay began with. Whoever reads these (`ps` does) makes the kernel look there: in the
    /// recorded stack, or below it, and then that grows.
    pub(crate) fn hide_beginning(&mut self, tid: Tid) -> Outcome<()> {
        const PR_SET_MM_MAP: u64 = 14;
        const NO_FILE: u32 = u32::MAX;
        // `prctl_mm_map`: code, data, heap, stack, arguments and environment. Only code must
        // not be empty, and a heap, before Linux 5.15, not right behind data.
        let (start, end) = (HOME, HOME + PAGE);
        let mut bytes = Vec::new();
        for address in [start, end, start, start].into_iter().chain([end; 7]) {
            bytes.extend(address.to_le_bytes());
        }
        // No auxiliary vector.
        bytes.extend(0_u64.to_le_bytes());
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend(NO_FILE.to_le_bytes());
        let at = self.space_of(tid).context + SCRATCH;
        self.space_of(tid).memory.write(at, &bytes).map_err(|_| Halt::Gone)?;
        let set = [libc::PR_SET_MM as u64, PR_SET_MM_MAP, at, bytes.len() as u64, 0, 0];
        // A kernel without checkpoints of its own refuses. Then it takes somebody who looks,
        // and a stack that lies by chance within its limit above the one that was there.
        self.call(tid, libc::SYS_prctl, set).map(drop)
    }
}
