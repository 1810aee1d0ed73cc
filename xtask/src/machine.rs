//! Which machine, which day: a figure means nothing without them.

use std::fs;
use std::process::Command;

/// Two lines that head the tables; the first says how it was measured, too.
pub fn describe(how: &str) -> String {
    let date = Command::new("date").args(["-u", "+%Y-%m-%d %H:%M UTC"]).output();
    let date = date.map_or_else(
        |_| "date unknown".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    );
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("CPU unknown", |(_, model)| model);
    let cores = cpus.lines().filter(|line| line.starts_with("processor")).count();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?");
    format!(
        "{date}, {how}\n{model}, {cores} cores, Linux {}, load {load} at the start",
        kernel.trim()
    )
}
