//! The value of a line is the one when it is left: the one that the program itself says there.

use super::{Setting, text};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// Programs that tell, at the end, which values there were when some of their lines were left.
const PROGRAMS: [&str; 3] = ["turns", "walks", "calls"];

/// An execution of a line with what is asked of it, and the value.
type Said = (String, String);

/// What a program said: of all executions, and of the last one of each line.
fn said(name: &str, output: &str) -> Vec<Said> {
    let mut times: HashMap<(&str, &str), u64> = HashMap::new();
    let mut last: BTreeMap<String, String> = BTreeMap::new();
    let mut all = Vec::new();
    for line in output.lines() {
        let [line, of, value] = line.split(' ').collect::<Vec<&str>>()[..] else {
            panic!("{name} said {line}");
        };
        let number = times.entry((line, of)).or_default();
        *number += 1;
        all.push((format!("{name}.c:{line}#{number}:{of}"), value.to_owned()));
        last.insert(format!("{name}.c:{line}:{of}"), value.to_owned());
    }
    all.extend(last);
    all
}

/// A character is told as a number first.
fn number(value: &str) -> &str {
    value.split(' ').next().unwrap_or(value)
}

/// How many values are known where their lines are left, of how many.
fn check(name: &str, options: &[&str]) -> (usize, usize) {
    let setting = Setting::build(&format!("lines/{name}.c"), &[&["cc"], options].concat());
    let recorded = setting.record(&[]);
    let said = said(name, &text(&recorded.stdout));
    assert!(said.len() > 50, "{name} {options:?} said only {}", said.len());
    let criteria = said.iter().map(|(criterion, _)| criterion.as_str());
    let arguments: Vec<&str> = ["print", "--json"].into_iter().chain(criteria).collect();
    let printed = setting.why(&arguments);
    let mut answers: HashMap<String, Value> = HashMap::new();
    for line in text(&printed.stdout).lines() {
        let mut answer: Value = serde_json::from_str(line).unwrap();
        let criterion = answer["criterion"].as_str().unwrap().to_owned();
        answers.insert(criterion, answer["answer"].take());
    }
    let mut known = 0;
    for (criterion, expected) in &said {
        let Some(answer) = answers.get(criterion).filter(|told| told["moment"] == "left") else {
            continue;
        };
        let value = answer["value"]["value"].as_str().unwrap();
        let position = &answer["position"];
        assert_eq!(number(value), expected, "{options:?}: {criterion} at {position}");
        known += 1;
    }
    (known, said.len())
}

#[test]
fn a_line_leaves_the_values_that_the_program_says() {
    for name in PROGRAMS {
        let (known, all) = check(name, &["-O0"]);
        assert_eq!(known, all, "{name}");
        for level in ["-O1", "-O2", "-O3", "-Os", "-Og"] {
            let (known, all) = check(name, &[level]);
            println!("{name} {level}: {known} of {all}");
            assert!(known * 4 >= all * 3, "{name} {level}: only {known} of {all} are known");
        }
    }
}

#[test]
fn other_forms_tell_the_same_of_lines() {
    for name in PROGRAMS {
        let plain = check(name, &["-O1"]);
        for form in [&["-gdwarf-4"][..], &["-gdwarf-5", "-gsplit-dwarf"]] {
            let options = [&["-O1"], form].concat();
            assert_eq!(check(name, &options), plain, "{name} {options:?}");
        }
        // Here the compiler tells of some stretches of code that they end too early.
        check(name, &["-O1", "-gdwarf-4", "-gsplit-dwarf"]);
    }
}
