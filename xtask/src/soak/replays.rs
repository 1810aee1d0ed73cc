//! Replays of one recording, again and again: each must write and end as the recorded run.

use std::path::Path;

use why_fixtures::support::directives::Replay;
use why_fixtures::support::fixture::Fixture;
use why_fixtures::support::job::Job;
use why_fixtures::support::{recording, run};

use super::{Tally, indented, interrupt, progress};
use crate::workspace::Failure;

/// Records a fixture once and replays it until that differs, or often enough.
pub fn repeat(
    fixture: &Fixture,
    job: &Job,
    why: &Path,
    times: u32,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let title = fixture.title();
    if let Replay::NotYet(reason) = &fixture.directives.replay {
        println!("{title}: not replayed yet: {reason}");
        return Ok(());
    }
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("recording");
    let recorder = Job { program: why.into(), ..recording::recorder(job, &path, &["--hash"]) };
    let (recorded, _) = run::run_to_the_letter(&recorder)?;
    for number in 1..=times {
        if interrupt::wanted() {
            return Ok(());
        }
        progress(&format!("{title}: replay {number} of {times}, {} differ", tally.differences));
        tally.runs += 1;
        let replayed = recording::replay_with(why, &path, &["--verify"])?;
        if let Err(difference) = recording::same(&recorded, &replayed) {
            tally.differences += 1;
            progress("");
            println!("{title}: replay {number} of {times} differs\n{}", indented(&difference));
            println!("  the recording is kept in {}", directory.keep().display());
            return Ok(());
        }
    }
    Ok(())
}
