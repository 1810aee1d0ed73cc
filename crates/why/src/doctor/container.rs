//! Whether this is a container, by the traces that containers leave. What it
//! refuses is found by the other probes, not here.

use std::env;
use std::fs;
use std::path::Path;

use super::finding::Finding;

pub fn probe() -> Finding {
    let mut signs = Vec::new();
    for (file, sign) in
        [("/.dockerenv", "/.dockerenv"), ("/run/.containerenv", "/run/.containerenv")]
    {
        if Path::new(file).exists() {
            signs.push(sign.to_owned());
        }
    }
    if let Ok(kind) = env::var("container") {
        signs.push(format!("container={kind}"));
    }
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    for word in ["docker", "kubepods", "containerd", "libpod", "lxc"] {
        if groups.contains(word) {
            signs.push(format!("cgroup {word}"));
        }
    }
    let filter = match seccomp_mode().as_deref() {
        Some("0") => "no seccomp filter",
        Some("2") => "a seccomp filter around us",
        Some("1") => "strict seccomp",
        _ => "seccomp mode unknown",
    };
    let place = match signs.as_slice() {
        [] => "no sign of a container".to_owned(),
        signs => format!("a container ({})", signs.join(", ")),
    };
    let means = match seccomp_mode().as_deref() {
        Some("0") | None => "Nothing here refuses system calls to why.",
        _ => "The filter may refuse calls; the other findings say which ones matter.",
    };
    Finding::works("container", format!("{place}; {filter}"), means)
}

fn seccomp_mode() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| Some(line.strip_prefix("Seccomp:")?.trim().to_owned()))
}
