//! The directive `needs`: a CPU feature or a program. What is not met is told
//! in the list of results, because a test that did not run proves nothing.

use std::fs;

use crate::support::package;

/// None: applicable. Some: what this machine lacks.
pub fn unmet(needs: &[String]) -> Option<String> {
    let lacking: Vec<&str> = needs
        .iter()
        .map(String::as_str)
        .filter(|need| !cpu_has(need) && package::look_up(need).is_none())
        .collect();
    (!lacking.is_empty())
        .then(|| format!("not applicable on this machine: no {}", lacking.join(", no ")))
}

fn cpu_has(feature: &str) -> bool {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    cpuinfo
        .lines()
        .filter_map(|line| line.strip_prefix("flags"))
        .take(1)
        .any(|flags| flags.split_whitespace().any(|flag| flag == feature))
}
