//! The accesses of `--accesses` are the true ones: small programs whose accesses are
//! listed by hand, the single-stepping oracle, and `why run --tool trace` all agree;
//! on fixtures, the oracle and `why` do.

#[path = "../support/mod.rs"]
mod support;

mod access;
mod by_hand;
mod cases;
mod difference;
mod extended_state;
mod instruction_accesses;
mod lanes;
mod oracle;
mod registers;
mod reserve;

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use access::Access;
use support::build;
use support::fixture::{self, Fixture};
use support::job::{Before, Job};
use support::needs;
use support::why::{self, Tool};

/// Fixtures about addresses, short enough to be stepped through. They must have one
/// thread, and neither read the trap flag, which stepping sets, nor trap themselves.
const INSTRUCTIONS: &[&str] = &[
    "address_size_prefix",
    "avx2_gather_mask",
    "avx512_fault_suppression",
    "stack_operations",
    "string_prefixes",
];

/// Found out once, by whichever fixture comes first.
static BYTES_TAKEN: OnceLock<Result<u64, String>> = OnceLock::new();

fn main() {
    let mut trials = by_hand::trials();
    for fixture in fixture::all().into_iter().filter_map(Result::ok) {
        let is_chosen = INSTRUCTIONS.contains(&&*fixture.name) && fixture.topic == "instructions";
        if fixture.directives.count_is_exact || is_chosen {
            let title = format!("{}, single-stepped and why", fixture.title());
            trials.push(Trial::ignorable_test(title, move || stepped_and_why(&fixture)));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn stepped_and_why(fixture: &Fixture) -> Result<Completion, Failed> {
    if let Some(reason) = needs::unmet(&fixture.directives.needs) {
        return Ok(Completion::ignored_with(reason));
    }
    let directives = &fixture.directives;
    let job =
        Job::new(build::build(fixture)?).args(&directives.args).stdin(directives.stdin.clone());
    let reserved = BYTES_TAKEN.get_or_init(|| reserve::bytes_taken(Tool::Trace)).clone()?;
    let stepped = oracle::record(&job, reserved)?;
    let listed = listed_by_why(&job)?;
    difference::none("single-stepped", &stepped.accesses, "why", &listed, |pc| {
        stepped.disassembled(pc)
    })?;
    Ok(Completion::Completed)
}

/// What `why` writes for the job's program.
fn listed_by_why(job: &Job) -> Result<Vec<Access>, String> {
    let job = job.clone().before(Before::NoRandomLayout);
    let mut under = why::under(&job, Tool::Trace, Path::new(why::WHY))?;
    let file = under.with_accesses();
    let (outcome, report) = under.run()?;
    report.check(Tool::Trace, outcome.ended)?;
    let text = fs::read_to_string(&file).map_err(|error| format!("no accesses: {error}"))?;
    text.lines().map(access::parse).collect()
}
