//! Room for recordings: disk space where they are written, and memory.

use std::env;
use std::fs;

use nix::sys::statvfs::statvfs;
use why_record::remedy;

use super::child::{Said, attempt};
use super::finding::{Finding, Verdict};

const GIB: u64 = 1 << 30;

pub fn probe() -> Finding {
    let directory = env::current_dir().unwrap_or_else(|_| env::temp_dir());
    let writable = attempt(|| write(&directory));
    let free = statvfs(&directory)
        .map_or(0, |stat| stat.blocks_available().saturating_mul(stat.fragment_size()));
    let memory = available_memory();
    let (verdict, means, remedy) = if writable.is_err() {
        (
            Verdict::Limited,
            "Recordings cannot be written here.",
            "Change to a directory of your own.",
        )
    } else if free < GIB || memory < GIB / 2 {
        (
            Verdict::Limited,
            "Enough for small programs; a recording grows with the input that a program reads.",
            "Free some space, or work in a directory on a larger disk.",
        )
    } else {
        (Verdict::Works, "Enough for recordings of usual programs.", "")
    };
    let trouble = writable.err().map(|error| format!("; {error}")).unwrap_or_default();
    let gib = |bytes: u64| bytes as f64 / GIB as f64;
    Finding::new(
        "room",
        verdict,
        format!("{:.1} GiB of disk here, {:.1} GiB of memory{trouble}", gib(free), gib(memory)),
        means,
        remedy,
    )
}

/// Writes a file that never gets a name, so that nothing is left.
fn write(directory: &std::path::Path) -> Said {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let opened = fs::OpenOptions::new().write(true).custom_flags(libc::O_TMPFILE).open(directory);
    match opened.and_then(|mut file| file.write_all(&[1; 65536])) {
        Ok(()) => Ok(String::new()),
        // Not every file system has unnamed files; the permission still tells.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            nix::unistd::access(directory, nix::unistd::AccessFlags::W_OK)
                .map(|()| String::new())
                .map_err(|error| format!("the current directory: {error}"))
        }
        Err(error) => Err(format!("writing to the current directory: {error}")),
    }
}

/// What the kernel says can be used without swapping, within the limits of the cgroup and of this
/// process.
pub fn available_memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB"))
        .and_then(|number| number.trim().parse::<u64>().ok())
        .unwrap_or(0)
        * 1024;
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").unwrap_or_default();
    let within_group = limit.trim().parse().map_or(machine, |limit: u64| machine.min(limit));
    let left = remedy::address_space().map(|limit| limit.saturating_sub(taken()));
    left.map_or(within_group, |left| within_group.min(left))
}

/// How much address space this process has.
fn taken() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').next().and_then(|pages| pages.parse().ok()).map_or(0, |pages: u64| pages * 4096)
}
