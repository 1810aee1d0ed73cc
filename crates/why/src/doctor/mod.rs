//! `why doctor`: tries, for real, what this machine allows, and says what each
//! finding means for the user.
//!
//! A probe does what the engine would do; it never concludes from a version or a
//! setting, which are named only to explain a failure. Whatever a probe does
//! happens in a child with a time limit, so that none can hang or crash `why`.
//! Nothing is changed on the machine.

mod aslr;
mod child;
mod container;
mod debug_info;
mod finding;
mod fsgsbase;
mod kernel;
mod memfd;
mod perf;
mod pinning;
mod ptrace;
mod remote_memory;
pub mod room;
mod seccomp;
mod table;
mod user;
mod userfaultfd;
mod vectors;

use std::process::ExitCode;
use std::time::Instant;

use crate::say::{self, say};
use finding::{Finding, Verdict};

/// Try what this machine allows, and say what each finding means
#[derive(clap::Args)]
pub struct Args {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

/// Whether the engine can run without what a probe tries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Essential,
    Useful,
}

const PROBES: [(Need, fn() -> Finding); 15] = [
    (Need::Essential, ptrace::probe),
    (Need::Essential, memfd::probe),
    (Need::Useful, seccomp::probe),
    (Need::Useful, remote_memory::probe),
    (Need::Useful, pinning::probe),
    (Need::Useful, aslr::probe),
    (Need::Useful, fsgsbase::probe),
    (Need::Useful, vectors::probe),
    (Need::Useful, perf::probe),
    (Need::Useful, userfaultfd::probe),
    (Need::Useful, user::probe),
    (Need::Useful, container::probe),
    (Need::Useful, debug_info::probe),
    (Need::Useful, room::probe),
    (Need::Useful, kernel::probe),
];

pub fn main(args: Args) -> ExitCode {
    let start = Instant::now();
    let mut findings = Vec::new();
    let mut lacking = Vec::new();
    for (need, probe) in PROBES {
        let finding = probe();
        if need == Need::Essential && finding.verdict == Verdict::Missing {
            lacking.push(finding.probe);
        }
        findings.push(finding);
    }
    match args.json {
        true => say::data(json(&findings, lacking.is_empty(), start)),
        false => say!("{}", table::render(&findings, &lacking)),
    }
    ExitCode::from(u8::from(!lacking.is_empty()))
}

fn json(findings: &[Finding], can_run: bool, start: Instant) -> String {
    let answer = serde_json::json!({
        "schema": "why.doctor/1",
        "can_run": can_run,
        "answer": findings,
        "stats": { "milliseconds": start.elapsed().as_millis() as u64 },
    });
    format!("{answer:#}")
}
