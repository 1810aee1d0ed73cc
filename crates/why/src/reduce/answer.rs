//! What came of a reduction, and why the result is not smaller.

use super::Reduction;
use super::not_smaller::{self, COLUMNS, Part, shortened};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;
use why_reduce::tester::Counts;
use why_reduce::units::{Sort, Unit, sort_of};
use why_trial::Files;

pub struct Sizes {
    pub bytes: usize,
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

    pub fn json(&self) -> Value {
        json!({ "bytes": self.bytes, "tokens": self.tokens, "lines": self.lines })
    }
}

pub fn tokens(text: &[u8]) -> impl Iterator<Item = std::ops::Range<usize>> {
    let spans = Unit::Token.pieces(text);
    spans.filter(|span| sort_of(&text[span.clone()]) != Sort::Space)
}

pub struct Answer {
    pub before: Sizes,
    pub after: Sizes,
    pub counts: Counts,
    pub failure: String,
    /// What is left.
    pub files: Files,
    /// What goes on, if more may be possible.
    more: Option<&'static str>,
    /// Nothing can be left out alone, and that was tried.
    pub minimal: bool,
    time: Duration,
    pub path: String,
    parts: Vec<Part>,
    parts_left_out: usize,
}

impl Answer {
    /// Of what is left now, whether or not more is possible.
    pub(super) fn new(
        reduction: &Reduction,
        path: &Path,
        more: Option<&'static str>,
        minimal: bool,
    ) -> Answer {
        let Reduction { files, shape, tester, .. } = reduction;
        let best = shape.files(tester.best());
        let after = Sizes::of(&best);
        let parts = not_smaller::parts(&best, shape, tester);
        Answer {
            before: Sizes::of(files),
            counts: tester.counts().clone(),
            failure: reduction.failure.clone(),
            more,
            minimal,
            time: reduction.start.elapsed(),
            path: path.display().to_string(),
            parts_left_out: after.tokens - parts.len(),
            parts,
            after,
            files: best,
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
        self.summary() + &not_smaller::text(&self.parts, self.parts_left_out)
    }

    /// How far it came.
    pub fn summary(&self) -> String {
        let Answer { before, after, counts, .. } = self;
        let mut text = String::new();
        let share = 100.0 * after.bytes as f64 / before.bytes.max(1) as f64;
        let seconds = self.time.as_secs_f64();
        let failure = shortened(&self.failure, COLUMNS - "failure   ".len(), 0);
        let _ = writeln!(text, "failure   {failure}");
        let _ = writeln!(
            text,
            "reduced   {} -> {} bytes ({share:.2} %), {} -> {} tokens, {} -> {} lines",
            before.bytes, after.bytes, before.tokens, after.tokens, before.lines, after.lines
        );
        let _ = writeln!(
            text,
            "          {} {} in {seconds:.1} s, {} accepted; the result is {}",
            counts.tests,
            if counts.tests == 1 { "test" } else { "tests" },
            counts.accepted,
            self.path
        );
        if counts.flaky > 0 {
            let _ = writeln!(
                text,
                "flaky     {} candidates failed now and then; a higher --confirm is safer",
                counts.flaky
            );
        }
        if let Some(more) = self.more {
            let _ = writeln!(text, "budget    used up: more may be possible, {more}");
        }
        text
    }
}
