//! `cargo xtask bench engine`, `bench record` and `bench region`: how much slower a program is
//! under the engine, while it is recorded and replayed, and before a region of which it is
//! recorded. `cargo xtask bench slice` and `bench reduce` are in files of their own.
//!
//! Every program runs natively and in every other way, in turn, so that a change in the
//! machine's speed hits all alike; the best of several rounds counts. A run whose output is
//! not the native one has no figure. This is a benchmark and never a test: it passes no
//! judgement by its exit status.

mod goals;
mod inputs;
mod measure;
mod peer;
mod programs;
mod recording;
mod reduce;
mod reducers;
mod rounds;
mod slice;
mod table;
mod ways;

use std::path::PathBuf;
use std::process::ExitCode;

use self::goals::Goal;
use self::ways::Way;
use crate::workspace::{self, Failure};

/// Measure how much slower programs are under the engine, and how well inputs are reduced
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Compare native, `why run` with each tool, and valgrind's null tool
    Engine(Options),
    /// Compare native, `why record` and `why replay`
    Record(Options),
    /// Compare native, `why run --tool count` and `why record --from` before it records
    Region(Options),
    /// Tell how fast runs are traced and sliced, beside gdb and valgrind
    Slice(slice::Options),
    /// Compare `why reduce` and the reducers that are installed
    Reduce(reduce::Options),
}

#[derive(clap::Args)]
struct Options {
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

/// What is compared, and what is to be reached.
struct Comparison {
    title: &'static str,
    ways: &'static [Way],
    goals: &'static [Goal],
}

const ENGINE: Comparison = Comparison {
    title: "How fast the engine is",
    ways: &[Way::Native, Way::None, Way::Count, Way::Trace, Way::Valgrind],
    goals: goals::ENGINE,
};

const RECORD: Comparison = Comparison {
    title: "How fast recording and replaying is",
    ways: &[Way::Native, Way::Record, Way::Replay, Way::End],
    goals: goals::RECORD,
};

const REGION: Comparison = Comparison {
    title: "How fast a program comes to a region",
    ways: &[Way::Native, Way::Count, Way::Before],
    goals: goals::REGION,
};

pub fn main(args: Args) -> Result<ExitCode, Failure> {
    let (Comparison { title, ways, goals }, args) = match args.what {
        What::Engine(args) => (ENGINE, args),
        What::Record(args) => (RECORD, args),
        What::Region(args) => (REGION, args),
        What::Slice(options) => {
            slice::main(&options)?;
            return Ok(ExitCode::SUCCESS);
        }
        What::Reduce(options) => {
            reduce::main(&options)?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let why = workspace::build_why()?;
    let directory = workspace::target()?.join("bench");
    let inputs = inputs::prepare(&directory, args.quick)?;
    let mut programs = if ways.contains(&Way::Record) {
        inputs.large()?;
        programs::for_record(&inputs, args.quick)?
    } else if ways.contains(&Way::Before) {
        programs::for_region(&inputs, args.quick)
    } else {
        programs::for_engine(&inputs, args.quick)
    };
    programs.retain(|program| {
        args.only.is_empty() || args.only.iter().any(|name| program.name.contains(name.as_str()))
    });
    if programs.is_empty() {
        return Err("no program has such a name".into());
    }

    let runs = if args.quick { 1 } else { args.runs };
    let bench = rounds::Bench::new(why, ways, directory)?;
    let heading = crate::machine::describe(&match args.quick {
        true => "quick: a tenth of the work, one round".to_owned(),
        false => format!("best of {runs}"),
    });
    println!("{heading}\n\n{}", table::header(ways));
    let mut results = Vec::new();
    for program in programs {
        let result = bench.run(program, runs)?;
        println!("{}", table::row(&result));
        results.push(result);
    }
    println!("\n{}", table::legend(ways));
    let problems = table::problems(&results, args.quick);
    if !problems.is_empty() {
        println!("\n{problems}");
    }
    let verdicts = goals::judge(goals, &results);
    println!("\n{}", table::verdicts(&verdicts));

    if let Some(file) = args.markdown {
        std::fs::write(&file, table::markdown(title, &heading, &results, &verdicts, &problems))?;
    }
    Ok(ExitCode::SUCCESS)
}
