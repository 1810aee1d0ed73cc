//! `why isolate`: the closest pair of inputs of which one passes and the other fails.

mod deltas;

use crate::say::{self, say, sayln};
use crate::trial::{self, Failure, no_answer};
use deltas::Deltas;
use serde_json::json;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use why_reduce::lists::dd;
use why_reduce::tester::{Limits, Tester, Watcher};
use why_reduce::units::Unit;
use why_reduce::{Oracle, Stopped, Verdict};
use why_trial::{Pool, Shape};

/// Find the smallest difference between a passing and a failing input that matters
#[derive(clap::Args)]
pub struct Args {
    /// An input that passes
    passing: PathBuf,

    /// An input that fails
    failing: PathBuf,

    /// Write the closest pair to this directory, as `passing` and `failing`
    #[arg(short, long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,

    /// Print the answer as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    trial: trial::Args,
}

/// Nobody watches.
struct Unwatched;

impl Watcher for Unwatched {}

pub fn main(args: &Args) -> ExitCode {
    trial::exit(isolate(args))
}

fn isolate(args: &Args) -> Result<(), Failure> {
    let read = |path: &Path| {
        let cannot = |error| no_answer(format!("cannot read {}: {error}", path.display()));
        std::fs::read(path).map_err(cannot)
    };
    let (mut passing, mut failing) = (read(&args.passing)?, read(&args.failing)?);
    let name = args.failing.file_name().map(PathBuf::from).unwrap_or_default();
    if let Some(directory) = &args.output {
        // Better known before there is anything to write.
        std::fs::create_dir_all(directory).map_err(|error| cannot_write(directory, error))?;
    }
    let pool = args.trial.pool(std::slice::from_ref(&args.failing), Shape::One(name))?;
    let mut tester = Tester::new(pool, Unwatched, Limits { confirm: 1, ..Limits::default() });
    let failure = check(args, &failing, &passing, &mut tester)?;

    // From what is coarse to what is fine: each step has less to look at.
    let before = Deltas::new(Unit::Char, &passing, &failing).len();
    for unit in [Unit::Line, Unit::Token, Unit::Char] {
        let closest = closest(unit, &passing, &failing, &mut tester);
        (passing, failing) = closest.map_err(no_answer)?;
    }
    let deltas = Deltas::new(Unit::Char, &passing, &failing);
    if let Some(directory) = &args.output {
        write(directory, &passing, &failing)?;
    }
    let difference = Deltas::new(Unit::Line, &passing, &failing).text();
    let tests = tester.counts().tests;
    if args.json {
        let answer = json!({
            "schema": "why.isolate/1",
            "answer": {
                "failure": failure,
                "passing": String::from_utf8_lossy(&passing),
                "failing": String::from_utf8_lossy(&failing),
                "changes": deltas.len(),
                "difference": difference,
            },
            "left_out": [],
            "stats": { "changes_before": before, "tests": tests },
        });
        say::data(answer);
    } else {
        sayln!("failure    {failure}");
        sayln!("isolated   {before} -> {} changed characters in {tests} tests", deltas.len());
        sayln!("difference between the closest that pass (-) and fail (+)");
        say!("{difference}");
    }
    Ok(())
}

/// How the failing one fails, if each does what it is said to do.
fn check(
    args: &Args,
    failing: &[u8],
    passing: &[u8],
    tester: &mut Tester<Pool, Unwatched>,
) -> Result<String, Failure> {
    let fails = tester.check(failing).map_err(no_answer)?;
    if fails.verdict != Verdict::Fails {
        let (path, reason) = (args.failing.display(), fails.reason);
        return Err(no_answer(format!("{path} does not fail: {reason}")));
    }
    match tester.verdict(passing.to_vec()).map_err(no_answer)? {
        Verdict::Passes => Ok(args.trial.failure(&fails.reason)),
        _ => {
            let path = args.passing.display();
            let reason = tester.judgement(passing).map(|known| known.reason.to_string());
            Err(no_answer(format!("{path} does not pass: {}", reason.unwrap_or_default())))
        }
    }
}

type Texts = (Vec<u8>, Vec<u8>);

fn closest(
    unit: Unit,
    passing: &[u8],
    failing: &[u8],
    oracle: &mut dyn Oracle,
) -> Result<Texts, Stopped> {
    let deltas = Deltas::new(unit, passing, failing);
    let pair = dd(deltas.len(), &|made| deltas.render(made), oracle)?;
    Ok((deltas.render(&pair.passing), deltas.render(&pair.failing)))
}

fn write(directory: &Path, passing: &[u8], failing: &[u8]) -> Result<(), Failure> {
    for (name, text) in [("passing", passing), ("failing", failing)] {
        let written = std::fs::write(directory.join(name), text);
        written.map_err(|error| cannot_write(directory, error))?;
    }
    Ok(())
}

fn cannot_write(directory: &Path, error: io::Error) -> Failure {
    no_answer(format!("cannot write to {}: {error}", directory.display()))
}
