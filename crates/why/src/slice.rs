//! `why slice`: which statements made a value, or what was made of it.

mod changed;
mod extent;
mod file_names;
mod lasting;
pub mod lines;
mod loader;
mod near;
mod predicate;
mod races;
pub mod shown;
pub mod subject;
mod text;
mod times;
pub mod traced;
mod unfinished;
mod values;
mod ways;
mod whose;

use crate::doctor::room::available_memory;
use crate::lineage::Lineage;
use crate::questions::{Failure, no_answer};
use shown::{Answered, Shown, ViewArgs};
use std::path::Path;
use std::process::ExitCode;
use subject::Subject;
use why_record::store;
use why_slice::reasons::Why;
use why_slice::region::{Criterion, Options, Slice};

const SCHEMA: &str = "why.slice/1";

/// Say which statements made a value, or what was made of it
#[derive(clap::Args)]
pub struct Args {
    /// [REC] and [PROC/]PLACE[#N][:EXPR | :%REG | :ADDR+SIZE], as for `why print`; without a
    /// value, why the thread came there with what it was about to use
    #[arg(value_names = ["REC", "CRITERION"], num_args = 1..=2, required = true)]
    words: Vec<String>,

    /// What was made of the value, instead of what made it
    #[arg(long)]
    forward: bool,

    /// Keep the slice in the recording under this name
    #[arg(long, value_name = "NAME")]
    save: Option<String>,

    /// Show a slice that was kept; the criterion is its name
    #[arg(long)]
    load: bool,

    #[command(flatten)]
    view: ViewArgs,
}

pub fn main(args: &Args) -> ExitCode {
    let told =
        if args.load { load(args).map(|shown| shown.print(&args.view)) } else { slice(args) };
    match told {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

fn slice(args: &Args) -> Result<(), Failure> {
    args.save.as_deref().map_or(Ok(()), shown::can_be_name)?;
    let mut subject = Subject::of(&args.words, args.view.region.as_deref())?;
    let criterion = subject.criterion(&args.view)?;
    let view = match args.save {
        // What is kept has all lines: how many are shown may be another number each time.
        Some(_) => ViewArgs { lines: usize::MAX, depth: None, ..args.view.clone() },
        None => args.view.clone(),
    };
    let mut lineage = None;
    let shown = match args.forward {
        true => forward(args, &view, &mut subject, &criterion)?,
        false => {
            let lineage = lineage.insert(Lineage::of(&subject, &criterion, &view)?);
            backward(args, &view, &mut subject, lineage, &criterion)?
        }
    };
    if let Some(name) = &args.save {
        shown.save(&subject.recording, name)?;
    }
    // Nobody waits until what further slices need not find again is kept.
    shown.print(&args.view);
    Ok(())
}

/// The slice in the process that was asked about, and in those that it is a copy of.
fn backward(
    args: &Args,
    view: &ViewArgs,
    subject: &mut Subject,
    lineage: &mut Lineage,
    criterion: &Criterion,
) -> Result<Shown, Failure> {
    let slices = lineage.backward(subject, criterion, None, view.options())?;
    let mut shown = lineage.shown(subject, SCHEMA, &slices, view)?;
    shown.runs = args.kept(&slices[0]);
    if slices.iter().all(|slice| slice.count == 0) {
        let is_all = slices.iter().all(|slice| slice.pruned == 0 && slice.others_wrote == 0);
        let nothing = match view.region {
            Some(_) => "nothing in the region made it",
            None => "nothing that was executed made it",
        };
        let more = view.besides().or(is_all.then_some(nothing));
        shown.left_out.extend(more.map(str::to_owned));
    }
    Ok(shown)
}

fn forward(
    args: &Args,
    view: &ViewArgs,
    subject: &mut Subject,
    criterion: &Criterion,
) -> Result<Shown, Failure> {
    let options = view.options();
    let found = subject.timed(|region, watch| {
        region.forward(criterion, Options { watch: Some(watch), ..options })
    })?;
    let mut shown = subject.shown(&Answered { schema: SCHEMA, slice: &found }, view)?;
    shown.runs = args.kept(&found);
    if found.count == 0 {
        let when = "nothing used it from there on; a line's value is the one when the line is left";
        shown.left_out.push(when.to_owned());
    }
    Ok(shown)
}

fn load(args: &Args) -> Result<Shown, Failure> {
    let view = &args.view;
    let others = [
        ("--forward", args.forward),
        ("--save", args.save.is_some()),
        ("--thin", view.thin),
        ("--data", view.data),
        ("--prune", !view.prune.is_empty()),
        ("--region", view.region.is_some()),
        ("--memory", view.memory.is_some()),
    ];
    if let Some((option, _)) = others.iter().find(|(_, given)| *given) {
        return Err(Failure::Misused(format!(
            "a kept slice is what it was made: with {option}, leave out --load and give the \
             criterion"
        )));
    }
    let (recording, name) = match args.words.as_slice() {
        [recording, name] => (Some(Path::new(recording)), name),
        [name] => (None, name),
        _ => unreachable!("clap counts them"),
    };
    let found = crate::recordings::find(recording).map_err(no_answer);
    match found.and_then(|recording| Shown::load(&recording, name)) {
        Err(_) if recording.is_none() && store::exists(Path::new(name)) => {
            let named = crate::recordings::find(Some(Path::new(name))).map_err(no_answer)?;
            Err(Failure::Misused(format!(
                "{name} is a recording: give the name of a slice behind it; kept slices: {}",
                shown::kept(&named)
            )))
        }
        loaded => loaded,
    }
}

impl Args {
    /// What of a slice is kept besides its lines, if it is.
    fn kept(&self, slice: &Slice) -> Vec<(u64, u64)> {
        let runs = self.save.iter().flat_map(|_| slice.positions.runs());
        runs.map(|run| (run.start, run.end - run.start)).collect()
    }
}

impl ViewArgs {
    pub fn options(&self) -> Options<'static> {
        let reasons = if self.all { Why::Instances } else { Why::Code };
        let (thin, data, count_only) = (self.thin, self.data, !self.all);
        Options {
            thin,
            data,
            reasons,
            count_only,
            memory: Some(self.memory()),
            ..Options::default()
        }
    }

    /// What counts besides, with other options.
    pub fn besides(&self) -> Option<&'static str> {
        match (self.thin, self.data) {
            (true, _) => {
                Some("without --thin, what selected addresses and what decided counts, too")
            }
            (_, true) => Some("without --data, what decided counts, too"),
            _ => None,
        }
    }

    /// How much memory may be taken, in bytes.
    pub fn memory(&self) -> usize {
        self.memory.unwrap_or_else(|| available_memory() as usize / 2)
    }
}
