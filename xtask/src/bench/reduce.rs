//! `cargo xtask bench reduce`: how small inputs become, and in how many tests, beside the
//! reducers that are installed.
//!
//! A case is a directory with `input.EXT` and `interesting.sh FILE`, which exits with 0 if the
//! file still fails. Every reducer gets the same script, which counts how often it is run.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::workspace::{self, Failure};

#[derive(clap::Args)]
pub struct Options {
    /// The directory of cases
    #[arg(long, value_name = "DIRECTORY")]
    cases: PathBuf,
    /// Only cases whose name contains this; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// A reducer is ended after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    cap: u32,
    /// Leave out all reducers but ours
    #[arg(long)]
    alone: bool,
}

/// A reducer, and the words of its command; `SCRIPT` and `FILE` stand for those.
struct Reducer {
    name: &'static str,
    words: &'static [&'static str],
    /// It writes the result there, not over the input.
    output: Option<&'static str>,
}

/// Each with one job, and otherwise as it comes.
const PEERS: &[Reducer] = &[
    Reducer {
        name: "shrinkray",
        words: &["shrinkray", "--parallelism=1", "--ui=basic", "SCRIPT", "FILE"],
        output: None,
    },
    Reducer { name: "cvise", words: &["cvise", "--n=1", "SCRIPT", "FILE"], output: None },
    Reducer { name: "creduce", words: &["creduce", "--n", "1", "SCRIPT", "FILE"], output: None },
    Reducer {
        name: "picire",
        words: &["picire", "--input=FILE", "--test=SCRIPT", "--out=out", "--atom=both"],
        output: Some("out/FILE"),
    },
    Reducer {
        name: "lithium",
        words: &["lithium", "--char", "outputs", "--testcase=FILE", "SCRIPT", "FILE"],
        output: None,
    },
    Reducer {
        name: "treereduce-c",
        words: &["treereduce-c", "--jobs=1", "-s", "FILE", "-o", "out", "--", "SCRIPT", "@@.c"],
        output: Some("out"),
    },
];

pub fn main(options: &Options) -> Result<(), Failure> {
    let why = workspace::build_why()?;
    let directory = workspace::target()?.join("bench/reduce");
    println!("| case | reducer | bytes | tests | seconds |\n|---|---|---|---|---|");
    for case in cases(options)? {
        let name = case.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let ours: Vec<String> =
            vec![why.display().to_string(), "reduce".into(), "--in-place".into()];
        let ours: Vec<String> =
            ours.into_iter().chain(["FILE", "--test", "SCRIPT"].map(String::from)).collect();
        let mut ways = vec![("why", ours, None)];
        for peer in PEERS.iter().filter(|_| !options.alone) {
            if workspace::program(peer.words[0]).is_some() {
                let words = peer.words.iter().map(|word| (*word).to_owned()).collect();
                ways.push((peer.name, words, peer.output));
            }
        }
        for (reducer, words, output) in ways {
            let run = run(&case, &directory, &words, output, options.cap)?;
            let Run { bytes, tests, seconds, capped } = run;
            let mark = if capped { "†" } else { "" };
            println!("| {name} | {reducer} | {bytes} | {tests}{mark} | {seconds:.0} |");
        }
    }
    println!("\n† ended after {} s", options.cap);
    Ok(())
}

fn cases(options: &Options) -> io::Result<Vec<PathBuf>> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(&options.cases)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let wanted =
            options.only.is_empty() || options.only.iter().any(|only| name.contains(only.as_str()));
        if wanted && path.join("interesting.sh").is_file() {
            cases.push(path.canonicalize()?);
        }
    }
    cases.sort();
    Ok(cases)
}

struct Run {
    bytes: u64,
    tests: u64,
    seconds: f64,
    capped: bool,
}

fn run(
    case: &Path,
    directory: &Path,
    words: &[String],
    output: Option<&str>,
    cap: u32,
) -> Result<Run, Failure> {
    workspace::fresh(directory)?;
    let input = input_of(case)?;
    let file = input.file_name().expect("a file has a name").to_string_lossy().into_owned();
    fs::copy(&input, directory.join(&file))?;
    let count = directory.join("count");
    let script = directory.join("script.sh");
    let interesting = case.join("interesting.sh");
    let body = format!(
        "#!/bin/sh\nprintf x >> {}\nexec {} \"${{1:-{file}}}\"\n",
        count.display(),
        interesting.display()
    );
    fs::write(&script, body)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    let script = script.display().to_string();
    let fill = |word: &str| word.replace("SCRIPT", &script).replace("FILE", &file);

    let start = Instant::now();
    let mut command = Command::new("timeout");
    command.arg("--kill-after=5").arg(cap.to_string());
    command.args(words.iter().map(|word| fill(word))).current_dir(directory);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status()?;
    let result = directory.join(output.map_or(file.clone(), fill));
    Ok(Run {
        bytes: fs::metadata(&result).or_else(|_| fs::metadata(&input))?.len(),
        tests: fs::metadata(&count).map_or(0, |count| count.len()),
        seconds: start.elapsed().as_secs_f64(),
        capped: matches!(status.code(), Some(124 | 137)),
    })
}

fn input_of(case: &Path) -> Result<PathBuf, Failure> {
    for entry in fs::read_dir(case)? {
        let path = entry?.path();
        if path.file_stem().is_some_and(|stem| stem == "input") {
            return Ok(path);
        }
    }
    Err(format!("{} has no input", case.display()).into())
}
