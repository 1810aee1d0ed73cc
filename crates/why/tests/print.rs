//! What `why print` says is what gdb says of the same program, run natively, at the same
//! place. Where gdb and `why` write values differently, the source says what they are.

#[path = "print/forms.rs"]
mod forms;
#[path = "print/gdb.rs"]
mod gdb;
#[path = "print/lines.rs"]
mod lines;
#[path = "print/values.rs"]
mod values;

use gdb::{Question, function, normal};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const WHY: &str = env!("CARGO_BIN_EXE_why");

struct Setting {
    directory: TempDir,
    program: PathBuf,
    source: PathBuf,
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/print").join(name)
}

impl Setting {
    /// A program of these tests, built and not yet recorded.
    fn build(name: &str, compiler: &[&str]) -> Setting {
        let directory = tempfile::tempdir().unwrap();
        let source = source(name);
        let program = directory.path().join(source.file_stem().unwrap());
        let mut command = Command::new(compiler[0]);
        command.args(&compiler[1..]).arg("-g").arg(&source).arg("-o").arg(&program);
        let output = command.current_dir(directory.path()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        Setting { directory, program, source }
    }

    fn why(&self, arguments: &[&str]) -> Output {
        Command::new(WHY)
            .args(arguments)
            .env("WHY_DIR", self.directory.path().join("recordings"))
            .output()
            .unwrap()
    }

    fn record(&self, arguments: &[&str]) -> Output {
        let program = self.program.to_str().unwrap();
        // The C library chooses its functions by the CPU, which is the machine's own for gdb.
        let record = ["record", "--cpu", "native", "--", program];
        let recorded = self.why(&[&record, arguments].concat());
        assert_ne!(recorded.status.code(), Some(125), "{}", text(&recorded.stderr));
        recorded
    }

    fn print(&self, criterion: &str) -> Value {
        let printed = self.why(&["print", criterion, "--json"]);
        assert!(printed.status.success(), "{criterion}: {}", text(&printed.stderr));
        let answer: Value = serde_json::from_slice(&printed.stdout).unwrap();
        assert_eq!(answer["schema"], "why.print/1");
        answer
    }

    /// The value of an expression.
    fn value(&self, criterion: &str) -> String {
        self.print(criterion)["answer"]["value"]["value"].as_str().unwrap().to_owned()
    }

    /// Where a word stands in the source, as `FILE:LINE`.
    fn line_of(&self, word: &str) -> String {
        let text = std::fs::read_to_string(&self.source).unwrap();
        let index = text.lines().position(|line| line.contains(word)).unwrap();
        let name = self.source.file_name().unwrap().to_str().unwrap();
        format!("{name}:{}", index + 1)
    }

    fn gdb<'a>(&'a self, place: &'a str, number: u64, expressions: &'a [&'a str]) -> Value {
        let program = &self.program;
        Question { program, arguments: &[], place, number, expressions }.ask()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The functions and lines, from the innermost to `main`.
fn calls(frames: &Value) -> Vec<String> {
    let mut calls = Vec::new();
    for frame in frames.as_array().unwrap() {
        let name = match frame["signal"].as_bool().unwrap() {
            true => "(signal)".to_owned(),
            false => frame["function"].as_str().map_or("?", function).to_owned(),
        };
        // gdb takes the frame that the kernel made for none of any source.
        let line = if name == "(signal)" { &Value::Null } else { &frame["line"] };
        calls.push(format!("{name} {line}"));
        if name == "main" || name.ends_with("::main") {
            break;
        }
    }
    calls
}

fn value_of<'a>(frame: &'a Value, name: &str) -> &'a str {
    let variables = frame["variables"].as_array().unwrap();
    let variable = variables.iter().rev().find(|variable| variable["name"] == name);
    let variable = variable.unwrap_or_else(|| panic!("there is no {name} in {frame}"));
    variable["value"].as_str().unwrap()
}

/// Compares the calls, and the variables of all frames up to `main`; how many of them are
/// known. What gdb knows only by what a caller has kept may be optimised out for us.
fn compare(ours: &Value, theirs: &Value, left_out: &[&str]) -> usize {
    let (ours, theirs) = (&ours["answer"]["frames"], &theirs["frames"]);
    assert_eq!(calls(ours), calls(theirs));
    let mut known = 0;
    for (our, their) in ours.as_array().unwrap().iter().zip(theirs.as_array().unwrap()) {
        if our["own"] != true {
            continue;
        }
        for (name, expected) in their["variables"].as_object().unwrap() {
            if left_out.contains(&name.as_str()) {
                continue;
            }
            let (value, expected) =
                (normal(value_of(our, name)), normal(expected.as_str().unwrap()));
            if value == "<optimised out>" && expected != value {
                continue;
            }
            // gdb says of which type the function is.
            let expected = expected
                .rsplit_once(") ADDRESS <")
                .map_or(expected.clone(), |(_, f)| format!("ADDRESS <{f}"));
            assert_eq!(value, expected, "{name} of {}", our["function"]);
            known += usize::from(value != "<optimised out>");
        }
    }
    known
}

#[test]
fn c_variables_and_calls_are_those_that_gdb_shows() {
    for (options, least) in [
        (&["cc", "-O0"][..], 45),
        (&["cc", "-O0", "-no-pie", "-fno-pie"], 45),
        (&["cc", "-O0", "-static"], 45),
        (&["cc", "-O0", "-gdwarf-4"], 45),
        (&["cc", "-O2"], 12),
    ] {
        let setting = Setting::build("shapes.c", options);
        setting.record(&[]);
        let place = setting.line_of("printf(\"%s %d");
        let theirs = setting.gdb(&place, 2, &[]);
        let ours = setting.print(&format!("{place}#2"));
        let known = compare(&ours, &theirs, &[]);
        assert!(known >= least, "{options:?}: only {known} values are known");
    }
}

#[test]
fn expressions_have_the_values_that_gdb_prints() {
    let setting = Setting::build("shapes.c", &["cc", "-O0"]);
    setting.record(&[]);
    let place = setting.line_of("printf(\"%s %d");
    let expressions = [
        "counter",
        "greeting",
        "table",
        "*list",
        "list->name",
        "list->name[1]",
        "list->at.y",
        "list->colour",
        "numbers[2]",
        "corner",
        "(*list).at",
        "flags.b",
        "missing",
        "list[0].at.x",
        "either.number",
        "*list->name",
        "zeroes",
        "numbers[depth]",
        "list->next",
        "&*list",
    ];
    let theirs = setting.gdb(&place, 3, &expressions);
    let position = setting.print(&format!("{place}#3"))["answer"]["position"].clone();
    for expression in expressions {
        let ours = setting.value(&format!("{}:{expression}", position.as_str().unwrap()));
        let there = normal(theirs["values"][expression].as_str().unwrap());
        // gdb says of an address which type it points to.
        let there = there.strip_prefix("(struct node *) ").unwrap_or(&there);
        assert_eq!(normal(&ours), there, "{expression}");
    }
}

#[test]
fn names_of_a_line_are_its_own_when_it_is_left() {
    let setting = Setting::build("scopes.c", &["cc", "-O0"]);
    setting.record(&[]);
    for (word, name, value) in [
        ("LOOP", "#1:square", "0"),
        ("LOOP", "#2:square", "1"),
        ("LOOP", ":square", "4"),
        ("TURN", ":i", "3"),
        ("BRANCH", ":twice", "6"),
        ("BLOCK", ":next", "4"),
        ("SCALE", ":scaled", "90"),
    ] {
        let place = setting.line_of(&format!("/* {word} */"));
        assert_eq!(setting.value(&format!("{place}{name}")), value, "{word}{name}");
    }
}

#[test]
fn what_a_line_calls_is_part_of_it_though_it_was_inlined() {
    for level in ["-O0", "-O1", "-O2"] {
        let setting = Setting::build("scopes.c", &["cc", level]);
        setting.record(&[]);
        let place = setting.line_of("/* INLINED */");
        assert_eq!(setting.value(&format!("{place}:scaled")), "83", "{level}");
        assert_eq!(setting.value(&format!("{place}:number")), "30", "{level}");
    }
}

#[test]
fn all_that_is_told_of_a_line_can_be_asked_for() {
    for level in ["-O0", "-O1", "-O2"] {
        let setting = Setting::build("scopes.c", &["cc", level]);
        setting.record(&[]);
        for word in ["SCALE", "INLINED", "LAST"] {
            let place = setting.line_of(&format!("/* {word} */"));
            let told = setting.print(&place);
            let frame = told["answer"]["frame"].as_u64().unwrap() as usize;
            let variables = told["answer"]["frames"][frame]["variables"].as_array().unwrap();
            let known = variables.iter().filter(|told| told["value"] != "<optimised out>");
            let names: Vec<&str> = known.map(|told| told["name"].as_str().unwrap()).collect();
            assert!(!names.is_empty(), "{level}: {word}");
            for name in names {
                setting.value(&format!("{place}:{name}"));
            }
        }
        let last = setting.line_of("/* LAST */");
        assert_ne!(setting.value(&format!("{last}:weight")), "0", "{level}");
    }
}

#[test]
fn wrong_expressions_are_answered_in_a_line() {
    let setting = Setting::build("shapes.c", &["cc", "-O0"]);
    setting.record(&[]);
    for (criterion, status, said) in [
        ("inner:nothing", 1, "there is no variable nothing here"),
        ("inner:list->nothing", 1, "has no member nothing"),
        ("inner:*depth", 1, "depth is no pointer"),
        ("inner:numbers[4]", 1, "has 4 elements"),
        ("inner:list->", 2, "a name is missing"),
        ("inner#1000", 1, "executed only 6 times"),
        ("shapes.c:10000", 1, "nor of any behind it"),
        ("shapes.c:1", 1, "the next line is"),
        ("other.c:3", 1, "built with -g"),
        ("nowhere", 1, "no function nowhere"),
        ("sort/main", 2, "no process sort"),
    ] {
        let printed = setting.why(&["print", criterion]);
        let error = text(&printed.stderr);
        assert!(error.contains(said) && error.lines().count() == 1, "{criterion}: {error}");
        assert_eq!(printed.status.code(), Some(status), "{criterion}: {error}");
    }
}

#[test]
fn c_plus_plus_is_as_gdb_shows_it() {
    for options in [["c++", "-O0"], ["c++", "-O2"]] {
        let setting = Setting::build("classes.cc", &options);
        setting.record(&[]);
        for (word, number) in [("LOOK", 2), ("LAMBDA", 1)] {
            let place = setting.line_of(word);
            let theirs = setting.gdb(&place, number, &[]);
            let ours = setting.print(&format!("{place}#{number}"));
            // gdb has printers for the containers of the library, and shows captures.
            compare(
                &ours,
                &theirs,
                &["items", "item", "__for_begin", "__for_end", "__for_range", "print", "__closure"],
            );
        }
        let entered = setting.gdb("shop::Item::price", 2, &["*this"]);
        let ours = setting.print("Item::price#2:this->name_");
        let told = ours["answer"]["value"]["value"].as_str().unwrap();
        assert!(entered["values"]["*this"].as_str().unwrap().contains(told), "{told}");
        assert_eq!(calls(&ours["answer"]["frames"]), calls(&entered["frames"]));
    }
}

#[test]
fn templates_are_found_by_their_names() {
    let setting = Setting::build("classes.cc", &["c++", "-O0"]);
    setting.record(&[]);
    let place = setting.line_of("TWICE");
    let theirs = setting.gdb(&place, 1, &[]);
    let ours = setting.print(&format!("{place}#1"));
    let name = &ours["answer"]["frames"][0]["function"];
    assert_eq!(name, "shop::twice<double>");
    assert_eq!(calls(&ours["answer"]["frames"]), calls(&theirs["frames"]));
    for name in ["twice", "shop::twice", "shop::twice<double>"] {
        assert_eq!(setting.value(&format!("{name}:value")), "39", "{name}");
    }
}

#[test]
fn rust_is_shown_as_in_its_source() {
    let compiler = ["rustc", "--edition", "2021", "-C", "opt-level=0"];
    let setting = Setting::build("rusty.rs", &compiler);
    setting.record(&[]);
    let place = setting.line_of("LOOK");
    let ours = setting.print(&format!("{place}#1"));
    let theirs = setting.gdb(&place, 1, &[]);
    assert_eq!(calls(&ours["answer"]["frames"]), calls(&theirs["frames"]));
    let frame = &ours["answer"]["frames"][0];
    for (name, value) in [
        ("letter", "'x'"),
        ("flag", "true"),
        ("empty", "Empty"),
        ("circle", "Circle(2.5)"),
        ("rectangle", "Rectangle {width = 3, height = -4}"),
        ("numbers", "{10, 20, 30}"),
        ("small", "-7"),
        ("result", "15"),
        ("scale", "1.5"),
    ] {
        assert_eq!(value_of(frame, name), value, "{name}");
    }
    for (expression, value) in [
        ("holder.name", "\"static name\""),
        ("holder.owned", "\"owned text\""),
        ("holder.pair", "(200, -5)"),
        ("holder.pair.1", "-5"),
        ("holder.maybe", "Some(9)"),
        ("holder.nothing", "None"),
        ("LIMIT", "77"),
        ("times", "3"),
    ] {
        assert_eq!(setting.value(&format!("hold:{expression}")), value, "{expression}");
    }
}

#[test]
fn optimised_rust_has_the_calls_that_gdb_shows() {
    let compiler = ["rustc", "--edition", "2021", "-C", "opt-level=2"];
    let setting = Setting::build("rusty.rs", &compiler);
    setting.record(&[]);
    let place = setting.line_of("HOLD");
    let theirs = setting.gdb(&place, 1, &[]);
    let ours = setting.print(&format!("{place}#1"));
    assert_eq!(calls(&ours["answer"]["frames"]), calls(&theirs["frames"]));
}

#[test]
fn crashes_in_libraries_have_the_calls_that_gdb_shows() {
    let setting = Setting::build("crashes.c", &["cc", "-O1"]);
    for arguments in [&["abort"][..], &["assertion"], &["library"]] {
        setting.record(arguments);
        let program = &setting.program;
        let theirs =
            Question { program, arguments, place: "crash", number: 1, expressions: &[] }.ask();
        let ours = setting.print("crash");
        assert_eq!(calls(&ours["answer"]["frames"]), calls(&theirs["frames"]), "{arguments:?}");
        // What is told without being asked is of the program's own.
        let chosen = ours["answer"]["frame"].as_u64().unwrap() as usize;
        let function = ours["answer"]["frames"][chosen]["function"].as_str().unwrap();
        assert!(function.starts_with("by_"), "{function}");
    }
}

#[test]
fn a_handler_was_called_from_where_the_signal_came() {
    let setting = Setting::build("crashes.c", &["cc", "-O0"]);
    setting.record(&["signal"]);
    let place = setting.line_of("HANDLER");
    let (program, arguments) = (&setting.program, &["signal"][..]);
    let theirs = Question { program, arguments, place: &place, number: 1, expressions: &[] }.ask();
    let ours = setting.print(&place);
    let calls_here = calls(&ours["answer"]["frames"]);
    assert_eq!(calls_here, calls(&theirs["frames"]));
    assert!(calls_here[1].starts_with("(signal)"), "{calls_here:?}");
}

#[test]
fn a_call_through_a_wrong_pointer_is_told_with_its_caller() {
    let setting = Setting::build("crashes.c", &["cc", "-O0"]);
    setting.record(&["pointer"]);
    let ours = setting.print("crash");
    let frames = &ours["answer"]["frames"];
    assert_eq!(frames[0]["pc"], 0);
    assert_eq!(frames[1]["function"], "by_wrong_pointer");
    assert_eq!(frames[2]["function"], "main");
}

#[test]
fn code_that_was_made_at_run_time_ends_a_backtrace() {
    let setting = Setting::build("crashes.c", &["cc", "-O0"]);
    setting.record(&["code"]);
    let ours = setting.print("crash");
    assert_eq!(ours["answer"]["frames"].as_array().unwrap().len(), 1);
    assert_eq!(ours["left_out"][0]["frames"], "no unwind information");
    let printed = text(&setting.why(&["print", "crash", "--backtrace"]).stdout);
    assert!(printed.contains("code of no file"), "{printed}");
    assert!(printed.contains("(no unwind information behind this frame)"), "{printed}");
}

#[test]
fn executions_are_counted_over_all_threads() {
    let setting = Setting::build("crashes.c", &["cc", "-O0", "-pthread"]);
    setting.record(&["threads"]);
    let place = setting.line_of("COUNT");
    // Whoever comes first: the sum grows with each execution, and the last is the last.
    for number in [1, 2, 99, 200] {
        assert_eq!(setting.value(&format!("{place}#{number}:steps")), number.to_string());
        assert_eq!(setting.value(&format!("count#{number}:steps")), (number - 1).to_string());
    }
    assert_eq!(setting.value(&format!("{place}:steps")), "200");
    let printed = setting.why(&["print", "count#201"]);
    assert!(text(&printed.stderr).contains("only 200 times"), "{}", text(&printed.stderr));
    // All of these are positions like any other.
    for criterion in ["count#1", "count#73", "count#200", "main", "pthread_join#2"] {
        let found = setting.print(criterion);
        let position = found["answer"]["position"].as_str().unwrap();
        let again = setting.print(position);
        assert_eq!(again["answer"]["registers"], found["answer"]["registers"], "{criterion}");
    }
}

#[test]
fn a_child_is_looked_at_by_its_number_or_program() {
    let setting = Setting::build("crashes.c", &["cc", "-O0"]);
    setting.record(&["child"]);
    let info: Value = serde_json::from_slice(&setting.why(&["info", "--json"]).stdout).unwrap();
    let processes = info["answer"]["processes"].as_array().unwrap();
    let child = processes.iter().find(|process| !process["parent"].is_null()).unwrap();
    assert_eq!(setting.value(&format!("{}/count:by", child["pid"])), "7");
    assert_eq!(setting.value(&format!("{}/{}:steps", child["pid"], setting.line_of("COUNT"))), "7");
    assert_eq!(setting.value("crashes/by_child:value"), "7");
    let never = setting.why(&["print", "count"]);
    assert!(text(&never.stderr).contains("count was never executed"), "{}", text(&never.stderr));
}

#[test]
fn a_value_is_the_one_that_a_line_leaves_behind() {
    let setting = Setting::build("shapes.c", &["cc", "-O0"]);
    setting.record(&[]);
    let line = setting.line_of("LOOP");
    // The line calls a function that calls itself; at its end, the sum is there.
    let (_, number) = line.split_once(':').unwrap();
    let next = format!("shapes.c:{}", number.parse::<u64>().unwrap() + 1);
    for execution in 1..=3 {
        let position = setting.print(&format!("{next}#{execution}"))["answer"]["position"].clone();
        let behind = setting.value(&format!("{}:sum", position.as_str().unwrap()));
        assert_eq!(setting.value(&format!("{line}#{execution}:sum")), behind, "{execution}");
    }
}

/// The answers of one call, in the order in which they are printed.
fn answers(printed: &Output) -> Vec<Value> {
    let lines = text(&printed.stdout);
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn several_criteria_are_answered_as_each_alone_and_in_one_replay() {
    let setting = Setting::build("shapes.c", &["cc", "-O0"]);
    setting.record(&[]);
    let loops = setting.line_of("LOOP");
    let position = setting.print("inner#4")["answer"]["position"].as_str().unwrap().to_owned();
    let criteria = [
        "end:%rip",
        "inner#2:depth",
        "inner:depth",
        &position,
        &format!("{loops}:sum"),
        &format!("{loops}#2:sum"),
        "start",
        "main:argc",
        "inner#2",
        "inner#6:depth",
        "start:%rsp",
        "end",
    ];
    let all = setting.why(&[&["print", "--json"], &criteria[..]].concat());
    assert!(all.status.success(), "{}", text(&all.stderr));
    let together = answers(&all);
    assert_eq!(together.len(), criteria.len());
    for (criterion, answer) in criteria.iter().zip(&together) {
        assert_eq!(answer["criterion"], *criterion);
        assert_eq!(answer["answer"], setting.print(criterion)["answer"], "{criterion}");
    }
}

#[test]
fn each_of_several_criteria_is_answered_whatever_becomes_of_the_others() {
    let setting = Setting::build("shapes.c", &["cc", "-O0"]);
    setting.record(&[]);
    let position = setting.print("inner#4")["answer"]["position"].as_str().unwrap().to_owned();
    let (event, _) = position.split_once('.').unwrap();
    let behind = format!("{event}.99999999999");
    let wrong = ["inner#1000", "nowhere", &behind, "99999999.0", "inner:nothing"];
    let right = ["main:argc", &position, "end:%rip", "inner"];
    let mixed: Vec<&str> = wrong.iter().zip(&right).flat_map(|(w, r)| [*w, *r]).collect();
    let printed = setting.why(&[&["print", "--json"], &mixed[..], &wrong[4..]].concat());
    assert_eq!(printed.status.code(), Some(1));
    let told: Vec<Value> = answers(&printed).iter().map(|told| told["criterion"].clone()).collect();
    assert_eq!(told, right);
    let said = text(&printed.stderr);
    let parts = [
        "only 6 times",
        "no function nowhere",
        "follow event",
        "the process ended",
        "nothing here",
    ];
    assert_eq!(said.lines().count(), parts.len(), "{said}");
    for (line, part) in said.lines().zip(parts) {
        assert!(line.contains(part), "{part}: {said}");
    }
    // One that is misused spoils all.
    let misused = setting.why(&["print", "main", "inner:list->"]);
    assert_eq!((misused.status.code(), misused.stdout.len()), (Some(2), 0));
}

#[test]
fn the_first_word_names_a_recording_or_is_a_criterion() {
    let setting = Setting::build("shapes.c", &["cc", "-O0"]);
    setting.record(&[]);
    let positions = |words: &[&str]| {
        let printed = setting.why(&[&["print", "--json"], words].concat());
        assert!(printed.status.success(), "{words:?}: {}", text(&printed.stderr));
        answers(&printed).iter().map(|told| told["answer"]["position"].clone()).collect::<Vec<_>>()
    };
    let both = positions(&["main", "inner"]);
    assert_eq!(both.len(), 2);
    assert_eq!(positions(&["shapes-1", "main", "inner"]), both);
    let gone = setting.why(&["print", "shapes-7", "main"]);
    assert!(text(&gone.stderr).contains("no recording shapes-7"), "{}", text(&gone.stderr));
}

#[test]
fn what_is_printed_fits_a_screen() {
    let setting = Setting::build("shapes.c", &["cc", "-O0"]);
    setting.record(&[]);
    let place = setting.line_of("printf(\"%s %d");
    let printed = text(&setting.why(&["print", &place, "--backtrace", "--regs"]).stdout);
    assert!(printed.lines().all(|line| line.chars().count() <= 80), "{printed}");
    for part in ["#0  inner (", "    corner   = {x = 0, y = 0}", "rip      0x", "main (argc=1"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
}

#[test]
fn debug_information_is_found_beside_the_program() {
    let setting = Setting::build("shapes.c", &["cc", "-O0"]);
    let run = |tool: &str, arguments: &[&str]| {
        let mut command = Command::new(tool);
        let done = command.args(arguments).current_dir(setting.directory.path()).status();
        assert!(done.unwrap().success(), "{tool} {arguments:?}");
    };
    run("objcopy", &["--only-keep-debug", "shapes", "shapes.debug"]);
    run("strip", &["shapes"]);
    setting.record(&[]);
    let printed = setting.why(&["print", "inner:depth"]);
    assert!(text(&printed.stderr).contains("no function inner"), "{}", text(&printed.stderr));
    run("objcopy", &["--add-gnu-debuglink=shapes.debug", "shapes"]);
    setting.record(&[]);
    assert_eq!(setting.value("inner:depth"), "0");
}

#[test]
fn a_program_that_nobody_here_wrote_has_the_calls_that_gdb_shows() {
    // Python is stripped, and calls a library that calls another one.
    let setting = Setting::build("shapes.c", &["cc", "-O0"]);
    let setting = Setting { program: "/usr/bin/python3".into(), ..setting };
    let arguments = ["-c", "import ctypes; ctypes.string_at(0)"];
    setting.record(&arguments);
    let copy = setting.directory.path().join("python3");
    std::os::unix::fs::symlink("/usr/bin/python3", &copy).unwrap();
    let question = Question {
        program: &copy,
        arguments: &arguments,
        place: "crash",
        number: 1,
        expressions: &[],
    };
    let (ours, theirs) = (setting.print("crash"), question.ask());
    let calls_here = calls(&ours["answer"]["frames"]);
    assert_eq!(calls_here, calls(&theirs["frames"]));
    assert!(calls_here.len() > 10, "{calls_here:?}");
}
