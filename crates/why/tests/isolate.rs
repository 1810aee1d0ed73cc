//! `why isolate`: the pair that it prints is run natively, and is as close as can be.

use serde_json::Value;
use std::fs;
use std::process::{Command, Output};

const WHY: &str = env!("CARGO_BIN_EXE_why");

fn isolate(passing: &str, failing: &str, arguments: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("good"), passing).unwrap();
    fs::write(directory.path().join("bad"), failing).unwrap();
    let mut command = Command::new(WHY);
    command.args(["isolate", "good", "bad"]).args(arguments).current_dir(directory.path());
    command.output().unwrap()
}

#[test]
fn the_difference_that_matters() {
    let passing = "alpha = 1\nbeta = 2\ngamma = 3\ndelta = 4\n";
    let failing = "alpha = 7\nbeta = 5\nnew = 8\ngamma = 9\ndelta = 6\n";
    // It fails if gamma is 9.
    let output = isolate(
        passing,
        failing,
        &["--json", "--", "sh", "-c", "! grep -q 'gamma = 9' \"$1\"", "sh", "@@"],
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["schema"], "why.isolate/1");
    let (passes, fails) = (
        answer["answer"]["passing"].as_str().unwrap(),
        answer["answer"]["failing"].as_str().unwrap(),
    );
    assert!(!passes.contains("gamma = 9") && fails.contains("gamma = 9"));
    // One of "3 gone" and "9 there" is all that is left between them.
    assert_eq!(answer["answer"]["changes"], 1, "{passes:?} {fails:?}");
}

#[test]
fn people_read_it() {
    let output = isolate("a\nb\nc\n", "a\nX\nc\nd\n", &["--", "sh", "-c", "! grep -q X"]);
    assert!(output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("+X"), "{said}");
}

#[test]
fn inputs_that_do_not_do_as_they_should() {
    let check = |command: &str, words: &str| {
        let output = isolate("a", "b", &["--", command]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(said.lines().count() == 1 && said.contains(words), "{said}");
    };
    check("true", "bad does not fail: exit 0");
    check("false", "good does not pass: exit 1");
}
