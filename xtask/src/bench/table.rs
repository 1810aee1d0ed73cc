//! The tables: for a terminal of 80 columns, and as Markdown.

use std::fmt::Write;

use super::goals::Verdict;
use super::programs::{Cache, Work};
use super::rounds::{Cell, Measured, Way};

pub const HEADER: &str = "\
program              native s  none         count        trace        valgrind
-------------------------------------------------------------------------------";

pub const LEGEND: &str = "\
Each cell: CPU time / wall time, as multiples of native; the worse one counts.
CPU time is that of the whole process tree, the supervisor included.";

pub fn row(result: &Measured) -> String {
    let mut line = format!("{:<20} {:<9}", result.program.name, native(result));
    for way in &Way::ALL[1..] {
        let _ = write!(line, " {:<12}", cell(result, *way));
    }
    line.trim_end().to_owned()
}

fn native(result: &Measured) -> String {
    match result.cell(Way::Native) {
        Cell::Cost(cost) if cost.wall < 0.1 => format!("{:.4}", cost.wall),
        Cell::Cost(cost) => format!("{:.2}", cost.wall),
        Cell::NotRun => "-".to_owned(),
        Cell::Failed { short, .. } => (*short).to_owned(),
    }
}

fn cell(result: &Measured, way: Way) -> String {
    match (result.cell(way), result.ratios(way)) {
        (Cell::Failed { short, .. }, _) => (*short).to_owned(),
        (_, Some(ratios)) => format!("{:.2}/{:.2}", ratios.cpu, ratios.wall),
        _ => "-".to_owned(),
    }
}

/// One line for each way a program failed, and for each figure that should not be
/// trusted.
pub fn problems(results: &[Measured], quick: bool) -> String {
    let mut lines = Vec::new();
    for result in results {
        let name = &result.program.name;
        let mut failures: Vec<(Vec<&str>, &str)> = Vec::new();
        for way in Way::ALL {
            if let Cell::Failed { detail, .. } = result.cell(way) {
                match failures.iter_mut().find(|(_, other)| other == detail) {
                    Some((ways, _)) => ways.push(way.name()),
                    None => failures.push((vec![way.name()], detail)),
                }
            }
        }
        for (ways, detail) in failures {
            lines.push(format!("{name} ({}): {detail}", ways.join(", ")));
        }
        if let (Work::Computing, Cell::Cost(cost)) = (result.program.work, result.cell(Way::Native))
            && cost.wall < 2.0
            && !quick
        {
            lines.push(format!("{name}: native took less than 2 s, so start-up weighs in"));
        }
    }
    lines.join("\n")
}

pub fn verdicts(verdicts: &[Verdict]) -> String {
    let mut text = format!(
        "{:<22} {:>6} {:>6}  {:<12} {:<5} {}\n",
        "goal", "mean", "worst", "limit", "aim", "verdict"
    );
    text.push_str(&"-".repeat(79));
    for v in verdicts {
        let _ = write!(
            text,
            "\n{:<22} {:>6} {:>6}  {:<12} {:<5} {}",
            v.label,
            figure(v.mean),
            figure(v.worst),
            v.limit,
            v.aim,
            v.says
        );
    }
    text
}

fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"))
}

pub fn markdown(
    heading: &str,
    results: &[Measured],
    verdicts: &[Verdict],
    problems: &str,
) -> String {
    let mut text = format!("# How fast the engine is\n\n{}\n\n", heading.replace('\n', "  \n"));
    text.push_str(
        "| goal | geometric mean | worst | limit | aim | verdict |\n|---|---|---|---|---|---|\n",
    );
    for v in verdicts {
        let (mean, worst) = (figure(v.mean), figure(v.worst));
        let _ = writeln!(
            text,
            "| {} | {mean} | {worst} | {} | {} | {} |",
            v.label, v.limit, v.aim, v.says
        );
    }
    let _ = writeln!(text, "\n{}\n", LEGEND.replace('\n', " "));
    text.push_str("| program | cache | native s | none | count | trace | valgrind |\n|---|---|---|---|---|---|---|\n");
    for result in results {
        let cache = match result.program.cache {
            Cache::Warm => "warm",
            Cache::Cold => "cold",
        };
        let name = result.program.name.trim_end_matches(", cold");
        let _ = write!(text, "| {name} | {cache} | {} |", native(result));
        for way in &Way::ALL[1..] {
            let _ = write!(text, " {} |", cell(result, *way));
        }
        text.push('\n');
    }
    for problem in problems.lines() {
        let _ = write!(text, "\n- {problem}");
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}
