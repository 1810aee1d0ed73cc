//! What translated code finds at its GS base: the context page, then the class of
//! every system call, then the table of indirect branch targets.
//!
//! One context serves all threads of an address space, because only one of them
//! runs at a time. Everything is addressed as `gs:[constant]`, so translated code
//! does not depend on where the context lies.

/// Where a register's value waits while translated code borrows the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub i32);

pub const SAVED_RCX: Slot = Slot(0x00);
pub const SAVED_RDX: Slot = Slot(0x08);
/// Registers borrowed to reach memory through the application's own GS base.
pub const SAVED_SCRATCH: Slot = Slot(0x10);
pub const SAVED_SCRATCH_2: Slot = Slot(0x50);
/// The register borrowed for a whole unit while tracing.
pub const SAVED_TRACE: Slot = Slot(0x18);
/// The GS base the application believes it has.
pub const APP_GS: Slot = Slot(0x28);
/// Non-zero while another thread waits for its turn: a call that may block must
/// then go to the supervisor, which lets the other one run.
pub const OTHERS_READY: Slot = Slot(0x30);
/// System calls made without the supervisor.
pub const CALLS_IN_PROCESS: Slot = Slot(0x38);
/// Where the next trace record goes.
pub const TRACE_NEXT: Slot = Slot(0x40);
/// The number of the last call made without the supervisor.
pub const LAST_CALL: Slot = Slot(0x48);
/// Non-zero if a path may lead to `/proc` in other ways than by its beginning.
pub const OPENS_WATCHED: Slot = Slot(0x58);
/// Where the next record of a call goes, or comes from when replaying.
pub const LOG_NEXT: Slot = Slot(0x60);
/// Registers borrowed for that.
pub const SAVED_RDI: Slot = Slot(0x68);
pub const SAVED_RSI: Slot = Slot(0x70);
pub const SAVED_RSP: Slot = Slot(0x78);
/// The top of a small stack.
pub const SMALL_STACK: Slot = Slot(0x80);
/// The class of a call whose number is known at run time only.
pub const CALL_CLASS: Slot = Slot(0x88);
/// Four bytes for each class: how much a call writes at rsi, -1 if its result says so.
pub const CLASS_SIZES: i32 = 0x640;
/// One byte for each of the first 256 descriptors: not zero if what is written there is of
/// interest.
pub const WATCHED_DESCRIPTORS: i32 = 0x700;
/// In front of what a call wrote: number, size of what was written, result; when recording,
/// then its fourth argument.
pub const LOG_HEADER: i32 = 24;
/// A record of a call takes no more than this.
pub const LOG_ROOM: i32 = 0x1_0100;
/// Instructions executed: the sum of these slots. Each unit adds to one of them, so
/// that neighbouring units do not wait for each other's sum.
const COUNTS: i32 = 0x200;
pub const COUNT_SLOTS: usize = 128;

/// Where units look at the sum they share fewer slots, the first of so many each: the fewer there are,
/// the nearer they come to where they are to stop.
pub const LOOKED_AT_EACH: usize = 8;
pub const LOOKED_AT_SLOTS: usize = COUNT_SLOTS / LOOKED_AT_EACH;

/// The slot that the unit at an application address adds to.
pub fn count_slot(pc: u64) -> Slot {
    Slot(COUNTS + 8 * spread(pc) as i32)
}

/// The same of one that looks at it.
pub fn looked_at_slot(pc: u64) -> Slot {
    Slot(COUNTS + 8 * (spread(pc) & !(LOOKED_AT_EACH - 1)) as i32)
}

fn spread(pc: u64) -> usize {
    (pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57) as usize
}

/// The first of the slots, which are one behind the other.
pub const FIRST_COUNT: Slot = Slot(COUNTS);

pub const CONTEXT_BYTES: usize = 0x1000;

/// One byte for each of 2^16 system call numbers: a [`CallClass`].
pub const CALL_CLASSES: i32 = 0x1000;
pub const CALL_CLASSES_BYTES: usize = 0x1_0000;

/// Where numbers are not used for calls: one byte for each value of a byte of `mmap`'s
/// protection and flags, zero if it is harmless.
pub const MAP_PROTECTIONS: i32 = CALL_CLASSES + 0xfe00;
pub const MAP_FLAGS: i32 = CALL_CLASSES + 0xff00;

/// 2^16 code addresses, by the low 16 bits of the application's target address.
/// Zero means unknown: the jump to address zero faults, and the supervisor looks.
pub const TARGETS: i32 = 0x1_1000;
pub const TARGETS_BYTES: usize = 0x8_0000;

pub const TOTAL_BYTES: usize = TARGETS as usize + TARGETS_BYTES;

impl CallClass {
    pub fn is_logged(self) -> bool {
        self as u8 >= CallClass::Logged as u8
    }
}

/// How translated code makes a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CallClass {
    /// The supervisor makes it, or at least looks at it first.
    Supervised = 0,
    /// Never waits for another thread and changes nothing the engine must know.
    Direct = 1,
    /// Like `Direct`, but it may wait: only when no other thread could run.
    MayBlock = 2,
    /// Like `MayBlock`, but the path in rdi must not be in `/proc`.
    OpensRdi = 3,
    /// The same with the path in rsi.
    OpensRsi = 4,
    /// The supervisor looks at it first, and most often lets it be made here.
    Asks = 5,
    /// Like `Asks`, but an `mmap` of private memory that is not executable, at an
    /// address of the kernel's choice, need not ask.
    Maps = 6,
    /// Like `MayBlock`, but not if the descriptor in rdi is watched.
    Watched = 7,
    /// Made here and logged; it writes no memory.
    Logged = 8,
    /// The same, and it may wait.
    LoggedMayBlock = 9,
    /// Like `LoggedMayBlock`, but not if the descriptor in rdi is watched.
    LoggedWrite = 10,
    /// Like `LoggedMayBlock`; it fills the buffer in rsi, of rdx bytes, as far as the result
    /// says.
    LoggedRead = 11,
    /// Like `Logged`; it fills so many bytes at rsi.
    Logged16 = 12,
    Logged144 = 13,
    /// `gettimeofday`, which fills 16 bytes at rdi: made here where its number is known when
    /// translating, if rdi is not null and rsi is.
    LoggedTime = 14,
}
