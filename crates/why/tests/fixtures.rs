//! Every fixture, in every variant, under every tool: what it does is what it
//! does natively.

mod support;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use support::compare;
use support::fixture::{self, Fixture};
use support::job::Job;
use support::native::native;
use support::needs;
use support::outcome::Outcome;
use support::single_step;
use support::why::{self, Tool};

fn main() {
    let mut trials = Vec::new();
    for found in fixture::all() {
        match found {
            Ok(fixture) => trials.extend(trials_of(fixture)),
            Err((name, error)) => trials.push(Trial::test(name, || Err(error.into()))),
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn trials_of(fixture: Fixture) -> impl Iterator<Item = Trial> {
    let title = fixture.title();
    let case = Arc::new(Case { fixture, native: OnceLock::new() });
    Tool::ALL.into_iter().map(move |tool| {
        let case = case.clone();
        Trial::ignorable_test(format!("{title} {}", tool.name()), move || case.test(tool))
    })
}

struct Case {
    fixture: Fixture,
    /// Built and run once, whichever tool's test comes first.
    native: OnceLock<Result<(Job, Outcome), String>>,
}

impl Case {
    fn test(&self, tool: Tool) -> Result<Completion, Failed> {
        if let Some(reason) = needs::unmet(&self.fixture.directives.needs) {
            return Ok(Completion::ignored_with(reason));
        }
        let (job, native) =
            self.native.get_or_init(|| native(&self.fixture)).as_ref().map_err(Failed::from)?;
        let (outcome, report) = why::under(job, tool, Path::new(why::WHY))?.run()?;
        compare::same(native, &outcome)?;
        report.check(tool, outcome.ended)?;
        if tool == Tool::Count && self.fixture.directives.count_is_exact {
            equals_single_steps(report.answer.instructions, job)?;
        }
        Ok(Completion::Completed)
    }
}

fn equals_single_steps(counted: Option<u64>, job: &Job) -> Result<(), String> {
    let stepped = single_step::count(job)?;
    if counted == Some(stepped) {
        Ok(())
    } else {
        Err(format!("count says {counted:?} instructions, single-stepping {stepped}"))
    }
}
