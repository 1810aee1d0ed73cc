//! `cargo xtask crashes`: whether a slice of a crash shows the line that was at fault, for bugs
//! that others made, found and corrected.
//!
//! The sources come from the package registry. That the line is at fault is tried: the program
//! crashes as it is, and does not when the line is what its authors made of it.

mod bugs;
mod built;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use self::bugs::{BUGS, Bug};
use crate::machine;
use crate::workspace::{self, Failure};

/// Tell how far up in the slice of known crashes the line at fault is
#[derive(clap::Args)]
pub struct Args {
    /// Only bugs whose name or program contains this; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// How much the compiler optimises, as for `cc -O`
    #[arg(short = 'O', value_name = "LEVEL", default_value = "0")]
    optimize: String,
}

/// What is asked of each recording.
const QUESTIONS: [&[&str]; 4] = [
    &["slice", "crash"],
    &["slice", "crash", "--data"],
    &["slice", "crash", "--thin"],
    &["chop", "--from=input", "--to=crash"],
];

pub fn main(args: Args) -> Result<ExitCode, Failure> {
    let why = workspace::build_why()?;
    let directory = workspace::target()?.join("crashes");
    let packages = built::fetch(&directory)?;
    println!("{}\n", machine::describe(&format!("cc -O{}", args.optimize)));
    println!(
        "| program | bug | line at fault | rank: default | `--data` | `--thin` | chop | \
         instructions | in the slice | first slice |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let named = |bug: &&Bug| {
        args.only.iter().any(|name| bug.name.contains(name) || bug.program.contains(name))
    };
    for bug in BUGS.iter().filter(|bug| args.only.is_empty() || named(bug)) {
        let home = directory.join(format!("{}-O{}", bug.name, args.optimize));
        workspace::fresh(&home)?;
        let program = built::build(bug, &packages, &home, &args.optimize)?;
        println!("{}", row(bug, &why, &program, &home)?);
    }
    Ok(ExitCode::SUCCESS)
}

/// A line of the table.
fn row(bug: &Bug, why: &Path, program: &Path, home: &Path) -> Result<String, Failure> {
    let recording = home.join("recording");
    let mut record = Command::new(why);
    record.args(["record", "-o"]).arg(&recording).arg("--").arg(program).arg(bug.input());
    if !crashes(&mut record)? {
        return Err(format!("{} does not crash while it is recorded", bug.name).into());
    }
    let begun = Instant::now();
    let first = Answer::of(why, &recording, QUESTIONS[0], None)?;
    let took = begun.elapsed();
    let mut ranks = Vec::new();
    for question in QUESTIONS {
        ranks.push(rank(bug, why, &recording, question)?);
    }
    let stats = &first.0["stats"];
    let Bug { name, program, file, faulty, .. } = bug;
    Ok(format!(
        "| {program} | {name} | {file}:{faulty} | {} | {} | {} | {:.1} s |",
        ranks.join(" | "),
        stats["traced"],
        stats["in_slice"],
        took.as_secs_f64()
    ))
}

/// Which of the lines that are shown is the one at fault; or which of all, if it is not shown.
fn rank(bug: &Bug, why: &Path, recording: &Path, asked: &[&str]) -> Result<String, Failure> {
    let shown = Answer::of(why, recording, asked, None)?;
    let lines = shown.lines().len();
    if let Some(rank) = shown.rank(bug) {
        return Ok(format!("**{rank}** of {lines}"));
    }
    let all = Answer::of(why, recording, asked, Some(usize::MAX))?;
    let count = all.lines().len();
    Ok(match all.rank(bug) {
        Some(rank) => format!("not shown: {rank} of {count}"),
        None => format!("not among {count}"),
    })
}

/// What `why slice --json` or `why chop --json` tells.
struct Answer(Value);

impl Answer {
    fn of(
        why: &Path,
        recording: &Path,
        asked: &[&str],
        lines: Option<usize>,
    ) -> Result<Answer, Failure> {
        let (command, rest) = asked.split_first().ok_or("nothing is asked")?;
        let mut slice = Command::new(why);
        slice.arg(command).arg(recording).args(rest).arg("--json");
        slice.args(lines.map(|lines| format!("--lines={lines}")));
        let told = slice.output()?;
        if !told.status.success() {
            let error = String::from_utf8_lossy(&told.stderr);
            return Err(format!("why {}: {}", asked.join(" "), error.trim()).into());
        }
        Ok(Answer(serde_json::from_slice(&told.stdout)?))
    }

    fn lines(&self) -> &[Value] {
        self.0["answer"]["lines"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The first is 1.
    fn rank(&self, bug: &Bug) -> Option<usize> {
        let is_faulty = |line: &Value| {
            let file = line["file"].as_str().and_then(|file| file.rsplit('/').next());
            file == Some(bug.file) && line["line"].as_u64() == Some(bug.faulty)
        };
        self.lines().iter().position(is_faulty).map(|index| index + 1)
    }
}

impl Bug {
    fn input(&self) -> PathBuf {
        workspace::root().join("xtask/crashes").join(self.input)
    }
}

/// Whether a command ends by a signal.
fn crashes(command: &mut Command) -> Result<bool, Failure> {
    const LIMIT: Duration = Duration::from_secs(60);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let finished = crate::process::run(command, LIMIT)?;
    Ok(!finished.timed_out && finished.status.signal().is_some())
}
