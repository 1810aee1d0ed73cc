//! `why reduce`: the smallest input that still fails.

mod algorithm;
pub mod answer;
mod not_smaller;
pub mod output;
mod plot;
mod reader;
mod several;
mod verdicts;
mod watch;

use crate::say::{self, say};
use crate::trial::{self, Failure, no_answer};
use algorithm::Algorithm;
use answer::Answer;
use output::Output;
use plot::Plot;
use reader::Syntax;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use verdicts::Verdicts;
use watch::Watch;
use why_reduce::tester::{Judgement, Limits, Tester};
use why_reduce::units::Unit;
use why_reduce::{Stopped, Verdict};
use why_trial::{Files, Pool, Shape};
use xxhash_rust::xxh3::xxh3_128;

/// Find the smallest input that still fails
#[derive(clap::Args)]
pub struct Args {
    /// The input: a file, several, or a directory
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,

    /// Where the result goes [default: INPUT with .reduced before its extension]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    /// Put the result in the place of INPUT
    #[arg(long, conflicts_with = "output")]
    in_place: bool,

    /// How to search
    #[arg(long, value_enum, default_value_t = Algorithm::Auto)]
    algorithm: Algorithm,

    /// What ddmin, cdd and probdd cut the input into
    #[arg(long, value_enum, default_value_t = Cut::Line)]
    unit: Cut,

    #[command(flatten)]
    search: SearchArgs,

    /// Print the answer as JSON
    #[arg(long)]
    json: bool,

    /// Write one line for each test
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Draw the size over the tests
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    #[command(flatten)]
    trial: trial::Args,

    /// How it ended when it was recorded, if that is what is to happen again.
    #[arg(skip)]
    recorded: Option<String>,

    /// Another command has it reduced, which has no `--in-place`.
    #[arg(skip)]
    is_of_other: bool,
}

/// What is known of the input, and how long to search.
#[derive(Clone, clap::Args)]
pub struct SearchArgs {
    /// The language of the input [default: as its extension says]
    #[arg(long, value_name = "NAME")]
    lang: Option<String>,

    /// The grammar of the input, in YACC form
    #[arg(long, value_name = "FILE", conflicts_with = "lang")]
    grammar: Option<PathBuf>,

    /// What fails has to fail so many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    confirm: u32,

    /// Go on where an interrupted run with the same options was
    #[arg(long)]
    resume: bool,

    /// Make at most so many tests
    #[arg(long, value_name = "N")]
    max_tests: Option<u64>,

    /// Take at most this long
    #[arg(long, value_name = "SECONDS", value_parser = trial::seconds)]
    max_time: Option<Duration>,
}

impl Args {
    /// What another command has reduced.
    pub fn of_command(
        inputs: Vec<PathBuf>,
        output: Option<PathBuf>,
        search: SearchArgs,
        trial: trial::Args,
        recorded: Option<String>,
    ) -> Args {
        let (in_place, json) = (false, false);
        let (algorithm, unit, trace, plot) = (Algorithm::Auto, Cut::Line, None, None);
        Args {
            inputs,
            output,
            in_place,
            algorithm,
            unit,
            search,
            json,
            trace,
            plot,
            trial,
            recorded,
            is_of_other: true,
        }
    }

    /// What is to be done if the result would be where the input is.
    fn if_output_is_input(&self) -> &'static str {
        match self.is_of_other {
            true => "give another name with -o, for what is left of it",
            false => "--in-place replaces it",
        }
    }

    /// Whether the original ends as it is to do.
    fn is_as_recorded(&self, reason: &str) -> bool {
        let ended = self.recorded.as_ref().filter(|_| self.trial.needs_original());
        ended.is_none_or(|ended| {
            let rest = reason.strip_prefix(ended.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ':']))
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Cut {
    Byte,
    Char,
    Token,
    Line,
}

impl Cut {
    pub fn unit(self) -> Unit {
        match self {
            Cut::Byte => Unit::Byte,
            Cut::Char => Unit::Char,
            Cut::Token => Unit::Token,
            Cut::Line => Unit::Line,
        }
    }
}

pub fn main(args: &Args) -> ExitCode {
    trial::exit(reduce(args).map(|answer| match args.json {
        true => say::data(answer.json()),
        false => say!("{}", answer.text()),
    }))
}

/// A reduction that is under way.
struct Reduction {
    files: Files,
    shape: Shape,
    output: Output,
    tester: Tester<Pool, Watch>,
    plot: Option<Plot>,
    start: Instant,
    /// How the original fails.
    failure: String,
}

pub fn reduce(args: &Args) -> Result<Answer, Failure> {
    let syntax = Syntax::new(args.search.lang.as_deref(), args.search.grammar.as_deref())?;
    let mut reduction = Reduction::start(args)?;
    if let Shape::One(_) = reduction.shape {
        let checked = syntax.check(&reduction.files.0[0].1);
        checked.inspect_err(|_| reduction.tester.watcher.discard())?;
    }
    let stopped = reduction.run(args, &syntax).err();
    reduction.finish(args, stopped)
}

impl Reduction {
    /// Makes sure that the original fails.
    fn start(args: &Args) -> Result<Reduction, Failure> {
        let (start, search) = (Instant::now(), &args.search);
        let files = Files::read(&args.inputs).map_err(no_answer)?;
        let shape = Shape::of(&files);
        let original = shape.text(&files);
        let (path, several) = (args.output.clone(), shape == Shape::Several);
        let output = Output::new(&args.inputs, path, several, args.if_output_is_input())?;
        let pool = args.trial.pool(&args.inputs, shape.clone())?;
        let identity = format!("{} {:?}", args.trial.identity(), search.confirm);
        let (verdicts, known) =
            Verdicts::open(output.verdicts(), &identity, &original, search.resume)?;
        let plot = args.plot.as_deref().map(Plot::create).transpose()?;
        let trace = args.trace.as_deref();
        let watch = Watch::new(shape.clone(), output.clone(), verdicts, trace, original.len())?;
        let until = search.max_time.map(|time| start + time);
        let limits = Limits { tests: search.max_tests, until, confirm: search.confirm };
        let mut tester = Tester::new(pool, watch, limits);
        let again = args.trial.needs_original().then(|| xxh3_128(&original));
        for (hash, judgement) in known.into_iter().filter(|(hash, _)| Some(*hash) != again) {
            tester.remember(hash, judgement);
        }
        match tester.check(&original) {
            Ok(Judgement { verdict: Verdict::Fails, reason }) if args.is_as_recorded(&reason) => {
                let failure = args.trial.failure(&reason);
                Ok(Reduction { files, shape, output, tester, plot, start, failure })
            }
            Ok(Judgement { reason, .. }) => {
                tester.watcher.discard();
                Err(no_answer(match &args.recorded {
                    Some(ended) => format!(
                        "the failure does not come again: {ended} was recorded, and run again it \
                         is {reason}"
                    ),
                    None => format!("the original does not fail: {reason}"),
                }))
            }
            Err(stopped) => {
                tester.watcher.discard();
                Err(no_answer(stopped))
            }
        }
    }

    fn run(&mut self, args: &Args, syntax: &Syntax) -> Result<(), Stopped> {
        let unit = args.unit.unit();
        match &self.shape {
            Shape::One(name) => {
                let reader = syntax.reader(name);
                let text = &self.files.0[0].1;
                args.algorithm.run(text, unit, &reader, &mut self.tester).map(drop)
            }
            Shape::Several => {
                several::reduce(&self.files, args.algorithm, unit, syntax, &mut self.tester)
            }
        }
    }

    /// Says what came of it, whatever ended it.
    fn finish(mut self, args: &Args, stopped: Option<Stopped>) -> Result<Answer, Failure> {
        self.tester.watcher.end();
        let path = self.output.path().to_owned();
        let written = self.output.write(&self.shape.files(self.tester.best()));
        let best = match &written {
            Ok(()) => format!("the best result so far is in {}, --resume goes on", path.display()),
            // What was accepted before is whole.
            Err(_) if path.exists() => format!("an earlier result is in {}", path.display()),
            Err(_) => "there is no result yet".to_owned(),
        };
        match stopped {
            Some(Stopped::Broken(message)) => {
                return Err(no_answer(format!("{message}; {best}")));
            }
            Some(Stopped::Interrupted) => {
                return Err(no_answer(format!("interrupted; {best}")));
            }
            Some(Stopped::Budget) => {}
            None => self.tester.watcher.discard(),
        }
        written.map_err(no_answer)?;
        let path = if args.in_place {
            // Verdicts are of a run that began with another input.
            self.tester.watcher.discard();
            self.output.replace_input()?
        } else {
            path
        };
        if let Some(plot) = &mut self.plot {
            plot.draw(self.tester.watcher.sizes())?;
        }
        let minimal = stopped.is_none() && args.algorithm.proves_minimal();
        let more = match (stopped, args.in_place) {
            (None, _) => None,
            (Some(_), false) => Some("--resume goes on"),
            (Some(_), true) => Some("the same command goes on"),
        };
        Ok(Answer::new(&self, &path, more, minimal))
    }
}
