//! A part of a run, recorded and replayed: it is what the whole recording of the same program,
//! gdb and the program's own output say of that part.

#[path = "print/gdb.rs"]
mod gdb;

use gdb::{Question, function, normal};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const WHY: &str = env!("CARGO_BIN_EXE_why");

struct Setting {
    directory: TempDir,
    program: PathBuf,
}

impl Setting {
    fn build(name: &str) -> Setting {
        Setting::build_with(name, &["-O1", "-g", "-pthread"])
    }

    fn build_with(name: &str, options: &[&str]) -> Setting {
        let directory = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regions").join(name);
        let program = directory.path().join(name.split('.').next().unwrap());
        let mut compiler = Command::new("cc");
        compiler.args(options).arg(&source).arg("-o").arg(&program);
        assert!(compiler.status().unwrap().success());
        Setting { directory, program }
    }

    /// With everything at the same addresses in each run.
    fn why(&self, arguments: &[&str]) -> Output {
        Command::new("setarch")
            .args(["-R", WHY])
            .args(arguments)
            .env("WHY_DIR", self.directory.path().join("recordings"))
            .current_dir(self.directory.path())
            .output()
            .unwrap()
    }

    fn record_command(&self, name: &str, options: &[&str], command: &[&str]) -> Output {
        let record = [&["record", "--cpu", "native", "-o", name], options, &["--"], command];
        self.why(&record.concat())
    }

    /// Records the program.
    fn record(&self, name: &str, options: &[&str]) -> Output {
        self.record_command(name, options, &[self.program.to_str().unwrap()])
    }

    fn is_there(&self, recording: &str) -> bool {
        self.directory.path().join(recording).exists()
    }

    /// Memory is compared where the recording tells of it.
    fn replay(&self, name: &str) -> Output {
        self.why(&["replay", "--verify", name])
    }

    fn print(&self, recording: &str, criterion: &str) -> Value {
        let printed = self.why(&["print", recording, criterion, "--json"]);
        assert!(printed.status.success(), "{criterion}: {}", text(&printed.stderr));
        serde_json::from_slice::<Value>(&printed.stdout).unwrap()["answer"].clone()
    }

    fn value(&self, recording: &str, criterion: &str) -> String {
        self.print(recording, criterion)["value"]["value"].as_str().unwrap().to_owned()
    }

    fn info(&self, recording: &str) -> Value {
        let told = self.why(&["info", recording, "--json"]);
        serde_json::from_slice::<Value>(&told.stdout).unwrap()["answer"].clone()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What the program's own functions have; the C library has random numbers.
fn own_frames(answer: &Value) -> Vec<&Value> {
    answer["frames"].as_array().unwrap().iter().filter(|frame| frame["own"] == true).collect()
}

/// What was written behind a line.
fn behind<'a>(output: &'a str, line: &str) -> &'a str {
    output.split_once(line).unwrap_or_else(|| panic!("{line} is not in {output}")).1
}

#[test]
fn a_phase_is_what_it_is_in_the_whole_run() {
    let setting = Setting::build("phases.c");
    let whole = setting.record("whole", &[]);
    let part = setting.record("part", &["--from", "work#3", "--until", "work#2"]);
    for recorded in [&whole, &part] {
        assert_eq!(recorded.status.code(), Some(7), "{}", text(&recorded.stderr));
        assert_eq!(text(&recorded.stderr), "");
    }
    assert_eq!(part.stdout, whole.stdout);
    let replayed = setting.replay("part");
    let lines: Vec<String> = text(&whole.stdout).lines().map(ToOwned::to_owned).collect();
    assert_eq!(text(&replayed.stdout), format!("{}\n{}\n", lines[2], lines[3]));
    assert_eq!((replayed.status.code(), text(&replayed.stderr)), (Some(0), String::new()));
    for (inside, outside) in
        [("start", "work#3"), ("report#1", "report#3"), ("work#2", "work#4"), ("end", "work#5")]
    {
        let (inside, outside) = (setting.print("part", inside), setting.print("whole", outside));
        assert_eq!(inside["registers"], outside["registers"]);
        assert_eq!(own_frames(&inside), own_frames(&outside));
    }
    for (value, number) in [("sum", 3), ("table[17]", 3), ("phase", 3)] {
        let inside = setting.value("part", &format!("start:{value}"));
        assert_eq!(inside, setting.value("whole", &format!("work#{number}:{value}")));
        let program = &setting.program;
        let expressions = &[value];
        let question = Question { program, arguments: &[], place: "work", number, expressions };
        assert_eq!(normal(&inside), normal(question.ask()["values"][value].as_str().unwrap()));
    }
}

#[test]
fn a_line_is_a_border_too_and_positions_and_checkpoints_are_within() {
    let setting = Setting::build("phases.c");
    let options = [
        "--checkpoints",
        "0",
        "--hash",
        "1",
        "--from",
        "phases.c:17#2",
        "--until",
        "phases.c:17#3",
    ];
    assert_eq!(setting.record("part", &options).status.code(), Some(7));
    let replayed = text(&setting.replay("part").stdout);
    assert!(replayed.starts_with("phase 2: ") && replayed.lines().count() == 3, "{replayed}");
    let seen = setting.print("part", "report#2");
    let position = seen["position"].as_str().unwrap();
    assert_eq!(setting.print("part", position)["registers"], seen["registers"]);
    let from = setting.why(&["replay", "part", "--from", position, "--stats"]);
    assert!(from.status.success(), "{}", text(&from.stderr));
    let again = text(&from.stdout);
    assert!(replayed.ends_with(&again), "{again}");
}

/// Its rax is n after 2 + 3n instructions.
#[test]
fn counts_of_instructions_are_exact() {
    let setting = Setting::build_with("counts.S", &["-nostdlib", "-static"]);
    for (from, until) in [(2, 3), (1, 64), (5, 3_000_000), (299_999, 700_001), (777, 1_000_778)] {
        let name = format!("from-{from}");
        let borders = ["--from", &from.to_string(), "--until", &until.to_string()];
        let recorded = setting.record(&name, &borders);
        assert!(recorded.status.success(), "{}", text(&recorded.stderr));
        let turns = |count: u64| (count.saturating_sub(2)).div_ceil(3);
        let rax = |place: &str| setting.print(&name, place)["registers"]["rax"].clone();
        assert_eq!(rax("start"), turns(from), "from {from}");
        assert_eq!(rax("end"), turns(until), "until {until}");
        assert_eq!(setting.info(&name)["processes"][0]["instructions"], until - from);
        assert!(setting.replay(&name).status.success());
    }
}

#[test]
fn threads_that_wait_or_run_when_it_begins_go_on_in_it() {
    let setting = Setting::build("threads.c");
    for (name, until) in [("to-the-end", None), ("to-the-last", Some("end_here"))] {
        let until = until.map_or(vec![], |until| vec!["--until", until]);
        let options = [vec!["--hash", "1", "--from", "begin_here"], until].concat();
        let recorded = setting.record(name, &options);
        assert_eq!(recorded.status.code(), Some(3), "{}", text(&recorded.stderr));
        let replayed = setting.replay(name);
        assert_eq!(text(&replayed.stderr), "");
        let wrote = text(&recorded.stdout);
        let expected = behind(&wrote, "before\n");
        match options.contains(&"--until") {
            true => {
                assert_eq!(format!("{}after\n", text(&replayed.stdout)), expected);
                assert_eq!(replayed.status.code(), Some(0));
            }
            false => {
                assert_eq!(text(&replayed.stdout), expected);
                assert_eq!(replayed.status.code(), Some(3));
            }
        }
        assert_eq!(setting.info(name)["processes"][0]["threads"], 4);
    }
}

#[test]
fn children_that_are_there_when_it_begins_are_recorded_as_well() {
    let setting = Setting::build("children.c");
    let recorded = setting.record("part", &["--hash", "1", "--from", "begin_here"]);
    assert_eq!(recorded.status.code(), Some(6), "{}", text(&recorded.stderr));
    let replayed = setting.replay("part");
    assert_eq!((replayed.status.code(), text(&replayed.stderr)), (Some(6), String::new()));
    let wrote = text(&recorded.stdout);
    assert_eq!(text(&replayed.stdout), behind(&wrote, "before\n"));
    assert!(wrote.ends_with("4 5\n"), "{wrote}");
    let info = setting.info("part");
    let processes = info["processes"].as_array().unwrap();
    let ends: Vec<&str> = processes.iter().map(|p| p["ended"].as_str().unwrap()).collect();
    assert_eq!(ends, ["status 6", "status 4", "status 5", "status 0"]);
    let blocked = processes[1]["pid"].as_i64().unwrap();
    let place = setting.print("part", &format!("{blocked}/say"));
    assert_eq!(place["frames"][1]["function"].as_str().map(function), Some("blocked"));
}

#[test]
fn processes_that_share_memory_are_recorded_from_the_same_moment_on() {
    let setting = Setting::build("sharing.c");
    for until in [&["--until", "end_here"][..], &[]] {
        let name = format!("part-{}", until.len());
        let recorded =
            setting.record(&name, &[&["--hash", "20", "--from", "begin_here"], until].concat());
        assert!(recorded.status.success(), "{}", text(&recorded.stderr));
        let replayed = setting.replay(&name);
        assert_eq!((replayed.status.code(), text(&replayed.stderr)), (Some(0), String::new()));
        let (wrote, again) = (text(&recorded.stdout), text(&replayed.stdout));
        // Who of several processes writes first when all do, the kernel decides.
        let known = |line: &str| wrote.lines().any(|known| known == line);
        assert!(again.lines().all(known), "{again} is not in {wrote}");
        let parents = |output: &str| -> Vec<String> {
            let lines = output.lines().filter(|line| line.starts_with("parent"));
            lines.map(ToOwned::to_owned).collect()
        };
        let last = if until.is_empty() { 7 } else { 6 };
        assert_eq!(parents(&again), parents(&wrote)[1..last]);
        assert!(again.contains("child"), "{again}");
    }
}

#[test]
fn it_may_begin_in_a_handler() {
    let setting = Setting::build_with("handler.c", &["-O0", "-g"]);
    let recorded = setting.record("part", &["--hash", "1", "--from", "handle#3"]);
    assert_eq!(recorded.status.code(), Some(2), "{}", text(&recorded.stderr));
    let replayed = setting.replay("part");
    assert_eq!((replayed.status.code(), text(&replayed.stderr)), (Some(2), String::new()));
    assert_eq!(text(&replayed.stdout), text(&recorded.stdout));
    assert_eq!(setting.value("part", "start:struck"), "2");
    let frames = setting.print("part", "start")["frames"].clone();
    assert_eq!((&frames[0]["function"], &frames[1]["signal"]), (&"handle".into(), &true.into()));
}

#[test]
fn the_standard_streams_are_known_wherever_they_are_when_it_begins() {
    let setting = Setting::build("streams.c");
    let recorded = setting.record("part", &["--from", "begin_here"]);
    let replayed = setting.replay("part");
    assert_eq!(behind(&text(&recorded.stdout), "before\n"), text(&replayed.stdout));
    assert_eq!(text(&replayed.stdout), "by a low number\nby a high number\n");
    assert_eq!(text(&replayed.stderr), "to standard error\n");
}

#[test]
fn it_may_begin_in_another_process_and_in_another_program() {
    let setting = Setting::build("phases.c");
    let shell = ["sh", "-c", "./phases; echo $?; exit 9"];
    let native = Command::new("sh").args(&shell[1..]).current_dir(&setting.directory).output();
    let native = text(&native.unwrap().stdout);
    let recorded = setting.record_command("child", &["--from", "work#5"], &shell);
    assert_eq!((recorded.status.code(), text(&recorded.stdout)), (Some(9), native.clone()));
    let replayed = setting.replay("child");
    assert_eq!(
        text(&replayed.stdout),
        native.lines().skip(4).fold(String::new(), |all, line| { all + line + "\n" })
    );
    assert_eq!(replayed.status.code(), Some(9));
    // The instructions of the shell count as well.
    let becomes = ["sh", "-c", "exec ./phases"];
    let whole = setting.record_command("whole", &[], &becomes);
    assert_eq!(whole.status.code(), Some(7));
    let instructions = setting.info("whole")["manifest"]["finished"]["instructions"].clone();
    let from = (instructions.as_u64().unwrap() - 1_000_000).to_string();
    assert_eq!(setting.record_command("last", &["--from", &from], &becomes).status.code(), Some(7));
    let replayed = setting.replay("last");
    assert_eq!(text(&replayed.stdout), native.lines().nth(4).unwrap().to_owned() + "\n");
    assert_eq!(replayed.status.code(), Some(7));
    let recorded = setting.info("last")["manifest"]["finished"]["instructions"].clone();
    assert!(recorded.as_u64().unwrap().abs_diff(1_000_000) < 1000, "{recorded}");
}

#[test]
fn a_start_that_never_comes_leaves_no_recording() {
    let setting = Setting::build("phases.c");
    for (from, why) in [
        ("work#6", "before work#6: work was executed only 5 times, and not 6"),
        ("nothing", "before nothing: there is no function nothing in what was mapped"),
        ("phases.c:2000", "there is no code of line 2000"),
        ("4000000000", "before instruction 4000000000: only "),
    ] {
        let recorded = setting.record("none", &["--from", from]);
        assert_eq!(recorded.status.code(), Some(7));
        assert_eq!(text(&recorded.stdout).lines().count(), 5);
        let said = text(&recorded.stderr);
        assert!(said.lines().count() == 1 && said.contains(why), "{said}");
        assert!(!setting.is_there("none"));
    }
    let recorded = setting.record("none", &["--from", "work", "--until", "1000"]);
    assert!(text(&recorded.stderr).contains("instruction 1000 came before work"));
    assert!(recorded.status.code() == Some(7) && !setting.is_there("none"));
}

#[test]
fn an_end_that_never_comes_is_the_programs() {
    let setting = Setting::build("phases.c");
    let recorded = setting.record("part", &["--from", "work#5", "--until", "work"]);
    assert_eq!(recorded.status.code(), Some(7));
    let replayed = setting.replay("part");
    assert_eq!(replayed.status.code(), Some(7));
    assert!(text(&replayed.stdout).starts_with("phase 5: "));
    assert_eq!(setting.info("part")["manifest"]["region"]["left"], false);
    let told = text(&setting.why(&["info", "part"]).stdout);
    assert!(told.contains("from work#5 until the end: work was never reached"), "{told}");
}

#[test]
fn what_cannot_be_recorded_is_refused_before_anything_runs() {
    let setting = Setting::build("phases.c");
    for options in [["--from", "5", "--until", "5"], ["--from", "6", "--until", "5"]] {
        let recorded = setting.record("none", &options);
        assert_eq!((recorded.status.code(), text(&recorded.stdout)), (Some(125), String::new()));
        assert_eq!(text(&recorded.stderr).lines().count(), 1);
    }
    for place in ["start", "crash", "1.2", "work#0", "work:phase"] {
        let recorded = setting.record("none", &["--from", place]);
        assert_eq!((recorded.status.code(), text(&recorded.stdout)), (Some(125), String::new()));
    }
    assert!(!setting.is_there("none"));
}
