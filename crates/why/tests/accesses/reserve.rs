//! Takes address space away from a program before it starts.
//!
//! Under `why` a part of the address space is not the program's, and what it maps
//! comes to lie below. Where the addresses of two runs are compared, the other one
//! has to do without that part too.

use libc::{c_long, user_regs_struct};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::support::assemble;
use crate::support::job::{Before, Job};
use crate::support::run;

/// Maps a page and writes its address to standard output.
const MAPS_A_PAGE: &str = "xor edi, edi\n mov esi, 4096\n mov edx, 3\n mov r10d, 0x22\n \
                           mov r8, -1\n xor r9d, r9d\n mov eax, 9\n syscall\n \
                           mov [rsp - 8], rax\n mov edi, 1\n lea rsi, [rsp - 8]\n mov edx, 8\n \
                           mov eax, 1\n syscall\n mov edi, 0\n mov eax, 60\n syscall\n";

/// By how many bytes mappings lie lower under `why` than natively, when a program's output
/// there is found out like this.
pub fn bytes_taken(output: fn(&Job) -> Result<Vec<u8>, String>) -> Result<u64, String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let program = assemble::program(MAPS_A_PAGE, dir.path())?;
    let job = Job::new(program).before(Before::NoRandomLayout);
    let native = address(run::run(&job)?.stdout)?;
    let under = address(output(&job)?)?;
    native.checked_sub(under).ok_or_else(|| "mappings lie higher under why".into())
}

fn address(written: Vec<u8>) -> Result<u64, String> {
    let bytes = written.as_slice().try_into();
    bytes.map(u64::from_le_bytes).map_err(|_| format!("no address, but {written:?}"))
}

/// Makes a program that is stopped at its first instruction map so many bytes, which
/// it will not know of and cannot access.
pub fn reserve(pid: Pid, bytes: u64) -> nix::Result<()> {
    const SYSCALL: c_long = 0x050f;
    const SYSCALL_BYTES: c_long = 0xffff;
    let before = ptrace::getregs(pid)?;
    let at = before.rip as ptrace::AddressType;
    let code = ptrace::read(pid, at)?;
    ptrace::write(pid, at, code & !SYSCALL_BYTES | SYSCALL)?;
    ptrace::setregs(
        pid,
        user_regs_struct {
            rax: libc::SYS_mmap as u64,
            rdi: 0,
            rsi: bytes,
            rdx: libc::PROT_NONE as u64,
            r10: (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as u64,
            r8: u64::MAX,
            r9: 0,
            ..before
        },
    )?;
    ptrace::step(pid, None)?;
    let mapped = waitpid(pid, None)?;
    assert!(matches!(mapped, WaitStatus::Stopped(_, Signal::SIGTRAP)), "{mapped:?}");
    ptrace::write(pid, at, code)?;
    ptrace::setregs(pid, before)
}
