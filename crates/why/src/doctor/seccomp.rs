//! Installs a seccomp filter in a child and sees that it filters.

use std::io;

use super::child::{Said, attempt};
use super::finding::{Finding, Verdict};

/// No real call fails with it, so only the filter can have said it.
const ANSWER: i32 = libc::EXFULL;

pub fn probe() -> Finding {
    match attempt(filter) {
        Ok(found) => Finding::works(
            "seccomp",
            found,
            "A program's stray system calls can be caught by a filter as a second line of defence.",
        ),
        Err(error) => Finding::new(
            "seccomp",
            Verdict::Limited,
            error,
            "The engine runs without this second line of defence.",
            "Allow the system calls seccomp and prctl in the container's own profile.",
        ),
    }
}

fn filter() -> Said {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut program = [
        // The number of the call is the first word of what a filter sees.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        libc::sock_filter {
            code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            jt: 0,
            jf: 1,
            k: libc::SYS_getppid as u32,
        },
        statement(libc::BPF_RET, libc::SECCOMP_RET_ERRNO | ANSWER as u32),
        statement(libc::BPF_RET, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: integers only; an ordinary user needs it before a filter.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return Err(format!("PR_SET_NO_NEW_PRIVS: {}", io::Error::last_os_error()));
    }
    // SAFETY: the program and its instructions outlive the call.
    let installed =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &program) };
    if installed != 0 {
        return Err(format!("installing a filter: {}", io::Error::last_os_error()));
    }
    // SAFETY: takes nothing and cannot fail but by the filter.
    let filtered = unsafe { libc::syscall(libc::SYS_getppid) };
    match (filtered, io::Error::last_os_error().raw_os_error()) {
        (-1, Some(ANSWER)) => Ok("installed a filter in a child, and it filters".to_owned()),
        _ => Err("a filter was installed and did not filter".to_owned()),
    }
}
