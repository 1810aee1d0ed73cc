//! Slices across threads, and races.

use super::recorded::{Recorded, set, text};
use std::collections::BTreeSet;
use std::process::Command;

#[test]
fn what_another_thread_wrote_belongs_to_it_with_its_thread() {
    let recorded = Recorded::new("race.c", &["-g", "-O0"], &[]);
    let place = format!("{}:k", recorded.place("used"));
    let answer = recorded.json(&["slice", &place]);
    assert!(recorded.comments(&answer).contains("without the lock"));
    let threads: BTreeSet<u64> = answer["answer"]["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["thread"].as_u64().unwrap())
        .collect();
    assert!(threads.len() > 1, "{threads:?}");
    assert_eq!(recorded.races(&answer), [("without the lock".into(), "used".into())]);
    let shown = text(&recorded.why(&["slice", &place]).stdout);
    let told: Vec<&str> = shown.lines().filter(|line| line.contains("a race")).collect();
    let main = answer["answer"]["races"][0]["read"]["thread"].as_u64().unwrap();
    let (reads_at, _) = place.split_once(":k").unwrap();
    let expected =
        format!("a race: nothing orders this before thread {main} reads it at {reads_at}");
    assert_eq!(told.len(), 1, "{shown}");
    assert_eq!(told[0].trim(), expected);
    let all = text(&recorded.why(&["slice", &place, "--all"]).stdout);
    assert_eq!(all.matches(&expected).count(), 2, "{all}");
}

/// What orders the two threads of `races.c`, or does not, and whether helgrind knows.
const ORDERED: [(&str, bool); 17] = [
    ("mutex", true),
    ("rwlock", true),
    ("condition", true),
    ("semaphore", true),
    ("barrier", true),
    ("spin", true),
    ("exchange", false),
    ("store", false),
    ("once", false),
    ("pipe", false),
    ("sockets", false),
    ("end of pipe", false),
    ("events", false),
    ("futex", false),
    ("signal", false),
    ("join", true),
    ("create", true),
];

const RACY: [&str; 5] =
    ["racy nothing", "racy other lock", "racy behind lock", "racy after post", "racy lost update"];

#[test]
fn races_are_those_that_helgrind_finds_and_no_others() {
    let recorded = Recorded::new("races.c", &["-g", "-O1", "-fno-inline"], &["mutex"]);
    let reads = recorded.place("reads");
    let cases = ORDERED.iter().copied().chain(RACY.map(|name| (name, true)));
    for (name, helgrind_knows) in cases {
        recorded.record(&[name]);
        let answer = recorded.json(&["slice", "end:outcome"]);
        let lines = recorded.comments(&answer);
        assert!(set(&["reads", "writes"]).is_subset(&lines), "{name}: {answer:#}");
        let races = recorded.races(&answer);
        let found = races.iter().any(|(write, read)| write == "writes" && read == "reads");
        let of_x = races.iter().filter(|(write, _)| write == "writes").count();
        assert_eq!(found, RACY.contains(&name), "{name}: {answer:#}");
        assert_eq!(found, of_x > 0, "{name}: {answer:#}");
        if helgrind_knows {
            let mut valgrind = Command::new("valgrind");
            valgrind.arg("--tool=helgrind").arg(&recorded.program).arg(name);
            let output = valgrind.output().expect("valgrind has to be installed");
            let told = text(&output.stderr);
            assert!(told.contains("ERROR SUMMARY"), "{told}");
            assert_eq!(found, told.contains(&format!("reads ({reads})")), "{name}: {told}");
        }
    }
}

/// What a lock keeps of who holds it is written and read by the library in ways of its own, which
/// depend on the schedule.
#[test]
fn what_locks_keep_is_no_race() {
    let recorded = Recorded::built("c++", "shared.cc", &["-g", "-O1", "-pthread"]);
    let program = recorded.program.to_str().unwrap();
    for seed in 1..=8 {
        recorded.why(&["record", "--seed", &seed.to_string(), "--", program]);
        let answer = recorded.json(&["slice", "end:outcome"]);
        let lines = recorded.comments(&answer);
        assert!(set(&["reads", "writes"]).is_subset(&lines), "{seed}: {answer:#}");
        assert!(recorded.races(&answer).is_empty(), "{seed}: {answer:#}");
    }
}
