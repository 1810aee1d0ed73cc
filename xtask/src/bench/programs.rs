//! What is measured: the programs, their arguments, and the work they stand for.

use std::ffi::OsString;
use std::path::PathBuf;

use super::inputs::Inputs;
use crate::workspace::{self, Failure};

/// The kinds of work that a goal is set for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    Computing,
    SystemCalls,
    StartUp,
    Make,
    Threads,
}

/// Whether translations of an earlier run may be used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// A run that is not measured comes first.
    Warm,
    /// Each run starts with an empty cache directory.
    Cold,
}

pub struct Program {
    pub name: String,
    pub work: Work,
    pub cache: Cache,
    pub command: Vec<OsString>,
    /// Executions of which the mean is taken, for programs too short to time once.
    pub repeat: u32,
    /// Copied into the working directory before each run.
    pub files: Option<PathBuf>,
    /// One core for the native run too: the engine uses only one for the target.
    pub one_core: bool,
    /// Reported, but outside the goal of its work.
    pub report_only: bool,
}

/// The programs, in the order of the goals. A program that is not installed
/// is left out with a line that says so.
pub fn all(inputs: &Inputs, quick: bool) -> Result<Vec<Program>, Failure> {
    let mut list = List { programs: Vec::new() };
    let scale = if quick { "10" } else { "100" };
    let shorter = |count: u32| if quick { count / 10 } else { count };
    let compiled = |name: &str| inputs.compiled.join(name).into_os_string();
    let long_text = inputs.long_text.clone().into_os_string();
    let short_text = inputs.short_text.clone().into_os_string();

    use Work::{Computing, Make, StartUp, SystemCalls, Threads};
    list.add("gzip", Computing, ["gzip", "-c"], [long_text.clone()]);
    list.add("bzip2", Computing, ["bzip2", "-c"], [short_text.clone()]);
    list.push(Computing, "cpu.c", vec![compiled("cpu"), scale.into()]);
    let script = format!("s = 0\nfor i in range({}): s ^= i\nprint(s)", shorter(100_000_000));
    list.add("python loop", Computing, ["python3", "-c"], [script.into()]);
    if let Some(database) = &inputs.database {
        list.add("sqlite", Computing, ["sqlite3"], [database.into(), QUERY.into()]);
    } else {
        eprintln!("bench: sqlite3 is not installed; left out");
    }
    let iterations = shorter(4_000_000).to_string();
    let options = ["openssl", "enc", "-aes-256-cbc", "-pbkdf2", "-S", "0102030405060708"];
    let rest = ["-k", "secret", "-iter", &iterations, "-in"].map(OsString::from);
    list.add("openssl", Computing, options, rest.into_iter().chain([long_text]));

    let count = format!("count={}", shorter(200_000));
    let dd = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "status=none"];
    list.add("dd bs=1", SystemCalls, dd, [count.into()]);
    let million: OsString = shorter(1_000_000).to_string().into();
    list.push(SystemCalls, "getppid", vec![compiled("getppid"), million.clone()]);
    list.push(SystemCalls, "read 1 byte", vec![compiled("read1"), million.clone(), short_text]);
    list.push(SystemCalls, "clock_gettime", vec![compiled("clock"), million]);
    list.last().report_only = true;

    let repeat = if quick { 5 } else { 25 };
    for cache in [Cache::Warm, Cache::Cold] {
        let label = |name: &str| match cache {
            Cache::Warm => name.to_owned(),
            Cache::Cold => format!("{name}, cold"),
        };
        let from = list.programs.len();
        list.add(&label("python pass"), StartUp, ["python3", "-c"], ["pass".into()]);
        list.add(&label("git --version"), StartUp, ["git"], ["--version".into()]);
        for program in &mut list.programs[from..] {
            program.repeat = repeat;
            program.cache = cache;
        }
    }
    for (cache, label) in [(Cache::Warm, "make"), (Cache::Cold, "make, cold")] {
        let from = list.programs.len();
        list.add(label, Make, ["make"], []);
        for program in &mut list.programs[from..] {
            program.files = Some(inputs.project.clone());
            program.cache = cache;
        }
    }
    list.push(Threads, "4 threads", vec![compiled("threads"), scale.into()]);
    list.last().one_core = true;
    Ok(list.programs)
}

/// A scan with patterns, a join over an index, and grouping by a computed key.
const QUERY: &str = "
    SELECT kind % 10, count(*), sum(price), max(name) FROM item
      WHERE name LIKE '%7%a%' GROUP BY kind % 10 ORDER BY 1;
    SELECT count(*), avg(a.price - b.price) FROM item a JOIN item b
      ON a.kind = b.kind AND a.id < b.id WHERE a.kind < 160;
    SELECT min(name), count(*) FROM item GROUP BY substr(name, 1, 9) ORDER BY 2 DESC, 1 LIMIT 5;";

struct List {
    programs: Vec<Program>,
}

impl List {
    /// A program of the machine, by name.
    fn add<const N: usize>(
        &mut self,
        name: &str,
        work: Work,
        command: [&str; N],
        rest: impl IntoIterator<Item = OsString>,
    ) {
        let Some(program) = workspace::program(command[0]) else {
            eprintln!("bench: {} is not installed; left out", command[0]);
            return;
        };
        let arguments = command[1..].iter().map(OsString::from);
        self.push(work, name, [program.into()].into_iter().chain(arguments).chain(rest).collect());
    }

    fn push(&mut self, work: Work, name: &str, command: Vec<OsString>) {
        self.programs.push(Program {
            name: name.to_owned(),
            work,
            cache: Cache::Warm,
            command,
            repeat: 1,
            files: None,
            one_core: false,
            report_only: false,
        });
    }

    fn last(&mut self) -> &mut Program {
        self.programs.last_mut().expect("a program was just pushed")
    }
}
