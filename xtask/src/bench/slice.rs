//! `cargo xtask bench slice`: how fast a run is traced, how much of the disk that takes, and how
//! fast slices of it are; beside gdb's `record full` and a tracer on valgrind, on the same programs.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::inputs::{self, Inputs};
use crate::machine;
use crate::workspace::{self, Failure};
use why_slice::reasons::Why;
use why_slice::region::{Criterion, Options as How, Region};

#[derive(clap::Args)]
pub struct Options {
    /// Only programs whose name contains this; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Leave out gdb and valgrind
    #[arg(long)]
    alone: bool,
}

/// How much of the decoded trace is kept for further slices, in bytes.
const KEPT: usize = 4 << 30;

/// Behind how many eighths of the run further slices are made.
const FURTHER: [u64; 3] = [6, 5, 8];

/// A program that executes about a hundred million instructions.
struct Program {
    name: &'static str,
    words: Vec<String>,
}

fn programs(inputs: &Inputs, directory: &Path) -> Result<Vec<Program>, Failure> {
    let text = directory.join("text");
    fs::write(&text, &fs::read(&inputs.short_text)?[..600_000])?;
    let text = text.display().to_string();
    let python = "d = {}\nfor i in range(150000):\n    d[i % 1000] = d.get(i * 7 % 1000, 0) + i\n\
                  print(sum(d.values()))";
    let sql = "create table t(a integer primary key, b text); with recursive c(x) as (select 1 \
               union all select x + 1 from c where x < 9000) insert into t select x, \
               hex(x * 7919 % 10007) from c; create index i on t(b); select count(*), max(b) from \
               t where b like '%3%';";
    let threads = inputs.compiled.join("threads").display().to_string();
    let all = [
        ("gzip", vec!["gzip", "-c", text.as_str()]),
        ("sqlite", vec!["sqlite3", ":memory:", sql]),
        // Not what may stand in front of it in the search path.
        ("python", vec!["/usr/bin/python3", "-S", "-c", python]),
        ("4 threads", vec![threads.as_str(), "1"]),
    ];
    let owned = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect();
    let found = all.into_iter().filter(|(_, words)| {
        Path::new(words[0]).is_file() || workspace::program(words[0]).is_some()
    });
    Ok(found.map(|(name, words)| Program { name, words: owned(words) }).collect())
}

pub fn main(options: &Options) -> Result<(), Failure> {
    let why = workspace::build_why()?;
    let directory = workspace::target()?.join("bench/slice");
    fs::create_dir_all(&directory)?;
    let inputs = inputs::prepare(&workspace::target()?.join("bench"), false)?;
    println!("{}\n", machine::describe("one round"));
    println!(
        "| program | M instructions | traced, M/s | bytes each | open, s | first slice, s / 100 M | \
         further, s / 100 M | in one process | share in slices | lackey, M/s | gdb, M/s |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for program in programs(&inputs, &directory)? {
        let wanted = options.only.iter().any(|only| program.name.contains(only.as_str()));
        if wanted || options.only.is_empty() {
            let ours = measure(&why, &directory, &program)?;
            let peers = match options.alone {
                true => ("-".to_owned(), "-".to_owned()),
                false => (lackey(&program), gdb(&program)),
            };
            println!("{} {} | {} |", ours.row(program.name), peers.0, peers.1);
        }
    }
    println!(
        "\nSlices are of a register at three places and at the end, with control; further ones are \
         those of a process that opens the trace anew, as `why slice` does, and of one that keeps \
         what it decodes, as `why chop` does. Bytes and seconds to open are those of a further one. \
         lackey is stopped after half a minute, gdb after a hundred thousand instructions."
    );
    Ok(())
}

struct Measured {
    instructions: u64,
    tracing: f64,
    bytes: u64,
    open: f64,
    /// Seconds, for a hundred million instructions.
    first: f64,
    /// Further ones, each in a process of its own,
    further: f64,
    /// and all in one.
    together: f64,
    /// Of the first and of each further one.
    shares: Vec<f64>,
}

impl Measured {
    fn row(&self, name: &str) -> String {
        let millions = self.instructions as f64 / 1e6;
        let shares: Vec<String> =
            self.shares.iter().map(|share| format!("{:.0}", 100.0 * share)).collect();
        format!(
            "| {name} | {millions:.0} | {:.0} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {} % |",
            millions / self.tracing,
            self.bytes as f64 / self.instructions as f64,
            self.open,
            self.first,
            self.further,
            self.together,
            shares.join(", ")
        )
    }
}

fn measure(why: &Path, directory: &Path, program: &Program) -> Result<Measured, Failure> {
    let recording = directory.join("recording");
    let _ = fs::remove_dir_all(&recording);
    let mut record = Command::new(why);
    record.arg("record").arg("-o").arg(&recording).arg("--").args(&program.words);
    run(record.stdout(Stdio::null()))?;
    let mut slice = Command::new(why);
    // Before the start nobody made anything: so it is only traced, and nothing is decoded yet.
    slice.arg("slice").arg(&recording).args(["start:%rsp", "--stats"]);
    let told = String::from_utf8_lossy(&run(&mut slice)?.stderr).into_owned();
    let tracing = told.split("made in ").nth(1).and_then(|rest| rest.split(' ').next());
    let tracing: f64 = tracing.ok_or("no figures")?.parse()?;
    let (trace, thread) = trace(&recording)?;
    // As the first `why slice` does.
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(true);
    let decoded = options.open(directory.join("decoded"))?;
    let region = Region::open(File::open(&trace)?)?;
    region.share_learnt(&[]);
    region.remember_in(decoded.try_clone()?)?;
    let (slicing, share) = sliced(&region, thread, 7)?;
    let begun = Instant::now();
    if !region.finish_remembered()? {
        return Err("the trace was decoded before the first slice".into());
    }
    let mut learnt = region.learnt().ok_or("the first slice has learnt nothing")?;
    let first = slicing + per_slice(&region, 7, begun);
    drop(region);
    let (mut open, mut further, mut shares) = (Vec::new(), Vec::new(), vec![share]);
    for eighth in FURTHER {
        // As each further one does.
        let begun = Instant::now();
        let region = Region::open(decoded.try_clone()?)?;
        region.share_learnt(&learnt);
        open.push(begun.elapsed().as_secs_f64());
        let (seconds, share) = sliced(&region, thread, eighth)?;
        let begun = Instant::now();
        learnt = region.learnt().unwrap_or(learnt);
        further.push(seconds + per_slice(&region, eighth, begun));
        shares.push(share);
    }
    // As where several questions are asked of a run.
    let region = Region::open(decoded.try_clone()?)?;
    region.keep_decoded(KEPT);
    sliced(&region, thread, 7)?;
    let together = FURTHER.iter().map(|eighth| Ok(sliced(&region, thread, *eighth)?.0));
    let together: Vec<f64> = together.collect::<Result<_, Failure>>()?;
    let instructions = region.length;
    Ok(Measured {
        instructions,
        tracing,
        bytes: fs::metadata(&trace)?.len().max(decoded.metadata()?.len() + learnt.len() as u64),
        open: mean(&open),
        first,
        further: mean(&further),
        together: mean(&together),
        shares,
    })
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// Slices a region of a register after so many eighths: the seconds for a hundred million
/// instructions, and what share of them belongs to the slice.
fn sliced(region: &Region, thread: u64, eighths: u64) -> Result<(f64, f64), Failure> {
    let position = region.length / 8 * eighths;
    let cells = std::iter::once(0..8).collect();
    let criterion = Criterion { position, thread, cells, ..Criterion::default() };
    let how = How { reasons: Why::Code, count_only: true, ..How::default() };
    let begun = Instant::now();
    // As `why slice` does: who made values alone is found first.
    region.slice(&criterion, How { thin: true, ..how })?;
    let slice = region.slice(&criterion, how)?;
    Ok((per_slice(region, eighths, begun), slice.count as f64 / position as f64))
}

/// How long something took since then, for a hundred million of the instructions of a slice behind so
/// many eighths of the region.
fn per_slice(region: &Region, eighths: u64, begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() / (region.length as f64 / 8e8 * eighths as f64)
}

/// The trace of a recording's only process, and that one's number.
fn trace(recording: &Path) -> Result<(PathBuf, u64), Failure> {
    for entry in fs::read_dir(recording.join("derived"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(number) = name.strip_prefix("trace-").and_then(|number| number.parse().ok()) {
            return Ok((path, number));
        }
    }
    Err("no trace was kept".into())
}

fn run(command: &mut Command) -> Result<Output, Failure> {
    let output = command.output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{command:?} failed: {said}").into());
    }
    Ok(output)
}

/// Every instruction and access of the same program, for as long as anybody waits; they are only
/// counted.
fn lackey(program: &Program) -> String {
    const LONGEST: Duration = Duration::from_secs(30);
    let script = "exec valgrind --tool=lackey --trace-mem=yes --trace-children=yes --log-fd=3 \"$@\" \
                  3>&1 >/dev/null 2>/dev/null";
    let mut shell = Command::new("sh");
    let begun = Instant::now();
    let valgrind = shell.args(["-c", script, "sh"]).args(&program.words).stdout(Stdio::piped());
    let Ok(mut valgrind) = valgrind.spawn() else {
        return "not installed".to_owned();
    };
    let told = BufReader::with_capacity(1 << 20, valgrind.stdout.take().expect("it is piped"));
    let instructions = told
        .split(b'\n')
        .map_while(Result::ok)
        .take_while(|_| begun.elapsed() < LONGEST)
        .filter(|line| line.starts_with(b"I "))
        .count();
    let seconds = begun.elapsed().as_secs_f64();
    let _ = valgrind.kill();
    let _ = valgrind.wait();
    match instructions {
        0 => "fails".to_owned(),
        _ => format!("{:.1}", instructions as f64 / 1e6 / seconds),
    }
}

/// The first hundred thousand instructions.
fn gdb(program: &Program) -> String {
    const STEPS: f64 = 100_000.0;
    let mut gdb = Command::new("timeout");
    gdb.args(["120", "gdb", "-nx", "-batch", "-ex", "starti", "-ex", "record full"]);
    gdb.args(["-ex", "set record full insn-number-max unlimited"]);
    gdb.args(["-ex", &format!("stepi {STEPS}"), "-ex", "info record", "--args"]);
    let begun = Instant::now();
    let Ok(output) = gdb.args(&program.words).stdin(Stdio::null()).output() else {
        return "not installed".to_owned();
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let contained = said.split("contains ").nth(1).and_then(|rest| rest.split(' ').next());
    match contained.and_then(|count| count.parse::<f64>().ok()) {
        Some(count) => {
            let rate = format!("{:.4}", count / 1e6 / begun.elapsed().as_secs_f64());
            let gave_up =
                if count < STEPS { format!(", gave up after {count}") } else { String::new() };
            rate + &gave_up
        }
        None => "fails".to_owned(),
    }
}
