//! Recordings as one file: packed, moved, opened by every command, and damaged.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use support::recorded::{Setting, said_in_one_line, text};

mod support;

/// What every command says of a recording, but for where it is.
fn told(setting: &Setting, recording: &str) -> Vec<String> {
    let commands: [&[&str]; 3] =
        [&["replay", recording], &["info", recording], &["print", recording, "end", "--regs"]];
    let said = commands.map(|words| {
        let output = setting.run(words);
        let lines = text(&output.stdout) + &text(&output.stderr);
        let lines: Vec<&str> = lines.lines().filter(|l| !l.starts_with("recording ")).collect();
        format!("{:?}\n{}", output.status.code(), lines.join("\n"))
    });
    said.into()
}

#[test]
fn a_packed_recording_is_opened_by_every_command_on_another_machine() {
    let setting = Setting::new();
    let script = "echo one; (echo two >&2; exit 3); kill -TERM $$";
    setting.run(&["record", "-o", "rec", "--", "bash", "-c", script]);
    let expected = told(&setting, "rec");
    let packed = setting.run(&["pack", "rec"]);
    assert!(packed.status.success(), "{}", text(&packed.stderr));
    assert_eq!(text(&packed.stdout), "rec.why\n");
    assert!(expected[0].starts_with("Some(143)\none\ntwo"), "{}", expected[0]);

    // Another user's machine has only that file.
    let other = Setting::new();
    fs::copy(setting.path("rec.why"), other.path("from-you")).unwrap();
    drop(setting);
    assert_eq!(told(&other, "from-you"), expected);
    let unpacked = || fs::read_dir(other.path("recordings/unpacked")).unwrap().count();
    assert_eq!(unpacked(), 1, "it is unpacked once");
    assert_eq!(text(&other.run(&["ls"]).stdout), "", "it is not one of the user's own");

    // Packed once more it is the same recording, in a file with the same bytes.
    assert!(other.run(&["pack", "from-you", "-o", "again"]).status.success());
    let bytes = |name: &str| fs::read(other.path(name)).unwrap();
    assert!(bytes("again") == bytes("from-you"));

    assert!(other.run(&["rm", "from-you"]).status.success());
    assert!(!other.path("from-you").exists() && unpacked() == 0);
}

#[test]
fn nothing_is_overwritten_and_another_file_is_another_recording() {
    let setting = Setting::new();
    for word in ["one", "two"] {
        setting.run(&["record", "-o", word, "--", "echo", word]);
        assert!(setting.run(&["pack", word]).status.success());
    }
    let before = fs::read(setting.path("one.why")).unwrap();
    let refused = setting.run(&["pack", "one"]);
    assert_eq!(refused.status.code(), Some(1));
    said_in_one_line(&refused.stderr, "one.why");
    assert!(fs::read(setting.path("one.why")).unwrap() == before);
    assert_eq!(text(&setting.run(&["replay", "one.why"]).stdout), "one\n");
    fs::rename(setting.path("two.why"), setting.path("one.why")).unwrap();
    assert_eq!(text(&setting.run(&["replay", "one.why"]).stdout), "two\n");
    // What the first file had been unpacked to is gone with it.
    assert_eq!(fs::read_dir(setting.path("recordings/unpacked")).unwrap().count(), 1);
}

#[test]
fn what_is_left_by_a_command_that_was_killed_is_cleared_away() {
    let setting = Setting::new();
    setting.run(&["record", "-o", "rec", "--", "true"]);
    setting.run(&["pack", "rec"]);
    // No process has this number: it is beyond what the kernel gives.
    let left = setting.path("recordings/unpacked/0123.99999999/events");
    fs::create_dir_all(&left).unwrap();
    assert!(setting.run(&["replay", "rec.why"]).status.success());
    assert!(!left.exists());
}

#[test]
fn what_is_damaged_foreign_or_newer_is_named() {
    let setting = Setting::new();
    setting.run(&["record", "-o", "rec", "--", "echo", "hello"]);
    assert!(setting.run(&["pack", "rec", "-o", "good"]).status.success());
    let good = fs::read(setting.path("good")).unwrap();
    let refused = |bytes: &[u8], part: &str| {
        fs::write(setting.path("bad"), bytes).unwrap();
        let replayed = setting.run(&["replay", "bad"]);
        assert_eq!((replayed.status.code(), text(&replayed.stdout)), (Some(125), String::new()));
        said_in_one_line(&replayed.stderr, part);
        let told = setting.run(&["info", "bad"]);
        assert_eq!((told.status.code(), text(&told.stdout)), (Some(1), String::new()));
        said_in_one_line(&told.stderr, part);
    };
    let flipped = |at: usize, bit: u8| {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << bit;
        bytes
    };
    refused(&flipped(0, 0), "neither a recording nor a packed one");
    refused(b"", "ends too early");
    refused(b"#!/bin/sh\n", "neither a recording nor a packed one");
    refused(&flipped(8, 1), "version 3");
    refused(&flipped(good.len() / 2, 5), "damaged");
    refused(&flipped(good.len() - 1, 7), "damaged");
    refused(&good[..good.len() - 1], "ends too early");
    refused(&good[..good.len() / 2], "ends too early");
    refused(&[&good[..], &good[..]].concat(), "damaged");
    refused(&[&good[..], b"more"].concat(), "damaged");
    for step in 0..60 {
        refused(&flipped(step * (good.len() - 1) / 59, (step % 8) as u8), "");
        refused(&good[..step * (good.len() - 1) / 59], "");
    }
    let unpacked = fs::read_dir(setting.path("recordings/unpacked")).unwrap().count();
    assert_eq!(unpacked, 0, "nothing is left of what could not be unpacked");
}

/// A sparse file, so that it takes little room here but not in a pack that would hold it in
/// memory.
#[test]
fn a_large_recording_is_packed_in_little_memory() {
    let setting = Setting::new();
    setting.run(&["record", "-o", "rec", "--", "true"]);
    let large = setting.path("rec/files/0123");
    fs::File::create(&large).unwrap().write_all_at(b"end", 1 << 30).unwrap();
    let limited = |words: &str| {
        let script = format!("ulimit -v 200000; exec {} {words}", env!("CARGO_BIN_EXE_why"));
        let mut shell = setting.command("bash");
        let output = shell.args(["-c", &script]).output().unwrap();
        assert!(output.status.success(), "{words}: {}", text(&output.stderr));
    };
    limited("pack rec");
    assert!(setting.path("rec.why").metadata().unwrap().len() < 1 << 24);
    limited("info rec.why");
    let unpacked = fs::read_dir(setting.path("recordings/unpacked")).unwrap().next().unwrap();
    let length = |path: &Path| path.metadata().unwrap().len();
    assert_eq!(length(&unpacked.unwrap().path().join("files/0123")), length(&large));
}
