//! What came of a reduction, and why the result is not smaller.

use super::Reduction;
use super::watch::Watch;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;
use why_reduce::tester::{Counts, Tester};
use why_reduce::units::{Sort, Unit, sort_of};
use why_trial::{Files, Pool, Shape};

/// So many remaining parts are told one by one.
const MOST_PARTS: usize = 400;

struct Sizes {
    bytes: usize,
    tokens: usize,
    lines: usize,
}

impl Sizes {
    fn of(files: &Files) -> Sizes {
        let mut sizes = Sizes { bytes: 0, tokens: 0, lines: 0 };
        for (_, text) in &files.0 {
            sizes.bytes += text.len();
            sizes.tokens += tokens(text).count();
            sizes.lines += Unit::Line.pieces(text).count();
        }
        sizes
    }

    fn json(&self) -> Value {
        json!({ "bytes": self.bytes, "tokens": self.tokens, "lines": self.lines })
    }
}

fn tokens(text: &[u8]) -> impl Iterator<Item = std::ops::Range<usize>> {
    let spans = Unit::Token.pieces(text);
    spans.filter(|span| sort_of(&text[span.clone()]) != Sort::Space)
}

/// A part that is left, and what happened without it.
struct Part {
    file: String,
    text: String,
    without: Option<String>,
}

pub struct Answer {
    before: Sizes,
    after: Sizes,
    counts: Counts,
    failure: String,
    /// More may be possible.
    ended_early: bool,
    /// Nothing can be left out alone, and that was tried.
    minimal: bool,
    time: Duration,
    path: String,
    parts: Vec<Part>,
    parts_left_out: usize,
}

impl Answer {
    /// Of what is left now, whether or not more is possible.
    pub fn new(reduction: &Reduction, path: &Path, ended_early: bool, minimal: bool) -> Answer {
        let Reduction { files, shape, tester, .. } = reduction;
        let best = shape.files(tester.best());
        let after = Sizes::of(&best);
        let few = after.tokens <= MOST_PARTS;
        let parts = if few { parts(&best, shape, tester) } else { Vec::new() };
        Answer {
            before: Sizes::of(files),
            counts: tester.counts().clone(),
            failure: reduction.failure.clone(),
            ended_early,
            minimal,
            time: reduction.start.elapsed(),
            path: path.display().to_string(),
            parts_left_out: after.tokens - parts.len(),
            parts,
            after,
        }
    }

    pub fn json(&self) -> Value {
        let part = |part: &Part| json!({ "file": part.file, "part": part.text, "without_it": part.without });
        json!({
            "schema": "why.reduce/1",
            "answer": {
                "output": self.path,
                "failure": self.failure,
                "before": self.before.json(),
                "after": self.after.json(),
                "minimal": self.minimal,
                "why_not_smaller": self.parts.iter().map(part).collect::<Vec<_>>(),
            },
            "left_out": { "parts": self.parts_left_out },
            "stats": {
                "tests": self.counts.tests,
                "made": self.counts.made,
                "accepted": self.counts.accepted,
                "flaky": self.counts.flaky,
                "seconds": self.time.as_secs_f64(),
            },
        })
    }

    pub fn text(&self) -> String {
        let Answer { before, after, counts, .. } = self;
        let mut text = String::new();
        let share = 100.0 * after.bytes as f64 / before.bytes.max(1) as f64;
        let seconds = self.time.as_secs_f64();
        let _ = writeln!(text, "failure   {}", self.failure);
        let _ = writeln!(
            text,
            "reduced   {} -> {} bytes ({share:.2} %), {} -> {} tokens, {} -> {} lines",
            before.bytes, after.bytes, before.tokens, after.tokens, before.lines, after.lines
        );
        let _ = writeln!(
            text,
            "          {} tests in {seconds:.1} s, {} accepted; the result is {}",
            counts.tests, counts.accepted, self.path
        );
        if counts.flaky > 0 {
            let _ = writeln!(
                text,
                "flaky     {} candidates failed now and then; a higher --confirm is safer",
                counts.flaky
            );
        }
        if self.ended_early {
            let _ = writeln!(text, "budget    used up: more may be possible, --resume goes on");
        }
        self.not_smaller(&mut text);
        text
    }

    fn not_smaller(&self, text: &mut String) {
        let told: Vec<&Part> = self.parts.iter().filter(|part| part.without.is_some()).collect();
        if told.is_empty() {
            return;
        }
        let _ = writeln!(text, "why it is not smaller");
        let width = told.iter().map(|part| part.text.chars().count()).max().unwrap_or(0).min(30);
        for part in told {
            let without = part.without.as_deref().unwrap_or_default();
            let _ = writeln!(text, "  without {:width$}  {without}", part.text);
        }
        if self.parts_left_out > 0 {
            let _ = writeln!(text, "  … and {} parts more", self.parts_left_out);
        }
    }
}

/// Every token that is left. What happened without it is known if it was tried.
fn parts(files: &Files, shape: &Shape, tester: &Tester<Pool, Watch>) -> Vec<Part> {
    let mut parts = Vec::new();
    for (index, (path, text)) in files.0.iter().enumerate() {
        for span in tokens(text) {
            let mut without = files.clone();
            without.0[index].1.drain(span.clone());
            let judgement = tester.judgement(&shape.text(&without));
            parts.push(Part {
                file: path.display().to_string(),
                text: String::from_utf8_lossy(&text[span]).into_owned(),
                without: judgement.map(|judgement| judgement.reason.to_string()),
            });
        }
    }
    parts
}
