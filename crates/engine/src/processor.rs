//! Supervisor and target share one processor: a stop between two costs ten times as
//! much as one between two threads on the same.

use std::io;

/// Bytes of the affinity masks that are handed to the target.
const MASK_BYTES: usize = 128;

/// The processors this process may use, as the kernel gives them.
pub fn affinity() -> Vec<u8> {
    let mut mask = vec![0; MASK_BYTES];
    // SAFETY: the buffer has the given length.
    let length =
        unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, mask.len(), mask.as_mut_ptr()) };
    mask.truncate(length.max(0) as usize);
    mask
}

/// Stays on the processor it runs on; returns which.
pub fn pin_here() -> io::Result<usize> {
    // SAFETY: takes no argument.
    let here = unsafe { libc::sched_getcpu() };
    let here = usize::try_from(here).map_err(|_| io::Error::last_os_error())?;
    pin(&only(here))?;
    Ok(here)
}

/// The mask of one processor.
fn only(processor: usize) -> [u8; MASK_BYTES] {
    let mut mask = [0; MASK_BYTES];
    mask[processor / 8] = 1 << (processor % 8);
    mask
}

/// Keeps a thread of the target where it wants to be: with the engine if it may be
/// there, elsewhere if it must.
pub fn place(tid: i32, wanted: &[u8], engine: usize) {
    let with_engine = wanted.get(engine / 8).is_some_and(|byte| byte & 1 << (engine % 8) != 0);
    // A failure means that the thread has just ended.
    let _ = if with_engine { pin_thread(tid, &only(engine)) } else { pin_thread(tid, wanted) };
}

/// Where a thread runs that works beside the engine.
pub struct Beside {
    /// The engine's own processor.
    pub engine: Option<usize>,
    pub allowed: Vec<u8>,
}

impl Beside {
    /// Lets the calling thread, and those that it starts, run wherever they are allowed to.
    pub fn anywhere(&self) {
        // Otherwise it stays where it is.
        let _ = pin(&self.allowed);
    }

    /// Moves the calling thread off the engine's processor, if there is another one.
    pub fn away(&self) {
        let Some(engine) = self.engine else {
            return;
        };
        let mut others = self.allowed.clone();
        if let Some(byte) = others.get_mut(engine / 8) {
            *byte &= !(1 << (engine % 8));
        }
        // Without another one it stays and only takes longer.
        let _ = pin(&others);
    }
}

fn pin(mask: &[u8]) -> io::Result<()> {
    pin_thread(0, mask)
}

fn pin_thread(tid: i32, mask: &[u8]) -> io::Result<()> {
    // SAFETY: the buffer has the given length.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_setaffinity, tid, mask.len(), mask.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether the kernel lets programs use `wrgsbase`.
pub fn gs_base_writable() -> bool {
    const HWCAP2_FSGSBASE: u64 = 1 << 1;
    // SAFETY: a plain lookup.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & HWCAP2_FSGSBASE != 0 }
}
