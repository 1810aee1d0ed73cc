//! Slices of why a program ended as it did.

use super::recorded::{Recorded, set};

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

/// Where the check was inlined, what it calls only panics.
#[test]
fn an_inlined_check_is_why_a_program_panicked() {
    for optimised in ["-Copt-level=1", "-Copt-level=2"] {
        let recorded = Recorded::built("rustc", "removes.rs", &["-g", optimised]);
        recorded.record(&[]);
        let answer = recorded.json(&["slice", "crash", "--thin"]);
        let comments = recorded.comments(&answer);
        assert!(set(&["counted", "removes"]).is_subset(&comments), "{optimised}: {answer}");
        let told = answer["answer"]["told"].as_str().unwrap();
        assert!(told.ends_with("because of removes.rs:7"), "{told}");
    }
}

#[test]
fn a_jump_by_a_table_is_why_a_program_ended_itself() {
    for optimised in ["-O0", "-O2"] {
        for (given, more) in [("3", &["left"][..]), ("5", &[])] {
            let recorded = Recorded::new("cases.c", &["-g", optimised], &[given]);
            let wanted = set(&[&["chosen", "given"], more].concat());
            for how in [&["--thin"][..], &["--data"], &[]] {
                let answer = recorded.json(&[&["slice", "crash"], how].concat());
                let told = answer["answer"]["told"].as_str().unwrap();
                assert!(told.ends_with("because of cases.c:6"), "{told}");
                assert_eq!(recorded.comments(&answer), wanted, "{optimised} {how:?}: {answer}");
            }
        }
    }
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
