//! What `why slice` and `why chop` say of programs whose slices are known: from the works that
//! they come from, and by hand.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const WHY: &str = env!("CARGO_BIN_EXE_why");

/// A program of these tests that was recorded.
struct Recorded {
    directory: TempDir,
    source: PathBuf,
    program: PathBuf,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Recorded {
    fn new(name: &str, compiler: &[&str], arguments: &[&str]) -> Recorded {
        let built = Recorded::built("cc", name, &[compiler, &["-pthread", "-lm"]].concat());
        built.record(arguments);
        built
    }

    /// Recorded with more in its environment.
    fn recorded_with(name: &str, environment: &[(&str, &str)]) -> Recorded {
        let built = Recorded::built("cc", name, &["-g", "-O0"]);
        let program = built.program.to_str().unwrap();
        let mut record = built.command(&["record", "--", program]);
        let recorded = record.envs(environment.iter().copied()).output().unwrap();
        assert_ne!(recorded.status.code(), Some(125), "{}", text(&recorded.stderr));
        built
    }

    fn built(compiler: &str, name: &str, options: &[&str]) -> Recorded {
        let directory = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slice").join(name);
        let program = directory.path().join(name.split('.').next().unwrap());
        let built = Recorded { directory, source, program };
        built.build(compiler, &built.source, options);
        built
    }

    /// Builds the program anew, of a copy of its source.
    fn build(&self, compiler: &str, source: &Path, options: &[&str]) {
        let mut command = Command::new(compiler);
        command.arg(source).arg("-o").arg(&self.program).args(options);
        let built = command.output().unwrap();
        assert!(built.status.success(), "{}", text(&built.stderr));
    }

    fn record(&self, arguments: &[&str]) {
        let program = self.program.to_str().unwrap();
        let recorded = self.why(&[&["record", "--", program], arguments].concat());
        assert_ne!(recorded.status.code(), Some(125), "{}", text(&recorded.stderr));
    }

    fn why(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let recordings = self.directory.path().join("recordings");
        let mut why = Command::new(WHY);
        why.args(arguments).env("WHY_DIR", recordings);
        // To tell where it panicked, a program would execute a thousand times as much.
        why.env("RUST_BACKTRACE", "0");
        why
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.why(&[arguments, &["--json", "--lines=1000"]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The only message of a command that has no answer.
    fn refused(&self, arguments: &[&str], status: i32) -> String {
        let output = self.why(arguments);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {message}");
        assert!(output.stdout.is_empty());
        assert_eq!(message.lines().count(), 1, "{message}");
        message
    }

    /// The comments of the lines that an answer has.
    fn comments(&self, answer: &Value) -> BTreeSet<String> {
        let source = std::fs::read_to_string(&self.source).unwrap();
        let lines: Vec<&str> = source.lines().collect();
        let numbers = answer["answer"]["lines"].as_array().unwrap().iter();
        let comment = |line: &Value| {
            let text = lines[line["line"].as_u64()? as usize - 1];
            let (_, comment) = text.split_once("/* ").or_else(|| text.split_once("// "))?;
            Some(comment.trim_end_matches(" */").to_owned())
        };
        numbers.filter_map(comment).collect()
    }

    /// The comments of the lines between which an answer has races: of the write and the read.
    fn races(&self, answer: &Value) -> Vec<(String, String)> {
        let source = std::fs::read_to_string(&self.source).unwrap();
        let comment = |place: &Value| {
            let (_, line) = place.as_str().unwrap().rsplit_once(':')?;
            let text = source.lines().nth(line.parse::<usize>().ok()? - 1)?;
            Some(text.split_once("/* ")?.1.trim_end_matches(" */").to_owned())
        };
        let told = |race: &Value, party: &str| {
            let place = &race[party]["place"];
            comment(place).unwrap_or_else(|| place.to_string())
        };
        let races = answer["answer"]["races"].as_array().unwrap().iter();
        races.map(|race| (told(race, "write"), told(race, "read"))).collect()
    }

    /// Where a comment stands, as `FILE:LINE`.
    fn place(&self, comment: &str) -> String {
        let source = std::fs::read_to_string(&self.source).unwrap();
        let is_it = |line: &str| line.contains(&format!("/* {comment} */"));
        let index = source.lines().position(is_it).unwrap();
        format!("{}:{}", self.source.file_name().unwrap().to_str().unwrap(), index + 1)
    }
}

fn set(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

const LEVELS: [&str; 3] = ["-O0", "-O1", "-O2"];

#[test]
fn the_example_of_relevant_slices_has_the_slice_of_the_thesis() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    let answer = recorded.json(&["slice", &format!("{}:out", recorded.place("16"))]);
    assert_eq!(answer["schema"], "why.slice/1");
    assert_eq!(recorded.comments(&answer), set(&["4", "15", "16"]));
}

#[test]
fn a_table_of_jumps_is_decided_by_what_selects_from_it() {
    for level in LEVELS {
        let recorded = Recorded::new("switch.c", &["-g", level, "-fno-inline"], &[]);
        let answer = recorded.json(&["slice", "end:w"]);
        let lines = recorded.comments(&answer);
        assert!(set(&["selects", "selected", "chosen"]).is_subset(&lines), "{level}: {lines:?}");
        let answer = recorded.json(&["slice", "end:w", "--data"]);
        assert!(!recorded.comments(&answer).contains("chosen"), "{level}");
    }
}

#[test]
fn where_a_jump_was_seen_to_lead_its_ways_meet() {
    for level in LEVELS {
        let recorded = Recorded::new("goto.c", &["-g", level, "-fno-inline"], &[]);
        let lines = recorded.comments(&recorded.json(&["slice", "end:w"]));
        assert!(set(&["selects", "selected", "chosen"]).is_subset(&lines), "{level}: {lines:?}");
        assert!(!lines.contains("tested") && !lines.contains("met"), "{level}: {lines:?}");
        // Behind it, whatever was selected does not matter. At -O2 each has a copy of what follows.
        if level == "-O2" {
            continue;
        }
        let lines = recorded.comments(&recorded.json(&["slice", "end:after"]));
        assert!(lines.contains("met") && !lines.contains("selects"), "{level}: {lines:?}");
    }
}

/// While a run is traced, what is executed often is translated anew.
#[test]
fn every_turn_of_a_long_loop_is_there() {
    const TURNS: u64 = 4_000_000;
    let recorded = Recorded::new("turns.c", &["-g", "-O1"], &[&TURNS.to_string()]);
    let answer = recorded.json(&["slice", "end:w"]);
    let times = |comment: &str| -> u64 {
        let line: u64 = recorded.place(comment).split_once(':').unwrap().1.parse().unwrap();
        let lines = answer["answer"]["lines"].as_array().unwrap().iter();
        lines.filter(|told| told["line"] == line).map(|told| told["times"].as_u64().unwrap()).sum()
    };
    assert_eq!(["seldom", "mostly"].map(times), [TURNS / 16, TURNS / 16 * 15]);
    assert_eq!(["decides", "turns"].map(times), [TURNS, TURNS - 1]);
}

#[test]
fn a_register_that_is_brought_back_is_the_callers() {
    let recorded = Recorded::new("kept.c", &["-g", "-O1"], &[]);
    let answer = recorded.json(&["slice", "end:w"]);
    let lines = recorded.comments(&answer);
    assert_eq!(lines, set(&["made", "used"]));
}

#[test]
fn arguments_are_the_same_however_a_function_is_bound() {
    for binding in ["-Wl,-z,lazy", "-Wl,-z,now"] {
        let recorded = Recorded::new("bound.c", &["-g", "-O0", binding], &["17"]);
        let lines = recorded.comments(&recorded.json(&["slice", "end:w", "--data"]));
        assert_eq!(lines, set(&["text", "base", "used"]), "{binding}");
        // These are in vector registers, which the linker uses for itself, too.
        let lines = recorded.comments(&recorded.json(&["slice", "end:area", "--data"]));
        assert_eq!(lines, set(&["side", "power", "squared"]), "{binding}");
        let side = format!("{}:side", recorded.place("side"));
        let lines = recorded.comments(&recorded.json(&["slice", &side, "--data", "--forward"]));
        assert_eq!(lines, set(&["squared"]), "{binding}");
    }
}

#[test]
fn registers_are_behind_a_handler_what_they_were_before() {
    for level in LEVELS {
        let recorded = Recorded::new("signal.c", &["-g", level], &[]);
        let answer = recorded.json(&["slice", "end:w", "--data"]);
        assert_eq!(recorded.comments(&answer), set(&["made", "used"]), "{level}");
        let answer = recorded.json(&["slice", "end:counted", "--data"]);
        assert_eq!(recorded.comments(&answer), set(&["handled"]), "{level}");
        let place = format!("{}:e", recorded.place("used"));
        let forward = recorded.json(&["slice", "handler:%rdi", "--forward", "--data"]);
        assert!(!recorded.comments(&forward).contains("used"), "{level} {place}");
    }
}

#[test]
fn what_another_thread_wrote_belongs_to_it_with_its_thread() {
    let recorded = Recorded::new("race.c", &["-g", "-O0"], &[]);
    let place = format!("{}:k", recorded.place("used"));
    let answer = recorded.json(&["slice", &place]);
    assert!(recorded.comments(&answer).contains("without the lock"));
    let threads: BTreeSet<u64> = answer["answer"]["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["thread"].as_u64().unwrap())
        .collect();
    assert!(threads.len() > 1, "{threads:?}");
    assert_eq!(recorded.races(&answer), [("without the lock".into(), "used".into())]);
    let shown = text(&recorded.why(&["slice", &place]).stdout);
    let told: Vec<&str> = shown.lines().filter(|line| line.contains("a race")).collect();
    let main = answer["answer"]["races"][0]["read"]["thread"].as_u64().unwrap();
    let (reads_at, _) = place.split_once(":k").unwrap();
    let expected =
        format!("a race: nothing orders this before thread {main} reads it at {reads_at}");
    assert_eq!(told.len(), 1, "{shown}");
    assert_eq!(told[0].trim(), expected);
    let all = text(&recorded.why(&["slice", &place, "--all"]).stdout);
    assert_eq!(all.matches(&expected).count(), 2, "{all}");
}

/// What orders the two threads of `races.c`, or does not, and whether helgrind knows.
const ORDERED: [(&str, bool); 16] = [
    ("mutex", true),
    ("rwlock", true),
    ("condition", true),
    ("semaphore", true),
    ("barrier", true),
    ("spin", true),
    ("exchange", false),
    ("store", false),
    ("once", false),
    ("pipe", false),
    ("sockets", false),
    ("events", false),
    ("futex", false),
    ("signal", false),
    ("join", true),
    ("create", true),
];
const RACY: [&str; 5] =
    ["racy nothing", "racy other lock", "racy behind lock", "racy after post", "racy lost update"];

/// The process that was created last.
fn last_process(recorded: &Recorded) -> String {
    let info: Value = serde_json::from_slice(&recorded.why(&["info", "--json"]).stdout).unwrap();
    let processes = info["answer"]["processes"].as_array().unwrap();
    let is_parent = |pid: &Value| processes.iter().any(|process| process["parent"] == *pid);
    let last = processes.iter().find(|process| !is_parent(&process["pid"])).unwrap();
    last["pid"].to_string()
}

/// A program that does all in one process is the oracle.
#[test]
fn slices_go_on_in_the_process_that_was_forked() {
    for level in ["-O0", "-O2"] {
        let forked = Recorded::new("forks.c", &["-g", level], &["9"]);
        let alone = Recorded::new("forks.c", &["-g", level, "-DALONE"], &["9"]);
        let place = forked.place("printed");
        let criterion = format!("{}/{place}:result", last_process(&forked));
        for option in ["--thin", "--data", "--region=.."] {
            let answer = forked.json(&["slice", &criterion, option]);
            let parent = &answer["answer"]["before_fork"];
            let grandparent = &parent["answer"]["before_fork"];
            assert!(grandparent["answer"]["before_fork"].is_null(), "{grandparent}");
            let each = [&answer, parent, grandparent].map(|answer| forked.comments(answer));
            let all: BTreeSet<String> = each.iter().flatten().cloned().collect();
            let expected = alone.json(&["slice", &format!("{place}:result"), option]);
            // What `fork` puts aside it brings back in another process, so it is told of.
            let expected = alone.comments(&expected);
            let besides: BTreeSet<String> = all.difference(&expected).cloned().collect();
            let forks = set(&["child", "grandchild"]);
            assert!(all.is_superset(&expected), "{level} {option}: {each:?}, not {expected:?}");
            assert!(besides.is_subset(&forks), "{level} {option}: {each:?}, not {expected:?}");
            assert!(each[0].contains("result") && !each[0].contains("added"), "{each:?}");
            assert!(each[1].contains("added") && !each[1].contains("given"), "{each:?}");
            assert!(each[2].contains("given") && each[2].contains("factor"), "{each:?}");
        }
        let told = text(&forked.why(&["slice", &criterion]).stdout);
        assert_eq!(told.matches("\n\nbefore the fork, in process ").count(), 2, "{told}");
        // What is made after the fork is enough: nothing is told of the parent.
        let region = format!("{}/{}", last_process(&forked), forked.place("result"));
        let within =
            forked.json(&["slice", &criterion, "--thin", "--region", &format!("{region}..")]);
        assert!(within["answer"]["before_fork"].is_null(), "{within}");
    }
}

/// What one process does alone is the oracle for what three do one after the other.
#[test]
fn what_another_process_wrote_to_shared_memory_nobody_here_made() {
    let recorded = Recorded::new("shares.c", &["-g", "-O0"], &[]);
    let child = last_process(&recorded);
    let from_parent = format!("{child}/child writes:from_parent");
    for (criterion, expected) in [
        ("end:from_child", vec!["parent reads"]),
        ("end:own", vec!["parent's own", "kept"]),
        (from_parent.as_str(), vec!["child reads"]),
    ] {
        let criterion = match criterion.split_once("child writes") {
            Some((process, value)) => {
                format!("{process}{}{value}", recorded.place("child writes"))
            }
            None => criterion.to_owned(),
        };
        let answer = recorded.json(&["slice", &criterion, "--thin"]);
        assert_eq!(recorded.comments(&answer), set(&expected), "{criterion}");
        let said = answer["left_out"].to_string().contains("another process had written");
        assert_eq!(said, criterion != "end:own", "{criterion}");
    }
}

#[test]
fn chops_begin_in_the_process_that_was_forked() {
    for level in LEVELS {
        let forked = Recorded::new("forks.c", &["-g", level], &["9"]);
        let alone = Recorded::new("forks.c", &["-g", level, "-DALONE"], &["9"]);
        let to = format!("{}:result", forked.place("printed"));
        let to_child = format!("{}/{to}", last_process(&forked));
        let factor = format!("{}:factor", forked.place("factor"));
        for (from, option) in [
            ("arg:1", "--thin"),
            ("arg:1", "--data"),
            ("arg:1", "--region=.."),
            ("arg:1", "--independent"),
            (factor.as_str(), "--thin"),
            (factor.as_str(), "--data"),
        ] {
            // With others the variable is not made yet where its line is left.
            if from == factor && level != "-O0" {
                continue;
            }
            let answer = forked.json(&["chop", "--from", from, "--to", &to_child, option]);
            let each: Vec<BTreeSet<String>> = std::iter::successors(Some(&answer), |answer| {
                Some(&answer["answer"]["before_fork"])
            })
            .take_while(|answer| !answer.is_null())
            .map(|answer| forked.comments(answer))
            .collect();
            let all: BTreeSet<String> = each.iter().flatten().cloned().collect();
            let expected = alone.json(&["chop", "--from", from, "--to", &to, option]);
            let expected = alone.comments(&expected);
            let besides: BTreeSet<String> = all.difference(&expected).cloned().collect();
            let forks = set(&["child", "grandchild"]);
            let told = format!("{level} {from} {option}: {each:?}, not {expected:?}");
            assert!(all.is_superset(&expected) && besides.is_subset(&forks), "{told}");
            assert!(each[0].contains("result") && each[1].contains("added"), "{told}");
        }
        // What it does not depend on.
        let other = format!("{}/{}:other", last_process(&forked), forked.place("printed"));
        let nothing = forked.refused(&["chop", "--from", "arg:1", "--to", &other, "--data"], 1);
        assert!(nothing.contains("nothing leads from arg:1"), "{nothing}");
        let unread = forked.refused(&["chop", "--from", "input", "--to", &to_child], 1);
        assert!(unread.contains("read neither its standard input"), "{unread}");
    }
}

/// The linker looks at the whole environment, and decides by it to start the program.
#[test]
fn what_the_linker_does_with_the_environment_is_not_looked_into() {
    let recorded = Recorded::recorded_with("environment.c", &[("BIAS", "7"), ("OTHER", "8")]);
    let answer = recorded.json(&["chop", "--from=env:BIAS", "--to=crash"]);
    assert_eq!(recorded.comments(&answer), set(&["asked", "told", "step"]));
    let said = recorded.refused(&["chop", "--from=env:OTHER", "--to=crash"], 1);
    assert!(said.contains("nothing leads from env:OTHER to crash"), "{said}");
}

#[test]
fn what_was_asked_about_may_use_a_source_itself() {
    let recorded = Recorded::recorded_with("environment.c", &[("BIAS", "7")]);
    let step = format!("--from={}:step", recorded.place("step"));
    let answer = recorded.json(&["chop", &step, "--to=crash"]);
    assert!(recorded.comments(&answer).is_empty());
    assert!(answer["left_out"].to_string().contains("nothing lies between"), "{answer}");
    let told = answer["answer"]["told"].as_str().unwrap();
    assert!(told.ends_with(&recorded.place("crash")), "{told}");
    // A division leaves flags as they were, or not: it does not use them.
    let answer = recorded.json(&["slice", "crash", "--data"]);
    assert_eq!(recorded.comments(&answer), set(&["asked", "crash", "step", "told"]));
}

#[test]
fn races_are_those_that_helgrind_finds_and_no_others() {
    let recorded = Recorded::new("races.c", &["-g", "-O1", "-fno-inline"], &["mutex"]);
    let reads = recorded.place("reads");
    let cases = ORDERED.iter().copied().chain(RACY.map(|name| (name, true)));
    for (name, helgrind_knows) in cases {
        recorded.record(&[name]);
        let answer = recorded.json(&["slice", "end:outcome"]);
        let lines = recorded.comments(&answer);
        assert!(set(&["reads", "writes"]).is_subset(&lines), "{name}: {answer:#}");
        let races = recorded.races(&answer);
        let found = races.iter().any(|(write, read)| write == "writes" && read == "reads");
        let of_x = races.iter().filter(|(write, _)| write == "writes").count();
        assert_eq!(found, RACY.contains(&name), "{name}: {answer:#}");
        assert_eq!(found, of_x > 0, "{name}: {answer:#}");
        if helgrind_knows {
            let mut valgrind = Command::new("valgrind");
            valgrind.arg("--tool=helgrind").arg(&recorded.program).arg(name);
            let output = valgrind.output().expect("valgrind has to be installed");
            let told = text(&output.stderr);
            assert!(told.contains("ERROR SUMMARY"), "{told}");
            assert_eq!(found, told.contains(&format!("reads ({reads})")), "{name}: {told}");
        }
    }
}

#[test]
fn the_chop_of_an_overflow_is_a_few_lines() {
    for level in LEVELS {
        // At -O2 `strcpy` is jumped to.
        let options = ["-g", level, "-fno-inline"];
        let recorded = Recorded::new("overflow.c", &options, &[&"x".repeat(24)]);
        let answer = recorded.json(&["chop", "--from", "arg:1", "--to", "crash", "--data"]);
        assert_eq!(answer["schema"], "why.chop/1");
        let lines = answer["answer"]["lines"].as_array().unwrap();
        assert!(recorded.comments(&answer).contains("overflows"), "{level}: {answer:#}");
        assert!(lines.len() <= 4, "{level}: {answer:#}");
        // Not so if the name is short enough.
        recorded.record(&["fits"]);
        let made = recorded.json(&["slice", "end:globals.env"]);
        assert!(recorded.comments(&made).contains("made"), "{level}");
    }
}

#[test]
fn a_trace_that_was_damaged_is_made_anew() {
    let recorded = Recorded::new("turns.c", &["-g", "-O0"], &[]);
    let ask = ["slice", "end", "--data"];
    let answer = recorded.json(&ask);
    let recordings = recorded.directory.path().join("recordings");
    let recording = std::fs::read_dir(&recordings).unwrap().next().unwrap().unwrap().path();
    let files = std::fs::read_dir(recording.join("derived")).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    let trace = files.find(|file| file.extension().is_none()).unwrap();
    let mut bytes = std::fs::read(&trace).unwrap();
    // Chunks come first.
    bytes[..64].fill(0xa5);
    std::fs::write(&trace, bytes).unwrap();
    let said = recorded.refused(&ask, 1);
    assert!(said.contains("ask again, and it is made anew"), "{said}");
    assert_eq!(recorded.json(&ask)["answer"], answer["answer"]);
}

#[test]
fn slices_are_kept_and_loaded_and_drawn() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    let place = format!("{}:out", recorded.place("16"));
    let first = recorded.why(&["slice", &place, "--save", "one"]);
    let again = recorded.why(&["slice", "one", "--load"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert_eq!(text(&first.stdout), text(&again.stdout));
    let drawn = text(&recorded.why(&["slice", &place, "--dot"]).stdout);
    assert!(drawn.starts_with("digraph") && drawn.contains("criterion -> l0"), "{drawn}");
    let message = recorded.refused(&["slice", "two", "--load"], 1);
    assert!(message.contains("kept slices: one"), "{message}");
}

#[test]
fn of_a_kept_slice_as_much_is_shown_as_is_wanted() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    let criterion = format!("{}:out", recorded.place("16"));
    let sliced = |options: &[&str]| recorded.why(&[&["slice"], options].concat());
    let whole = text(&sliced(&[&criterion]).stdout);
    sliced(&[&criterion, "--lines=1", "--save", "kept"]);
    assert_eq!(text(&sliced(&["kept", "--load"]).stdout), whole);
    for fewer in ["--lines=1", "--depth=1"] {
        let again = text(&sliced(&["kept", "--load", fewer]).stdout);
        assert_eq!(again, text(&sliced(&[&criterion, fewer]).stdout));
        assert_ne!(again, whole);
    }
    let all = text(&sliced(&["kept", "--load", "--all"]).stdout);
    assert!(all.contains("its instructions were not kept"), "{all}");
    for other in ["--thin", "--data", "--forward", "--prune=main", "--region=main..", "--save=x"] {
        let message = recorded.refused(&["slice", "kept", "--load", other], 2);
        let (name, _) = other.split_once('=').unwrap_or((other, ""));
        assert!(message.contains(&format!("with {name}, leave out --load")), "{message}");
    }
}

#[test]
fn what_would_show_more_lines_is_told() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    let criterion = format!("{}:out", recorded.place("16"));
    let all = recorded.json(&["slice", &criterion])["answer"]["lines"].as_array().unwrap().len();
    let told =
        |options: &[&str]| text(&recorded.why(&[&["slice", &criterion], options].concat()).stdout);
    let one = told(&[&format!("--lines={}", all - 1)]);
    assert!(one.contains(&format!("(1 more line: --lines={all} or --all)")), "{one}");
    let shallow = told(&["--depth=1"]);
    let more = shallow.split_once("more lines: --depth=").expect(&shallow).1;
    let (depth, _) = more.split_once(" or --all)").expect(&shallow);
    let deep = told(&[&format!("--depth={depth}")]);
    assert!(!deep.contains("more line"), "{deep}");
}

#[test]
fn what_was_made_of_a_value_is_found_forwards() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    let answer = recorded.json(&["slice", &format!("{}:b", recorded.place("4")), "--forward"]);
    assert_eq!(recorded.comments(&answer), set(&["15", "16"]));
}

#[test]
fn a_source_is_pruned_by_its_name() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    let whole = recorded.comments(&recorded.json(&["slice", "end:out"]));
    assert!(whole.contains("15"), "{whole:?}");
    let answer = recorded.json(&["slice", "end:out", "--prune", "figure.c"]);
    let pruned = recorded.comments(&answer);
    assert!(!pruned.contains("15"), "{pruned:?}");
    assert!(answer["left_out"].to_string().contains("pruned, were not looked into"), "{answer}");
}

#[test]
fn a_region_may_have_one_side() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    let criterion = format!("{}:out", recorded.place("16"));
    for region in ["..main", "..start"] {
        let outside = recorded.refused(&["slice", &criterion, "--region", region], 1);
        assert!(outside.contains(&format!("not in the region {region}")), "{outside}");
    }
    let reversed = recorded.refused(&["slice", &criterion, "--region", "end..main"], 1);
    assert!(reversed.contains("end..main ends at"), "{reversed}");
    let made = format!("{}:b", recorded.place("4"));
    let until = format!("..{}", recorded.place("16"));
    let answer = recorded.json(&["slice", &made, "--forward", "--region", &until]);
    assert_eq!(recorded.comments(&answer), set(&["15"]));
}

#[test]
fn of_an_empty_slice_it_is_told_what_would_show_more() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    // What comes next there is a constant.
    for option in ["--thin", "--data"] {
        let output = recorded.why(&["slice", &recorded.place("4"), option]);
        let shown = text(&output.stdout);
        assert!(shown.contains(&format!("(without {option}, what")), "{shown}");
    }
    let decided = text(&recorded.why(&["slice", &recorded.place("4")]).stdout);
    assert!(!decided.contains("without --"), "{decided}");
}

#[test]
fn a_source_that_was_changed_later_is_named() {
    let changed = |recorded: &Recorded| {
        let place = format!("{}:out", recorded.place("16"));
        text(&recorded.why(&["slice", &place]).stdout).contains("figure.c has changed since")
    };
    let copy = tempfile::tempdir().unwrap();
    let source = copy.path().join("figure.c");
    std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slice/figure.c"), &source)
        .unwrap();
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    recorded.build("cc", &source, &["-g", "-O0"]);
    recorded.record(&[]);
    assert!(!changed(&recorded));
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    std::fs::File::options().append(true).open(&source).unwrap().set_modified(later).unwrap();
    assert!(changed(&recorded));
}

#[test]
fn near_code_that_was_never_executed_what_was_is_named() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    let message = recorded.refused(&["slice", &recorded.place("8")], 1);
    let [before, behind] = ["6", "9"].map(|comment| recorded.place(comment));
    let near = format!("never executed; the nearest lines that were are {before} and {behind}");
    assert!(message.contains(&near), "{message}");
}

#[test]
fn a_program_without_symbols_is_told_from_one_without_a_function() {
    let recorded = Recorded::new("figure.c", &["-O0", "-s"], &[]);
    let message = recorded.refused(&["slice", "main:%rax"], 1);
    assert!(message.contains("no symbols; give a position, stdout:N"), "{message}");
}

#[test]
fn what_is_known_of_variables_is_told_where_one_has_no_value() {
    let asked = |recorded: &Recorded, place: &str, variable: &str| {
        recorded.refused(&["slice", &format!("{}:{variable}", recorded.place(place))], 1)
    };
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    for (wrong, right) in [("shwon", "shown"), ("ouut", "out")] {
        let message = asked(&recorded, "16", wrong);
        assert!(message.contains(&format!("here; did you mean {right}?")), "{message}");
    }
    let message = asked(&recorded, "16", "nothing");
    assert!(message.contains("here; there are argc, argv, a, b and shown"), "{message}");
    let recorded = Recorded::new("figure.c", &["-g1", "-O0"], &[]);
    let message = asked(&recorded, "16", "shown");
    assert!(message.contains("figure tells of lines, but of no variables"), "{message}");
    let recorded = Recorded::new("figure.c", &["-g", "-gsplit-dwarf", "-O0"], &[]);
    for file in std::fs::read_dir(recorded.directory.path()).unwrap().flatten() {
        if file.path().extension().is_some_and(|extension| extension == "dwo") {
            std::fs::remove_file(file.path()).unwrap();
        }
    }
    let message = asked(&recorded, "16", "shown");
    assert!(message.contains(".dwo is missing, which tells of variables"), "{message}");
    let recorded = Recorded::new("figure.c", &["-g", "-O2"], &[]);
    let message = recorded.refused(&["slice", "main:a"], 1);
    let (_, line) = message.trim().split_once("should have a value at figure.c:").expect(&message);
    let there = recorded.why(&["print", &format!("figure.c:{line}:a")]);
    assert!(there.status.success(), "{}", text(&there.stderr));
}

#[test]
fn optimised_code_is_told_by_the_lines_that_it_was_made_from() {
    let recorded = Recorded::new("weigh.c", &["-g", "-O2"], &[]);
    let answer = recorded.json(&["slice", &format!("{}:weight", recorded.place("printed"))]);
    let comments = recorded.comments(&answer);
    assert!(set(&["scaled", "summed", "weighed"]).is_subset(&comments), "{comments:?}");
    assert!(!comments.contains("returned"), "{comments:?}");
}

#[test]
fn what_only_the_debug_information_computes_is_said() {
    let recorded = Recorded::new("weigh.c", &["-g", "-O2"], &[]);
    let said = |value: &str| {
        let answer = recorded.json(&["slice", value]);
        let left_out = answer["left_out"].as_array().unwrap().iter();
        let said: Vec<String> = left_out.map(|said| said.as_str().unwrap().to_owned()).collect();
        said.into_iter().find(|said| said.contains("debug information"))
    };
    let told = "the debug information computes sum from rsi and rdi: these are what is followed";
    assert_eq!(said("weigh:sum").as_deref(), Some(told));
    assert_eq!(said("weigh:a"), None);
}

#[test]
fn a_member_of_some_bits_is_the_bytes_that_hold_them() {
    let recorded = Recorded::new("bits.c", &["-g", "-O0"], &[]);
    for member in ["b", "c"] {
        let answer = recorded.json(&["slice", &format!("end:s.{member}"), "--thin"]);
        let comments = recorded.comments(&answer);
        assert!(comments.contains(member) && !comments.contains("tail"), "{member}: {comments:?}");
        // What else is in the byte cannot be told from it.
        let lines = answer["answer"]["lines"].as_array().unwrap();
        let written: BTreeSet<&str> =
            lines.iter().filter_map(|line| line["variable"].as_str()).collect();
        assert_eq!(written, BTreeSet::from(["s"]), "{member}");
    }
}

#[test]
fn a_panic_is_told_by_lines_of_the_programs_own() {
    let recorded = Recorded::built("rustc", "panics.rs", &["-g", "-Copt-level=0"]);
    recorded.record(&[]);
    let answer = recorded.json(&["slice", "crash"]);
    let lines = answer["answer"]["lines"].as_array().unwrap();
    let own = recorded.source.to_str().unwrap();
    assert!(lines.iter().all(|line| line["file"] == own), "{lines:?}");
    assert_eq!(lines[0]["place"], recorded.place("panics"));
    let comments = recorded.comments(&answer);
    assert!(set(&["past the end", "found", "panics"]).is_subset(&comments), "{comments:?}");
    let recorded = Recorded::built("rustc", "unwraps.rs", &["-g", "-Copt-level=0"]);
    recorded.record(&[]);
    let thin = recorded.comments(&recorded.json(&["slice", "crash", "--thin"]));
    assert_eq!(thin, set(&["unwraps", "none"]));
    let whole = recorded.comments(&recorded.json(&["slice", "crash"]));
    assert_eq!(whole, set(&["unwraps", "none", "number"]));
}

/// What it ended itself by is asked about, and not how it did that.
#[test]
fn why_a_program_ended_itself_is_the_branch_that_led_there() {
    let made = ["given", "made", "thrice"];
    for (how, because) in [
        ("1", &["asserted"][..]),
        ("2", &["too large", "checked"]),
        ("3", &["third", "exit"]),
        ("4", &["beyond", "few"]),
        ("5", &["fifth", "how", "computed"]),
        ("6", &["in a handler", "kept"]),
    ] {
        let recorded = Recorded::built("c++", "ends.cc", &["-g", "-O0"]);
        recorded.record(&[how, "5"]);
        let answer = recorded.json(&["slice", "crash", "--thin"]);
        let comments = recorded.comments(&answer);
        assert_eq!(comments, set(&[because, &made].concat()), "{how}: {answer}");
        let told = answer["answer"]["told"].as_str().unwrap();
        assert!(told.contains("because of "), "{told}");
        // What decided that it came to that counts, too, where that is asked for.
        let decided = recorded.comments(&recorded.json(&["slice", "crash"]));
        let is_whole = decided.is_superset(&comments) && decided.contains("how");
        // Over what a handler does nobody decided; that its value was kept something did.
        assert!(is_whole, "{how}: {decided:?}");
        assert!(!decided.contains("apart"), "{how}: {decided:?}");
    }
}

#[test]
fn a_status_that_is_returned_is_what_is_asked_about() {
    let recorded = Recorded::new("status.c", &["-g", "-O0"], &["9"]);
    let thin = recorded.comments(&recorded.json(&["slice", "crash", "--thin"]));
    assert_eq!(thin, set(&["returned", "verified", "five"]));
    let whole = recorded.comments(&recorded.json(&["slice", "crash"]));
    assert_eq!(whole, set(&["returned", "verified", "five", "tested", "given"]));
}

#[test]
fn files_of_one_name_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let [source, program] = ["whole.c", "whole"].map(|name| directory.path().join(name));
    for (path, text) in [
        ("a/part.c", "int one(int x) { return x + 1; }\n"),
        ("b/part.c", "int two(int x) { return x * 2; }\n"),
        ("whole.c", "int one(int), two(int), r;\nint main(int c) { r = one(c) + two(c); }\n"),
    ] {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let mut cc = Command::new("cc");
    cc.args(["-g", "-O0", "a/part.c", "b/part.c", "whole.c", "-o", "whole"]);
    assert!(cc.current_dir(&directory).status().unwrap().success());
    let recorded = Recorded { directory, source, program };
    recorded.record(&[]);
    let answer = recorded.json(&["slice", "end:r", "--data"]);
    let lines = answer["answer"]["lines"].as_array().unwrap().iter();
    let places: BTreeSet<String> =
        lines.map(|line| line["place"].as_str().unwrap().to_owned()).collect();
    assert_eq!(places, set(&["a/part.c:1", "b/part.c:1", "whole.c:2"]));
}

#[test]
fn text_fits_and_says_what_is_left_out() {
    let recorded = Recorded::new("overflow.c", &["-g", "-O0"], &[&"x".repeat(24)]);
    let fits = |shown: &str| {
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    };
    let long = text(&recorded.why(&["slice", "end:globals"]).stdout);
    assert!(long.contains("…\n"), "{long}");
    fits(&long);
    let shown = text(&recorded.why(&["slice", "crash", "--lines=1"]).stdout);
    fits(&shown);
    assert!(shown.contains("more lines: --lines="), "{shown}");
    assert!(shown.contains("instructions that were executed belong to it"), "{shown}");
}

#[test]
fn what_cannot_be_answered_is_said_in_a_line() {
    let recorded = Recorded::new("overflow.c", &["-g", "-O2", "-fno-inline"], &["fits"]);
    let never = recorded.refused(&["slice", "overflow.c:9999:x"], 1);
    assert!(never.contains("line 9999"), "{never}");
    assert!(never.contains("the last line is 23"), "{never}");
    for words in ["overflow.c", "overflow.c:work"] {
        let message = recorded.refused(&["slice", words], 1);
        assert!(message.contains("give FILE:LINE, such as overflow.c:"), "{message}");
    }
    let close = recorded.refused(&["slice", "mian:%rax"], 1);
    assert!(close.contains("no function mian in what was mapped; did you mean main?"), "{close}");
    let byte = recorded.refused(&["slice", "stdout:-1"], 2);
    assert!(byte.contains("the first is stdout:0"), "{byte}");
    let none = recorded.refused(&["slice", "end:nothing"], 1);
    assert!(none.contains("no variable nothing"), "{none}");
    let two = recorded.refused(&["slice", "end", "crash"], 2);
    assert!(two.contains("one value"), "{two}");
    for words in
        [&["slice", "nosuch", "crash"][..], &["chop", "nosuch", "--from=arg:1", "--to=end"]]
    {
        let message = recorded.refused(words, 1);
        assert!(message.contains("no recording nosuch; `why ls`"), "{message}");
    }
    for words in [&["slice", "overflow-1"][..], &["slice", "overflow-1", "--region=main.."]] {
        let message = recorded.refused(words, 2);
        assert!(message.contains("overflow-1 is a recording: give a criterion"), "{message}");
    }
    let gone = recorded.refused(&["slice", "overflow-9"], 1);
    assert!(gone.contains("no recording overflow-9"), "{gone}");
    let pruned = recorded.refused(&["slice", "end", "--prune", "nobody"], 1);
    assert!(pruned.contains("nobody"), "{pruned}");
    assert!(pruned.contains("source or mapped file"), "{pruned}");
    let unmapped = recorded.refused(&["slice", "end:0x0+8"], 1);
    assert!(unmapped.contains("no memory is mapped at 0x0"), "{unmapped}");
    let source = recorded.refused(&["chop", "--from", "arg:7", "--to", "end"], 1);
    assert!(source.contains("1 arguments"), "{source}");
    let input = recorded.refused(&["chop", "--from", "input", "--to", "end"], 1);
    assert!(input.contains("neither its standard input nor a file"), "{input}");
    let outside = recorded.refused(&["slice", "main", "--region", "work..end"], 1);
    assert!(outside.contains("not in the region"), "{outside}");
    let region = recorded.refused(&["slice", "end", "--region", "main"], 2);
    assert!(region.contains("FROM..UNTIL"), "{region}");
    let range = recorded.refused(&["chop", "--from", "input:9-3", "--to", "end"], 2);
    assert!(range.contains("FIRST-LAST"), "{range}");
}
