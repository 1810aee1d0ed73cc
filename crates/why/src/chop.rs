//! `why chop`: what lies between a source, such as the input, and a value.

mod auto;
mod contents;
mod each;
mod failing;
mod recorder;
pub mod sources;
mod streams;
mod words;

use crate::lineage::{Depending, Lineage};
use crate::questions::{Failure, no_answer};
use crate::reduce::Cut;
use crate::slice::shown::{Shown, ViewArgs};
use crate::slice::subject::Subject;
use each::Each;
use sources::Source;
use std::process::ExitCode;
use streams::Streams;
use why_slice::partly::Partly;
use why_slice::positions::Positions;
use why_slice::reasons::{Reason, Why};
use why_slice::region::{Criterion, Only, Options, Slice};

/// Say what lies between a source, such as the input, and a value
#[derive(clap::Args)]
pub struct Args {
    /// The recording [default: the newest finished one]; with --auto and a command, its input
    #[arg(value_name = "REC")]
    words: Vec<String>,

    /// input, input:FIRST-LAST (bytes of the input, from 0 on), arg:K, env:NAME, or a criterion
    #[arg(long, value_name = "SOURCE", required_unless_present = "auto")]
    from: Option<String>,

    /// What it leads to: [PROC/]PLACE[#N][:VALUE], as for `why slice`
    #[arg(long, value_name = "CRITERION", required_unless_present = "auto")]
    to: Option<String>,

    /// Also what made the value and does not depend on any input
    #[arg(long)]
    independent: bool,

    /// Reduce the input of a failing run first, record that again, and chop from what is left of
    /// the input to the failure: of a recording, or of `[INPUT…] -- COMMAND`
    #[arg(long)]
    auto: bool,

    /// Also of each value of the source by itself: of each byte, character, token or line
    /// [default: token, or what can be told apart]
    #[arg(long, value_name = "UNIT", num_args = 0..=1, require_equals = true)]
    #[arg(conflicts_with = "independent")]
    each: Option<Option<Cut>>,

    #[command(flatten)]
    view: ViewArgs,

    #[command(flatten, next_help_heading = crate::WITH_AUTO)]
    reduction: auto::ReductionArgs,
}

pub fn main(args: &Args) -> ExitCode {
    let told = if args.auto { auto::chop(args) } else { chop(args) };
    match told {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

fn chop(args: &Args) -> Result<(), Failure> {
    let (from, to) = args.from.as_deref().zip(args.to.as_deref()).expect("clap sees to it");
    let source: Source = from.parse().map_err(Failure::Misused)?;
    if args.words.len() > 1 {
        return Err(Failure::Misused("a chop is of one recording".to_owned()));
    }
    let words: Vec<String> =
        args.words.iter().map(String::as_str).chain([to]).map(str::to_owned).collect();
    let mut subject = Subject::of(&words, args.view.region.as_deref())?;
    let mut found = Found::between(&mut subject, &source, args)?;
    if let Some(why) = found.nothing(from, to, &args.view) {
        return Err(no_answer(why));
    }
    let each = Each::wanted(args, &mut subject, &source, &found)?;
    let mut shown = found.shown(&mut subject, &args.view)?;
    if let Some(each) = each {
        shown.preface = each.preface(&args.view);
    }
    // Nobody waits until what further slices need not find again is kept.
    shown.print(&args.view);
    Ok(())
}

/// Where an instruction is shown: where it is, or at the call that stands for it.
fn shown_at(reason: &Reason) -> u64 {
    reason.site.unwrap_or(reason.address)
}

/// What depends on a source, and of some of that only what of it does.
fn depending<'a>(slice: &'a Slice, partly: Option<&'a Partly>) -> Only<'a> {
    Only { told: &slice.positions, goes_on: false, partly }
}

/// A chop, and what it was made of: in the process that was asked about, and then in those that it
/// is a copy of.
struct Found {
    lineage: Lineage,
    criterion: Criterion,
    forward: Vec<Slice>,
    chop: Vec<Slice>,
    /// Some of the source, or of what was made of it, is what was asked about.
    is_direct: bool,
    /// Why there is no such source, if there is none.
    nowhere: Option<String>,
}

impl Found {
    fn between(subject: &mut Subject, source: &Source, args: &Args) -> Result<Found, Failure> {
        let criterion = subject.criterion(&args.view)?;
        let mut lineage = Lineage::of(subject, &criterion, &args.view)?;
        let options = args.view.options();
        // The traces are gone through more than once.
        let each = args.view.memory() / 2 / lineage.regions(subject).count();
        lineage.regions(subject).for_each(|region| region.keep_decoded(each));
        let Depending { slices: mut forward, nowhere } =
            lineage.forward(subject, source, &criterion, None, options)?;
        if nowhere.is_some() {
            let chop = vec![Slice::default(); forward.len()];
            return Ok(Found { lineage, criterion, forward, chop, is_direct: false, nowhere });
        }
        let bare = Options { reasons: Why::Nothing, count_only: true, ..options };
        let only: Vec<Only> = forward.iter().map(|slice| depending(slice, None)).collect();
        let whole = lineage.backward(subject, &criterion, Some(&only), bare)?;
        // Of some of these only what leads there may be what does not depend on the source.
        let noting = lineage.forward(subject, source, &criterion, Some(&whole), bare)?.slices;
        let both = forward.iter().zip(&noting);
        let only: Vec<Only> =
            both.map(|(slice, noting)| depending(slice, Some(&noting.partly))).collect();
        let told = if args.independent { bare } else { options };
        let mut chop = lineage.backward(subject, &criterion, Some(&only), told)?;
        if args.independent {
            let inputs = match source {
                Source::Input(streams @ Streams::Below(_), _) => {
                    Source::Input(streams.clone(), None)
                }
                _ => Source::Input(Streams::Named, None),
            };
            // There may be no other input than the source.
            let of_input = lineage.forward(subject, &inputs, &criterion, None, bare)?.slices;
            let whole = lineage.backward(subject, &criterion, None, bare)?;
            let mut all: Vec<Positions> = Vec::new();
            for (number, whole) in whole.into_iter().enumerate() {
                let depending = [&forward[number], &of_input[number]];
                let independent = depending
                    .iter()
                    .fold(whole.positions, |rest, slice| rest.without(&slice.positions));
                all.push(independent.and(&chop[number].positions));
            }
            // What leads from one of them to another may be told of by neither.
            let only = all.iter().map(|told| Only { told, goes_on: true, partly: None });
            let only: Vec<Only> = only.collect();
            chop = lineage.backward(subject, &criterion, Some(&only), options)?;
        }
        for (chop, forward) in chop.iter_mut().zip(&forward) {
            chop.passed_over.extend(&forward.passed_over);
        }
        let depending = std::mem::take(&mut forward[0].inherited);
        let is_direct = depending.iter().any(|there| criterion.has(&there.area));
        Ok(Found { lineage, criterion, forward, chop, is_direct, nowhere })
    }

    /// Why there is no chop, if there is none.
    fn nothing(&self, from: &str, to: &str, view: &ViewArgs) -> Option<String> {
        if self.is_direct || self.chop.iter().any(|chop| chop.count > 0) {
            return None;
        }
        let besides = view.besides().map_or(String::new(), |more| format!("; {more}"));
        let nothing = || format!("nothing leads from {from} to {to}{besides}");
        Some(self.nowhere.clone().unwrap_or_else(nothing))
    }

    fn shown(&mut self, subject: &mut Subject, view: &ViewArgs) -> Result<Shown, Failure> {
        let mut shown = self.lineage.shown(subject, "why.chop/1", &self.chop, view)?;
        if self.is_direct && self.chop.iter().all(|chop| chop.count == 0) {
            shown.left_out.push("nothing lies between: it is used there as it was".to_owned());
        }
        Ok(shown)
    }
}
