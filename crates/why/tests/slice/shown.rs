//! How slices are shown and kept.

use super::recorded::{LEVELS, Recorded, set, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

#[test]
fn optimised_code_is_told_by_the_lines_that_it_was_made_from() {
    let recorded = Recorded::new("weigh.c", &["-g", "-O2"], &[]);
    let answer = recorded.json(&["slice", &format!("{}:weight", recorded.place("printed"))]);
    let comments = recorded.comments(&answer);
    assert!(set(&["scaled", "summed", "weighed"]).is_subset(&comments), "{comments:?}");
    assert!(!comments.contains("returned"), "{comments:?}");
}

/// What is told of a line that moves several members is the one that the slice is of.
#[test]
fn of_several_things_that_a_line_makes_the_wanted_one_is_told() {
    let recorded = Recorded::new("copies.c", &["-g", "-O0"], &[]);
    for criterion in ["end:sum", &format!("{}:own", recorded.place("of"))] {
        let answer = recorded.json(&["slice", criterion, "--thin"]);
        let told = |comment: &str| recorded.made(&answer, comment).unwrap();
        assert_eq!(told("taken"), "own = 16", "{criterion}");
        assert_eq!(told("copied"), "other.second = 16", "{criterion}");
        assert_eq!(told("made"), "it.second = 16", "{criterion}");
    }
}

/// The code of a statement may be moved to where it has not begun: until it does, debug information
/// computes from what was made there what the variable was before.
#[test]
fn what_a_statement_has_not_made_yet_is_not_told() {
    for level in LEVELS {
        let recorded = Recorded::new("moved.c", &["-g", level], &["1"]);
        let criterion = format!("{}#2:count", recorded.place("printed"));
        let answer = recorded.json(&["slice", &criterion, "--thin"]);
        assert!(answer["answer"]["told"].as_str().unwrap().ends_with("count = 3"), "{answer}");
        assert!(recorded.comments(&answer).contains("counted"), "{level}: {answer}");
        let made = recorded.made(&answer, "counted");
        assert!(made.is_none_or(|made| made == "count = 3"), "{level}: {answer}");
    }
}

/// What is of no line is shown neither as such nor as what called its function.
#[test]
fn code_between_lines_is_not_shown() {
    for optimised in ["-Copt-level=0", "-Copt-level=1", "-Copt-level=2"] {
        let recorded = Recorded::built("rustc", "computes.rs", &["-g", optimised]);
        recorded.record(&["1+2"]);
        for how in [&["--thin"][..], &["--data"], &[]] {
            let answer = recorded.json(&[&["slice", "stdout:0"], how].concat());
            let lines = answer["answer"]["lines"].as_array().unwrap();
            let own = recorded.source.to_str().unwrap();
            let is_told = |line: &Value| line["file"] == own && line["line"].as_u64() > Some(0);
            assert!(!lines.is_empty() && lines.iter().all(is_told), "{optimised}: {lines:?}");
            if optimised != "-Copt-level=0" || how != ["--data"] {
                continue;
            }
            let text = std::fs::read_to_string(&recorded.source).unwrap();
            for line in lines.iter().filter(|line| line["stands_for_calls"] == true) {
                let told = text.lines().nth(line["line"].as_u64().unwrap() as usize - 1).unwrap();
                let own = ["= match tokens(", "match self.next()"];
                assert!(!own.iter().any(|own| told.contains(own)), "{told}: {line}");
            }
        }
    }
}

/// However else a line leads to a value, such as by how long a text is that it made, too.
#[test]
fn what_made_a_value_is_told_to_have_done_so() {
    for level in LEVELS {
        let recorded = Recorded::new("formatted.c", &["-g", level], &["1234"]);
        for how in [&[][..], &["--data"], &["--thin"], &["--all"]] {
            let answer = recorded.json(&[&["slice", "stdout:3"], how].concat());
            for comment in ["copied", "told"] {
                let line = recorded.line(&answer, comment);
                assert_eq!(line["because"], "value", "{level} {how:?} {comment}: {answer:#}");
            }
            // Whoever depends on an instance comes before it.
            let instances = answer["answer"]["instances"].as_array();
            for (number, instance) in instances.into_iter().flatten().enumerate() {
                assert!(instance["wanter"].as_u64().is_none_or(|wanter| wanter < number as u64));
            }
        }
    }
}

/// Wherever the brace is that opens a function, what is done there is only to copy what it was called
/// with.
#[test]
fn what_a_function_does_before_its_first_statement_is_not_shown() {
    let recorded = Recorded::new("copies.c", &["-g", "-O0"], &[]);
    let comments = recorded.comments(&recorded.json(&["slice", "end:sum", "--thin"]));
    let all = ["made", "returned", "taken", "of", "called", "copied", "passed"];
    assert_eq!(comments, set(&all));
    assert!(!shows_brace(&recorded, "end:sum"));
}

/// Whether a line is shown that has nothing but the brace that opens a function.
fn shows_brace(recorded: &Recorded, criterion: &str) -> bool {
    let source = std::fs::read_to_string(&recorded.source).unwrap();
    let answer = recorded.json(&["slice", criterion]);
    answer["answer"]["lines"].as_array().unwrap().iter().any(|line| {
        let number = line["line"].as_u64().unwrap() as usize;
        source.lines().nth(number - 1) == Some("{")
    })
}

/// Of optimised code it has no end that is marked.
#[test]
fn a_brace_alone_is_not_shown_of_optimised_code() {
    for level in ["-O1", "-O2"] {
        let recorded = Recorded::new("weigh.c", &["-g", level], &[]);
        assert!(!shows_brace(&recorded, "stdout:0"), "{level}");
    }
}

/// As wholes there were some things never, and others only later.
#[test]
fn of_something_larger_the_wanted_part_is_told() {
    let recorded = Recorded::new("told.c", &["-g", "-O0"], &["12 34 56"]);
    for (variable, comment, expected) in [
        ("entry", "table", "table[2][0] = 5"),
        ("letter", "words", "words = {\"one\", \"two\"}"),
        ("closed", "shorter", "text = \"ab\"…"),
        ("behind", "behind", "text[4] = 120 'x'"),
    ] {
        let criterion = format!("{}:{variable}", recorded.place("end"));
        let answer = recorded.json(&["slice", &criterion, "--thin"]);
        let told = recorded.made(&answer, comment);
        assert_eq!(told.as_deref(), Some(expected), "{variable}");
    }
}

#[test]
fn of_a_union_the_member_is_told_that_was_written() {
    let recorded = Recorded::new("unions.c", &["-g", "-O0"], &[]);
    let answer = recorded.json(&["slice", "end:outcome", "--thin"]);
    for (comment, made) in [
        ("fraction", "one.fraction = 4.5"),
        ("half", "other.half = 5.5"),
        ("small", "third.small = 5"),
    ] {
        assert_eq!(recorded.made(&answer, comment).as_deref(), Some(made), "{answer:#}");
    }
}

#[test]
fn what_a_call_makes_is_told_as_it_is_when_that_has_come_back() {
    for level in ["-O0", "-O1"] {
        let recorded = Recorded::new("told.c", &["-g", level, "-fno-builtin"], &["12 34 56"]);
        let answer = recorded.json(&["slice", "stdout:0", "--data"]);
        let told = recorded.made(&answer, "copied");
        assert_eq!(told.as_deref(), Some("copy = \"12 34 56\"…"), "{level}");
    }
}

/// A line may have its code in several places, of which only some follow each other.
#[test]
fn how_often_a_line_was_executed_is_told() {
    for level in ["-O0", "-O1"] {
        let recorded = Recorded::new("told.c", &["-g", level], &["12 34 56"]);
        for options in [&["--data"][..], &["--data", "--all"], &[]] {
            let times = |criterion: &str, comment: &str| {
                let answer = recorded.json(&[&["slice", criterion], options].concat());
                recorded.line(&answer, comment)["times"].as_u64().unwrap()
            };
            if level == "-O0" {
                assert_eq!(
                    (times("end:sum", "turns"), times("end:sum", "added")),
                    (4, 4),
                    "{options:?}"
                );
            }
            let times = (times("end:parsed", "taken"), times("end:parsed", "parsed"));
            assert_eq!(times, (3, 3), "{level} {options:?}");
        }
    }
}

#[test]
fn what_has_nothing_in_it_is_not_told_instead_of_what_is_there() {
    let recorded = Recorded::built("c++", "unwinding.cc", &["-g", "-O0"]);
    recorded.record(&[]);
    let of_all = format!("{}:all", recorded.place("caught"));
    for (criterion, comment, name) in [
        ("end:seen", "held", "part._M_t._M_t._M_head_impl"),
        (&of_all, "pushed", "all._M_impl._M_end_of_storage"),
    ] {
        let answer = recorded.json(&["slice", criterion]);
        let told = recorded.made(&answer, comment).unwrap();
        assert!(told.starts_with(&format!("{name} = 0x")), "{told}");
    }
}

/// Where they lie nobody knows while an exception unwinds them.
#[test]
fn what_throws_is_not_told_to_have_made_variables_of_others() {
    for level in ["-O0", "-O2"] {
        let recorded = Recorded::built("c++", "unwinding.cc", &["-g", level]);
        recorded.record(&[]);
        let answer = recorded.json(&["slice", "end:seen"]);
        assert_eq!(recorded.made(&answer, "thrown"), None, "{level}");
    }
}

#[test]
fn a_statement_that_its_function_begins_with_is_shown() {
    for level in LEVELS {
        let recorded = Recorded::new("short.c", &["-g", level], &[]);
        let comments = recorded.comments(&recorded.json(&["slice", "crash"]));
        assert_eq!(comments, set(&["made", "called", "added"]), "{level}");
    }
}

#[test]
fn what_a_line_made_is_not_what_the_next_one_makes_of_it() {
    for level in ["-O0", "-O1", "-O2"] {
        let recorded = Recorded::new("made.c", &["-g", level], &[]);
        let answer = recorded.json(&["slice", "end:found"]);
        assert_eq!(recorded.made(&answer, "made").as_deref(), Some("i = 6"), "{level}");
    }
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

/// A drawing says so itself, and whoever draws it is told, too.
#[test]
fn what_is_not_drawn_is_told() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    let criterion = format!("{}:out", recorded.place("16"));
    let all = recorded.json(&["slice", &criterion])["answer"]["lines"].as_array().unwrap().len();
    let drawn = |options: &[&str]| {
        let drawn = recorded.why(&[&["slice", &criterion, "--dot"], options].concat());
        assert!(drawn.status.success());
        (text(&drawn.stdout), text(&drawn.stderr))
    };
    let (whole, said) = drawn(&["--all"]);
    assert!(said.is_empty() && !whole.contains("more line"), "{said}{whole}");
    let (part, said) = drawn(&["--lines=1"]);
    let more = format!("{} more lines: --lines={all} or --all", all - 1);
    assert_eq!(said, format!("why: {more}\n"));
    let note = part.lines().find(|line| line.contains("shape=note")).expect(&part);
    assert!(note.contains(&more), "{note}");
    let nodes = |drawn: &str| drawn.lines().filter(|line| line.contains(" -> ")).count();
    assert_eq!((nodes(&part), nodes(&whole)), (1, all));
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
    assert!(!drawn.contains("more line"), "{drawn}");
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
