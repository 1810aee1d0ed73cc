//! Writes code into a memfd, maps it executable and calls it: how the code cache
//! comes to be. Policies against executable memory show here.

use std::fs;
use std::io;

use super::child::{Said, attempt};
use super::finding::{Finding, Verdict};

/// `mov eax, 42; ret`
const CODE: [u8; 6] = [0xb8, 42, 0, 0, 0, 0xc3];
const PAGE: usize = 4096;

pub fn probe() -> Finding {
    match attempt(call) {
        Ok(found) => Finding::works("memfd", found, "The engine can keep translated code."),
        Err(error) => Finding::new(
            "memfd",
            Verdict::Missing,
            error,
            "There is no place for translated code: no program can run under the engine.",
            remedy(),
        ),
    }
}

fn call() -> Said {
    // SAFETY: the name is a C string; the call returns a new descriptor.
    let fd = unsafe { libc::memfd_create(c"why-doctor".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(failed("memfd_create"));
    }
    // SAFETY: plain system call on a descriptor of our own.
    if unsafe { libc::ftruncate(fd, PAGE as i64) } != 0 {
        return Err(failed("ftruncate of a memfd"));
    }
    let writable = map(fd, libc::PROT_READ | libc::PROT_WRITE, "mapping a memfd writable")?;
    let executable = map(fd, libc::PROT_READ | libc::PROT_EXEC, "mapping a memfd executable")?;
    // SAFETY: the mapping is a page long and writable, the code is shorter.
    unsafe { std::ptr::copy_nonoverlapping(CODE.as_ptr(), writable, CODE.len()) };
    // SAFETY: the page holds a complete function of this type, written above.
    let answer = unsafe { std::mem::transmute::<*mut u8, extern "C" fn() -> u32>(executable)() };
    match answer {
        42 => Ok("wrote code to a memfd, mapped it executable, called it".to_owned()),
        other => Err(format!("code called in a memfd returned {other}, not 42")),
    }
}

fn map(fd: i32, protection: i32, what: &str) -> Result<*mut u8, String> {
    let null = std::ptr::null_mut();
    // SAFETY: a new shared mapping at an address the kernel chooses.
    match unsafe { libc::mmap(null, PAGE, protection, libc::MAP_SHARED, fd, 0) } {
        libc::MAP_FAILED => Err(failed(what)),
        address => Ok(address.cast()),
    }
}

fn failed(what: &str) -> String {
    format!("{what}: {}", io::Error::last_os_error())
}

fn remedy() -> String {
    let setting = fs::read_to_string("/proc/sys/vm/memfd_noexec").unwrap_or_default();
    match setting.trim() {
        "1" | "2" => "As root: sysctl vm.memfd_noexec=0",
        _ => {
            "A security module (SELinux, AppArmor) or a seccomp filter refuses it: allow \
              executable memory for why (SELinux: execmem and execmod)."
        }
    }
    .to_owned()
}
