//! `why reduce`, as people call it: with commands, scripts, several files, and with tests that
//! misbehave. What it leaves is checked by running the test natively.

#[path = "reduce/setting.rs"]
mod setting;

use setting::Setting;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

fn lines(number: usize) -> Vec<u8> {
    (0..number).flat_map(|line| format!("line {line} of some text\n").into_bytes()).collect()
}

#[test]
fn a_script_says_what_fails() {
    let setting = Setting::new(&[("in.txt", &lines(300))]);
    // The candidate is the only argument, standard input, and all that the directory holds.
    setting.script(
        r#"[ "$#" = 1 ] && [ "$1" = in.txt ] && [ "$(ls)" = in.txt ] || exit 1
           cmp -s - in.txt && grep -q '17 of' "$1""#,
    );
    let answer = setting.answer(&["in.txt", "--test", "test.sh"]);
    assert_eq!(setting.read("in.reduced.txt"), b"17 of");
    assert_eq!(setting.read("in.txt"), lines(300));
    assert_eq!(answer["answer"]["after"]["bytes"], 5);
    assert_eq!(answer["answer"]["minimal"], true);
    // Of each part that is left it is told what happened without it.
    for part in answer["answer"]["why_not_smaller"].as_array().unwrap() {
        assert_eq!(part["without_it"], "exit 1");
    }
    assert!(!setting.path("in.reduced.txt.verdicts").exists());
}

#[test]
fn a_command_has_to_fail_as_the_original_did() {
    let setting = Setting::new(&[("in.txt", b"one\nboom\ntwo\nbang\n")]);
    // Both fail with status 3, each with another message; the last one counts.
    let script = r#"grep -q boom "$1" && echo "died of boom at 0x$$" >&2 && exit 3
                    grep -q bang "$1" && echo "died of bang at 0x$$" >&2 && exit 3
                    exit 0"#;
    let command = ["in.txt", "--", "sh", "-c", script, "sh", "@@"];
    setting.answer(&command);
    assert_eq!(setting.read("in.reduced.txt"), b"boom");
}

#[test]
fn without_a_mark_the_candidate_is_standard_input() {
    let setting = Setting::new(&[("in.txt", &lines(50))]);
    setting.answer(&[
        "in.txt",
        "-o",
        "small",
        "--fails-if",
        "stdout~/^1$/ and exit=0",
        "--",
        "grep",
        "-c",
        "t 49\\|line 49",
    ]);
    assert_eq!(setting.read("small"), b"line 49");
}

#[test]
fn several_at_once_and_in_two_parts_come_to_the_same() {
    let setting = Setting::new(&[("in.c", b"int f(int a) { if (a) { return a / (a - a); } return 0; }\nint main(void) { return f(1); }\n")]);
    setting.script("tr -d ' \\n' < in.c | grep -q 'a/(a-a)' && [ $(tr -dc '{' < in.c | wc -c) = $(tr -dc '}' < in.c | wc -c) ]");
    let one = setting.answer(&["in.c", "--test", "test.sh", "--trace", "one"]);
    let result = setting.read("in.reduced.c");
    let four = setting.answer(&["in.c", "--test", "test.sh", "-j", "4", "--trace", "four"]);
    assert_eq!(setting.read("in.reduced.c"), result);
    assert_eq!(one["stats"]["tests"], four["stats"]["tests"]);
    assert_eq!(setting.read("one"), setting.read("four"));
    assert_eq!(result, b"a/(a-a)");

    let first = setting.answer(&["in.c", "--test", "test.sh", "--max-tests", "9"]);
    assert_eq!(first["answer"]["minimal"], false);
    assert_eq!(first["stats"]["made"], 9);
    let rest = setting.answer(&["in.c", "--test", "test.sh", "--resume"]);
    assert_eq!(setting.read("in.reduced.c"), result);
    assert_eq!(rest["stats"]["tests"], one["stats"]["tests"]);
    assert_eq!(
        rest["stats"]["made"].as_u64().unwrap() + 9,
        one["stats"]["tests"].as_u64().unwrap()
    );
}

#[test]
fn a_directory_is_reduced_as_a_whole() {
    let files: [(&str, &[u8]); 3] =
        [("src/a.txt", b"x needed x"), ("src/deep/b.txt", b"y"), ("src/c.txt", b"also\nneeded\n")];
    let setting = Setting::new(&files);
    setting.script("grep -q needed src/a.txt && [ -e src/c.txt ]");
    setting.answer(&["src", "-o", "out", "--test", "test.sh"]);
    assert_eq!(setting.read("out/src/a.txt"), b"needed");
    assert_eq!(setting.read("out/src/c.txt"), b"");
    assert!(!setting.path("out/src/deep").exists());
    assert_eq!(setting.read("src/a.txt"), b"x needed x");
}

#[test]
fn in_place_replaces_the_input() {
    let setting = Setting::new(&[("in.txt", &lines(20))]);
    setting.script("grep -q 7 in.txt");
    setting.answer(&["in.txt", "--in-place", "--test", "test.sh"]);
    assert_eq!(setting.read("in.txt"), b"7");
    assert!(!setting.path("in.reduced.txt").exists());
}

#[test]
fn what_cannot_be_done_is_said_in_a_line() {
    let setting = Setting::new(&[("in.txt", b"text"), ("bad.y", b"%%\ns : 'a' | ;;\n")]);
    setting.script("exit 1");
    let check = |arguments: &[&str], status: i32, words: &str| {
        let (code, said) = setting.refused(arguments);
        assert!(code == status && said.contains(words), "{code}: {said}");
    };
    check(&["in.txt", "--test", "test.sh"], 1, "the original does not fail: exit 1");
    check(&["in.txt", "--", "true"], 1, "the original does not fail: exit 0");
    check(&["in.txt", "--", "no-such-command"], 1, "cannot start no-such-command");
    check(&["in.txt", "--", "./missing"], 1, "there is no ./missing");
    check(&["absent", "--", "false"], 1, "cannot read absent");
    check(&["in.txt"], 2, "what fails?");
    check(&["in.txt", "--fails-if", "exit", "--", "false"], 2, "--fails-if");
    check(&["in.txt", "-o", "in.txt", "--", "false"], 2, "--in-place");
    check(&["in.txt", "--lang", "klingon", "--", "false"], 2, "no language is called klingon");
    check(&["in.txt", "--grammar", "bad.y", "--", "false"], 2, "line 2, column");
    check(&["in.txt", "--resume", "--", "false"], 1, "cannot resume");
    assert_eq!(setting.read("in.txt"), b"text");
}

#[test]
fn nothing_of_a_test_outlives_it() {
    let setting = Setting::new(&[("in.txt", b"ab")]);
    // Each test leaves a process behind that no group or session connects to it.
    setting.script(
        "setsid sh -c 'echo $$ >> ../../../pids; echo > started; sleep 1000' &
         until [ -e started ]; do sleep 0.01; done
         echo x > beside; grep -q a in.txt",
    );
    setting.answer(&["in.txt", "--test", "test.sh"]);
    assert_eq!(setting.read("in.reduced.txt"), b"a");
    for pid in String::from_utf8(setting.read("pids")).unwrap().lines() {
        assert!(!Path::new("/proc").join(pid).exists(), "{pid} is still there");
    }
    assert!(!setting.path("beside").exists());
}

#[test]
fn nothing_of_a_test_outlives_whoever_makes_it() {
    let setting = Setting::new(&[("in.txt", b"ab")]);
    // The second test kills the process that makes it, twice, and leaves another one behind.
    setting.script(
        "echo $$ >> ../../../tests
         [ $(wc -l < ../../../tests) -gt 1 ] && [ $(wc -l < ../../../tests) -lt 4 ] && {
             setsid sleep 1000 & echo $! >> ../../../left
             kill -9 $PPID; exec sleep 1000
         }
         grep -q a in.txt",
    );
    setting.answer(&["in.txt", "--test", "test.sh"]);
    assert_eq!(setting.read("in.reduced.txt"), b"a");
    let left = String::from_utf8(setting.read("left")).unwrap();
    assert_eq!(left.lines().count(), 2);
    for pid in left.lines() {
        assert!(!Path::new("/proc").join(pid).exists(), "{pid} is still there");
    }
}

#[test]
fn what_hangs_does_not_fail() {
    let setting = Setting::new(&[("in.txt", b"ab")]);
    setting.script("grep -q b in.txt || sleep 1000; grep -q a in.txt");
    let start = Instant::now();
    setting.answer(&["in.txt", "--timeout", "0.5", "--test", "test.sh"]);
    assert_eq!(setting.read("in.reduced.txt"), b"ab");
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[test]
fn who_kills_why_ends_its_tests() {
    let setting = Setting::new(&[("in.txt", b"ab")]);
    let marker = setting.path("pid");
    setting.script(&format!("echo $$ > {}; sleep 1000", marker.display()));
    let mut why = setting.command(&["in.txt", "--test", "test.sh"]).spawn().unwrap();
    let patience = Instant::now() + Duration::from_secs(30);
    let wait = |what: &dyn Fn() -> bool| {
        while !what() {
            assert!(Instant::now() < patience, "waited in vain");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    wait(&|| fs::read_to_string(&marker).is_ok_and(|pid| pid.ends_with('\n')));
    let pid = fs::read_to_string(&marker).unwrap();
    why.kill().unwrap();
    why.wait().unwrap();
    wait(&|| !Path::new("/proc").join(pid.trim()).exists());
    wait(&|| fs::read_dir(setting.path("tmp")).unwrap().next().is_none());
}

#[test]
fn a_drawing_of_the_sizes() {
    let setting = Setting::new(&[("in.txt", &lines(20))]);
    setting.script("grep -q 7 in.txt");
    setting.answer(&["in.txt", "--plot", "sizes.svg", "--test", "test.sh"]);
    let svg = String::from_utf8(setting.read("sizes.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("<path"));
}

#[test]
fn every_algorithm_has_a_name() {
    let text = b"int a; int main(void) { if (1) { return a + (2 * 3); } }\n";
    for name in [
        "ddmin",
        "cdd",
        "probdd",
        "hdd",
        "hdd*",
        "hdd+",
        "hddr",
        "hdd-coarse",
        "hdd-leaf",
        "hoist",
        "replace",
        "brackets",
        "lexical",
        "space",
    ] {
        let setting = Setting::new(&[("in.c", text)]);
        setting.script("grep -q '2 *\\* *3' in.c");
        let answer =
            setting.answer(&["in.c", "--algorithm", name, "--unit", "char", "--test", "test.sh"]);
        let after = answer["answer"]["after"]["bytes"].as_u64().unwrap();
        assert!(after <= text.len() as u64, "{name}");
        let proves = ["ddmin", "cdd", "probdd", "hdd*", "hdd+", "brackets"].contains(&name);
        assert_eq!(answer["answer"]["minimal"], proves, "{name}");
        let left = String::from_utf8(setting.read("in.reduced.c")).unwrap();
        assert!(left.replace(' ', "").contains("2*3"), "{name}: {left}");
        if name.starts_with("dd") || name.ends_with("dd") && name != "hdd" {
            assert_eq!(left.replace(' ', ""), "2*3", "{name}");
        }
    }
}
