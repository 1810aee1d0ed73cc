//! `why chop --auto`: from a failing run to the chop of what is left of its input, in one go.

use super::each::Each;
use super::failing::Failing;
use super::recorder;
use super::sources::Source;
use super::streams::Streams;
use super::{Args, Found, shown_at};
use crate::progress;
use crate::questions::{Failure, no_answer};
use crate::reduce::answer::Answer;
use crate::reduce::{self, SearchArgs};
use crate::slice::shown::Preface;
use crate::slice::subject::Subject;
use crate::trial;
use serde_json::json;
use std::path::{Path, PathBuf};
use why_record::store;
use why_slice::region::{Options, Slice};

/// How the input is reduced.
#[derive(clap::Args)]
pub struct ReductionArgs {
    /// Where the reduced input goes [default: beside the input, or here if it is no file]
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    search: SearchArgs,

    #[command(flatten)]
    pub how: trial::How,
}

pub fn chop(args: &Args) -> Result<(), Failure> {
    let steps = progress::of_steps();
    let failing = Failing::of(args, &steps)?;
    let mut how = args.reduction.how.clone();
    how.command.clone_from(&failing.command);
    let trial =
        trial::Args::of_command(how.clone(), failing.given.clone(), failing.directory.clone());
    let (spec, _) = trial.spec(&failing.inputs)?;
    steps.finish_and_clear();
    let reduced = reduce::reduce(&reduce::Args::of_command(
        failing.inputs.clone(),
        failing.output.clone(),
        args.reduction.search.clone(),
        trial,
        failing.recorded.clone(),
    ))?;
    trial::leave_when_interrupted(format!("interrupted; what is left is in {}", reduced.path))?;

    steps.reset();
    steps.set_message("recording what is left");
    let failure = recorder::Wanted { failure: &reduced.failure, condition: how.condition()? };
    let (recorded, directory) = recorder::record_failing(&spec, &reduced.files, &failure)?;

    steps.set_message("slicing");
    let to = args.to.as_deref().unwrap_or("crash");
    let words = [recorded.path.display().to_string(), to.to_owned()];
    let mut subject = Subject::of(&words, args.view.region.as_deref())?;
    let source = match &failing.source {
        Source::Input(..) => {
            let names = spec.names.iter().map(|name| directory.path().join(name));
            Source::Input(Streams::Below(names.collect()), None)
        }
        other => other.clone(),
    };
    let mut found = Found::between(&mut subject, &source, args)?;
    let sizes = Sizes::of(&mut subject, &mut found, args)?;
    let nothing = found.nothing(&failing.told, to, &args.view);
    let each = match nothing {
        None => Each::wanted(args, &mut subject, &source, &found)?,
        // Then all that leads to the failure is what there is to tell.
        Some(_) => {
            let Found { lineage, criterion, chop, .. } = &mut found;
            *chop = lineage.backward(&mut subject, criterion, None, args.view.options())?;
            None
        }
    };
    steps.finish_and_clear();
    let mut shown = found.shown(&mut subject, &args.view)?;
    if let Some(why) = nothing {
        let why = match reduced.after.bytes {
            0 => format!("it fails with nothing left of {}, too", failing.told),
            _ => why,
        };
        shown.left_out.insert(0, format!("{why}: shown is all that leads to the failure"));
    }
    shown.preface = preface(&failing, &reduced, &recorded.path, &sizes);
    if let Some(each) = each {
        shown.preface.extend(each.preface(&args.view));
    }
    shown.print(&args.view);
    Ok(())
}

/// How many lines of source there are of each.
struct Sizes {
    executed: usize,
    backward: usize,
    forward: usize,
    chop: usize,
}

impl Sizes {
    fn of(subject: &mut Subject, found: &mut Found, args: &Args) -> Result<Sizes, Failure> {
        let Found { lineage, criterion, forward, chop, .. } = found;
        let options = Options { count_only: true, ..args.view.options() };
        let backward = lineage.backward(subject, criterion, None, options)?;
        let mut executed = Vec::new();
        for region in lineage.regions(subject) {
            executed.extend(region.executed().map_err(no_answer)?);
        }
        // Copies of a process have the same code as that.
        let mut sources = subject.sources();
        let mut lines = |slices: &[Slice]| {
            let reasons = slices.iter().flat_map(|slice| &slice.reasons);
            sources.lines(reasons.map(shown_at)).len()
        };
        let (backward, forward, chop) = (lines(&backward), lines(forward), lines(chop));
        Ok(Sizes { executed: sources.lines(executed).len(), backward, forward, chop })
    }
}

fn preface(failing: &Failing, reduced: &Answer, recording: &Path, sizes: &Sizes) -> Preface {
    let Sizes { executed, backward, forward, chop } = sizes;
    let mut text = reduced.summary();
    if let Some(left) = left(reduced) {
        text += &format!("left      {left}\n");
    }
    text += &format!("recorded  {}\n", called(recording));
    text += &format!(
        "lines     {executed} executed, {backward} lead to the failure, {forward} depend on {}, \
         {chop} both\n",
        failing.told
    );
    let json = json!({
        "reduced": {
            "source": failing.told,
            "output": reduced.path,
            "failure": reduced.failure,
            "before": reduced.before.json(),
            "after": reduced.after.json(),
            "minimal": reduced.minimal,
            "tests": reduced.counts.tests,
        },
        "sizes": {
            "executed": executed, "backward": backward, "forward": forward, "chop": chop,
        },
    });
    Preface { text, json: json.as_object().cloned().unwrap_or_default() }
}

/// What is left of the input, if that is a short text.
fn left(reduced: &Answer) -> Option<String> {
    const LONGEST: usize = 70;
    let [(_, content)] = reduced.files.0.as_slice() else {
        return None;
    };
    let text = std::str::from_utf8(content).ok()?.escape_debug().to_string();
    (!text.is_empty() && text.chars().count() <= LONGEST).then_some(text)
}

/// What a recording is called on the command line.
fn called(recording: &Path) -> String {
    let parent = recording.parent().map(Path::to_owned);
    let root = store::root().ok().and_then(|root| std::path::absolute(root).ok());
    let is_own = root == parent;
    let name = recording.file_name().filter(|_| is_own);
    name.map_or(recording.display().to_string(), |name| name.to_string_lossy().into_owned())
}
