//! What is told while a reduction goes on: progress, the trace, verdicts, the best result.

use super::output::Output;
use super::verdicts::Verdicts;
use crate::trial::{Failure, no_answer};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;
use why_reduce::tester::{Judgement, Tested, Watcher};
use why_reduce::{Outcome, Stopped, Verdict};
use why_trial::Shape;

pub struct Watch {
    shape: Shape,
    output: Output,
    verdicts: Verdicts,
    trace: Option<BufWriter<File>>,
    bar: ProgressBar,
    start: Instant,
    original: usize,
    size: usize,
    accepted: u64,
    /// The size after so many tests, wherever it changed.
    sizes: Vec<(u64, usize)>,
}

impl Watch {
    pub fn new(
        shape: Shape,
        output: Output,
        verdicts: Verdicts,
        trace: Option<&Path>,
        original: usize,
    ) -> Result<Watch, Failure> {
        let create = |path: &Path| {
            let cannot = |error| no_answer(format!("cannot write {}: {error}", path.display()));
            File::create(path).map(BufWriter::new).map_err(cannot)
        };
        let style = ProgressStyle::with_template("{spinner} {wide_msg}").expect("a valid template");
        Ok(Watch {
            shape,
            output,
            verdicts,
            trace: trace.map(create).transpose()?,
            bar: ProgressBar::new_spinner().with_style(style),
            start: Instant::now(),
            original,
            size: original,
            accepted: 0,
            sizes: vec![(0, original)],
        })
    }

    pub fn sizes(&self) -> &[(u64, usize)] {
        &self.sizes
    }

    /// Nobody watches any more.
    pub fn end(&mut self) {
        self.bar.finish_and_clear();
        if let Some(trace) = &mut self.trace {
            let _ = trace.flush();
        }
    }

    /// There is nothing to go on with later.
    pub fn discard(&mut self) {
        self.end();
        self.verdicts.delete();
    }

    fn progress(&self, test: &Tested) {
        let share = 100.0 * self.size as f64 / self.original.max(1) as f64;
        let rate = test.number as f64 / self.start.elapsed().as_secs_f64().max(1e-3);
        self.bar.set_message(format!(
            "{} bytes, {share:.1} %  {} tests, {} accepted, {rate:.0}/s  {}",
            self.size, test.number, self.accepted, test.phase
        ));
        self.bar.tick();
    }
}

fn broken(what: impl std::fmt::Display) -> impl FnOnce(std::io::Error) -> Stopped {
    move |error| Stopped::Broken(format!("cannot write {what}: {error}"))
}

impl Watcher for Watch {
    fn tested(&mut self, test: &Tested) -> Outcome<()> {
        if test.accepted {
            self.accepted += 1;
            self.size = test.size;
        }
        self.sizes.push((test.number, self.size));
        self.progress(test);
        let Some(trace) = &mut self.trace else { return Ok(()) };
        let verdict = match test.judgement.verdict {
            Verdict::Fails => "fails",
            Verdict::Passes => "passes",
            Verdict::Unresolved => "unresolved",
        };
        let line = json!({
            "test": test.number,
            "phase": test.phase,
            "bytes": test.size,
            "verdict": verdict,
            "accepted": test.accepted,
            "reason": &*test.judgement.reason,
            "candidate": format!("{:032x}", test.hash),
        });
        writeln!(trace, "{line}").map_err(broken("the trace"))
    }

    fn known(&mut self, hash: u128, judgement: &Judgement) -> Outcome<()> {
        let added = self.verdicts.add(hash, judgement);
        added.map_err(broken(self.verdicts.path().display()))
    }

    fn smaller(&mut self, text: &[u8]) -> Outcome<()> {
        let written = self.output.write(&self.shape.files(text));
        written.map_err(|error| Stopped::Broken(error.to_string()))
    }
}
