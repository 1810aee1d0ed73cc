//! The options that say what a test is, for all commands that make tests.

pub use crate::questions::{Failure, no_answer};
use crate::say::besides;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use why_trial::{Backend, Condition, Criterion, Given, Pool, Settings, Shape, Spec, Target};

#[derive(clap::Args)]
pub struct Args {
    /// A script that exits with 0 if its argument, which is also its standard input, still
    /// fails; it runs in a fresh directory that holds nothing but the candidate
    #[arg(long, value_name = "SCRIPT", conflicts_with_all = ["command", "fails_if"])]
    test: Option<PathBuf>,

    /// A test gets no more memory than this
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..1 << 40))]
    memory: Option<u64>,

    #[command(flatten)]
    how: How,

    /// Only other commands that make tests have candidates that are no files.
    #[arg(skip)]
    given: Given,

    /// Where the command's paths lead from, if not from here.
    #[arg(skip)]
    directory: Option<PathBuf>,
}

/// How a command is tested.
#[derive(Clone, clap::Args)]
pub struct How {
    /// What a failure is: exit=N, signal=NAME, stdout~/RE/, stderr~/RE/, file:PATH~/RE/,
    /// time>N, joined by and, or, not [default: to fail as the original does]
    #[arg(long, value_name = "TERMS")]
    fails_if: Option<String>,

    /// So many tests at once; the result is the same
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: u16,

    /// A test that takes longer does not fail [default: ten times what the original takes]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,

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

pub fn exit(outcome: Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

impl How {
    /// What was said of what a failure is.
    pub fn condition(&self) -> Result<Option<Condition>, Failure> {
        let condition = self.fails_if.as_deref().map(Condition::parse).transpose();
        condition.map_err(|error| Failure::Misused(error.to_string()))
    }
}

impl Args {
    /// Another command's tests.
    pub fn of_command(how: How, given: Given, directory: Option<PathBuf>) -> Args {
        Args { test: None, memory: None, how, given, directory }
    }

    fn directory(&self) -> std::io::Result<PathBuf> {
        self.directory.clone().map_or_else(std::env::current_dir, Ok)
    }

    /// What a test of candidates is, which are called as these inputs are.
    pub fn spec(&self, inputs: &[PathBuf]) -> Result<(Spec, Criterion), Failure> {
        let (target, mut criterion) = match (&self.test, self.how.command.as_slice()) {
            (Some(script), _) => {
                let words = self.wrapped(&[script.clone().into()], inputs)?;
                (Target::Script(words), Criterion::Script)
            }
            (None, []) => {
                let message = "what fails? give a command behind `--`, or --test SCRIPT";
                return Err(Failure::Misused(message.into()));
            }
            (None, command) => {
                let given = match &self.given {
                    Given::Word(number) => Given::Word(number + self.runner().count()),
                    other => other.clone(),
                };
                (Target::Command(self.wrapped(command, inputs)?, given), Criterion::Same(None))
            }
        };
        let condition = self.how.condition()?;
        if condition.is_some() {
            criterion = Criterion::Condition;
        }
        let memory = self.memory.map(|megabytes| megabytes << 20);
        let names =
            inputs.iter().filter_map(|input| input.file_name().map(PathBuf::from)).collect();
        Ok((Spec { target, names, condition, memory, family: family() }, criterion))
    }

    /// Those who make the tests.
    pub fn pool(&self, inputs: &[PathBuf], shape: Shape) -> Result<Pool, Failure> {
        let (spec, criterion) = self.spec(inputs)?;
        catch_interrupts().map_err(no_answer)?;
        let (backend, why) = match self.how.backend {
            Where::Local => (Backend::Local, "/proc/self/exe".into()),
            // Other machines know this file by its path, or not at all.
            Where::Slurm => (Backend::Slurm, std::env::current_exe().map_err(no_answer)?),
        };
        let settings = Settings {
            worker: vec![why.into_os_string(), "trial-worker".into()],
            backend,
            jobs: self.how.jobs.into(),
            timeout: self.how.timeout,
            interrupted,
            tell: |what| besides!("{what}"),
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
        self.test.is_none() && self.how.fails_if.is_none()
    }

    /// What says which test this is: two runs in which it is the same can share verdicts.
    pub fn identity(&self) -> String {
        let Args { test, memory, how, given, directory: _ } = self;
        let How { fails_if, timeout, runner, command, jobs: _, backend: _ } = how;
        let directory = self.directory();
        let how = format!("{fails_if:?} {timeout:?} {memory:?} {runner:?} {command:?}");
        format!("{test:?} {how} {given:?} {directory:?}")
    }

    fn runner(&self) -> impl Iterator<Item = &str> {
        self.how.runner.iter().flat_map(|runner| runner.split_whitespace())
    }

    /// Tests run elsewhere: paths become absolute, but for those of inputs, where candidates are.
    fn wrapped(&self, command: &[OsString], inputs: &[PathBuf]) -> Result<Vec<OsString>, Failure> {
        let here = self.directory().map_err(no_answer)?;
        // To many programs a dot or two is no path.
        let is_no_path = |word: &OsString| ["", "@@", ".", ".."].iter().any(|other| word == other);
        let found = |word: &OsString| -> OsString {
            let path = here.join(word);
            match path.exists() && !is_no_path(word) {
                true => name_in(inputs, &path).unwrap_or(path).into(),
                false => word.clone(),
            }
        };
        let mut words: Vec<OsString> = Vec::new();
        for (index, word) in self.runner().map(OsString::from).enumerate() {
            // A command without a slash is looked for elsewhere.
            let by_path = index > 0 || word.as_encoded_bytes().contains(&b'/');
            words.push(if by_path { found(&word) } else { word });
        }
        let (program, arguments) = command.split_first().expect("there is a command");
        let path = here.join(program);
        let by_path = self.test.is_some() || program.as_encoded_bytes().contains(&b'/');
        if by_path && self.how.runner.is_none() && !path.exists() {
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
    on_interrupts(interrupt)
}

fn on_interrupts(handler: extern "C" fn(i32)) -> nix::Result<()> {
    let action = SigAction::new(SigHandler::Handler(handler), SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handlers only store to an atomic, or make calls that are safe in them.
        unsafe { sigaction(signal, &action) }?;
    }
    Ok(())
}

/// What is said when somebody loses patience, and who says it.
static LAST_WORDS: OnceLock<(u32, String)> = OnceLock::new();

extern "C" fn leave(_: i32) {
    // Whoever was forked meanwhile notices that this process is gone.
    if let Some((process, words)) = LAST_WORDS.get()
        && *process == std::process::id()
    {
        // SAFETY: both calls are safe in handlers, and the text is never changed.
        unsafe {
            libc::write(2, words.as_ptr().cast(), words.len());
            libc::_exit(1);
        }
    }
}

/// When all tests have been made, there is nothing to be waited for any more.
pub fn leave_when_interrupted(words: String) -> Result<(), Failure> {
    if interrupted() {
        return Err(no_answer(words));
    }
    let _ = LAST_WORDS.set((std::process::id(), format!("why: {words}\n")));
    on_interrupts(leave).map_err(no_answer)
}

/// `why trial-worker`: one of those who make tests; started by `why` itself.
pub fn worker() -> ExitCode {
    match why_trial::serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
