//! A crash is the same if it is in the same function. Which one that is, gdb says, too.

use crate::setting::Setting;
use crate::support::seccomp;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;

/// Crashes in a way that depends on the words in its input.
const PROGRAM: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char text[100000];
static int has(const char *word) { return strstr(text, word) != 0; }

static void first(volatile char *p) { fprintf(stderr, "%s\n", text); *p = 1; }
static void second(volatile char *p) { *p = 2; }
static void measure(const char *p) { printf("%zu\n", strlen(p)); }
static void check(void) { assert(!has("assert")); }
static void *run(void *p) { first(p); return p; }
static void report(int number) { (void)number; signal(SIGSEGV, SIG_DFL); raise(SIGSEGV); }

int main(int argc, char **argv) {
    FILE *file = fopen(argv[argc - 1], "r");
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    pthread_t thread;
    if (has("report")) signal(SIGSEGV, report);
    if (has("thread")) { pthread_create(&thread, 0, run, 0); pthread_join(thread, 0); }
    if (has("measure")) measure((char *)8);
    if (has("assert")) check();
    if (has("freed") && has("outside")) { char *p = malloc(4); free(p); return *p; }
    if (has("outside")) { volatile char array[4]; volatile int at = 4; return array[at]; }
    if (has("alpha") && has("beta")) first(0);
    if (has("beta")) second(0);
    return 0;
}
"#;

fn setting(input: &str, flags: &[&str]) -> Setting {
    let files: [(&str, &[u8]); 2] = [("crash.c", PROGRAM.as_bytes()), ("in.txt", input.as_bytes())];
    let setting = Setting::new(&files);
    let mut gcc = Command::new("gcc");
    gcc.args(["-o", "crash", "crash.c", "-pthread", "-w"])
        .args(flags)
        .current_dir(setting.path(""));
    assert!(gcc.status().unwrap().success());
    setting
}

/// What gdb calls the functions at the crash, the innermost first.
fn functions(setting: &Setting, input: &str) -> Vec<String> {
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-ex", "run", "-ex", "bt", "--args", "./crash", input]);
    let output = gdb.current_dir(setting.path("")).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let frames = said.lines().filter(|line| line.starts_with('#'));
    let name = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let behind = words.iter().position(|word| *word == "in").map_or(1, |at| at + 1);
        words[behind].to_owned()
    };
    frames.map(name).collect()
}

#[test]
fn another_function_is_another_failure() {
    let input = "one\nalpha two\nthree beta four\n";
    for flags in [&["-g"][..], &[], &["-g", "-static"]] {
        let setting = setting(input, flags);
        // What it says last varies with the input, and does not count.
        let answer = setting.answer(&["in.txt", "--", "./crash", "@@"]);
        let failure = answer["answer"]["failure"].as_str().unwrap();
        assert!(failure.starts_with("SIGSEGV in first: "), "{flags:?}: {failure}");
        assert_eq!(setting.read("in.reduced.txt"), b"alphabeta", "{flags:?}");
        assert_eq!(functions(&setting, "in.reduced.txt")[0], "first");
    }
}

#[test]
fn without_names_the_last_line_counts() {
    let setting = setting("one\nbeta\ntwo\n", &["-s"]);
    let answer = setting.answer(&["in.txt", "--", "./crash", "@@"]);
    assert_eq!(answer["answer"]["failure"], "SIGSEGV");
    assert_eq!(setting.read("in.reduced.txt"), b"beta");
}

/// Whether it crashes, having said these words last, with any number between them.
fn crashes_saying(setting: &Setting, text: &[u8], words: [&str; 2]) -> bool {
    fs::write(setting.path("other.txt"), text).unwrap();
    let mut crash = Command::new("./crash");
    let output = crash.arg("other.txt").current_dir(setting.path("")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let number = last.strip_prefix(words[0]).and_then(|rest| rest.strip_suffix(words[1]));
    let is_number = |number: &str| number.starts_with(|char: char| char.is_ascii_digit());
    output.status.signal() == Some(libc::SIGSEGV) && number.is_some_and(is_number)
}

#[test]
fn where_tracing_is_forbidden_the_last_line_counts() {
    let input = "one\nalpha two\nthree 1234 beta\n";
    let words = ["three ", " beta"];
    let setting = setting(input, &["-g"]);
    assert!(crashes_saying(&setting, input.as_bytes(), words));
    let mut why = setting.command(&["in.txt", "--json", "--", "./crash", "@@"]);
    // SAFETY: what runs between fork and exec only makes system calls.
    unsafe { why.pre_exec(seccomp::without_ptrace) };
    let output = why.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["answer"]["failure"], "SIGSEGV: three # beta");
    let left = setting.read("in.reduced.txt");
    let shown = String::from_utf8_lossy(&left);
    assert!(left.len() < input.len() && crashes_saying(&setting, &left, words), "{shown}");
    for at in 0..left.len() {
        let without = [&left[..at], &left[at + 1..]].concat();
        assert!(!crashes_saying(&setting, &without, words), "{shown} without byte {at}");
    }
}

#[test]
fn whose_fault_a_crash_is() {
    let check = |word: &str, failure: &str, function: &str| {
        let setting = setting(&format!("some {word} text\n"), &["-g"]);
        let answer = setting.answer(&["in.txt", "--", "./crash", "@@"]);
        let said = answer["answer"]["failure"].as_str().unwrap();
        assert!(said.starts_with(&format!("{failure} in {function}")), "{said}");
        assert_eq!(setting.read("in.reduced.txt"), word.as_bytes());
        let there = functions(&setting, "in.txt");
        assert!(there.iter().any(|name| name == function), "{word}: gdb says {there:?}");
    };
    check("thread", "SIGSEGV", "first");
    // Neither the library that was called with rubbish, nor the one that ends a program.
    check("measure", "SIGSEGV", "measure");
    check("assert", "SIGABRT", "check");
}

#[test]
fn a_handler_that_reports_is_not_at_fault() {
    let setting = setting("report alpha beta\n", &["-g"]);
    let answer = setting.answer(&["in.txt", "--", "./crash", "@@"]);
    let failure = answer["answer"]["failure"].as_str().unwrap();
    assert!(failure.starts_with("SIGSEGV in first"), "{failure}");
    assert_eq!(setting.read("in.reduced.txt"), b"alphabeta");
}

#[test]
fn who_goes_on_knows_the_original() {
    let setting = setting("one\nbeta\ntwo\nalpha three\n", &["-g"]);
    let whole = setting.answer(&["in.txt", "--", "./crash", "@@"]);
    let result = setting.read("in.reduced.txt");
    setting.answer(&["in.txt", "--max-tests", "4", "--", "./crash", "@@"]);
    let rest = setting.answer(&["in.txt", "--resume", "--", "./crash", "@@"]);
    assert_eq!(setting.read("in.reduced.txt"), result);
    assert_eq!(rest["stats"]["tests"], whole["stats"]["tests"]);
    let once_more = rest["stats"]["made"].as_u64().unwrap() + 4;
    assert_eq!(once_more, whole["stats"]["tests"].as_u64().unwrap() + 1);
}

#[test]
fn what_a_sanitizer_says_counts() {
    // Without `freed` there is another report, which ends with the same words.
    let setting = setting("one\noutside two\nfreed\n", &["-g", "-fsanitize=address"]);
    let answer = setting.answer(&["in.txt", "--", "./crash", "@@"]);
    let failure = answer["answer"]["failure"].as_str().unwrap();
    let words = ["exit 1: SUMMARY: AddressSanitizer: heap-use-after-free", "in main"];
    assert!(words.iter().all(|words| failure.contains(words)), "{failure}");
    assert_eq!(setting.read("in.reduced.txt"), b"outsidefreed");
}
