//! What is measured: the programs, their arguments, and the work they stand for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::inputs::Inputs;
use super::peer::{self, Peer};
use crate::workspace::{self, Failure};

/// The kinds of work that a goal is set for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    Computing,
    SystemCalls,
    StartUp,
    Make,
    Threads,
    Server,
    /// One that takes a minute, to be got into.
    LongRun,
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
    /// What it serves, if it does.
    pub peer: Option<Peer>,
    /// Reported, but outside the goal of its work.
    pub report_only: bool,
}

/// What `bench engine` measures, in the order of the goals. A program that is not
/// installed is left out with a line that says so.
pub fn for_engine(inputs: &Inputs, quick: bool) -> Vec<Program> {
    use Work::{StartUp, SystemCalls};
    let mut list = List { programs: Vec::new() };
    let shorter = |count: u32| if quick { count / 10 } else { count };
    let compiled = |name: &str| inputs.compiled.join(name).into_os_string();

    list.add_computing(inputs, quick);
    list.add_dd_of_bytes(shorter(200_000));
    let million: OsString = shorter(1_000_000).to_string().into();
    list.push(SystemCalls, "getppid", vec![compiled("getppid"), million.clone()]);
    list.add_small_reads(inputs, quick);
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
    list.add_make(inputs, Cache::Warm);
    list.add_make(inputs, Cache::Cold);
    list.add_threads(inputs, quick);
    list.programs
}

/// What `bench record` measures, in the order of the goals.
pub fn for_record(inputs: &Inputs, quick: bool) -> Result<Vec<Program>, Failure> {
    use Work::{LongRun, SystemCalls};
    let mut list = List { programs: Vec::new() };
    let shorter = |count: u32| if quick { count / 10 } else { count };

    list.add_computing(inputs, quick);
    list.add_dd_of_bytes(shorter(1_000_000));
    list.add_small_reads(inputs, quick);
    let large = inputs.large_text.clone().into_os_string();
    list.add("cp 1 GB", SystemCalls, ["cp"], [large.clone(), "copy".into()]);
    let mut from: OsString = "if=".into();
    from.push(large);
    let dd = ["dd", "of=copy", "bs=1M", "status=none"];
    list.add("dd bs=1M 1 GB", SystemCalls, dd, [from]);
    list.add_threads(inputs, quick);
    list.add_make(inputs, Cache::Warm);
    list.add_redis(shorter(200_000))?;
    // Twenty times what takes at least two or three seconds.
    let scale = shorter(2000).to_string();
    let command = vec![inputs.compiled.join("cpu").into_os_string(), scale.into()];
    list.push(LongRun, "60 s of cpu.c", command);
    Ok(list.programs)
}

/// What `bench region` measures.
pub fn for_region(inputs: &Inputs, quick: bool) -> Vec<Program> {
    let mut list = List { programs: Vec::new() };
    list.add_computing(inputs, quick);
    list.add_small_reads(inputs, quick);
    list.add_threads(inputs, quick);
    list.programs
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

    /// Programs that compute for some seconds.
    fn add_computing(&mut self, inputs: &Inputs, quick: bool) {
        use Work::Computing;
        let shorter = |count: u32| if quick { count / 10 } else { count };
        let long_text = inputs.long_text.clone().into_os_string();
        let short_text = inputs.short_text.clone().into_os_string();
        self.add("gzip", Computing, ["gzip", "-c"], [long_text.clone()]);
        self.add("bzip2", Computing, ["bzip2", "-c"], [short_text]);
        let cpu = inputs.compiled.join("cpu").into_os_string();
        self.push(Computing, "cpu.c", vec![cpu, shorter(100).to_string().into()]);
        let script = format!("s = 0\nfor i in range({}): s ^= i\nprint(s)", shorter(100_000_000));
        self.add("python loop", Computing, ["python3", "-c"], [script.into()]);
        if let Some(database) = &inputs.database {
            self.add("sqlite", Computing, ["sqlite3"], [database.into(), QUERY.into()]);
        } else {
            eprintln!("bench: sqlite3 is not installed; left out");
        }
        let iterations = shorter(4_000_000).to_string();
        let options = ["openssl", "enc", "-aes-256-cbc", "-pbkdf2", "-S", "0102030405060708"];
        let rest = ["-k", "secret", "-iter", &iterations, "-in"].map(OsString::from);
        self.add("openssl", Computing, options, rest.into_iter().chain([long_text]));
    }

    fn add_dd_of_bytes(&mut self, count: u32) {
        let dd = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "status=none"];
        self.add("dd bs=1", Work::SystemCalls, dd, [format!("count={count}").into()]);
    }

    fn add_small_reads(&mut self, inputs: &Inputs, quick: bool) {
        let times = if quick { "100000" } else { "1000000" };
        let read = inputs.compiled.join("read1").into_os_string();
        let text = inputs.short_text.clone().into_os_string();
        self.push(Work::SystemCalls, "read 1 byte", vec![read, times.into(), text]);
    }

    fn add_make(&mut self, inputs: &Inputs, cache: Cache) {
        let from = self.programs.len();
        let label = if cache == Cache::Warm { "make" } else { "make, cold" };
        self.add(label, Work::Make, ["make"], []);
        for program in &mut self.programs[from..] {
            program.files = Some(inputs.project.clone());
            program.cache = cache;
        }
    }

    fn add_threads(&mut self, inputs: &Inputs, quick: bool) {
        let scale = if quick { "10" } else { "100" };
        let threads = inputs.compiled.join("threads").into_os_string();
        self.push(Work::Threads, "4 threads", vec![threads, scale.into()]);
        self.last().one_core = true;
    }

    /// A server that is asked so many times and then told to end.
    fn add_redis(&mut self, requests: u32) -> Result<(), Failure> {
        let tools = ["redis-benchmark", "redis-cli"].map(workspace::program);
        let [Some(benchmark), Some(cli)] = tools else {
            eprintln!("bench: redis-benchmark or redis-cli is not installed; left out");
            return Ok(());
        };
        let address = peer::free_port()?;
        let port = address.port().to_string();
        let from = self.programs.len();
        let quiet = ["--save", "", "--appendonly", "no", "--logfile", "/dev/null"];
        let options = ["--port", &port].into_iter().chain(quiet).map(OsString::from);
        self.add("redis", Work::Server, ["redis-server"], options);
        let words = |program: &Path, words: &[&str]| {
            let program = [program.as_os_str().to_owned()];
            program.into_iter().chain(words.iter().map(OsString::from)).collect::<Vec<_>>()
        };
        let requests = requests.to_string();
        let asks = ["-p", &port, "-n", &requests, "-t", "set,get,lpush", "-q"];
        let commands =
            vec![words(&benchmark, &asks), words(&cli, &["-p", &port, "shutdown", "nosave"])];
        for program in &mut self.programs[from..] {
            program.peer = Some(Peer { address, commands: commands.clone() });
        }
        Ok(())
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
            peer: None,
            report_only: false,
        });
    }

    fn last(&mut self) -> &mut Program {
        self.programs.last_mut().expect("a program was just pushed")
    }
}
