//! Chops from what a program read: by which name, and however it was read.

use super::processes::last_process;
use super::recorded::{Recorded, set};
use std::fs::File;
use std::process::{Command, Stdio};

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

/// Of a program that gets the fifth byte of its file in some way.
fn fifth_byte(built: &Recorded, way: &str, input: Stdio) {
    let program = built.program.to_str().unwrap();
    let mut record = built.command(&["record", "--", program, "given", way]);
    let status = record.current_dir(built.directory.path()).stdin(input).status().unwrap();
    assert!(status.success(), "{way}");
}

fn with_file(program: &str) -> Recorded {
    let built = Recorded::built("cc", program, &["-g", "-O0"]);
    std::fs::write(built.directory.path().join("given"), "0123456789abcdefghij").unwrap();
    built
}

#[test]
fn bytes_are_known_by_whatever_descriptor_they_were_read() {
    let built = with_file("descriptors.c");
    for way in ["d", "f", "c", "o", "O", "g", "s", "v", "V"] {
        fifth_byte(&built, way, Stdio::null());
        let answer = built.json(&["chop", "--from=input:4", "--to=end:fifth"]);
        assert!(built.comments(&answer).contains("fifth"), "{way}: {answer:#}");
        let first = built.refused(&["chop", "--from=input:0", "--to=end:fifth"], 1);
        assert!(first.contains("nothing leads from input:0 to end:fifth"), "{way}: {first}");
    }
}

#[test]
fn processes_read_on_from_where_the_other_one_has_come() {
    let built = with_file("descriptors.c");
    fifth_byte(&built, "k", Stdio::null());
    let answer = built.json(&["chop", "--from=input:given:4", "--to=end:fifth"]);
    assert!(built.comments(&answer).contains("fifth"), "{answer:#}");
    let others = built.refused(&["chop", "--from=input:0", "--to=end:fifth"], 1);
    assert!(others.contains("these bytes of given are not known to have been read"), "{others}");
    let in_child = format!("{}/end:first", last_process(&built));
    let answer = built.json(&["chop", "--from=input:given:0", "--to", &in_child]);
    assert!(built.comments(&answer).contains("first"), "{answer:#}");
}

#[test]
fn a_shared_mapping_has_as_many_bytes_as_its_file() {
    let built = with_file("descriptors.c");
    fifth_byte(&built, "s", Stdio::null());
    let beyond = built.refused(&["chop", "--from=input:20", "--to=end:fifth"], 1);
    assert!(beyond.contains("not known to have been read; 20 bytes of it were"), "{beyond}");
}

/// A file that is opened once more begins anew, and a pipe goes on.
#[test]
fn the_standard_input_is_known_by_its_path() {
    let built = with_file("descriptors.c");
    let file = File::open(built.directory.path().join("given")).unwrap();
    let (pipe, mut end) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut end, b"01234").unwrap();
    drop(end);
    for (input, byte) in [(Stdio::from(pipe), 4), (Stdio::from(file), 0)] {
        fifth_byte(&built, "i", input);
        let from = format!("input:stdin:{byte}");
        let answer = built.json(&["chop", "--from", &from, "--to=end:fifth"]);
        assert!(built.comments(&answer).contains("fifth"), "{from}: {answer:#}");
    }
}

#[test]
fn what_is_not_followed_is_not_denied() {
    let built = with_file("descriptors.c");
    fifth_byte(&built, "t", Stdio::null());
    let refused = built.refused(&["chop", "--from=input:4", "--to=end:fifth"], 1);
    assert!(refused.contains("these bytes of given are not known to have been read"), "{refused}");
    let refused = built.refused(&["chop", "--from=input:stdin", "--to=end:fifth"], 1);
    assert!(
        refused.contains("not known to have read anything of stdin; it read given"),
        "{refused}"
    );
}

#[test]
fn a_program_that_another_one_starts_is_no_input() {
    let built = with_file("executable.c");
    let program = built.program.to_str().unwrap();
    let script = format!("exec {program} {program} < given");
    for (words, names) in [
        (vec!["env", program], vec!["input:0", "input:stdin:0"]),
        (vec!["sh", "-c", &script], vec!["input:given:0", "input:stdin:0"]),
    ] {
        let mut record = built.command(&[&["record", "--"], words.as_slice()].concat());
        let file = File::open(built.directory.path().join("given")).unwrap();
        record.current_dir(built.directory.path()).stdin(file);
        assert!(record.status().unwrap().success());
        for from in names {
            let answer = built.json(&["chop", "--from", from, "--to=end:of_input"]);
            assert_eq!(built.comments(&answer), set(&["input"]), "{words:?} {from}");
        }
        let constant = built.refused(&["chop", "--from=input", "--to=end:constant", "--data"], 1);
        assert!(constant.contains("nothing leads from input to end:constant"), "{constant}");
    }
    // What it reads is one, even if it is itself.
    let itself = format!("input:{program}:0");
    let answer = built.json(&["chop", "--from", &itself, "--to=end:of_file"]);
    assert_eq!(built.comments(&answer), set(&["file"]));
}
