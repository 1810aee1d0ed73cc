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

use super::reducers::PEERS;
use crate::machine;
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

pub fn main(options: &Options) -> Result<(), Failure> {
    let why = workspace::build_why()?;
    let peers = workspace::target()?.join("peers");
    let directory = workspace::target()?.join("bench/reduce");
    println!("{}\n", machine::describe("best of 1"));
    println!("| case | reducer | bytes | tests | seconds | bytes, ours = 1 | tests, ours = 1 |");
    println!("|---|---|---|---|---|---|---|");
    for case in cases(options)? {
        let mut bench = Bench { case: Case::open(&case)?, directory: &directory, peers: &peers };
        let why_words = ["reduce", "--in-place", "FILE", "--test", "SCRIPT"];
        let ours = bench.run(&why, &why_words, None, options.cap)?;
        bench.print("why", &ours, &ours);
        for peer in PEERS.iter().filter(|_| !options.alone) {
            let words = peer.words(&bench.case.extension);
            if let (Some(program), Some(words)) = (peer.installed(&peers), words) {
                let run = bench.run(&program, &words, peer.output, options.cap)?;
                bench.print(peer.name, &run, &ours);
            }
        }
    }
    println!("\n† ended after {} s, with the best that it had tried by then.", options.cap);
    let missing = PEERS.iter().filter(|peer| peer.installed(&peers).is_none());
    let missing: Vec<&str> = missing.map(|peer| peer.name).collect();
    if !missing.is_empty() && !options.alone {
        println!("Not installed: {}; xtask/peers installs them.", missing.join(", "));
    }
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

struct Case {
    name: String,
    input: PathBuf,
    extension: String,
    interesting: PathBuf,
}

impl Case {
    fn open(directory: &Path) -> Result<Case, Failure> {
        let text = |part: Option<&std::ffi::OsStr>| {
            part.unwrap_or_default().to_string_lossy().into_owned()
        };
        let name = text(directory.file_name());
        let mut files = fs::read_dir(directory)?.flatten().map(|entry| entry.path());
        let input = files.find(|path| path.file_stem().is_some_and(|stem| stem == "input"));
        let input = input.ok_or_else(|| format!("{} has no input", directory.display()))?;
        let extension = text(input.extension());
        Ok(Case { name, extension, input, interesting: directory.join("interesting.sh") })
    }
}

struct Run {
    bytes: u64,
    tests: u64,
    seconds: f64,
    capped: bool,
    /// The result still fails.
    fails: bool,
}

struct Bench<'a> {
    case: Case,
    /// Where reducers run, one after the other.
    directory: &'a Path,
    peers: &'a Path,
}

impl Bench<'_> {
    fn run(
        &mut self,
        program: &Path,
        words: &[&str],
        output: Option<&str>,
        cap: u32,
    ) -> Result<Run, Failure> {
        let directory = self.directory;
        workspace::fresh(directory)?;
        let temporary = directory.join("tmp");
        fs::create_dir(&temporary)?;
        let file = format!("input.{}", self.case.extension);
        fs::copy(&self.case.input, directory.join(&file))?;
        let script = self.prepare(&file)?;
        let peers = self.peers.display().to_string();
        let fill = |word: &str| {
            word.replace("SCRIPT", &script).replace("FILE", &file).replace("PEERS", &peers)
        };
        let start = Instant::now();
        let mut command = Command::new("timeout");
        command.arg("--kill-after=5").arg(cap.to_string()).arg(program);
        command.args(words.iter().map(|word| fill(word))).current_dir(directory);
        command.env("TMPDIR", &temporary);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(fs::File::create(directory.join("stderr"))?);
        let status = command.status()?;
        let seconds = start.elapsed().as_secs_f64();
        let length = |path: &Path| fs::metadata(path).map(|file| file.len());
        let tests = length(&directory.join("count")).unwrap_or(0);
        let capped = matches!(status.code(), Some(124 | 137));
        // One that was ended may have been about to write its result.
        let output = directory.join(output.map_or(file.clone(), fill));
        let result = if capped || !output.exists() { directory.join("best") } else { output };
        Ok(Run { bytes: length(&result)?, tests, seconds, capped, fails: self.fails(&result)? })
    }

    /// Whether a result, under the name that the input has, still fails.
    fn fails(&self, result: &Path) -> io::Result<bool> {
        let alone = self.directory.join("alone");
        workspace::fresh(&alone)?;
        let file = format!("input.{}", self.case.extension);
        fs::copy(result, alone.join(&file))?;
        let mut command = Command::new(&self.case.interesting);
        command.arg(&file).current_dir(&alone).stdin(Stdio::null());
        Ok(command.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success())
    }

    /// A test that counts how often it is run and keeps the smallest file that fails, for
    /// reducers that are ended before they write what they have.
    fn prepare(&self, file: &str) -> io::Result<String> {
        let directory = self.directory.display();
        let interesting = self.case.interesting.display();
        fs::copy(self.directory.join(file), self.directory.join("best"))?;
        let script = self.directory.join("script.sh");
        let body = format!(
            "#!/bin/sh
             printf x >> {directory}/count
             {interesting} \"${{1:-{file}}}\" || exit
             if [ $(stat -c %s \"${{1:-{file}}}\") -lt $(stat -c %s {directory}/best) ]; then
                 cp \"${{1:-{file}}}\" {directory}/best
             fi
             exit 0\n"
        );
        fs::write(&script, body.replace("\n             ", "\n"))?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
        let condition = format!(
            "import subprocess\n\ndef interesting(arguments, _prefix):\n    \
             return subprocess.call([{:?}, arguments[-1]]) == 0\n",
            script.display().to_string()
        );
        fs::write(self.directory.join("condition.py"), condition)?;
        Ok(script.display().to_string())
    }

    fn print(&self, reducer: &str, run: &Run, ours: &Run) {
        let Run { bytes, tests, seconds, capped, fails } = run;
        let ratio = |theirs: u64, ours: u64| format!("{:.2}", theirs as f64 / ours.max(1) as f64);
        let (smaller, fewer) = (ratio(*bytes, ours.bytes), ratio(*tests, ours.tests));
        let mark = if *capped { "†" } else { "" };
        let slipped = if *fails { "" } else { " (does not fail)" };
        let case = &self.case.name;
        println!(
            "| {case} | {reducer} | {bytes}{slipped} | {tests}{mark} | {seconds:.0} | {smaller} | {fewer} |"
        );
    }
}
