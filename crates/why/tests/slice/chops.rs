//! What lies between a source and a value, and how its lines hang together.

use super::recorded::{Recorded, set};

#[test]
fn what_is_only_copied_together_is_no_link() {
    for level in ["-O0", "-O2"] {
        let recorded = Recorded::new("lanes.c", &["-g", level], &[]);
        for counts in [&[][..], &["--data"], &["--thin"]] {
            let chop = |to: &'static str| [&["chop", "--from=main:argc", to], counts].concat();
            for to in ["--to=end:of_fixed", "--to=end:copied.fixed"] {
                let said = recorded.refused(&chop(to), 1);
                assert!(said.contains("nothing leads from main:argc to end:"), "{said}");
            }
            let answer = recorded.json(&chop("--to=end:of_given"));
            let lines = recorded.comments(&answer);
            assert!(lines.contains("copied"), "{level}: {lines:?}");
            assert!(lines.is_disjoint(&set(&["fixed", "of fixed"])), "{level}: {lines:?}");
        }
    }
}

/// What another input is part of is not told, though it makes a result of a constant.
#[test]
fn a_line_hangs_below_the_nearest_one_that_is_told() {
    let recorded = Recorded::built("cc", "scaled.c", &["-g", "-O0"]);
    let file = recorded.directory.path().join("file");
    std::fs::write(&file, "x").unwrap();
    recorded.record(&["7", file.to_str().unwrap()]);
    for counts in [&[][..], &["--all"]] {
        let chop = ["chop", "--from=arg:1", "--to=end:out", "--independent", "--data"];
        let answer = recorded.json(&[&chop, counts].concat());
        let told = recorded.comments(&answer);
        assert!(set(&["given", "scale", "sum"]).is_subset(&told), "{told:?}");
        assert!(!told.contains("product"), "{told:?}");
        let lines = answer["answer"]["lines"].as_array().unwrap();
        let number = |comment: &str| {
            let place = recorded.place(comment);
            lines.iter().position(|line| line["place"] == place).unwrap() as u64
        };
        for comment in ["given", "scale"] {
            let parent = &lines[number(comment) as usize]["parent"];
            assert_eq!(*parent, number("sum"), "{comment}: {answer:#}");
        }
    }
}
