//! `cargo xtask bench engine`: how much slower a program is under the engine.
//!
//! Every program runs natively, under `why run` with each tool and under
//! valgrind's null tool, in turn, so that a change in the machine's speed hits all
//! alike; the best of several rounds counts. A run whose output is not the native
//! one has no figure. This is a benchmark and never a test: it passes no judgement
//! by its exit status.

mod goals;
mod inputs;
mod machine;
mod measure;
mod programs;
mod rounds;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::workspace::{self, Failure};

/// Measure how much slower programs are under the engine
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Engine(Engine),
}

/// Compare native, `why run` with each tool, and valgrind's null tool
#[derive(clap::Args)]
pub struct Engine {
    /// Only programs whose name contains this; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Rounds; the best one counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// A tenth of the work and one round: figures for a first look only
    #[arg(long)]
    quick: bool,
    /// Also write the tables as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

pub fn main(args: Args) -> Result<ExitCode, Failure> {
    let What::Engine(args) = args.what;
    let why = workspace::build_why()?;
    let directory = workspace::target()?.join("bench");
    let inputs = inputs::prepare(&directory, args.quick)?;
    let mut programs = programs::all(&inputs, args.quick)?;
    programs.retain(|program| {
        args.only.is_empty() || args.only.iter().any(|name| program.name.contains(name.as_str()))
    });
    if programs.is_empty() {
        return Err("no program has such a name".into());
    }

    let runs = if args.quick { 1 } else { args.runs };
    let bench = rounds::Bench::new(why, directory)?;
    let heading = machine::describe(runs, args.quick);
    println!("{heading}\n\n{}", table::HEADER);
    let mut results = Vec::new();
    for program in programs {
        let result = bench.run(program, runs)?;
        println!("{}", table::row(&result));
        results.push(result);
    }
    println!("\n{}", table::LEGEND);
    let problems = table::problems(&results, args.quick);
    if !problems.is_empty() {
        println!("\n{problems}");
    }
    let verdicts = goals::judge(&results);
    println!("\n{}", table::verdicts(&verdicts));

    if let Some(file) = args.markdown {
        std::fs::write(&file, table::markdown(&heading, &results, &verdicts, &problems))?;
    }
    Ok(ExitCode::SUCCESS)
}
