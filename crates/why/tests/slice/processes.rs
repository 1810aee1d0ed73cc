//! Slices across forks, and of processes that share memory.

use super::recorded::{LEVELS, Recorded, set, text};
use serde_json::Value;
use std::collections::BTreeSet;

/// The process that was created last.
pub fn last_process(recorded: &Recorded) -> String {
    let info: Value = serde_json::from_slice(&recorded.why(&["info", "--json"]).stdout).unwrap();
    let processes = info["answer"]["processes"].as_array().unwrap();
    let is_parent = |pid: &Value| processes.iter().any(|process| process["parent"] == *pid);
    let last = processes.iter().find(|process| !is_parent(&process["pid"])).unwrap();
    last["pid"].to_string()
}

/// A program that does all in one process is the oracle.
#[test]
fn slices_go_on_in_the_process_that_was_forked() {
    for level in ["-O0", "-O2"] {
        let forked = Recorded::new("forks.c", &["-g", level], &["9"]);
        let alone = Recorded::new("forks.c", &["-g", level, "-DALONE"], &["9"]);
        let place = forked.place("printed");
        let criterion = format!("{}/{place}:result", last_process(&forked));
        for option in ["--thin", "--data", "--region=.."] {
            let answer = forked.json(&["slice", &criterion, option]);
            let parent = &answer["answer"]["before_fork"];
            let grandparent = &parent["answer"]["before_fork"];
            assert!(grandparent["answer"]["before_fork"].is_null(), "{grandparent}");
            let each = [&answer, parent, grandparent].map(|answer| forked.comments(answer));
            let all: BTreeSet<String> = each.iter().flatten().cloned().collect();
            let expected = alone.json(&["slice", &format!("{place}:result"), option]);
            // What `fork` puts aside it brings back in another process, so it is told of.
            let expected = alone.comments(&expected);
            let besides: BTreeSet<String> = all.difference(&expected).cloned().collect();
            let forks = set(&["child", "grandchild"]);
            assert!(all.is_superset(&expected), "{level} {option}: {each:?}, not {expected:?}");
            assert!(besides.is_subset(&forks), "{level} {option}: {each:?}, not {expected:?}");
            assert!(each[0].contains("result") && !each[0].contains("added"), "{each:?}");
            assert!(each[1].contains("added") && !each[1].contains("given"), "{each:?}");
            assert!(each[2].contains("given") && each[2].contains("factor"), "{each:?}");
        }
        let told = text(&forked.why(&["slice", &criterion]).stdout);
        assert_eq!(told.matches("\n\nbefore the fork, in process ").count(), 2, "{told}");
        // What is made after the fork is enough: nothing is told of the parent.
        let region = format!("{}/{}", last_process(&forked), forked.place("result"));
        let within =
            forked.json(&["slice", &criterion, "--thin", "--region", &format!("{region}..")]);
        assert!(within["answer"]["before_fork"].is_null(), "{within}");
    }
}

/// What one process does alone is the oracle for what three do one after the other.
#[test]
fn chops_begin_in_the_process_that_was_forked() {
    for level in LEVELS {
        let forked = Recorded::new("forks.c", &["-g", level], &["9"]);
        let alone = Recorded::new("forks.c", &["-g", level, "-DALONE"], &["9"]);
        let to = format!("{}:result", forked.place("printed"));
        let to_child = format!("{}/{to}", last_process(&forked));
        let factor = format!("{}:factor", forked.place("factor"));
        for (from, option) in [
            ("arg:1", "--thin"),
            ("arg:1", "--data"),
            ("arg:1", "--region=.."),
            ("arg:1", "--independent"),
            (factor.as_str(), "--thin"),
            (factor.as_str(), "--data"),
        ] {
            // With others the variable is not made yet where its line is left.
            if from == factor && level != "-O0" {
                continue;
            }
            let answer = forked.json(&["chop", "--from", from, "--to", &to_child, option]);
            let each: Vec<BTreeSet<String>> = std::iter::successors(Some(&answer), |answer| {
                Some(&answer["answer"]["before_fork"])
            })
            .take_while(|answer| !answer.is_null())
            .map(|answer| forked.comments(answer))
            .collect();
            let all: BTreeSet<String> = each.iter().flatten().cloned().collect();
            let expected = alone.json(&["chop", "--from", from, "--to", &to, option]);
            let expected = alone.comments(&expected);
            let besides: BTreeSet<String> = all.difference(&expected).cloned().collect();
            let forks = set(&["child", "grandchild"]);
            let told = format!("{level} {from} {option}: {each:?}, not {expected:?}");
            assert!(all.is_superset(&expected) && besides.is_subset(&forks), "{told}");
            assert!(each[0].contains("result") && each[1].contains("added"), "{told}");
        }
        // What it does not depend on.
        let other = format!("{}/{}:other", last_process(&forked), forked.place("printed"));
        let nothing = forked.refused(&["chop", "--from", "arg:1", "--to", &other, "--data"], 1);
        assert!(nothing.contains("nothing leads from arg:1"), "{nothing}");
        let unread = forked.refused(&["chop", "--from", "input", "--to", &to_child], 1);
        assert!(unread.contains("not known to have read its standard input"), "{unread}");
    }
}

#[test]
fn what_another_process_wrote_to_shared_memory_nobody_here_made() {
    let recorded = Recorded::new("shares.c", &["-g", "-O0"], &[]);
    let child = last_process(&recorded);
    let from_parent = format!("{child}/child writes:from_parent");
    for (criterion, expected) in [
        ("end:from_child", vec!["parent reads"]),
        ("end:own", vec!["parent's own", "kept"]),
        (from_parent.as_str(), vec!["child reads"]),
    ] {
        let criterion = match criterion.split_once("child writes") {
            Some((process, value)) => {
                format!("{process}{}{value}", recorded.place("child writes"))
            }
            None => criterion.to_owned(),
        };
        let answer = recorded.json(&["slice", &criterion, "--thin"]);
        assert_eq!(recorded.comments(&answer), set(&expected), "{criterion}");
        let said = answer["left_out"].to_string().contains("another process had written");
        assert_eq!(said, criterion != "end:own", "{criterion}");
    }
}

#[test]
fn a_program_without_source_is_told_by_its_functions_whoever_starts_it() {
    let recorded = Recorded::new("figure.c", &["-O0", "-s"], &[]);
    let program = recorded.program.to_str().unwrap();
    let link = recorded.directory.path().join("other");
    std::os::unix::fs::symlink(program, &link).unwrap();
    let functions = || {
        let answer = recorded.json(&["slice", "exit"]);
        let lines = answer["answer"]["lines"].as_array().unwrap().iter();
        let own = lines.filter(|line| line["module"] == "figure");
        own.map(|line| line["place"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>()
    };
    let direct = functions();
    assert!(direct.iter().any(|place| place.starts_with("figure+0x")), "{direct:?}");
    for starter in
        [&[link.to_str().unwrap()][..], &["env", program], &["bash", "-c", "exec $0", program]]
    {
        recorded.why(&[&["record", "--"], starter].concat());
        assert_eq!(functions(), direct, "{starter:?}");
    }
}
