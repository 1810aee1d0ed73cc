//! `cargo xtask soak`: repeats fixtures under load until one behaves differently
//! from its native run. What fails once in a thousand runs is found here, not in
//! the tests, which repeat nothing.

mod evidence;
mod interrupt;
mod load;
mod replays;

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use why_fixtures::support::fixture::{self, Fixture};
use why_fixtures::support::job::Job;
use why_fixtures::support::outcome::Outcome;
use why_fixtures::support::why::{self, Tool};
use why_fixtures::support::{build, compare, needs, run};

use crate::workspace::{self, Failure};

/// Repeat fixtures under load and report the first difference of each
#[derive(clap::Args)]
pub struct Args {
    /// Fixtures: any part of `topic/name[variant]`; all when none is given
    fixtures: Vec<String>,
    /// Runs of each fixture under each tool
    #[arg(long, value_name = "N", default_value_t = 200)]
    repeat: u32,
    /// Busy processes beside it
    #[arg(long, value_name = "N", default_value_t = 2)]
    load: u32,
    /// Which tool; may be repeated
    #[arg(long, value_name = "TOOL", default_value = "count", value_parser = tool)]
    tool: Vec<Tool>,
    /// Record each fixture once, and repeat the replay
    #[arg(long, conflicts_with = "tool")]
    replay: bool,
}

fn tool(name: &str) -> Result<Tool, String> {
    let found = Tool::ALL.into_iter().find(|tool| tool.name() == name);
    found.ok_or_else(|| "it is none, count or trace".to_owned())
}

pub fn main(args: Args) -> Result<ExitCode, Failure> {
    let chosen = choose(&args.fixtures)?;
    let why = workspace::build_why()?;
    let kept = workspace::target()?.join("soak");
    interrupt::catch()?;
    let _load = load::start(args.load)?;

    let mut tally = Tally::default();
    'all: for fixture in &chosen {
        if interrupt::wanted() {
            break;
        }
        if let Some(reason) = needs::unmet(&fixture.directives.needs) {
            println!("{}: {reason}", fixture.title());
            continue;
        }
        let native = match native(fixture) {
            Ok(native) => native,
            Err(error) => {
                tally.differences += 1;
                println!("{}: {error}", fixture.title());
                continue;
            }
        };
        if args.replay {
            replays::repeat(fixture, &native.0, &why, args.repeat, &mut tally)?;
            continue;
        }
        for tool in &args.tool {
            repeat(fixture, *tool, &native, &why, &kept, args.repeat, &mut tally)?;
            if interrupt::wanted() {
                break 'all;
            }
        }
    }
    progress("");
    let interrupted = if interrupt::wanted() { ", interrupted" } else { "" };
    println!(
        "{} runs in {:.0} s{interrupted}: {} of {} fixtures and tools differ",
        tally.runs,
        tally.start.elapsed().as_secs_f64(),
        tally.differences,
        chosen.len() * if args.replay { 1 } else { args.tool.len() },
    );
    Ok(ExitCode::from(u8::from(tally.differences > 0)))
}

struct Tally {
    runs: u32,
    differences: u32,
    start: Instant,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally { runs: 0, differences: 0, start: Instant::now() }
    }
}

fn choose(words: &[String]) -> Result<Vec<Fixture>, Failure> {
    let meant = |title: &str| words.is_empty() || words.iter().any(|word| title.contains(word));
    let mut chosen = Vec::new();
    for found in fixture::all() {
        match found {
            Ok(fixture) if meant(&fixture.title()) => chosen.push(fixture),
            Err((title, error)) if meant(&title) => eprintln!("soak: {title}: {error}"),
            _ => {}
        }
    }
    if chosen.is_empty() {
        return Err("no fixture has such a name".into());
    }
    Ok(chosen)
}

/// Builds the fixture and runs it natively, once: what every other run must equal.
fn native(fixture: &Fixture) -> Result<(Job, Outcome), String> {
    let directives = &fixture.directives;
    let job =
        Job::new(build::build(fixture)?).args(&directives.args).stdin(directives.stdin.clone());
    let outcome = run::run(&job).map_err(|error| format!("the native run: {error}"))?;
    Ok((job, outcome))
}

/// Runs one fixture under one tool until it differs, or often enough.
fn repeat(
    fixture: &Fixture,
    tool: Tool,
    (job, native): &(Job, Outcome),
    why: &Path,
    kept: &Path,
    times: u32,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let title = format!("{} {}", fixture.title(), tool.name());
    for number in 1..=times {
        if interrupt::wanted() {
            return Ok(());
        }
        progress(&format!("{title}: {number} of {times}, {} differ so far", tally.differences));
        tally.runs += 1;
        let (outcome, difference) = match why::under(job, tool, why)?.run() {
            Err(error) => (None, error),
            Ok((outcome, report)) => {
                let same = compare::same(native, &outcome);
                match same.and_then(|()| report.check(tool, outcome.ended)) {
                    Ok(()) => continue,
                    Err(difference) => (Some(outcome), difference),
                }
            }
        };
        tally.differences += 1;
        let directory = evidence::keep(kept, &title, native, outcome.as_ref(), &difference)?;
        progress("");
        println!("{title}: run {number} of {times} differs\n{}", indented(&difference));
        println!("{}", indented(&native_again(job, native)));
        println!("  kept in {}", directory.display());
        return Ok(());
    }
    Ok(())
}

/// Whether the fixture itself is to blame: it may vary natively under this load.
fn native_again(job: &Job, native: &Outcome) -> String {
    const TIMES: usize = 20;
    let differ = (0..TIMES)
        .filter(|_| !interrupt::wanted())
        .filter(|_| run::run(job).as_ref() != Ok(native))
        .count();
    match differ {
        0 => format!("{TIMES} more native runs were all the same"),
        _ => format!("the fixture varies: {differ} of {TIMES} more native runs differ too"),
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// One line that overwrites itself, only where someone watches.
fn progress(text: &str) {
    let mut stderr = io::stderr();
    if stderr.is_terminal() {
        let _ = write!(stderr, "\r\x1b[K{text}");
        let _ = stderr.flush();
    }
}
