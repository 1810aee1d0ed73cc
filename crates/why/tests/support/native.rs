//! A fixture's native run, which all others are compared with.

use crate::support::build;
use crate::support::fixture::Fixture;
use crate::support::job::{Before, Job};
use crate::support::outcome::Outcome;
use crate::support::run;

/// Builds a fixture and runs it; err if it does not end as it says.
pub fn native(fixture: &Fixture) -> Result<(Job, Outcome), String> {
    let directives = &fixture.directives;
    let mut job =
        Job::new(build::build(fixture)?).args(&directives.args).stdin(directives.stdin.clone());
    if directives.count_is_exact {
        job = job.before(Before::NoRandomLayout);
    }
    let outcome = run::run(&job).map_err(|error| format!("the native run: {error}"))?;
    if outcome.ended != directives.ends {
        return Err(format!(
            "the native run ended with {}, not {}; standard error: {:?}",
            outcome.ended,
            directives.ends,
            String::from_utf8_lossy(&outcome.stderr)
        ));
    }
    Ok((job, outcome))
}
