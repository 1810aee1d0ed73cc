//! The options that say what a test is, for all commands that make tests.

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use why_trial::{Backend, Condition, Criterion, Pool, Settings, Shape, Spec, Target};

#[derive(clap::Args)]
pub struct Args {
    /// A script that exits with 0 if its argument, which is also its standard input, still
    /// fails; it runs in a fresh directory that holds nothing but the candidate
    #[arg(long, value_name = "SCRIPT", conflicts_with = "command")]
    test: Option<PathBuf>,

    /// What a failure is: exit=N, signal=NAME, stdout~/RE/, stderr~/RE/, file:PATH~/RE/,
    /// time>N, joined by and, or, not [default: to fail as the original does]
    #[arg(long, value_name = "TERMS", conflicts_with = "test")]
    fails_if: Option<String>,

    /// So many tests at once; the result is the same
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: u16,

    /// A test that takes longer does not fail [default: ten times what the original takes]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,

    /// A test gets no more memory than this
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..1 << 40))]
    memory: Option<u64>,

    /// Where tests are made: slurm makes -j tests at once on a cluster, in one allocation
    #[arg(long, value_enum, value_name = "WHERE", default_value_t = Where::Local)]
    backend: Where,

    /// A command that each test is given to, such as 'ssh host'
    #[arg(long, value_name = "COMMAND")]
    runner: Option<String>,

    /// The command that fails; @@ stands for the candidate, else it is standard input
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Where {
    Local,
    Slurm,
}

pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "expected a number of seconds above 0".to_owned())
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure {
    Misused(String),
    NoAnswer(String),
}

pub fn no_answer(error: impl ToString) -> Failure {
    Failure::NoAnswer(error.to_string())
}

pub fn exit(outcome: Result<(), Failure>) -> ExitCode {
    let (message, status) = match outcome {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::NoAnswer(message)) => (message, ExitCode::FAILURE),
        Err(Failure::Misused(message)) => (message, ExitCode::from(crate::MISUSED)),
    };
    eprintln!("why: {message}");
    status
}

impl Args {
    /// Those who make the tests of candidates, which are called as these inputs are.
    pub fn pool(&self, inputs: &[PathBuf], shape: Shape) -> Result<Pool, Failure> {
        let (target, mut criterion) = match (&self.test, self.command.as_slice()) {
            (Some(script), _) => {
                let words = self.wrapped(&[script.clone().into()], inputs)?;
                (Target::Script(words), Criterion::Script)
            }
            (None, []) => {
                let message = "what fails? give a command behind `--`, or --test SCRIPT";
                return Err(Failure::Misused(message.into()));
            }
            (None, command) => {
                (Target::Command(self.wrapped(command, inputs)?), Criterion::Same(None))
            }
        };
        let condition = self.fails_if.as_deref().map(Condition::parse).transpose();
        let condition = condition.map_err(|error| Failure::Misused(error.to_string()))?;
        if condition.is_some() {
            criterion = Criterion::Condition;
        }
        catch_interrupts().map_err(no_answer)?;
        let memory = self.memory.map(|megabytes| megabytes << 20);
        let names =
            inputs.iter().filter_map(|input| input.file_name().map(PathBuf::from)).collect();
        let spec = Spec { target, names, condition, memory, family: family() };
        let (backend, why) = match self.backend {
            Where::Local => (Backend::Local, "/proc/self/exe".into()),
            // Other machines know this file by its path, or not at all.
            Where::Slurm => (Backend::Slurm, std::env::current_exe().map_err(no_answer)?),
        };
        let settings = Settings {
            worker: vec![why.into_os_string(), "trial-worker".into()],
            backend,
            jobs: self.jobs.into(),
            timeout: self.timeout,
            interrupted,
            tell: |what| eprintln!("why: {what}"),
        };
        Pool::new(spec, criterion, shape, settings).map_err(no_answer)
    }

    /// What is told of the original's failure.
    pub fn failure(&self, reason: &str) -> String {
        match &self.test {
            Some(script) => format!("{} says so: {reason}", script.display()),
            None => reason.to_owned(),
        }
    }

    /// Whether candidates are compared with the original, which has to be run for that.
    pub fn needs_original(&self) -> bool {
        self.test.is_none() && self.fails_if.is_none()
    }

    /// What says which test this is: two runs in which it is the same can share verdicts.
    pub fn identity(&self) -> String {
        let Args { test, fails_if, timeout, memory, runner, command, jobs: _, backend: _ } = self;
        let directory = std::env::current_dir();
        format!("{test:?} {fails_if:?} {timeout:?} {memory:?} {runner:?} {command:?} {directory:?}")
    }

    /// Tests run elsewhere: paths become absolute, but for those of inputs, where candidates are.
    fn wrapped(&self, command: &[OsString], inputs: &[PathBuf]) -> Result<Vec<OsString>, Failure> {
        let here = std::env::current_dir().map_err(no_answer)?;
        // To many programs a dot or two is no path.
        let is_no_path = |word: &OsString| ["", "@@", ".", ".."].iter().any(|other| word == other);
        let found = |word: &OsString| -> OsString {
            let path = here.join(word);
            match path.exists() && !is_no_path(word) {
                true => name_in(inputs, &path).unwrap_or(path).into(),
                false => word.clone(),
            }
        };
        let runner = self.runner.iter().flat_map(|runner| runner.split_whitespace());
        let mut words: Vec<OsString> = Vec::new();
        for (index, word) in runner.map(OsString::from).enumerate() {
            // A command without a slash is looked for elsewhere.
            let by_path = index > 0 || word.as_encoded_bytes().contains(&b'/');
            words.push(if by_path { found(&word) } else { word });
        }
        let (program, arguments) = command.split_first().expect("there is a command");
        let path = here.join(program);
        let by_path = self.test.is_some() || program.as_encoded_bytes().contains(&b'/');
        if by_path && self.runner.is_none() && !path.exists() {
            return Err(no_answer(format!("there is no {}", Path::new(program).display())));
        }
        words.push(if by_path { path.into() } else { program.clone() });
        words.extend(arguments.iter().map(found));
        Ok(words)
    }
}

/// What a file that is an input, or in one, is called beside a test.
fn name_in(inputs: &[PathBuf], path: &Path) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    inputs.iter().find_map(|input| {
        let rest = path.strip_prefix(input.canonicalize().ok()?).ok()?.to_owned();
        let name = Path::new(input.file_name()?);
        Some(if rest == Path::new("") { name.to_owned() } else { name.join(rest) })
    })
}

/// A name that no other run has, on this machine or another one.
fn family() -> String {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{}", time.as_nanos(), std::process::id())
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn interrupt(_: i32) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// What has been found is kept when someone loses patience.
fn catch_interrupts() -> nix::Result<()> {
    let action = SigAction::new(SigHandler::Handler(interrupt), SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handler only stores to an atomic.
        unsafe { sigaction(signal, &action) }?;
    }
    Ok(())
}

/// `why trial-worker`: one of those who make tests; started by `why` itself.
pub fn worker() -> ExitCode {
    match why_trial::serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
