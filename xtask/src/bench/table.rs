//! The tables: for a terminal of 80 columns, and as Markdown.

use std::fmt::Write;

use super::goals::Verdict;
use super::programs::{Cache, Work};
use super::rounds::{Cell, Measured};
use super::ways::Way;

pub fn header(ways: &[Way]) -> String {
    let mut line = format!("{:<20} {:<9}", "program", "native s");
    for column in columns(ways) {
        let _ = write!(line, " {:<width$}", column.name(), width = column.width());
    }
    format!("{}\n{}", line.trim_end(), "-".repeat(79))
}

/// What is told of a program apart from its native time.
enum Column {
    Ratio(Way),
    Seconds(Way),
    LogRate,
    Checkpoints,
}

fn columns(ways: &[Way]) -> Vec<Column> {
    let mut columns: Vec<Column> = ways
        .iter()
        .filter(|way| **way != Way::Native)
        .map(|way| if *way == Way::End { Column::Seconds(*way) } else { Column::Ratio(*way) })
        .collect();
    if ways.contains(&Way::Record) {
        columns.extend([Column::LogRate, Column::Checkpoints]);
    }
    columns
}

impl Column {
    fn name(&self) -> String {
        match self {
            Column::Ratio(way) => way.name().to_owned(),
            Column::Seconds(way) => format!("{}, s", way.name()),
            Column::LogRate => "log MB/s".to_owned(),
            Column::Checkpoints => "ckpt MB".to_owned(),
        }
    }

    /// On a terminal.
    fn width(&self) -> usize {
        match self {
            Column::Ratio(_) => 11,
            Column::Seconds(_) => 6,
            Column::LogRate | Column::Checkpoints => 8,
        }
    }

    fn cell(&self, result: &Measured) -> String {
        let nothing = || "-".to_owned();
        match self {
            Column::Ratio(way) => match (result.cell(*way), result.ratios(*way)) {
                (Cell::Failed { short, .. }, _) => (*short).to_owned(),
                (_, Some(ratios)) => format!("{:.2}/{:.2}", ratios.cpu, ratios.wall),
                _ => nothing(),
            },
            Column::Seconds(way) => match result.cell(*way) {
                Cell::Failed { short, .. } => (*short).to_owned(),
                Cell::Cost(cost) => format!("{:.2}", cost.wall),
                Cell::NotRun => nothing(),
            },
            Column::LogRate => result.log_rate().map_or_else(nothing, |rate| format!("{rate:.3}")),
            Column::Checkpoints => match &result.sizes {
                Some(sizes) => format!("{:.1}", sizes.checkpoints as f64 / 1e6),
                None => nothing(),
            },
        }
    }
}

const COSTS: &str = "\
Each cell: CPU time / wall time, as multiples of native; the worse one counts.
CPU time is that of the whole process tree, the supervisor included.";

const RECORDINGS: &str = "
end: until the last instruction is reached from a cold start. log: what is written
while recording, by the time that the native run takes. ckpt: checkpoints, apart.";

pub fn legend(ways: &[Way]) -> String {
    let more = if ways.contains(&Way::Record) { RECORDINGS } else { "" };
    format!("{COSTS}{more}")
}

pub fn row(result: &Measured) -> String {
    let mut line = format!("{:<20} {:<9}", result.program.name, native(result));
    for column in columns(&ways(result)) {
        let _ = write!(line, " {:<width$}", column.cell(result), width = column.width());
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

fn ways(result: &Measured) -> Vec<Way> {
    result.cells.iter().map(|(way, _)| *way).collect()
}

/// One line for each way a program failed, and for each figure that should not be
/// trusted.
pub fn problems(results: &[Measured], quick: bool) -> String {
    let mut lines = Vec::new();
    for result in results {
        let name = &result.program.name;
        let mut failures: Vec<(Vec<&str>, &str)> = Vec::new();
        for (way, cell) in &result.cells {
            if let Cell::Failed { detail, .. } = cell {
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
            aim(v.aim),
            v.says
        );
    }
    text
}

fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"))
}

fn aim(aim: Option<f64>) -> String {
    aim.map_or_else(|| "-".to_owned(), |aim| aim.to_string())
}

pub fn markdown(
    title: &str,
    heading: &str,
    results: &[Measured],
    verdicts: &[Verdict],
    problems: &str,
) -> String {
    let mut text = format!("# {title}\n\n{}\n\n", heading.replace('\n', "  \n"));
    text.push_str(
        "| goal | geometric mean | worst | limit | aim | verdict |\n|---|---|---|---|---|---|\n",
    );
    for v in verdicts {
        let (mean, worst) = (figure(v.mean), figure(v.worst));
        let _ = writeln!(
            text,
            "| {} | {mean} | {worst} | {} | {} | {} |",
            v.label,
            v.limit,
            aim(v.aim),
            v.says
        );
    }
    let measured = results.first().map_or_else(Vec::new, ways);
    let _ = writeln!(text, "\n{}\n", legend(&measured).replace('\n', " "));
    text.push_str("| program | cache | native s |");
    let columns = columns(&measured);
    for column in &columns {
        let _ = write!(text, " {} |", column.name());
    }
    let _ = writeln!(text, "\n{}|", "|---".repeat(3 + columns.len()));
    for result in results {
        let cache = match result.program.cache {
            Cache::Warm => "warm",
            Cache::Cold => "cold",
        };
        let name = result.program.name.trim_end_matches(", cold");
        let _ = write!(text, "| {name} | {cache} | {} |", native(result));
        for column in &columns {
            let _ = write!(text, " {} |", column.cell(result));
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
