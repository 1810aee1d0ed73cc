//! Whether this machine, or the container that this process is in, runs short of memory.

use std::fs::read_to_string;

/// Less than this part of it is free.
const PART: u64 = 8;

pub fn is_short() -> bool {
    let machine = read_to_string("/proc/meminfo").ok().and_then(|text| machine_free(&text));
    let known = machine.into_iter().chain(group_free());
    known.into_iter().any(|(free, of)| free < of / PART)
}

/// What is free of how much, in KiB.
fn machine_free(meminfo: &str) -> Option<(u64, u64)> {
    Some((field(meminfo, "MemAvailable:")?, field(meminfo, "MemTotal:")?))
}

/// The same of the control group's memory, in bytes, if that is limited. What was read from
/// files and not used since can be had again.
fn group_free() -> Option<(u64, u64)> {
    let groups = read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let file = |name: &str| read_to_string(format!("/sys/fs/cgroup{path}/{name}")).ok();
    let most: u64 = file("memory.max")?.trim().parse().ok()?;
    let used: u64 = file("memory.current")?.trim().parse().ok()?;
    let spare = field(&file("memory.stat")?, "inactive_file").unwrap_or(0);
    Some((most.saturating_sub(used.saturating_sub(spare)), most))
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_tells_is_understood() {
        let text = "MemTotal:       16303148 kB\nMemFree:  1 kB\nMemAvailable:   12345678 kB\n";
        assert_eq!(machine_free(text), Some((12_345_678, 16_303_148)));
        assert_eq!(machine_free("MemTotal: 5 kB\n"), None);
        assert!(machine_free(&read_to_string("/proc/meminfo").unwrap()).is_some());
    }
}
