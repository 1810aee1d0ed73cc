//! `why chop`: what lies between a source, such as the input, and a value.

mod sources;

use crate::questions::{Failure, no_answer};
use crate::slice::shown::{Answered, Shown, ViewArgs};
use crate::slice::subject::Subject;
use sources::Source;
use std::process::ExitCode;
use why_slice::region::Options;

/// Say what lies between a source, such as the input, and a value
#[derive(clap::Args)]
pub struct Args {
    /// The recording [default: the newest finished one]
    #[arg(value_name = "REC")]
    recording: Option<String>,

    /// input, input:FIRST-LAST (bytes of the input, from 0 on), arg:K, env:NAME, or a criterion
    #[arg(long, value_name = "SOURCE")]
    from: String,

    /// What it leads to: [PROC/]PLACE[#N][:VALUE], as for `why slice`
    #[arg(long, value_name = "CRITERION")]
    to: String,

    /// Also what made the value and does not depend on any input
    #[arg(long)]
    independent: bool,

    #[command(flatten)]
    view: ViewArgs,
}

pub fn main(args: &Args) -> ExitCode {
    match chop(args).map(|shown| shown.print(&args.view)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

fn chop(args: &Args) -> Result<Shown, Failure> {
    let source: Source = args.from.parse().map_err(Failure::Misused)?;
    let words: Vec<String> = args.recording.iter().chain([&args.to]).cloned().collect();
    let mut subject = Subject::of(&words, args.view.region.as_deref())?;
    let criterion = subject.criterion(&args.view)?;
    let sources = source.find(&subject)?;
    let options = args.view.options();
    // The trace is gone through more than once.
    subject.traced.region.keep_decoded(args.view.memory() / 2);
    let forward = subject.timed(|region| region.forward_of(&sources, options))?;
    let mut only = forward.positions;
    if args.independent {
        let inputs = Source::Input(None).find(&subject)?;
        let of_input = subject.timed(|region| region.forward_of(&inputs, options))?;
        let whole = subject.timed(|region| region.slice(&criterion, options))?;
        only = only.and(&whole.positions.without(&of_input.positions));
    }
    let options = Options { only: Some(&only), ..options };
    let mut chop = subject.timed(|region| region.slice(&criterion, options))?;
    if chop.count == 0 {
        return Err(no_answer(format!("nothing leads from {} to {}", args.from, args.to)));
    }
    chop.passed_over.extend(&forward.passed_over);
    subject.shown(&Answered { schema: "why.chop/1", slice: &chop }, &args.view)
}
