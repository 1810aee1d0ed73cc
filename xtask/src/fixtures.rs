//! `cargo xtask fixtures`: keeps the table of topics in fixtures/README.md.

use std::fmt::Write;
use std::fs;
use std::process::ExitCode;

use why_fixtures::support::fixture::{self, Fixture};

use crate::workspace::{self, Failure};

const BEGIN: &str = "<!-- The table below is written by `cargo xtask fixtures`. -->";
const END: &str = "<!-- End of the table. -->";

/// Write the table of topics into fixtures/README.md
#[derive(clap::Args)]
pub struct Args {
    /// Change nothing; fail if the table is out of date
    #[arg(long)]
    check: bool,
}

pub fn main(args: Args) -> Result<ExitCode, Failure> {
    let path = workspace::root().join("fixtures/README.md");
    let old = fs::read_to_string(&path)?;
    let new = with_table(&old, &table(&fixtures()?))?;
    if args.check && new != old {
        eprintln!("fixtures/README.md is out of date; try: cargo xtask fixtures");
        return Ok(ExitCode::FAILURE);
    }
    if new != old {
        fs::write(path, new)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn fixtures() -> Result<Vec<Fixture>, Failure> {
    let found = fixture::all().into_iter();
    found
        .map(|fixture| fixture.map_err(|(name, error)| format!("{name}: {error}").into()))
        .collect()
}

/// One row for each source file; its variants are neighbours in the list.
fn table(fixtures: &[Fixture]) -> String {
    let programs: Vec<_> = fixtures.chunk_by(|a, b| a.source == b.source).collect();
    let topics = programs.chunk_by(|a, b| a[0].topic == b[0].topic).count();
    let mut text = format!(
        "{} programs in {topics} topics, {} with their variants.\n\n\
         | topic | name | purpose | variants |\n|---|---|---|---|\n",
        programs.len(),
        fixtures.len()
    );
    for variants in programs {
        let Fixture { topic, name, directives, .. } = &variants[0];
        let purpose = directives.purpose.replace('|', "\\|");
        let variants = directives.variants.join(", ");
        let _ = writeln!(text, "| {topic} | {name} | {purpose} | {variants} |");
    }
    text
}

/// The document with its table replaced, or added at its end the first time.
fn with_table(document: &str, table: &str) -> Result<String, Failure> {
    let section = format!("{BEGIN}\n\n{table}\n{END}");
    match (document.split_once(BEGIN), document.split_once(END)) {
        (Some((before, _)), Some((_, after))) => Ok(format!("{before}{section}{after}")),
        (None, None) => Ok(format!("{}\n\n## Topics\n\n{section}\n", document.trim_end())),
        _ => Err("fixtures/README.md has only one of the two marks of the table".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::with_table;

    #[test]
    fn table_is_added_then_replaced() {
        let once = with_table("# Head\n", "old\n").unwrap();
        let with_tail = format!("{once}tail\n");
        let twice = with_table(&with_tail, "new\n").unwrap();
        assert_eq!(twice, with_tail.replace("old", "new"));
        assert_eq!(with_table(&twice, "new\n").unwrap(), twice);
    }
}
