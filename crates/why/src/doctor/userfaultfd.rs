//! Opens a userfaultfd and agrees with the kernel on its protocol.

use std::io;

use super::child::{Said, attempt};
use super::finding::{Finding, Verdict};

const USER_MODE_ONLY: i32 = 1;
/// `_IOWR(0xAA, 0x3F, struct uffdio_api)`
const UFFDIO_API: libc::c_ulong = 0xc018_aa3f;
const VERSION: u64 = 0xaa;

pub fn probe() -> Finding {
    match attempt(open) {
        Ok(found) => Finding::works("userfaultfd", found, "why does not need it."),
        Err(error) => Finding::new(
            "userfaultfd",
            Verdict::Missing,
            error,
            "Usual in containers; why does not need it.",
            "Nothing.",
        ),
    }
}

fn open() -> Said {
    let flags = libc::O_CLOEXEC | USER_MODE_ONLY;
    // SAFETY: integers only; returns a new descriptor.
    let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
    if fd < 0 {
        return Err(format!("userfaultfd: {}", io::Error::last_os_error()));
    }
    let mut api = [VERSION, 0, 0];
    // SAFETY: the structure is three words long, as the request's number says.
    match unsafe { libc::ioctl(fd as i32, UFFDIO_API, api.as_mut_ptr()) } {
        0 => Ok("opened one and agreed on its protocol".to_owned()),
        _ => Err(format!("userfaultfd opens, UFFDIO_API: {}", io::Error::last_os_error())),
    }
}
