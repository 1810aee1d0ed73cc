//! Slices and chops of recordings whose recorder was killed.

use super::recorded::{Recorded, text};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// Lines after which something has been written down, as it is four times a second, several times.
const LINES: usize = 400;

/// The program recorded as `cut` until its recorder was killed, and whole as the newest one.
fn recorded(how: &[&str]) -> Recorded {
    let recorded = Recorded::built("cc", "endless.c", &["-g", "-O0"]);
    record_until_killed(&recorded, how);
    recorded.record(&["5", "20"]);
    recorded
}

/// The names of recordings in the directory of the test.
fn path(recorded: &Recorded, name: &str) -> String {
    recorded.directory.path().join(name).display().to_string()
}

fn record_until_killed(recorded: &Recorded, how: &[&str]) {
    let (cut, program) = (path(recorded, "cut"), recorded.program.display().to_string());
    let words = [&["record", "-o", &cut, "--", &program, "5", "0"], how].concat();
    let mut recorder = recorded.command(&words).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(recorder.stdout.take().unwrap()).lines();
    assert_eq!(lines.by_ref().take(LINES).filter(Result::is_ok).count(), LINES);
    // The supervisor and the program go with it.
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    lines.for_each(drop);
    let manifest = fs::read_to_string(format!("{cut}/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert!(manifest["finished"].is_null(), "{manifest}");
}

/// What an answer tells, but for where in which process it was.
fn told(answer: &Value) -> Vec<(Value, Value, Value, Value)> {
    let lines = answer["answer"]["lines"].as_array().unwrap().iter();
    let told = |line: &Value| {
        let of = |key: &str| line[key].clone();
        (of("place"), of("because"), of("times"), of("value"))
    };
    lines.map(told).collect()
}

/// The criterion in the process that says what it has come to.
fn in_talker(recorded: &Recorded, place: &str) -> String {
    let printed = recorded.why(&["print", &path(recorded, "cut"), "stdout:3", "--json"]);
    let printed: Value = serde_json::from_slice(&printed.stdout).unwrap();
    format!("{}/{place}", printed["answer"]["process"])
}

/// Of what was recorded, the same lines are told as of a whole recording.
fn is_answered(how: &[&str]) {
    let recorded = recorded(how);
    let cut = path(&recorded, "cut");
    let total = format!("{}#7:total", recorded.place("turn"));
    let of_total = recorded.json(&["slice", &cut, &in_talker(&recorded, &total), "--data"]);
    let comments = recorded.comments(&of_total);
    assert!(["total", "twice", "made", "turn"].iter().all(|known| comments.contains(*known)));
    let is_copy = !how.is_empty();
    if !is_copy {
        assert_eq!(told(&of_total), told(&recorded.json(&["slice", &total, "--data"])));
        let chop = |of: &[&str]| {
            let words = ["--from", "arg:1", "--to", "stdout:3", "--data"];
            recorded.json(&[&["chop"], of, &words].concat())
        };
        assert!(recorded.comments(&chop(&[&cut])).contains("begin"));
        assert_eq!(told(&chop(&[&cut])), told(&chop(&[])));
    }
    let written = recorded.json(&["slice", &cut, "stdout:1000"]);
    assert!(recorded.comments(&written).contains("said"), "{written:#}");
    assert!(recorded.directory.path().join("cut/derived").read_dir().unwrap().next().is_some());
    says_where_it_ends(&recorded, &cut);
}

/// The end is the last moment that is known, and named to whoever asks for what comes behind.
fn says_where_it_ends(recorded: &Recorded, cut: &str) {
    let end = in_talker(recorded, "end:total");
    let slice = recorded.json(&["slice", cut, &end]);
    let turns = recorded.line(&slice, "total")["times"].as_u64().unwrap();
    assert!(turns > LINES as u64 / 4, "{turns}");
    let printed = recorded.why(&["print", cut, &end, "--json"]);
    let printed: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let last = printed["answer"]["position"].as_str().unwrap();
    let message = recorded.refused(&["slice", cut, &in_talker(recorded, "999999.0:total")], 1);
    assert!(message.contains(&format!("was cut short, and the last one of the process is {last}")));
    let there = in_talker(recorded, &format!("{last}:total"));
    assert_eq!(told(&recorded.json(&["slice", cut, &there])), told(&slice));
}

#[test]
fn what_was_recorded_before_the_recorder_was_killed_is_answered() {
    is_answered(&[]);
}

#[test]
fn so_is_a_copy_of_a_process_that_only_waits() {
    is_answered(&["copy"]);
}

/// Only what nobody has finished may end anywhere.
#[test]
fn a_whole_recording_that_lacks_its_end_is_damaged() {
    let recorded = Recorded::built("cc", "endless.c", &["-g", "-O0"]);
    recorded.record(&["5", "20"]);
    let events = recorded.directory.path().join("recordings/endless-1/events");
    let stream = events.read_dir().unwrap().next().unwrap().unwrap().path();
    let file = fs::File::options().write(true).open(&stream).unwrap();
    file.set_len(file.metadata().unwrap().len() - 1).unwrap();
    let message = recorded.refused(&["slice", "end:total"], 1);
    assert!(message.contains("was cut short: it ends after event"), "{}", text(message.as_bytes()));
}
