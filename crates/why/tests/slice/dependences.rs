//! What belongs to a slice, of programs whose slices are known.

use super::recorded::{LEVELS, Recorded, set, text};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn the_example_of_relevant_slices_has_the_slice_of_the_thesis() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    let answer = recorded.json(&["slice", &format!("{}:out", recorded.place("16"))]);
    assert_eq!(answer["schema"], "why.slice/1");
    assert_eq!(recorded.comments(&answer), set(&["4", "15", "16"]));
}

#[test]
fn a_table_of_jumps_is_decided_by_what_selects_from_it() {
    for level in LEVELS {
        let recorded = Recorded::new("switch.c", &["-g", level, "-fno-inline"], &[]);
        let answer = recorded.json(&["slice", "end:w"]);
        let lines = recorded.comments(&answer);
        assert!(set(&["selects", "selected", "chosen"]).is_subset(&lines), "{level}: {lines:?}");
        let answer = recorded.json(&["slice", "end:w", "--data"]);
        assert!(!recorded.comments(&answer).contains("chosen"), "{level}");
    }
}

#[test]
fn where_a_jump_was_seen_to_lead_its_ways_meet() {
    for level in LEVELS {
        let recorded = Recorded::new("goto.c", &["-g", level, "-fno-inline"], &[]);
        let lines = recorded.comments(&recorded.json(&["slice", "end:w"]));
        assert!(set(&["selects", "selected", "chosen"]).is_subset(&lines), "{level}: {lines:?}");
        assert!(!lines.contains("tested") && !lines.contains("met"), "{level}: {lines:?}");
        // Behind it, whatever was selected does not matter. At -O2 each has a copy of what follows.
        if level == "-O2" {
            continue;
        }
        let lines = recorded.comments(&recorded.json(&["slice", "end:after"]));
        assert!(lines.contains("met") && !lines.contains("selects"), "{level}: {lines:?}");
    }
}

/// While a run is traced, what is executed often is translated anew.
#[test]
fn every_turn_of_a_long_loop_is_there() {
    const TURNS: u64 = 4_000_000;
    let recorded = Recorded::new("turns.c", &["-g", "-O1"], &[&TURNS.to_string()]);
    let answer = recorded.json(&["slice", "end:w"]);
    let times = |comment: &str| -> u64 {
        let line: u64 = recorded.place(comment).split_once(':').unwrap().1.parse().unwrap();
        let lines = answer["answer"]["lines"].as_array().unwrap().iter();
        lines.filter(|told| told["line"] == line).map(|told| told["times"].as_u64().unwrap()).sum()
    };
    assert_eq!(["seldom", "mostly"].map(times), [TURNS / 16, TURNS / 16 * 15]);
    // The loop also begins there; what its last turn counts nobody wants.
    assert_eq!(["decides", "turns"].map(times), [TURNS, 1 + TURNS - 1]);
}

#[test]
fn a_register_that_is_brought_back_is_the_callers() {
    let recorded = Recorded::new("kept.c", &["-g", "-O1"], &[]);
    let answer = recorded.json(&["slice", "end:w"]);
    let lines = recorded.comments(&answer);
    assert_eq!(lines, set(&["made", "used"]));
}

#[test]
fn arguments_are_the_same_however_a_function_is_bound() {
    for binding in ["-Wl,-z,lazy", "-Wl,-z,now"] {
        let recorded = Recorded::new("bound.c", &["-g", "-O0", binding], &["17"]);
        let lines = recorded.comments(&recorded.json(&["slice", "end:w", "--data"]));
        assert_eq!(lines, set(&["text", "base", "used"]), "{binding}");
        // These are in vector registers, which the linker uses for itself, too.
        let lines = recorded.comments(&recorded.json(&["slice", "end:area", "--data"]));
        assert_eq!(lines, set(&["side", "power", "squared"]), "{binding}");
        let side = format!("{}:side", recorded.place("side"));
        let lines = recorded.comments(&recorded.json(&["slice", &side, "--data", "--forward"]));
        assert_eq!(lines, set(&["squared"]), "{binding}");
    }
}

/// The lines of an answer, and how they hang together.
fn tree(answer: &Value) -> BTreeSet<[String; 4]> {
    let lines = answer["answer"]["lines"].as_array().unwrap();
    let parent = |line: &Value| match line["parent"].as_u64() {
        Some(parent) => lines[parent as usize]["place"].to_string(),
        None => String::new(),
    };
    let told = |line: &Value| {
        let of = |what: &str| line[what].to_string();
        [of("place"), of("times"), of("because"), parent(line)]
    };
    lines.iter().map(told).collect()
}

/// While it binds a function, the linker keeps what is in registers, whether that is of the call or
/// not. A program that has all bound before it begins has no such code to look at.
#[test]
fn lines_are_the_same_however_a_function_is_bound() {
    for level in ["-O0", "-O2"] {
        let [lazy, now] = ["-Wl,-z,lazy", "-Wl,-z,now"].map(|binding| {
            let options = ["-g", level, "-fno-builtin", binding];
            Recorded::new("lazily.c", &options, &["17"])
        });
        let tripled = format!("{}:tripled", lazy.place("tripled"));
        let questions: [(&[&str], &[&str]); 7] = [
            (&["slice", "main:argc", "--forward"], &["whole", "power", "saved", "decided"]),
            (&["slice", "main:argc", "--forward", "--data"], &["whole", "power", "saved"]),
            (&["slice", &tripled, "--forward"], &["saved"]),
            (&["slice", "end:least"], &["power", "least"]),
            (&["slice", "end:counted"], &["number", "tripled", "saved", "decided"]),
            (&["slice", "end:span", "--data"], &["span"]),
            (&["chop", "--from=main:argc", "--to=end:counted"], &["tripled", "saved", "decided"]),
        ];
        for (question, expected) in questions {
            let told = lazy.json(question);
            assert_eq!(tree(&told), tree(&now.json(question)), "{level} {question:?}");
            let lines = lazy.comments(&told);
            // At -O2 the compiler moves them about.
            assert!(level == "-O2" || set(expected).is_subset(&lines), "{question:?}: {lines:?}");
        }
    }
}

#[test]
fn registers_are_behind_a_handler_what_they_were_before() {
    for level in LEVELS {
        let recorded = Recorded::new("signal.c", &["-g", level], &[]);
        let answer = recorded.json(&["slice", "end:w", "--data"]);
        assert_eq!(recorded.comments(&answer), set(&["made", "used"]), "{level}");
        let answer = recorded.json(&["slice", "end:counted", "--data"]);
        assert_eq!(recorded.comments(&answer), set(&["handled"]), "{level}");
        let place = format!("{}:e", recorded.place("used"));
        let forward = recorded.json(&["slice", "handler:%rdi", "--forward", "--data"]);
        assert!(!recorded.comments(&forward).contains("used"), "{level} {place}");
    }
}

/// The linker looks at the whole environment, and decides by it to start the program.
#[test]
fn what_the_linker_does_with_the_environment_is_not_looked_into() {
    let recorded = Recorded::recorded_with("environment.c", &[("BIAS", "7"), ("OTHER", "8")]);
    let answer = recorded.json(&["chop", "--from=env:BIAS", "--to=crash"]);
    assert_eq!(recorded.comments(&answer), set(&["asked", "told", "step"]));
    let said = recorded.refused(&["chop", "--from=env:OTHER", "--to=crash"], 1);
    assert!(said.contains("nothing leads from env:OTHER to crash"), "{said}");
}

#[test]
fn what_was_asked_about_may_use_a_source_itself() {
    let recorded = Recorded::recorded_with("environment.c", &[("BIAS", "7")]);
    let step = format!("--from={}:step", recorded.place("step"));
    let answer = recorded.json(&["chop", &step, "--to=crash"]);
    assert!(recorded.comments(&answer).is_empty());
    assert!(answer["left_out"].to_string().contains("nothing lies between"), "{answer}");
    let told = answer["answer"]["told"].as_str().unwrap();
    assert!(told.ends_with(&recorded.place("crash")), "{told}");
    // A division leaves flags as they were, or not: it does not use them.
    let answer = recorded.json(&["slice", "crash", "--data"]);
    assert_eq!(recorded.comments(&answer), set(&["asked", "crash", "step", "told"]));
}

#[test]
fn the_chop_of_an_overflow_is_a_few_lines() {
    for level in LEVELS {
        // At -O2 `strcpy` is jumped to.
        let options = ["-g", level, "-fno-inline"];
        let recorded = Recorded::new("overflow.c", &options, &[&"x".repeat(24)]);
        let answer = recorded.json(&["chop", "--from", "arg:1", "--to", "crash", "--data"]);
        assert_eq!(answer["schema"], "why.chop/1");
        let lines = answer["answer"]["lines"].as_array().unwrap();
        assert!(recorded.comments(&answer).contains("overflows"), "{level}: {answer:#}");
        assert!(lines.len() <= 4, "{level}: {answer:#}");
        // Not so if the name is short enough.
        recorded.record(&["fits"]);
        let made = recorded.json(&["slice", "end:globals.env"]);
        assert!(recorded.comments(&made).contains("made"), "{level}");
    }
}

#[test]
fn what_was_made_of_a_value_is_found_forwards() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    let answer = recorded.json(&["slice", &format!("{}:b", recorded.place("4")), "--forward"]);
    assert_eq!(recorded.comments(&answer), set(&["15", "16"]));
}

#[test]
fn a_member_of_some_bits_is_the_bytes_that_hold_them() {
    let recorded = Recorded::new("bits.c", &["-g", "-O0"], &[]);
    for (member, of_byte) in [("b", "s.a, s.b"), ("c", "s.c, s.d")] {
        let answer = recorded.json(&["slice", &format!("end:s.{member}"), "--thin"]);
        let comments = recorded.comments(&answer);
        assert!(comments.contains(member) && !comments.contains("tail"), "{member}: {comments:?}");
        // What else is in the byte cannot be told from it.
        let lines = answer["answer"]["lines"].as_array().unwrap();
        let written: BTreeSet<&str> =
            lines.iter().filter_map(|line| line["variable"].as_str()).collect();
        assert_eq!(written, BTreeSet::from([of_byte]), "{member}");
    }
}

#[test]
fn memory_that_is_moved_holds_what_it_did() {
    for level in LEVELS {
        let recorded = Recorded::built("cc", "grown.c", &["-g", level]);
        let input = recorded.directory.path().join("input");
        std::fs::write(&input, b"0123456789".repeat(60_000)).unwrap();
        // In front of what was moved last, and behind it.
        for at in ["10", "100003", "500004"] {
            recorded.record(&[input.to_str().unwrap(), at]);
            let chop = |from: &str| {
                let from = format!("input:{from}");
                recorded.why(&["chop", "--from", &from, "--to=stdout:0", "--thin", "--json"])
            };
            let own = chop(at);
            assert!(own.status.success(), "{level}: {}", text(&own.stderr));
            let answer = serde_json::from_slice(&own.stdout).unwrap();
            let comments = recorded.comments(&answer);
            assert!(comments.contains("kept") && comments.contains("told"), "{level}: {answer}");
            assert_eq!(chop("11").status.code(), Some(1), "{level}: another byte");
        }
    }
}

#[test]
fn a_source_is_pruned_by_its_name() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    let whole = recorded.comments(&recorded.json(&["slice", "end:out"]));
    assert!(whole.contains("15"), "{whole:?}");
    let answer = recorded.json(&["slice", "end:out", "--prune", "figure.c"]);
    let pruned = recorded.comments(&answer);
    assert!(!pruned.contains("15"), "{pruned:?}");
    assert!(answer["left_out"].to_string().contains("pruned, were not looked into"), "{answer}");
}

#[test]
fn a_region_may_have_one_side() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    let criterion = format!("{}:out", recorded.place("16"));
    for region in ["..main", "..start"] {
        let outside = recorded.refused(&["slice", &criterion, "--region", region], 1);
        assert!(outside.contains(&format!("not in the region {region}")), "{outside}");
    }
    let reversed = recorded.refused(&["slice", &criterion, "--region", "end..main"], 1);
    assert!(reversed.contains("end..main ends at"), "{reversed}");
    let made = format!("{}:b", recorded.place("4"));
    let until = format!("..{}", recorded.place("16"));
    let answer = recorded.json(&["slice", &made, "--forward", "--region", &until]);
    assert_eq!(recorded.comments(&answer), set(&["15"]));
}

#[test]
fn what_was_written_as_it_was_depends_on_what_selected_it() {
    let recorded = Recorded::new("selected.c", &["-g", "-O0"], &["7", "8"]);
    for (byte, selected) in [("stdout:0", "chosen"), ("stderr:2", "part")] {
        let comments = recorded.comments(&recorded.json(&["slice", byte]));
        assert!(set(&["read", selected]).is_subset(&comments), "{byte}: {comments:?}");
        assert!(!comments.contains("other"), "{byte}: {comments:?}");
        let chop = recorded.json(&["chop", "--from=arg:1", "--to", byte]);
        let comments = recorded.comments(&chop);
        assert!(set(&["read", selected]).is_subset(&comments), "{byte}: {comments:?}");
        let thin = recorded.json(&["slice", byte, "--thin"]);
        assert_eq!(thin["answer"]["lines"], serde_json::json!([]), "{byte}");
    }
    let other = recorded.refused(&["chop", "--from=arg:2", "--to=stdout:0", "--data"], 1);
    assert!(other.contains("nothing leads from arg:2"), "{other}");
}
