//! What was executed near code that never was.

use super::lines::Sources;
use super::traced::Traced;
use crate::criterion::Code;
use std::collections::BTreeSet;

/// Behind the message that some code was never executed: the nearest lines of its file that were.
pub fn told(code: &Code, traced: &Traced, sources: &mut Sources) -> String {
    let Some((file, line)) = sources.lines_of(code).into_iter().next() else {
        return String::new();
    };
    let executed = traced.region.executed().unwrap_or_default();
    let of_file = |address: u64| match &sources.place_of(address).source {
        Some((own, line)) if *own == file => Some(*line),
        _ => None,
    };
    let lines: BTreeSet<u64> = executed.into_iter().filter_map(of_file).collect();
    let nearest = [lines.range(..line).next_back(), lines.range(line + 1..).next()];
    let name = file.rsplit('/').next().unwrap_or(&file);
    let nearest: Vec<String> =
        nearest.into_iter().flatten().map(|line| format!("{name}:{line}")).collect();
    match nearest.as_slice() {
        [] => format!(", nor was any line of {name}"),
        [only] => format!("; the nearest line that was is {only}"),
        _ => format!("; the nearest lines that were are {}", nearest.join(" and ")),
    }
}
