//! `why chop --each`: each value of a source by itself, and what of it leads to the failure.
//!
//! What leads there is the same for all values, and is found once; what depends on each is found for
//! many of them in one go through the trace.

use super::contents::{Piece, contents};
use super::sources::{Source, since};
use super::words::Words;
use super::{Args, Found, shown_at};
use crate::progress;
use crate::questions::{Failure, no_answer};
use crate::reduce::Cut;
use crate::slice::shown::{Preface, ViewArgs};
use crate::slice::subject::Subject;
use serde_json::json;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use why_reduce::units::{Sort, Unit, sort_of};
use why_slice::reasons::Why;
use why_slice::region::{Criterion, Options};

/// So many slices forwards are made at once, if there is room for what each is to know.
const AT_ONCE: usize = 64;

pub struct Each {
    unit: Unit,
    values: Vec<Value>,
}

/// A value of the source.
struct Value {
    text: String,
    /// Its bytes, counted as in the source.
    bytes: Range<u64>,
    /// How many lines depend on it.
    forward: usize,
    /// Which of them lead to the failure, and how many instructions that were executed.
    chop: Vec<String>,
    in_chop: u64,
}

/// The text of a source, from some byte on.
struct Stretch {
    from: u64,
    text: Vec<u8>,
}

impl Each {
    /// If it was asked for.
    pub fn wanted(
        args: &Args,
        subject: &mut Subject,
        source: &Source,
        found: &Found,
    ) -> Result<Option<Each>, Failure> {
        args.each.map(|cut| Each::of(args, cut, subject, source, found)).transpose()
    }

    fn of(
        args: &Args,
        cut: Option<Cut>,
        subject: &mut Subject,
        source: &Source,
        found: &Found,
    ) -> Result<Each, Failure> {
        let text = Text::of(subject, source)?;
        let (unit, pieces) = pieces(&text.stretches, cut);
        let sources = pieces.iter().map(|(bytes, _)| text.part(subject, source, bytes));
        let sources: Vec<Vec<Criterion>> = sources.collect::<Result<_, _>>()?;
        let options = args.view.options();
        let each_time = Options { reasons: Why::Instances, count_only: false, ..options };
        let backward = subject.timed(|region, watch| {
            region.slice(&found.criterion, Options { watch: Some(watch), ..each_time })
        })?;
        let leads_there = &backward.positions;
        let shown: HashMap<u64, u64> =
            backward.reasons.iter().map(|reason| (reason.position, shown_at(reason))).collect();

        let bar = progress::of_count("values", pieces.len() as u64);
        let (region, mut lines) = (&subject.traced.region, subject.sources());
        let listed = Options { reasons: Why::Code, count_only: false, ..options };
        // Each has two sets of positions, a bit for each.
        let size = usize::try_from(region.length / 4).unwrap_or(usize::MAX).max(1);
        let at_once = (args.view.memory() / 2 / size).clamp(1, AT_ONCE);
        let mut values = Vec::new();
        for (pieces, sources) in pieces.chunks(at_once).zip(sources.chunks(at_once)) {
            let sources: Vec<&[Criterion]> = sources.iter().map(Vec::as_slice).collect();
            let slices = region.forward_each(&sources, listed).map_err(no_answer)?;
            for ((bytes, text), slice) in pieces.iter().zip(slices) {
                let both =
                    || slice.instructions.iter().filter(|(position, _)| leads_there.has(*position));
                let shown = both().map(|(position, at)| *shown.get(position).unwrap_or(at));
                let chop = lines.lines(shown);
                values.push(Value {
                    text: String::from_utf8_lossy(text).into_owned(),
                    bytes: bytes.clone(),
                    forward: lines.lines(slice.reasons.iter().map(shown_at)).len(),
                    chop: chop.into_iter().map(|line| lines.line_told(line)).collect(),
                    in_chop: both().count() as u64,
                });
            }
            bar.inc(pieces.len() as u64);
        }
        bar.finish_and_clear();
        Ok(Each { unit, values })
    }

    pub fn preface(&self, view: &ViewArgs) -> Preface {
        let values = self.values.iter().map(|value| {
            json!({
                "first": value.bytes.start,
                "last": value.bytes.end - 1,
                "text": value.text,
                "forward": value.forward,
                "chop": value.chop.len(),
                "in_chop": value.in_chop,
                "lines": value.chop,
            })
        });
        let json = json!({ "each": {
            "unit": name(self.unit),
            "values": values.collect::<Vec<_>>(),
            "average": { "forward": self.forward(), "chop": self.chop() },
        }});
        Preface { text: self.text(view), json: json.as_object().cloned().unwrap_or_default() }
    }

    fn text(&self, view: &ViewArgs) -> String {
        let (count, unit) = (self.values.len(), name(self.unit));
        let most = if view.all { count } else { view.lines.min(count) };
        let mut text = format!("each {unit} by itself: lines that depend on it, and lead there\n");
        for value in &self.values[..most] {
            let Value { bytes, forward, chop, .. } = value;
            let last = bytes.end - 1;
            let at = match bytes.start == last {
                true => format!("{last}"),
                false => format!("{}-{last}", bytes.start),
            };
            let told = brief(&value.text);
            text += &format!("  {at:<9} {told:<24} {forward:>6} {:>6}\n", chop.len());
        }
        if most < count {
            text += &format!("  ({} more: --lines={count} or --all)\n", count - most);
        }
        let (forward, chop) = (self.forward(), self.chop());
        text + &format!("  {:<34} {forward:>6.1} {chop:>6.1}\n", format!("{count} on average"))
    }

    fn forward(&self) -> f64 {
        self.average(|value| value.forward)
    }

    fn chop(&self) -> f64 {
        self.average(|value| value.chop.len())
    }

    fn average(&self, of: impl Fn(&Value) -> usize) -> f64 {
        let sum: usize = self.values.iter().map(of).sum();
        sum as f64 / self.values.len().max(1) as f64
    }
}

fn name(unit: Unit) -> &'static str {
    match unit {
        Unit::Byte => "byte",
        Unit::Char => "char",
        Unit::Token => "token",
        Unit::Line => "line",
    }
}

/// What fits beside others.
fn brief(text: &str) -> String {
    const LONGEST: usize = 24;
    let text = text.escape_debug().to_string();
    match text.char_indices().nth(LONGEST) {
        Some(_) => text.chars().take(LONGEST - 1).chain(['…']).collect(),
        None => text,
    }
}

/// Bytes of a source, and what they are.
type Cutting = (Range<u64>, Vec<u8>);

/// The values that a source consists of.
fn pieces(stretches: &[Stretch], cut: Option<Cut>) -> (Unit, Vec<Cutting>) {
    let of = |unit: Unit| -> Vec<Cutting> {
        let cut = |stretch: &Stretch| {
            let Stretch { from, text } = stretch;
            let is_value = |span: &Range<usize>| {
                unit != Unit::Token || sort_of(&text[span.clone()]) != Sort::Space
            };
            let spans = unit.pieces(text).filter(is_value);
            let piece = |span: Range<usize>| {
                (from + span.start as u64..from + span.end as u64, text[span].to_vec())
            };
            spans.map(piece).collect::<Vec<_>>()
        };
        stretches.iter().flat_map(cut).collect()
    };
    if let Some(cut) = cut {
        return (cut.unit(), of(cut.unit()));
    }
    let is_text = stretches.iter().all(|stretch| std::str::from_utf8(&stretch.text).is_ok());
    let tokens = of(Unit::Token);
    match (is_text, tokens.len()) {
        (false, _) => (Unit::Byte, of(Unit::Byte)),
        // One token cannot be told from the whole.
        (true, 0 | 1) => (Unit::Char, of(Unit::Char)),
        (true, _) => (Unit::Token, tokens),
    }
}

/// The text of a source, as far as the program knew it.
struct Text {
    stretches: Vec<Stretch>,
    /// Where it was when the program began, if it was there then.
    at: Option<u64>,
    /// When the program began.
    begin: Option<u64>,
}

impl Text {
    fn of(subject: &Subject, source: &Source) -> Result<Text, Failure> {
        match source {
            Source::Input(streams, range) => {
                let (recording, traced) = (&subject.recording, &subject.traced);
                let inputs = streams.inputs(recording, traced)?;
                if inputs.iter().any(|input| input.stream != inputs[0].stream) {
                    let several = "which input is meant? Several were read, and --each needs one";
                    return Err(no_answer(several));
                }
                let pieces = contents(recording, subject.process, &traced.region, &inputs)?;
                let wanted = |at: &u64| range.as_ref().is_none_or(|range| range.contains(at));
                Ok(Text { stretches: joined(&pieces, wanted), at: None, begin: None })
            }
            Source::Argument(_) | Source::Environment(_) => {
                let words = Words::of(&subject.recording, subject.process, subject.event())?;
                let word = source.word(&words)?;
                let from = name_length(source);
                let text = word.text.get(from as usize..).unwrap_or_default().to_vec();
                let begin = subject.position(words.begin)?;
                Ok(Text { stretches: vec![Stretch { from, text }], at: Some(word.at), begin })
            }
            Source::Criterion(_) => Err(Failure::Misused(
                "--each takes the input, an argument or a variable apart: --from input, arg:K or \
                 env:NAME"
                    .to_owned(),
            )),
        }
    }

    /// Some bytes of it, as where a slice begins.
    fn part(
        &self,
        subject: &Subject,
        source: &Source,
        bytes: &Range<u64>,
    ) -> Result<Vec<Criterion>, Failure> {
        match (source, self.at) {
            (Source::Input(streams, _), _) => {
                Source::Input(streams.clone(), Some(bytes.start..=bytes.end - 1))
                    .find(subject, false)?
                    .here()
            }
            (_, at) => {
                let at = at.unwrap_or_default();
                Ok(vec![since(self.begin, at + bytes.start..at + bytes.end)])
            }
        }
    }
}

/// Which of the bytes of a word are no part of its value.
fn name_length(source: &Source) -> u64 {
    match source {
        Source::Environment(name) => name.len() as u64 + 1,
        _ => 0,
    }
}

/// What was read, in the order of the stream: a part may have been read again.
fn joined(pieces: &[Piece], wanted: impl Fn(&u64) -> bool) -> Vec<Stretch> {
    let mut all: BTreeMap<u64, u8> = BTreeMap::new();
    for Piece { offset, bytes, .. } in pieces {
        all.extend((*offset..).zip(bytes.iter().copied()).filter(|(at, _)| wanted(at)));
    }
    let mut stretches: Vec<Stretch> = Vec::new();
    for (at, byte) in all {
        match stretches.last_mut().filter(|last| last.from + last.text.len() as u64 == at) {
            Some(last) => last.text.push(byte),
            None => stretches.push(Stretch { from: at, text: vec![byte] }),
        }
    }
    stretches
}
