//! Lets nothing out of a replayed process: of its system calls only those are made that the
//! supervisor makes there.

use crate::error::Halt;
use crate::glue::GLUE;
use crate::space::SCRATCH;
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
}
