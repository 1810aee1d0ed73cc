//! Going to and fro in a recording: whatever the way, what is seen at a moment is what a replay
//! sees that goes there from the start. No process is left, however it ends.

mod journey;
#[path = "../support/mod.rs"]
mod support;
mod visitor;

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use why_record::event::Event;
use why_record::store::Recording;

use journey::{job, processes, same, visit};
use support::job::Job;
use support::leftover::{self, Mark};
use support::random::Random;
use support::{fixture, native, recording, run};
use visitor::{Journey, Report};

/// So many moments of each program are visited.
const VISITS: usize = 30;
/// Copies are made so often that there are always some.
const DISTANCE: u64 = 5_000;

/// Fixtures, and which of their processes is visited: by its place among those recorded.
const FIXTURES: &[(&str, usize)] = &[
    ("threads/condvar", 0),
    ("threads/lost_updates", 0),
    ("signals/itimers", 0),
    ("signals/nested", 0),
    ("signals/rep_fault", 0),
    ("signals/segv_repair", 0),
    ("signals/altstack", 0),
    ("processes/fork_tree", 0),
    ("processes/fork_cow", 1),
    ("processes/fork_jit", 1),
    ("processes/exec_self", 0),
    ("processes/vfork_exec", 0),
    ("jit/bytecode_jit", 0),
    ("jit/patch_immediate", 0),
    ("jit/patch_from_thread", 0),
    ("jit/rwx_page", 0),
    ("jit/wx_toggle", 0),
    ("jit/dual_mapped_memfd", 0),
    ("jit/modify_next_instruction", 0),
    ("memory/memfd_twice", 0),
    ("memory/mmap_kinds", 0),
    ("memory/mincore_madvise", 0),
    ("memory/growsdown", 0),
    ("memory/mremap", 0),
    ("memory/shared_across_fork", 0),
    ("memory/shared_across_fork", 1),
];

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let [_, word, journey] = &words[..]
        && word == visitor::WORD
    {
        return visitor::main(journey);
    }
    let mut trials: Vec<Trial> = FIXTURES
        .iter()
        .map(|&(title, process)| {
            Trial::test(format!("{title} {process}"), move || {
                let (job, _) = native::native(&fixture::named(title)?)?;
                visits_in_any_order(&job, process, "none")
            })
        })
        .collect();
    trials.push(Trial::test("sqlite3", || visits_in_any_order(&sqlite3(), 0, "none")));
    trials.push(Trial::test("python3", || visits_in_any_order(&python3(), 0, "none")));
    // With checkpoints to begin with, wherever that is a shorter way.
    trials.push(Trial::test("sqlite3 stored", || visits_in_any_order(&sqlite3(), 0, "0")));
    trials.push(Trial::test("going_back_is_cheap", going_back_is_cheap));
    trials.push(Trial::test("whoever_is_killed_nobody_is_left", nobody_is_left));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn sqlite3() -> Job {
    let sql = "CREATE TABLE t(a, b); CREATE INDEX i ON t(b);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
        INSERT INTO t SELECT i, printf('%d', i * 7919 % 1000) FROM n;
        SELECT sum(a), max(b) FROM t; DELETE FROM t WHERE a % 3; SELECT count(*) FROM t;";
    Job::new("/usr/bin/sqlite3").args(["trees.db", sql])
}

fn python3() -> Job {
    let program = "import json, re
words = re.findall(r'[a-z]+', 'the quick brown fox ' * 20)
print(json.dumps({w: words.count(w) for w in words}))";
    Job::new("/usr/bin/python3").args(["-S", "-c", program])
}

struct Recorded {
    _directory: TempDir,
    path: PathBuf,
}

fn record(job: &Job, options: &[&str]) -> Result<Recorded, String> {
    let directory = TempDir::new().map_err(|error| error.to_string())?;
    let path = directory.path().join("recording");
    // Calls that are bound late save registers of which the CPU may leave out some.
    let job = job.clone().env("LD_BIND_NOW", "1");
    run::run(&recording::recorder(&job, &path, options))?;
    Ok(Recorded { _directory: directory, path })
}

/// Random moments of a process, in random order.
fn moments(path: &Path, process: i32, count: usize) -> Result<Vec<String>, String> {
    let events = recording::numbered_events(&Recording::open(path), process)?;
    // What each thread executed when it went on: the event, and how many instructions.
    let mut stretches: Vec<(u64, u64)> = Vec::new();
    let mut resumed = None;
    for (number, event) in &events {
        match event {
            Event::Resumed { .. } => resumed = Some(*number),
            Event::Stopped { instructions, .. } => {
                stretches.extend(resumed.take().map(|number| (number, *instructions)));
            }
            _ => {}
        }
    }
    let all: u64 = stretches.iter().map(|(_, instructions)| instructions).sum();
    let mut random = Random::new();
    let mut moments = vec!["start".to_owned(), "end".to_owned()];
    while moments.len() < count {
        // Half of them by what was executed, half by what happened.
        let (event, instructions) = if random.below(2) == 0 {
            *random.one_of(&stretches)
        } else {
            let mut left = random.number() % all.max(1);
            let mut at = stretches.iter();
            loop {
                let stretch = at.next().ok_or("the process executed nothing")?;
                match left.checked_sub(stretch.1) {
                    Some(less) => left = less,
                    None => break *stretch,
                }
            }
        };
        let ticks = if instructions == 0 { 0 } else { random.number() % instructions };
        moments.push(format!("{event}.{ticks}"));
    }
    for index in (1..moments.len()).rev() {
        moments.swap(index, random.below(index + 1));
    }
    Ok(moments)
}

fn visits_in_any_order(job: &Job, process: usize, checkpoints: &str) -> Result<(), Failed> {
    let recorded = record(job, &["--checkpoints", checkpoints])?;
    let processes = processes(&recorded.path)?;
    let (program, process) = (processes[0], processes[process]);
    let moments = moments(&recorded.path, process, VISITS)?;
    let recording = &recorded.path;
    let journey = |distance, moments| {
        visit(&Journey { recording: recording.clone(), program, process, distance, moments })
    };
    let session = journey(Some(DISTANCE), moments.clone())?;
    let mut instructions = 0;
    for (moment, seen) in moments.iter().zip(&session.sights) {
        let alone = journey(None, vec![moment.clone()])?;
        instructions += alone.instructions;
        same(&alone.sights[0], seen).map_err(|error| format!("{moment}: {error}"))?;
    }
    let Report { copies, rewinds, beginnings, .. } = session;
    println!(
        "{} instructions and not {instructions}; {copies} copies, {rewinds} ways back, \
         {beginnings} beginnings",
        session.instructions
    );
    if session.sights.len() != moments.len() {
        return Err(format!("only {} moments were visited", session.sights.len()).into());
    }
    Ok(())
}

/// A program that computes for a while, and makes hardly any call.
fn computes(directory: &TempDir) -> Result<Job, Failed> {
    let source = directory.path().join("computes.c");
    let program = directory.path().join("computes");
    let text = "#include <stdio.h>
        unsigned long table[4096];
        int main(void) {
            unsigned long sum = 1;
            for (unsigned long i = 0; i < 40000000; i++) {
                sum = sum * 6364136223846793005 + i;
                table[sum >> 52] ^= sum;
            }
            printf(\"%lu\\n\", sum);
        }";
    std::fs::write(&source, text)?;
    let status = std::process::Command::new("cc")
        .args(["-O1", "-g", "-o"])
        .args([&program, &source])
        .status()?;
    if status.success() { Ok(Job::new(program)) } else { Err("cc failed".into()) }
}

/// A way back costs much less than another replay.
fn going_back_is_cheap() -> Result<(), Failed> {
    let directory = TempDir::new()?;
    let recorded = record(&computes(&directory)?, &["--checkpoints", "none"])?;
    let process = processes(&recorded.path)?[0];
    let moments = moments(&recorded.path, process, 20)?;
    let recording = recorded.path.clone();
    let (program, distance) = (process, Some(1_000_000));
    let session = visit(&Journey { recording, program, process, distance, moments })?;
    let whole = Recording::open(&recorded.path).manifest()?.finished.ok_or("unfinished")?;
    let Report { instructions, copies, rewinds, .. } = session;
    println!(
        "20 visits: {instructions} instructions, of a run of {}; {copies} copies, {rewinds} ways \
         back",
        whole.instructions
    );
    // On average a visit from the start would cost half of the run.
    if rewinds < 5 || instructions > 20 / 2 / 2 * whole.instructions {
        return Err("that is not cheap".into());
    }
    Ok(())
}

/// Whoever is killed in the middle of a session takes all others along.
fn nobody_is_left() -> Result<(), Failed> {
    let directory = TempDir::new()?;
    let recorded = record(&computes(&directory)?, &["--checkpoints", "none"])?;
    let process = processes(&recorded.path)?[0];
    for victim in ["why", "supervisor"] {
        let moments = moments(&recorded.path, process, 400)?;
        let recording = recorded.path.clone();
        let (program, distance) = (process, Some(1_000_000));
        let job = job(&Journey { recording, program, process, distance, moments });
        let mark = Mark::new();
        let dir = run::fresh_dir(&job)?;
        let mut command = run::command(&job, dir.path(), &mark);
        let (mut child, streams) = run::start(&mut command, &job)?;
        let deadline = Instant::now() + Duration::from_secs(60);
        // The two, the process that is looked at, the one from which all are made, and copies.
        while mark.alive().len() < 8 {
            if Instant::now() > deadline || child.try_wait()?.is_some() {
                mark.kill_all();
                return Err("there were never many processes".into());
            }
            thread::sleep(Duration::from_millis(1));
        }
        let is_supervisor = |pid: Pid| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            name.trim() == "supervisor"
        };
        let pid = match victim {
            "why" => Pid::from_raw(child.id().cast_signed()),
            _ => {
                let mut all = mark.alive().into_iter().map(|process| process.pid);
                all.find(|pid| is_supervisor(*pid)).ok_or("there is no supervisor")?
            }
        };
        kill(pid, Signal::SIGKILL)?;
        child.wait()?;
        leftover::none_left(&mark).map_err(|error| format!("{victim}: {error}"))?;
        streams.collect();
    }
    Ok(())
}
