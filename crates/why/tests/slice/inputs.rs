//! Chops from what a program read: by which name, and however it was read.

use super::recorded::{Recorded, set};
use std::process::Command;

/// Recorded where its files are, which it is given by their names alone.
fn recorded() -> Recorded {
    let recorded = Recorded::built("cc", "mapped.c", &["-g", "-O0"]);
    for name in ["one", "two"] {
        std::fs::write(recorded.directory.path().join(name), "0123456789abcdefghij").unwrap();
    }
    let program = recorded.program.to_str().unwrap().to_owned();
    let mut record: Command = recorded.command(&["record", "--", &program, "one", "two"]);
    assert!(record.current_dir(recorded.directory.path()).status().unwrap().success());
    recorded
}

#[test]
fn a_file_that_is_mapped_is_an_input() {
    let recorded = recorded();
    for from in ["input", "input:two", "input:two:14", "input:./two:10-19"] {
        let answer = recorded.json(&["chop", "--from", from, "--to=end:of_mapped"]);
        assert!(recorded.comments(&answer).contains("mapped"), "{from}: {answer:#}");
    }
    let other = recorded.refused(&["chop", "--from=input:two:13", "--to=end:of_mapped"], 1);
    assert!(other.contains("nothing leads from input:two:13 to end:of_mapped"), "{other}");
}

#[test]
fn one_of_several_inputs_is_named() {
    let recorded = recorded();
    let answer = recorded.json(&["chop", "--from=input:one:1", "--to=end:of_read"]);
    assert_eq!(recorded.comments(&answer), set(&["read"]));
    let refused = |from: &str, status| {
        recorded.refused(&["chop", "--from", from, "--to=end:of_read"], status)
    };
    let several = refused("input:1", 1);
    assert!(
        several.contains("There are several") && several.contains("input:one:0-9"),
        "{several}"
    );
    let none = refused("input:three", 1);
    assert!(none.contains("read anything of three; it read one, "), "{none}");
    let beyond = refused("input:one:4", 1);
    assert!(beyond.contains("not known to have been read; 4 bytes of it were"), "{beyond}");
    assert!(refused("input:one:5-3", 2).contains("5-3 are no bytes of the input"));
    assert!(refused("input:", 2).contains("names no file"));
}
