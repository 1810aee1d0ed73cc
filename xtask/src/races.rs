//! `cargo xtask races`: how often each program in fixtures/races fails by itself, and how
//! many tries `why record --tries` needs to make it fail.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use why_fixtures::support::build;
use why_fixtures::support::fixture::{self, Fixture};

use crate::process;
use crate::workspace::{self, Failure};

/// Measure how rarely racy programs fail natively, and how soon under `why record --tries`
#[derive(clap::Args)]
pub struct Args {
    /// Programs in fixtures/races; all by default
    races: Vec<String>,
    /// Native runs of each
    #[arg(long, value_name = "N", default_value_t = 5000)]
    natives: u32,
    /// Searches for a failure, each with seeds of its own
    #[arg(long, value_name = "N", default_value_t = 5)]
    searches: u64,
    /// Tries of each search
    #[arg(long, value_name = "N", default_value_t = 500)]
    tries: u64,
}

/// A program that takes longer natively is in a deadlock.
const LIMIT: Duration = Duration::from_secs(5);

pub fn main(args: Args) -> Result<ExitCode, Failure> {
    let why = workspace::build_why()?;
    let recordings = workspace::target()?.join("races");
    println!("| race | native failures | tries needed: median | most |");
    println!("|---|---|---|---|");
    for fixture in races(&args.races)? {
        let program = build::build(&fixture)?;
        let mut failures = 0;
        for _ in 0..args.natives {
            failures += u32::from(fails(Command::new(&program), LIMIT)?);
        }
        let mut needed = Vec::new();
        for search in 0..args.searches {
            workspace::fresh(&recordings)?;
            let first = 1 + search * args.tries;
            needed.push(search_failure(&why, &program, &recordings, first, args.tries)?);
        }
        needed.sort_unstable();
        let median = needed[needed.len() / 2];
        let most = needed[needed.len() - 1];
        println!("| {} | {failures} of {} | {median} | {most} |", fixture.name, args.natives);
    }
    workspace::fresh(&recordings)?;
    Ok(ExitCode::SUCCESS)
}

fn races(chosen: &[String]) -> Result<Vec<Fixture>, Failure> {
    let all: Result<Vec<Fixture>, _> = fixture::all().into_iter().collect();
    let mut races = all.map_err(|(name, error)| format!("{name}: {error}"))?;
    races.retain(|fixture| fixture.topic == "races");
    if let Some(unknown) = chosen.iter().find(|name| races.iter().all(|race| race.name != **name)) {
        return Err(format!("there is no fixtures/races/{unknown}.c").into());
    }
    races.retain(|race| chosen.is_empty() || chosen.contains(&race.name));
    Ok(races)
}

fn fails(mut command: Command, limit: Duration) -> Result<bool, Failure> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let finished = process::run(&mut command, limit)?;
    Ok(finished.timed_out || !finished.status.success())
}

/// How many tries it takes to record a failure, from this seed on.
fn search_failure(
    why: &Path,
    program: &Path,
    recordings: &Path,
    first: u64,
    tries: u64,
) -> Result<u64, Failure> {
    let mut command = Command::new(why);
    command.args(["record", "--tries", &tries.to_string(), "--seed", &first.to_string(), "--"]);
    command.arg(program).env("WHY_DIR", recordings);
    if !fails(command, LIMIT * tries as u32)? {
        return Err(format!("{} did not fail in {tries} tries", program.display()).into());
    }
    let told = Command::new(why).args(["info", "--json"]).env("WHY_DIR", recordings).output()?;
    let told: serde_json::Value = serde_json::from_slice(&told.stdout)?;
    let seed = told["answer"]["manifest"]["seed"].as_u64();
    let seed = seed.ok_or("why info does not tell the seed")?;
    Ok(seed + 1 - first)
}
