//! `why chop --auto`, as people call it. What it says is compared with native runs, and with what
//! the commands that it stands for say of the recording that it leaves.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const WHY: &str = env!("CARGO_BIN_EXE_why");

/// A page on which `mini_tidy` crashes.
const PAGE: &str = r#"H"t"/HSFFFSFFNP"a"/PP"b"/PBP"c"/PP"d"/P/BP"e"/PP"f"/P/N/S/S"#;

/// A directory in which `why` runs, and recordings beside it.
struct Setting {
    directory: TempDir,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Setting {
    fn new() -> Setting {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("here")).unwrap();
        Setting { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("here").join(name)
    }

    /// Builds a program of the repository, or one of these lines.
    fn build(&self, name: &str, source: &str) {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let source = match source.contains('\n') {
            true => {
                let path = self.path(&format!("{name}.c"));
                fs::write(&path, source).unwrap();
                path
            }
            false => repository.join(source),
        };
        let mut cc = Command::new("cc");
        cc.args(["-g", "-O0", "-fno-inline", "-o"]).arg(self.path(name)).arg(source);
        assert!(cc.status().unwrap().success());
    }

    fn write(&self, name: &str, content: &[u8]) {
        fs::write(self.path(name), content).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        // What a wrong pointer points to must not be left to chance.
        let mut command = Command::new("setarch");
        command.args(["-R", WHY]).args(arguments);
        command.current_dir(self.path("")).stdin(Stdio::null());
        command.env("WHY_DIR", self.directory.path().join("recordings"));
        command
    }

    fn why(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        answer(self.why(&[arguments, &OPTIONS].concat()))
    }

    /// The same where a command is at the end.
    fn auto(&self, options: &[&str], command: &[&str]) -> Value {
        let words = [&["chop", "--auto"], options, &OPTIONS, &["--"], command].concat();
        answer(self.why(&words))
    }

    /// The status and the only line of a command that has no answer.
    fn refused(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.why(arguments);
        let said = text(&output.stderr);
        assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
        assert_eq!(said.lines().count(), 1, "{said}");
        (output.status.code().unwrap(), said)
    }

    /// How a program ends that nobody records.
    fn native(&self, words: &[&str], input: &str) -> Option<i32> {
        let mut command = Command::new(self.path(words[0]));
        command.args(&words[1..]).current_dir(self.path(""));
        command.stdin(File::open(self.path(input)).unwrap()).stderr(Stdio::null());
        command.stdout(Stdio::null()).status().unwrap().signal()
    }
}

/// Everything, for programs.
const OPTIONS: [&str; 2] = ["--json", "--lines=100000"];

fn answer(output: Output) -> Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The lines of an answer, by their places.
fn lines(answer: &Value) -> BTreeSet<String> {
    let lines = answer["answer"]["lines"].as_array().unwrap().iter();
    lines.map(|line| line["place"].as_str().unwrap().to_owned()).collect()
}

/// The recording that is named is of the reduced run, and the commands that `--auto` stands for say
/// the same of it.
fn check_recording(setting: &Setting, answer: &Value, source: &str) {
    let recording = answer["recording"].as_str().unwrap();
    let chop = setting.json(&["chop", recording, "--from", source, "--to", "crash"]);
    assert_eq!(lines(&chop), lines(answer));
    assert_eq!(chop["stats"], answer["stats"]);
    let backward = setting.json(&["slice", recording, "crash"]);
    let sizes = &answer["answer"]["sizes"];
    let size = |name: &str| sizes[name].as_u64().unwrap() as usize;
    assert_eq!(size("chop"), lines(&chop).len());
    assert_eq!(size("backward"), lines(&backward).len());
    assert!(lines(&chop).is_subset(&lines(&backward)));
    assert!(size("chop") <= size("forward") && size("forward") <= size("executed"), "{sizes}");
    assert!(size("backward") <= size("executed"), "{sizes}");
    let replayed = setting.why(&["replay", recording]);
    assert_eq!(replayed.status.code(), Some(128 + 11));
}

#[test]
fn a_recording_of_a_failing_run_is_enough() {
    let setting = Setting::new();
    setting.build("tidy", "fixtures/demo/mini_tidy.c");
    setting.write("page", PAGE.as_bytes());
    // What came through a pipe is only in the recording.
    let mut record = setting.command(&["record", "--", "./tidy"]);
    let recorded = record.stdin(File::open(setting.path("page")).unwrap()).output().unwrap();
    assert_eq!(recorded.status.signal(), Some(11));
    let answer = setting.json(&["chop", "--auto"]);
    assert_eq!(answer["schema"], "why.chop/1");
    let reduced = &answer["answer"]["reduced"];
    assert_eq!(reduced["before"]["bytes"], PAGE.len());
    assert_eq!(reduced["source"], "the standard input");
    assert!(reduced["failure"].as_str().unwrap().starts_with("SIGSEGV in add_child"));
    let left = setting.read("tidy.stdin.reduced");
    assert_eq!(reduced["after"]["bytes"], left.len());
    assert!(left.len() < 20, "{}", text(&left));
    assert_eq!(setting.native(&["tidy"], "tidy.stdin.reduced"), Some(11));
    check_recording(&setting, &answer, "input");
}

#[test]
fn an_input_and_a_command_are_enough() {
    let setting = Setting::new();
    setting.build("inventory", "fixtures/demo/inventory.c");
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let orders = fs::read(repository.join("fixtures/demo/orders.txt")).unwrap();
    setting.write("orders.txt", &orders);
    // With a mark, by its name, and as a command that is recorded first.
    let mut all = Vec::new();
    for (inputs, command) in [
        (&["orders.txt"][..], ["./inventory", "@@"]),
        (&["orders.txt"], ["./inventory", "orders.txt"]),
        (&[], ["./inventory", "orders.txt"]),
    ] {
        let answer = setting.auto(inputs, &command);
        assert_eq!(answer["answer"]["reduced"]["before"]["bytes"], orders.len());
        assert_eq!(answer["answer"]["reduced"]["output"], "orders.reduced.txt");
        let left = setting.read("orders.reduced.txt");
        assert!(left.len() < 30, "{}", text(&left));
        assert_eq!(setting.native(&["inventory", "orders.reduced.txt"], "orders.txt"), Some(11));
        check_recording(&setting, &answer, "input");
        all.push((left, lines(&answer)));
    }
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(setting.read("orders.txt"), orders);
    // From elsewhere, paths lead to where things are.
    let mut elsewhere =
        setting.command(&["chop", "--auto", "--json", "--lines=1000", "inventory-3"]);
    let answer = answer(elsewhere.current_dir(setting.directory.path()).output().unwrap());
    assert_eq!(lines(&answer), all[0].1);
    let output = answer["answer"]["reduced"]["output"].as_str().unwrap().to_owned();
    assert_eq!(fs::read(output).unwrap(), all[0].0);
}

/// Whoever fails without any input fails because of what is left: the program.
#[test]
fn what_fails_with_any_input_is_told_by_its_slice() {
    let setting = Setting::new();
    setting.build(
        "any",
        "#include <stdio.h>
         int main(void) {
             int count = 0, *nowhere = 0;
             while (getchar() != EOF) count++;
             return *nowhere + count;
         }\n",
    );
    setting.write("input", b"whatever it is");
    let chop = setting.auto(&["input"], &["./any"]);
    assert_eq!(setting.read("input.reduced"), b"");
    assert_eq!(chop["answer"]["reduced"]["after"]["bytes"], 0);
    assert_eq!(chop["answer"]["sizes"]["chop"], 0);
    let said = chop["left_out"][0].as_str().unwrap();
    assert!(said.contains("fails with nothing left of input, too"), "{said}");
    let recording = chop["recording"].as_str().unwrap();
    let slice = setting.json(&["slice", recording, "crash"]);
    assert!(lines(&slice).contains("any.c:5"), "{slice}");
    assert_eq!(lines(&chop), lines(&slice));
}

#[test]
fn an_argument_or_a_variable_is_reduced_like_an_input() {
    let setting = Setting::new();
    setting.build("overflow", "crates/why/tests/slice/overflow.c");
    let name = "x".repeat(60);
    let answer = setting.auto(&["--from", "arg:1"], &["./overflow", &name]);
    // One more than fits is enough to overwrite what is behind it.
    assert_eq!(setting.read("overflow.arg-1.reduced"), b"x".repeat(17));
    assert_eq!(lines(&answer).len(), 2, "{answer:#}");
    check_recording(&setting, &answer, "arg:1");
    let again = setting.json(&["chop", "--auto", "--from", "arg:1"]);
    assert_eq!(lines(&again), lines(&answer));
    assert_eq!(again["answer"]["reduced"]["before"]["bytes"], 17);

    setting.build(
        "variable",
        "#include <stdlib.h>\n#include <string.h>\n\
         struct { char name[8]; char end; } all;\n\
         int main(void) {\n\
         strcpy(all.name, getenv(\"NAME\"));\n\
         if (all.end)\n\
           abort();\n\
         return 0;\n}\n",
    );
    let mut chop = setting.command(&["chop", "--auto", "--from", "env:NAME"]);
    chop.args(OPTIONS)
        .args(["-o", "small", "--", "./variable"])
        .env("NAME", "abcdefghijklmnopqrst");
    let found = self::answer(chop.output().unwrap());
    assert_eq!(setting.read("small").len(), 9);
    for line in ["variable.c:5", "variable.c:6"] {
        assert!(lines(&found).contains(line), "{:?}", lines(&found));
    }
}

#[test]
fn an_argument_is_one_of_the_program_that_is_asked_about() {
    let setting = Setting::new();
    setting.build("overflow", "crates/why/tests/slice/overflow.c");
    let (program, name) = (setting.path("overflow").display().to_string(), "x".repeat(60));
    let reduced = |file: &str| text(&setting.read(file));
    let both = BTreeSet::from(["overflow.c:21".to_owned(), "overflow.c:8".to_owned()]);
    // Started by one that becomes it.
    let by_env = setting.auto(&["--from", "arg:1"], &["env", "A=B", &program, &name]);
    assert_eq!((lines(&by_env), reduced("env.arg-1.reduced")), (both.clone(), "x".repeat(17)));
    // By one that waits for it, of which another argument is the first.
    let asked = ["--from", "arg:1", "--to", "overflow/crash"];
    let waits = setting.auto(&asked, &["timeout", "60", &program, &name]);
    assert_eq!((lines(&waits), reduced("timeout.arg-1.reduced")), (both.clone(), "x".repeat(17)));
    // And where it is a word of a script that makes others of it.
    let script = format!("{program} {name}; exit 5");
    assert_eq!(setting.why(&["record", "--", "bash", "-c", &script]).status.code(), Some(5));
    let chop = ["chop", "--from", "arg:1", "--to", "overflow/crash"];
    assert_eq!(lines(&setting.json(&chop)), both);
    let (_, said) = setting.refused(&[&chop[..], &["--auto"]].concat());
    assert!(said.contains("other arguments than the command"), "{said}");
}

#[test]
fn an_argument_of_a_script_is_none_of_its_interpreter() {
    let setting = Setting::new();
    setting.write("fails", b"#!/bin/sh\ncase $1 in *x*) exit 3; esac\n");
    let script = setting.path("fails");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    let answer = setting.auto(&["--from", "arg:1"], &[script.to_str().unwrap(), "aaxbb"]);
    assert_eq!(setting.read("fails.arg-1.reduced"), b"x");
    let recording = answer["recording"].as_str().unwrap();
    let (_, said) = setting.refused(&["chop", recording, "--from", "arg:2", "--to", "exit"]);
    assert!(said.contains("the program had one argument, and none 2"), "{said}");
}

#[test]
fn arguments_are_not_known_of_programs_that_began_before_the_recording() {
    let setting = Setting::new();
    setting.build("overflow", "crates/why/tests/slice/overflow.c");
    let name = "x".repeat(60);
    setting.why(&["record", "--from", "main", "--", "./overflow", &name]);
    let (_, said) = setting.refused(&["chop", "--from", "arg:1", "--to", "crash"]);
    assert!(said.contains("is not in the recording, which begins later"), "{said}");
}

/// Tests are made elsewhere: there another failure is none of the run's own.
#[test]
fn a_failure_that_is_another_one_elsewhere_is_not_explained() {
    let setting = Setting::new();
    setting.build(
        "opens",
        "#include <stdio.h>\n#include <stdlib.h>\n\
         int main(int argc, char **argv) {\n\
         FILE *file = fopen(argv[1], \"r\");\n\
         if (!file)\n\
           return 9;\n\
         if (getc(file) == 'x')\n\
           abort();\n\
         return 0;\n}\n",
    );
    setting.write("in", b"x");
    let chop = ["chop", "--auto", "--from", "arg:1", "--", "./opens"];
    let (status, said) = setting.refused(&[&chop[..], &["in"]].concat());
    assert!(said.contains("SIGABRT was recorded, and run again it is exit 9"), "{said}");
    assert_eq!(status, 1);
    let (_, said) = setting.refused(&chop);
    assert!(said.contains("the command has 0 arguments, and none 1"), "{said}");
}

#[test]
fn the_input_stays_what_it_is() {
    let setting = Setting::new();
    setting.write("in", b"text");
    let chop = ["chop", "--auto", "in", "-o", "in", "--", "false", "@@"];
    let (status, said) = setting.refused(&chop);
    assert!(status == 2 && said.contains("in is the input; give another name with -o"), "{said}");
    assert!(!said.contains("--in-place"), "{said}");
    assert_eq!(std::fs::read(setting.path("in")).unwrap(), b"text");
}

#[test]
fn a_wrong_exit_and_a_failed_assertion_are_failures() {
    let setting = Setting::new();
    setting.build(
        "sum",
        "#include <assert.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
         int main(int argc, char **argv) {\n\
         int total = 0, next;\n\
         while (scanf(\"%d\", &next) == 1)\n\
           total += next;\n\
         if (argc > 1) assert(total < 100);\n\
         if (total > 1000)\n\
           exit(3);\n\
         return 0;\n}\n",
    );
    setting.write("numbers", b"5 17 3 900 12 400 8 1\n");
    let exit = setting.auto(&["numbers"], &["./sum"]);
    assert_eq!(exit["answer"]["reduced"]["failure"], "exit 3");
    for line in ["sum.c:7", "sum.c:9"] {
        assert!(lines(&exit).contains(line), "{:?}", lines(&exit));
    }
    let aborted = setting.auto(&["numbers"], &["./sum", "check"]);
    let failure = aborted["answer"]["reduced"]["failure"].as_str().unwrap();
    assert!(failure.starts_with("SIGABRT"), "{failure}");
    assert!(lines(&aborted).contains("sum.c:8"), "{:?}", lines(&aborted));
    assert!(!lines(&aborted).contains("sum.c:9"));
    // What a failure is can be said.
    let said = setting.auto(&["numbers", "--fails-if", "exit=3"], &["./sum"]);
    assert_eq!(lines(&said), lines(&exit));
}

#[test]
fn all_executed_lines_are_counted() {
    let setting = Setting::new();
    let source = "#include <stdio.h>\n\
        int twice(int of) {\n  if (of > 9)\n    return 99;\n  return of * 2;\n}\n\
        int never(void) {\n  return 1;\n}\n\
        int main(void) {\n  int c = getchar();\n  if (c == 'x')\n    return twice(4);\n\
          puts(\"no\");\n  return never();\n}\n";
    setting.build("count", source);
    setting.write("in", b"x");
    let answer = setting.auto(&["in"], &["./count"]);
    // The oracle is the compiler's own count of a program that is built for it. It has the line
    // where a function begins instead of the one where it ends.
    let mut cc = Command::new("cc");
    cc.args(["-O0", "--coverage", "-o", "covered", "count.c"]).current_dir(setting.path(""));
    assert!(cc.status().unwrap().success());
    assert_eq!(setting.native(&["covered"], "in"), None);
    let mut gcov = Command::new("gcov");
    let gcov = gcov.args(["--stdout", "covered-count.gcda"]).current_dir(setting.path("")).output();
    let counted = text(&gcov.unwrap().stdout);
    let is_executed = |line: &&str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let executed = counted.lines().filter(is_executed).count();
    assert_eq!(executed, 7, "{counted}");
    assert_eq!(answer["answer"]["sizes"]["executed"], executed, "{counted}");
}

#[test]
fn what_cannot_be_done_is_said_in_a_line() {
    let setting = Setting::new();
    setting.build("overflow", "crates/why/tests/slice/overflow.c");
    setting.build(
        "flag",
        "#include <stdio.h>\n#include <unistd.h>\n\
         int main(int argc, char **argv) {\n\
         FILE *in = fopen(argv[1], \"r\");\n\
         if (getc(in) == 'x' && access(argv[2], F_OK) == 0) return 3;\n\
         return 0;\n}\n",
    );
    setting.write("in", b"xyz");
    let flag = setting.path("raised").display().to_string();
    let check = |arguments: &[&str], status: i32, words: &str| {
        let (code, said) = setting.refused(arguments);
        assert!(code == status && said.contains(words), "{code}: {said}");
    };
    check(&["chop", "--auto"], 1, "recording");
    check(&["chop", "--auto", "in", "--", "./overflow", "fits"], 1, "the original does not fail");
    check(&["chop", "--auto", "--", "./overflow", "@@"], 2, "what does @@ stand for?");
    check(&["chop", "--auto", "--", "./overflow", "fits"], 1, "does not fail: exit 0; --fails-if");
    let long = "x".repeat(30);
    check(
        &["chop", "--auto", "--", "./overflow", &long],
        1,
        "not known to have read its standard input",
    );
    check(&["chop", "--auto", "--from", "arg:2", "--", "./overflow", &long], 1, "none 2");
    check(&["chop", "--auto", "--from", "env:NOT_THERE", "--", "./overflow"], 1, "NOT_THERE");
    check(&["chop", "--auto", "--from", "input:3", "in", "--", "./overflow"], 2, "the whole input");
    check(&["chop", "--auto", "--", "./missing"], 1, "missing");
    check(&["chop", "--auto", "in", "--", "./missing"], 1, "there is no ./missing");
    check(&["chop", "--from", "input", "--to", "crash", "-j", "2"], 2, "--auto");
    check(&["chop", "--to", "crash"], 2, "--from");
    check(&["chop", "--auto", "in", "--to", ":::", "--", "./overflow"], 2, "no criterion");

    setting.write("raised", b"");
    let recorded = setting.why(&["record", "--", "./flag", "in", &flag]);
    assert_eq!(recorded.status.code(), Some(3));
    let recording = "flag-1";
    fs::remove_file(&flag).unwrap();
    check(&["chop", "--auto", recording], 1, "does not come again: exit 3 was recorded");
    // That is told before the program is run again.
    check(&["chop", "--auto", recording, "--to", "nowhere"], 1, "nowhere");
    setting.write("in", b"changed");
    check(&["chop", "--auto", recording], 1, "in has changed since it was recorded");
    fs::remove_file(setting.path("in")).unwrap();
    check(&["chop", "--auto", recording], 1, "cannot read in");
    assert!(!setting.path("in.reduced").exists());
}

#[test]
fn how_much_was_read_is_told_where_no_more_was() {
    let setting = Setting::new();
    setting.build(
        "reads",
        "#include <stdio.h>\nint main(void) {\n  char text[8] = {0};\n\
         return fread(text, 1, 8, stdin) ? text[0] : 1;\n}\n",
    );
    setting.write("in", b"hello");
    let input = File::open(setting.path("in")).unwrap();
    setting.command(&["record", "--", "./reads"]).stdin(input).output().unwrap();
    let (status, said) = setting.refused(&["chop", "--from", "input:99-100", "--to", "end:%rdi"]);
    assert_eq!(status, 1);
    assert!(said.contains("not known to have been read; 5 bytes of it were"), "{said}");
}

#[test]
fn who_loses_patience_keeps_what_is_done() {
    let setting = Setting::new();
    setting.build(
        "slow",
        "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
         int main(void) {\n  int c;\n  usleep(50000);\n\
         while ((c = getchar()) != EOF)\n    if (c == '!') abort();\n  return 0;\n}\n",
    );
    let input: Vec<u8> =
        (0..200).flat_map(|line| format!("a{line} (b c) !\n").into_bytes()).collect();
    setting.write("in", &input);
    let mut chop = setting.command(&["chop", "--auto", "in", "--", "./slow"]);
    let chop = chop.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while !setting.path("in.reduced").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing becomes smaller");
        std::thread::sleep(Duration::from_millis(10));
    }
    let process = nix::unistd::Pid::from_raw(chop.id() as i32);
    nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGINT).unwrap();
    let output = chop.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("interrupted; the best result so far is in in.reduced"), "{said}");
    let left = setting.read("in.reduced");
    assert!(left.len() < input.len() && left.contains(&b'!'));
    let rest = setting.auto(&["in", "--resume"], &["./slow"]);
    assert_eq!(rest["answer"]["reduced"]["after"]["bytes"], 1);
}

/// The instructions that were executed and that an answer has, by their numbers in the trace.
fn instances(answer: &Value) -> BTreeSet<u64> {
    let all = answer["answer"]["instances"].as_array().unwrap().iter();
    all.map(|instance| instance["number"].as_u64().unwrap()).collect()
}

/// What `--each` says of each value is what a chop of that value alone says; and together they are
/// the chop of all.
fn check_each(setting: &Setting, recording: &str, source: &str, unit: &str, values: usize) {
    let chop = |from: &str, more: &[&str]| {
        let words = ["chop", recording, "--from", from, "--to", "crash", "--json", "--lines=9999"];
        setting.why(&[&words, more].concat())
    };
    let whole = answer(chop(source, &[&format!("--each={unit}"), "--all"]));
    let each = &whole["answer"]["each"];
    assert_eq!(each["unit"], unit);
    let each = each["values"].as_array().unwrap();
    assert_eq!(each.len(), values, "{each:#?}");
    let mut together = BTreeSet::new();
    for value in each {
        let from = format!("{source}:{}-{}", value["first"], value["last"]);
        let output = chop(&from, &["--all"]);
        if value["in_chop"] == 0 {
            assert!(text(&output.stderr).contains("nothing leads from"), "{value}");
            continue;
        }
        let alone = answer(output);
        assert_eq!(value["in_chop"], alone["stats"]["in_slice"], "{from}");
        let told = value["lines"].as_array().unwrap().iter();
        let told: BTreeSet<String> = told.map(|line| line.as_str().unwrap().to_owned()).collect();
        assert_eq!(told, lines(&alone), "{from}");
        together.append(&mut instances(&alone));
    }
    assert_eq!(together, instances(&whole));
}

#[test]
fn each_value_by_itself_has_the_chop_of_that_value() {
    let setting = Setting::new();
    setting.build("tidy", "fixtures/demo/mini_tidy.c");
    setting.build("inventory", "fixtures/demo/inventory.c");
    setting.write("page", b"SSNB/BP");
    setting.write("orders.txt", b"stock a 14 5 b\nsell a 10\n");
    let mut record = setting.command(&["record", "--", "./tidy"]);
    let recorded = record.stdin(File::open(setting.path("page")).unwrap()).output().unwrap();
    assert_eq!(recorded.status.signal(), Some(11));
    check_each(&setting, "tidy-1", "input", "char", 7);
    let recorded = setting.why(&["record", "--", "./inventory", "orders.txt"]);
    assert_eq!(recorded.status.signal(), Some(11));
    check_each(&setting, "inventory-1", "input", "token", 8);
    check_each(&setting, "inventory-1", "input", "line", 2);
}

#[test]
fn the_byte_that_overwrites_a_pointer_is_the_one_with_a_chop() {
    let setting = Setting::new();
    setting.build("overflow", "crates/why/tests/slice/overflow.c");
    let name = "x".repeat(30);
    let options = ["--from", "arg:1", "--each", "--thin"];
    let answer = setting.auto(&options, &["./overflow", &name]);
    let each = &answer["answer"]["each"];
    // One word cannot be told from the whole, so it is taken apart.
    assert_eq!(each["unit"], "char");
    let chops = each["values"].as_array().unwrap().iter().map(|value| value["chop"].as_u64());
    let chops: Vec<u64> = chops.map(Option::unwrap).collect();
    // Only the last one gets to where it crashes; others are at most copied along with it.
    assert_eq!(chops.len(), 17);
    assert!(chops[..16].iter().all(|chop| *chop <= 1), "{chops:?}");
    assert_eq!(chops[16], 2);
    let average = chops.iter().sum::<u64>() as f64 / 17.0;
    let told = each["average"]["chop"].as_f64().unwrap();
    assert!((told - average).abs() < 1e-9, "{told}");
}

#[test]
fn a_byte_has_a_chop_if_the_value_would_be_another_without_it() {
    let setting = Setting::new();
    // Of these bytes some are never used, some only now and then, some for decisions only.
    setting.build(
        "some",
        "#include <unistd.h>\n\
         int main(void) {\n\
         unsigned char in[6] = { 0 };\n\
         if (read(0, in, 6) != 6) return 0;\n\
         unsigned total = in[0];\n\
         if (in[1] > 'k') total += 3;\n\
         unsigned char unused = in[2];\n\
         total ^= in[in[3] % 2 ? 4 : 5];\n\
         (void)unused;\n\
         return total % 251;\n}\n",
    );
    let input = b"abcdeg";
    setting.write("in", input);
    let status = |input: &[u8]| {
        setting.write("other", input);
        let mut native = Command::new(setting.path("some"));
        native.stdin(File::open(setting.path("other")).unwrap()).status().unwrap().code().unwrap()
    };
    let matters = |at: usize| {
        let with = |byte: u8| {
            let mut other = input.to_vec();
            other[at] = byte;
            status(&other)
        };
        (0..=255).any(|byte| with(byte) != status(input))
    };
    let mut record = setting.command(&["record", "--", "./some"]);
    record.stdin(File::open(setting.path("in")).unwrap()).output().unwrap();
    let answer = setting.json(&["chop", "--from", "input", "--to", "crash", "--each=byte"]);
    let values = answer["answer"]["each"]["values"].as_array().unwrap().clone();
    assert_eq!(values.len(), input.len());
    // Byte 1 only decides that something is left out, of which slices of what was executed know
    // nothing.
    for at in [0, 2, 3, 4, 5] {
        let found = values[at]["chop"].as_u64().unwrap() > 0;
        assert_eq!(found, matters(at), "byte {at}");
    }
    assert!(matters(0) && !matters(2) && !matters(4));
}
