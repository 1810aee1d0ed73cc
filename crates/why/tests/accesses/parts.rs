//! A replay under trace that goes no farther than some position tells of what happened up to
//! there, and of nothing else: the oracle knows what that is. So units that count up to an
//! exact place trace what others do.

use std::collections::BTreeMap;
use std::fs;

use libtest_mimic::{Completion, Failed};
use tempfile::TempDir;

use crate::support::fixture::Fixture;
use crate::support::job::Before;
use crate::support::random::{Random, turns};
use crate::support::{recording, retraced};
use crate::{REPLAYED, access, difference, job, replayed, stepped};

/// So many positions in each fixture.
const POSITIONS: usize = 12;

/// Fixtures of few instructions, all their own.
pub fn are_told_of(fixture: &Fixture) -> bool {
    let build = fixture.directives.build.as_deref().unwrap_or_default();
    fixture.directives.count_is_exact && build.contains("-nostdlib")
}

pub fn test(fixture: &Fixture) -> Result<Completion, Failed> {
    let job = job(fixture)?;
    let stepped = stepped(&job, &REPLAYED)?;
    let directory = TempDir::new()?;
    let path = directory.path().join("recording");
    replayed::record(&job.before(Before::NoRandomLayout), &path)?;
    let stretches = recording::stretches(&path)?;
    let process = *recording::executed(&path)?.keys().next().ok_or("no process")?;
    let file = directory.path().join("accesses");
    let accesses = format!("--accesses={}", file.display());
    // Where a stretch begins and ends, others end and begin.
    let has_inside = |within: &usize| stretches[*within].1 > 1;
    let chosen: Vec<usize> = (0..stretches.len()).filter(has_inside).collect();
    let mut random = Random::new();
    for _ in 0..turns(POSITIONS) {
        let within = *random.one_of(&chosen);
        let (event, length) = stretches[within];
        let ticks = 1 + random.below(length as usize - 1) as u64;
        let before: u64 = stretches[..within].iter().map(|(_, length)| length).sum();
        let executed = before + ticks;
        let to = format!("--to={event}.{ticks}");
        let (_, answer) = retraced::retrace(&path, &[&to, &accesses])?;
        answer.check(&BTreeMap::from([(process, executed)])).map_err(|e| format!("{to}: {e}"))?;
        let text = fs::read_to_string(&file)?;
        let listed = text.lines().map(access::parse).collect::<Result<Vec<_>, _>>()?;
        let expected = stepped.within(executed);
        difference::none("single-stepped", expected, &to, &listed, |pc| stepped.disassembled(pc))?;
    }
    Ok(Completion::Completed)
}
