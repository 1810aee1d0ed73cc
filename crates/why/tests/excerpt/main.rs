//! Excerpts: at each moment that one executes, everything is what it was in the whole recording,
//! and nothing is executed but the slice.

#[path = "../rewind/journey.rs"]
mod journey;
#[path = "../support/mod.rs"]
mod support;
#[path = "../rewind/visitor.rs"]
mod visitor;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use tempfile::TempDir;
use why_record::event::{Cause, Ended, Event};
use why_record::store::Recording;
use why_record::summary;

use journey::{processes, same, visit};
use support::job::Job;
use support::random::Random;
use support::why::WHY;
use support::{fixture, native, recording, run};
use visitor::Journey;

/// At most so many moments of an excerpt are looked at.
const MOST_LOOKS: usize = 100;

/// The kinds of slices.
const KINDS: [&[&str]; 3] = [&[], &["--data"], &["--thin"]];

/// Programs beside this file, what their slices are of, and for which compilers.
const PROGRAMS: &[(&str, &str)] = &[
    ("loops", "end:sum"),
    ("reads", "end:hash"),
    ("threads", "end:shared"),
    ("signals", "end:made"),
    ("vectors", "end:total"),
    ("lanes", "end:total"),
    ("maps", "end:found"),
    ("crash", "crash"),
    ("shares", "end:sum"),
];
const LEVELS: [&str; 2] = ["-O0", "-O2"];

/// Fixtures; their slices are of why they came to their end.
const FIXTURES: &[&str] = &[
    "memory/shared_across_fork",
    "memory/sysv_shm",
    "processes/shared_counters",
    "threads/robust_mutex",
    "jit/code_shared_between_processes",
    "threads/condvar",
    "threads/lost_updates",
    "signals/nested",
    "signals/itimers",
    "signals/rep_fault",
    "memory/mremap",
    "memory/mmap_kinds",
    "syscalls/read_write",
    "processes/exec_self",
    "jit/patch_immediate",
];

/// Fixtures whose last process is a copy of another one, as it is to the end.
const FORKS: &[&str] = &[
    "processes/fork_cow",
    "processes/fork_jit",
    "processes/fork_tree",
    "memory/shared_across_fork",
    "processes/shared_counters",
];

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let [_, word, journey] = &words[..]
        && word == visitor::WORD
    {
        return visitor::main(journey);
    }
    let mut trials = Vec::new();
    for &(name, criterion) in PROGRAMS {
        for level in LEVELS {
            let trial = move || {
                let directory = TempDir::new()?;
                excerpts(&built(name, level, &directory)?, criterion)
            };
            trials.push(Trial::test(format!("{name} {level}"), trial));
        }
    }
    for name in ["forks", "shares"] {
        for level in LEVELS {
            let trial = move || {
                let directory = TempDir::new()?;
                of_last_process(&built(name, level, &directory)?, "end:sum")
            };
            trials.push(Trial::test(format!("{name} {level} forked"), trial));
        }
    }
    for &title in FORKS {
        let trial = move || of_last_process(&native::native(&fixture::named(title)?)?.0, "end");
        trials.push(Trial::test(format!("{title} forked"), trial));
    }
    for &title in FIXTURES {
        let trial = move || {
            let (job, _) = native::native(&fixture::named(title)?)?;
            excerpts(&job, "end")
        };
        trials.push(Trial::test(title, trial));
    }
    trials.push(Trial::test("sqlite3", || {
        let job = Job::new("/usr/bin/sqlite3").args([":memory:", "SELECT 6 * 7;"]);
        // How many bytes it wrote last.
        Ok(excerpt(&Setting::of(&job)?, "write:%rdx", &["--thin"])?)
    }));
    trials.push(Trial::test("an_excerpt_is_a_recording", an_excerpt_is_a_recording));
    trials.push(Trial::test("lines_are_left_as_in_the_whole", lines_are_left_as_in_the_whole));
    trials.push(Trial::test("what_makes_no_sense_is_said", what_makes_no_sense_is_said));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn built(name: &str, level: &str, directory: &TempDir) -> Result<Job, Failed> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/excerpt");
    let program = directory.path().join(name);
    let source = sources.join(name).with_extension("c");
    let options = ["-g", "-w", "-pthread", "-mavx2", level];
    let status = Command::new("cc").args(options).arg("-o").args([&program, &source]).status()?;
    if status.success() { Ok(Job::new(program)) } else { Err("cc failed".into()) }
}

/// A recording, and excerpts of it.
struct Setting {
    directory: TempDir,
    whole: PathBuf,
    /// The one that was started, and the one of which there are excerpts.
    first: i32,
    process: i32,
}

impl Setting {
    fn of(job: &Job) -> Result<Setting, String> {
        let directory = TempDir::new().map_err(|error| error.to_string())?;
        let whole = directory.path().join("whole");
        // Calls that are bound late save registers of which the CPU may leave out some.
        let job = job.clone().env("LD_BIND_NOW", "1");
        run::run(&recording::recorder(&job, &whole, &["--checkpoints", "none"]))?;
        let process = processes(&whole)?[0];
        Ok(Setting { directory, whole, first: process, process })
    }

    /// With which status an excerpt ends.
    fn status(&self) -> Result<Option<i32>, String> {
        let recording = Recording::open(&self.whole);
        let processes = summary::processes(&recording).map_err(|error| error.to_string())?;
        let own = processes.iter().find(|process| process.pid == self.process);
        Ok(own.and_then(|own| own.ended).map(|ended| match ended {
            Ended::Status(status) => status,
            Ended::Signal(signal) => 128 + signal,
        }))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn why(&self, arguments: &[&str]) -> Result<Output, String> {
        Command::new("timeout")
            .args(["-s", "KILL", "240", WHY])
            .args(arguments)
            .env("WHY_DIR", self.path("recordings"))
            .output()
            .map_err(|error| error.to_string())
    }

    fn answered(&self, arguments: &[&str]) -> Result<Output, String> {
        let output = self.why(arguments)?;
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.success() {
            true => Ok(output),
            false => Err(format!("{arguments:?}: {}: {said}", output.status)),
        }
    }
}

fn excerpts(job: &Job, criterion: &str) -> Result<(), Failed> {
    let setting = Setting::of(job)?;
    for kind in KINDS {
        excerpt(&setting, criterion, kind).map_err(|error| format!("{kind:?}: {error}"))?;
    }
    Ok(())
}

/// The process that was created last.
fn of_last_process(job: &Job, criterion: &str) -> Result<(), Failed> {
    let mut setting = Setting::of(job)?;
    setting.process = *processes(&setting.whole)?.last().ok_or("no process")?;
    let criterion = format!("{}/{criterion}", setting.process);
    for kind in KINDS {
        excerpt(&setting, &criterion, kind).map_err(|error| format!("{kind:?}: {error}"))?;
    }
    Ok(())
}

fn excerpt(setting: &Setting, criterion: &str, kind: &[&str]) -> Result<(), String> {
    let whole = setting.whole.to_str().ok_or("a strange path")?;
    let name = format!("slice{}", kind.concat());
    let sliced = [&["slice", whole, criterion, "--save", &name, "--json", "--all"], kind].concat();
    let sliced: Value = serde_json::from_slice(&setting.answered(&sliced)?.stdout)
        .map_err(|error| error.to_string())?;
    let new = setting.path(&format!("new{}", kind.concat()));
    let report = setting.path("report.json");
    let replay = format!("--json={}", report.display());
    let new_name = new.to_str().ok_or("a strange path")?;
    let replayed = setting.why(&["replay", whole, "--slice", &name, "-o", new_name, &replay])?;
    let status = setting.status()?;
    if replayed.status.code() != status {
        let said = String::from_utf8_lossy(&replayed.stderr);
        return Err(format!("{}, and not {status:?}: {said}", replayed.status));
    }
    let report = std::fs::read(&report).map_err(|error| error.to_string())?;
    let report: Value = serde_json::from_slice(&report).map_err(|error| error.to_string())?;
    let stretches = stretches(&new, setting.process)?;
    executes_the_slice(&sliced, &report["answer"], &stretches)?;
    let seen = sights_are_the_same(setting, &new, &stretches)?;
    let again = setting.why(&["replay", new_name])?;
    if (again.status, &again.stdout) != (replayed.status, &replayed.stdout) {
        return Err("replayed again, it is not the same".to_owned());
    }
    println!("{criterion} {kind:?}: {} looked at {seen} moments", report["answer"]["excerpt"]);
    Ok(())
}

/// What threads of an excerpt execute at a time: the event and the ticks of the whole recording,
/// and how many instructions.
type Stretch = (u64, u64, u64);

fn stretches(path: &Path, process: i32) -> Result<Vec<Stretch>, String> {
    let mut stretches = Vec::new();
    let mut at = None;
    for (_, event) in recording::numbered_events(&Recording::open(path), process)? {
        match event {
            Event::Skipped { event, ticks } => at = Some((event, ticks)),
            Event::Stopped { instructions, cause, .. } => {
                let (event, ticks) = at.take().ok_or("a stretch is nowhere")?;
                let told = u64::from(cause == Cause::Instruction);
                stretches.push((event, ticks, instructions + told));
            }
            _ => {}
        }
    }
    Ok(stretches)
}

/// The excerpt executes what is in the slice, and says so.
fn executes_the_slice(sliced: &Value, answer: &Value, stretches: &[Stretch]) -> Result<(), String> {
    let instances = sliced["answer"]["instances"].as_array().ok_or("no instances")?;
    let in_slice: BTreeSet<String> = instances
        .iter()
        .filter_map(|instance| Some(instance["position"].as_str()?.to_owned()))
        .collect();
    let executed: BTreeSet<String> = stretches
        .iter()
        .flat_map(|(event, ticks, count)| {
            (*ticks..ticks + count).map(move |ticks| format!("{event}.{ticks}"))
        })
        .collect();
    let told = &answer["excerpt"];
    let number = |value: &Value| value.as_u64().ok_or(format!("no number: {value}"));
    let besides = number(&told["besides"])?;
    // What was interrupted in the middle is executed up to there when a stretch ends with it,
    // and does not count.
    let ends: BTreeSet<String> = stretches
        .iter()
        .map(|(event, ticks, count)| format!("{event}.{}", ticks + count))
        .collect();
    let missing: BTreeSet<&String> = in_slice.difference(&executed).collect();
    if let Some(missing) = missing.iter().find(|missing| !ends.contains(**missing)) {
        return Err(format!("{missing} is not executed"));
    }
    let expected = (in_slice.len() - missing.len()) as u64 + besides;
    let sizes = [
        ("executed", executed.len() as u64, expected),
        ("in the slice", number(&told["in_slice"])?, in_slice.len() as u64),
        ("in all", number(&told["instructions"])?, number(&sliced["stats"]["traced"])?),
        ("replayed", number(&answer["instructions"])?, expected),
    ];
    for (what, told, expected) in sizes {
        if told != expected {
            return Err(format!("{what}: {told} and not {expected}"));
        }
    }
    Ok(())
}

/// Before and behind each stretch, or many of them, all is as in the whole recording.
fn sights_are_the_same(
    setting: &Setting,
    new: &Path,
    stretches: &[Stretch],
) -> Result<usize, String> {
    let mut random = Random::new();
    let mut chosen: BTreeSet<(u64, u64)> = BTreeSet::new();
    // The one that executes nothing tells how it ended, which is looked at as well.
    for (event, ticks, count) in stretches.iter().filter(|(.., count)| *count > 0) {
        if stretches.len() * 2 <= MOST_LOOKS || random.below(stretches.len() * 2) < MOST_LOOKS {
            chosen.insert((*event, *ticks));
            let within = if *count > 1 { random.number() % count } else { 0 };
            chosen.insert((*event, ticks + within));
        }
    }
    let chosen = chosen.into_iter().map(|(event, ticks)| format!("{event}.{ticks}"));
    let (start, end) = ("start".to_owned(), "end".to_owned());
    let moments: Vec<String> = [start].into_iter().chain(chosen).chain([end]).collect();
    let journey = |recording: &Path, program: i32| {
        let (recording, moments) = (recording.to_owned(), moments.clone());
        let process = setting.process;
        visit(&Journey { recording, program, process, distance: None, moments })
    };
    let (expected, seen) =
        (journey(&setting.whole, setting.first)?, journey(new, setting.process)?);
    for (moment, (expected, seen)) in moments.iter().zip(expected.sights.iter().zip(&seen.sights)) {
        same(expected, seen).map_err(|error| format!("at {moment}: {error}"))?;
    }
    match seen.sights.len() == moments.len() && expected.sights.len() == moments.len() {
        true => Ok(moments.len()),
        false => Err(format!("only {} moments of {}", seen.sights.len(), moments.len())),
    }
}

/// A program with an excerpt beside it.
fn with_excerpt(name: &str, criterion: &str) -> Result<Setting, Failed> {
    let directory = TempDir::new()?;
    let setting = Setting::of(&built(name, "-O0", &directory)?)?;
    excerpt(&setting, criterion, &["--thin"])?;
    Ok(setting)
}

/// It is told of, printed, packed and traced like any other.
fn an_excerpt_is_a_recording() -> Result<(), Failed> {
    let setting = with_excerpt("loops", "end:sum")?;
    let name = |path: PathBuf| path.to_string_lossy().into_owned();
    let (whole, new) = (name(setting.whole.clone()), name(setting.path("new--thin")));
    let info = String::from_utf8(setting.answered(&["info", &new])?.stdout)?;
    if !info.contains(&format!("excerpt    of {whole}, for end:sum")) {
        return Err(info.into());
    }
    // What is not in the slice can be seen as well.
    for value in ["end:sum", "end:other", "start", "start:%rsp"] {
        let printed = |recording: &str| {
            Ok::<_, String>(setting.answered(&["print", recording, value])?.stdout)
        };
        if printed(&whole)? != printed(&new)? {
            return Err(format!("{value} is not the same").into());
        }
    }
    let packed = name(setting.path("new.why"));
    setting.answered(&["pack", &new, "-o", &packed])?;
    let traced = ["replay", &packed, "--tool", "trace", "--stats"];
    let (plain, traced) = (setting.why(&["replay", &new])?, setting.why(&traced)?);
    let said = String::from_utf8_lossy(&traced.stderr).into_owned();
    let executed: Vec<&str> = said.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    if plain.status != traced.status || executed.len() != 2 || executed[0] != executed[1] {
        return Err(format!("{}, {}: {said}", plain.status, traced.status).into());
    }
    Ok(())
}

/// What is said of executions of lines: the answers, and what is said where there are none.
fn asked_of_lines(
    setting: &Setting,
    recording: &str,
    lines: &BTreeSet<u64>,
    times: u64,
    value: &str,
) -> Result<(Vec<Value>, String), String> {
    let of_line = |line: &u64| {
        let line = *line;
        (1..=times).map(move |time| format!("loops.c:{line}#{time}{value}"))
    };
    let criteria: Vec<String> = lines.iter().flat_map(of_line).collect();
    let criteria = criteria.iter().map(String::as_str);
    let words: Vec<&str> = ["print", recording, "--json"].into_iter().chain(criteria).collect();
    let output = setting.why(&words)?;
    let answers = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).map_err(|error| error.to_string()))
        .collect::<Result<_, _>>()?;
    Ok((answers, String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// The line of an answer, and when it was left with which value.
fn left(answer: &Value) -> (u64, String) {
    let criterion = answer["criterion"].as_str().unwrap_or_default();
    let line = criterion.split([':', '#']).nth(1).and_then(|line| line.parse().ok());
    let Value::Object(told) = &answer["answer"] else { return (0, String::new()) };
    let (moment, position) = (&told["moment"], &told["position"]);
    (line.unwrap_or_default(), format!("{moment} {position} {}", told["value"]["value"]))
}

/// The value of a line in an excerpt is one that it leaves in the whole recording, or it is said
/// that the excerpt does not have all of the line.
fn lines_are_left_as_in_the_whole() -> Result<(), Failed> {
    /// No line of the program is executed more often.
    const MOST_TIMES: u64 = 25;
    let directory = TempDir::new()?;
    let setting = Setting::of(&built("loops", "-O0", &directory)?)?;
    let whole = setting.whole.to_str().ok_or("a strange path")?;
    let (mut values, mut refused) = (0, 0);
    for kind in KINDS {
        let slice = format!("slice{}", kind.concat());
        setting.answered(&[&["slice", whole, "end:sum", "--save", &slice], kind].concat())?;
        let new = setting.path(&format!("new{}", kind.concat()));
        let new = new.to_str().ok_or("a strange path")?;
        setting.why(&["replay", whole, "--slice", &slice, "-o", new])?;
        let ask = |lines: &BTreeSet<u64>, value| asked_of_lines(&setting, new, lines, 4, value);
        let (begun, _) = ask(&(1..=45).collect(), "")?;
        let lines: BTreeSet<u64> = begun.iter().map(|answer| left(answer).0).collect();
        let (answers, said) = ask(&lines, ":sum")?;
        let (in_whole, _) = asked_of_lines(&setting, whole, &lines, MOST_TIMES, ":sum")?;
        let in_whole: BTreeSet<(u64, String)> = in_whole.iter().map(left).collect();
        if let Some(other) = answers.iter().find(|answer| !in_whole.contains(&left(answer))) {
            return Err(format!("{kind:?}: {other} is not what the line leaves").into());
        }
        // What is refused begins where it is said to.
        let cut: Vec<&str> = said.lines().filter(|line| line.contains("up to where")).collect();
        if begun.len() != answers.len() + cut.len() {
            let (begun, answers) = (begun.len(), answers.len());
            return Err(format!("{kind:?}: {begun} began, {answers} were answered: {said}").into());
        }
        for line in &cut {
            let begins = |answer: &Value| {
                let position = answer["answer"]["position"].as_str();
                position.is_some_and(|position| line.contains(&format!("at {position},")))
            };
            if !line.contains(whole) || !begun.iter().any(begins) {
                return Err(format!("{kind:?}: {line}").into());
            }
        }
        values += answers.len();
        refused += cut.len();
    }
    println!("{values} values, {refused} refused");
    if values < 20 || refused < 20 { Err("too few lines".into()) } else { Ok(()) }
}

fn what_makes_no_sense_is_said() -> Result<(), Failed> {
    let setting = with_excerpt("loops", "end:sum")?;
    let other = Setting::of(&built("crash", "-O0", &TempDir::new()?)?)?;
    let name = |path: PathBuf| path.to_string_lossy().into_owned();
    let (whole, new) = (name(setting.whole.clone()), name(setting.path("new--thin")));
    let slice = name(setting.whole.join("slices/slice--thin.json"));
    for (arguments, status, said) in [
        (
            &["slice", &new, "end:sum"][..],
            1,
            "is an excerpt, which does not know what made a value",
        ),
        (
            &["replay", &new, "--slice", "slice--thin"],
            125,
            "is an excerpt, which has only one slice",
        ),
        (&["replay", &whole, "--slice", "none"], 125, "kept slices: slice--thin"),
        (&["replay", &name(other.whole.clone()), "--slice", &slice], 125, "of another recording"),
        (&["replay", &whole, "--slice", "slice--thin", "-o", &new], 125, "cannot create"),
        (&["print", &new, "1.5"], 1, "is not in this excerpt"),
    ] {
        let output = setting.why(arguments)?;
        let line = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() != Some(status) || line.lines().count() != 1 || !line.contains(said)
        {
            return Err(format!("{arguments:?}: {}: {line}", output.status).into());
        }
    }
    Ok(())
}
