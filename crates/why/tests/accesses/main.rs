//! The accesses of `--accesses` are the true ones: small programs whose accesses are
//! listed by hand, the single-stepping oracle, `why run --tool trace` and a replay under
//! trace all agree; on fixtures, the oracle and both of these do.

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
mod parts;
mod registers;
mod replayed;
mod reserve;
mod run;
mod threads;

use std::sync::OnceLock;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use access::Access;
use oracle::{Recorded, Surroundings};
use support::build;
use support::fixture::{self, Fixture};
use support::job::Job;
use support::needs;

/// Fixtures about addresses, short enough to be stepped through. They must have one
/// thread, and neither read the trap flag, which stepping sets, nor trap themselves.
const INSTRUCTIONS: &[&str] = &[
    "address_size_prefix",
    "avx2_gather_mask",
    "avx512_fault_suppression",
    "stack_operations",
    "string_prefixes",
];

/// How `why` comes to know of the accesses of a program.
struct Way {
    name: &'static str,
    list: fn(&Job) -> Result<Vec<Access>, String>,
    /// Runs a program as for that, and tells what it wrote.
    output: fn(&Job) -> Result<Vec<u8>, String>,
    /// Entries of the auxiliary vector that a program is not shown then.
    hidden: &'static [u64],
    /// By how much mappings lie lower. Found out once, by whichever fixture comes first.
    bytes_taken: OnceLock<Result<u64, String>>,
}

static RUN: Way = Way {
    name: "run",
    list: run::list,
    output: run::output,
    hidden: &[],
    bytes_taken: OnceLock::new(),
};
static REPLAYED: Way = Way {
    name: "replayed",
    list: replayed::list,
    output: replayed::output,
    hidden: &[libc::AT_SYSINFO_EHDR],
    bytes_taken: OnceLock::new(),
};
static WAYS: [&Way; 2] = [&RUN, &REPLAYED];

fn main() {
    let mut trials = by_hand::trials();
    trials.push(Trial::test("accesses of a replay have their threads", threads::test));
    for fixture in fixture::all().into_iter().filter_map(Result::ok) {
        let is_chosen = INSTRUCTIONS.contains(&&*fixture.name) && fixture.topic == "instructions";
        if fixture.directives.count_is_exact || is_chosen {
            for way in WAYS {
                let title = format!("{}, single-stepped and {}", fixture.title(), way.name);
                let fixture = fixture.clone();
                let test = move || stepped_and_why(&fixture, way);
                trials.push(Trial::ignorable_test(title, test));
            }
        }
        if parts::are_told_of(&fixture) {
            let title = format!("{}, parts of it replayed", fixture.title());
            trials.push(Trial::ignorable_test(title, move || parts::test(&fixture)));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn stepped_and_why(fixture: &Fixture, way: &Way) -> Result<Completion, Failed> {
    if let Some(reason) = needs::unmet(&fixture.directives.needs) {
        return Ok(Completion::ignored_with(reason));
    }
    let job = job(fixture)?;
    let stepped = stepped(&job, way)?;
    let listed = (way.list)(&job)?;
    difference::none("single-stepped", &stepped.accesses, way.name, &listed, |pc| {
        stepped.disassembled(pc)
    })?;
    Ok(Completion::Completed)
}

fn job(fixture: &Fixture) -> Result<Job, String> {
    let directives = &fixture.directives;
    let program = build::build(fixture)?;
    Ok(Job::new(program).args(&directives.args).stdin(directives.stdin.clone()))
}

/// What the oracle says, in the same surroundings as when it is listed like this.
fn stepped(job: &Job, way: &Way) -> Result<Recorded, String> {
    let reserved = way.bytes_taken.get_or_init(|| reserve::bytes_taken(way.output)).clone()?;
    oracle::record(job, Surroundings { reserved, hidden: way.hidden })
}
