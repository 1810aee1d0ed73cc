//! `why reduce`, as people call it: with commands, scripts, several files, and with tests that
//! misbehave. What it leaves is checked by running the test natively.

#[path = "reduce/crashes.rs"]
mod crashes;
#[path = "reduce/misbehaviour.rs"]
mod misbehaviour;
#[path = "reduce/places.rs"]
mod places;
#[path = "reduce/setting.rs"]
mod setting;
mod support;

use setting::Setting;
use std::fs;
use std::process::Command;

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
    // What is no file is not replaced by one: of a device, everybody would have to do without.
    assert!(Command::new("mkfifo").arg(setting.path("fifo")).status().unwrap().success());
    check(&["in.txt", "-o", "fifo", "--", "false"], 1, "is no ordinary file");
    let kind = std::fs::metadata(setting.path("fifo")).unwrap().file_type();
    assert!(std::os::unix::fs::FileTypeExt::is_fifo(&kind));
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

#[test]
fn a_runner_is_given_each_test() {
    let setting = Setting::new(&[("in.txt", &lines(30))]);
    setting.script("grep -q 17 $1");
    // It stands beside the input, where no test runs, and is given a word of its own.
    let runner = "#!/bin/sh\necho \"$@\" >> \"$1\"; shift; exec \"$@\"\n";
    fs::write(setting.path("runner.sh"), runner).unwrap();
    fs::write(setting.path("log"), "").unwrap();
    let runner = ["in.txt", "--runner", "sh runner.sh log", "--test", "test.sh"];
    let answer = setting.answer(&runner);
    assert_eq!(setting.read("in.reduced.txt"), b"17");
    let log = String::from_utf8(setting.read("log")).unwrap();
    assert_eq!(log.lines().count() as u64, answer["stats"]["made"].as_u64().unwrap());
    let words =
        format!("{} {} in.txt", setting.path("log").display(), setting.path("test.sh").display());
    assert!(log.lines().all(|line| line == words), "{log}");
    let (status, said) = setting.refused(&["in.txt", "--runner", "no-such-runner", "--", "false"]);
    assert!(status == 1 && said.contains("cannot start no-such-runner"), "{said}");
}

/// Lists in brackets of letters: what the grammar below says, in other words.
fn is_list(text: &[u8]) -> bool {
    fn list(text: &mut &[u8]) -> Option<()> {
        *text = text.strip_prefix(b"[")?;
        loop {
            match text.first()? {
                b'[' => list(text)?,
                b'a'..=b'z' => *text = &text[1..],
                _ => break,
            }
        }
        *text = text.strip_prefix(b"]")?;
        Some(())
    }
    let mut rest = text;
    list(&mut rest).is_some() && rest.is_empty()
}

#[test]
fn with_a_grammar_all_candidates_are_of_the_language() {
    let grammar = b"%token LETTER /[a-z]/\n%%\nlist: '[' items ']' ;\nitems: | items item ;\nitem: LETTER | list ;\n";
    let text = b"[ab[cd[e]f][g[x[h]i]]jk[l]]";
    let setting = Setting::new(&[("in.lists", text), ("lists.y", grammar), ("wrong", b"[a")]);
    assert!(is_list(text) && !is_list(b"[a]]") && !is_list(b"[A]"));
    setting
        .script("cat in.lists >> ../../../tried; echo >> ../../../tried; grep -q 'x.*h' in.lists");
    for algorithm in ["hdd", "hdd*", "hdd+", "hddr", "hdd-coarse", "hdd-leaf", "hoist", "replace"] {
        let _ = fs::remove_file(setting.path("tried"));
        let arguments = ["in.lists", "--grammar", "lists.y", "--test", "test.sh"];
        setting.answer(&[&arguments[..], &["--algorithm", algorithm]].concat());
        for tried in
            setting.read("tried").split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
        {
            assert!(is_list(tried), "{algorithm}: {}", String::from_utf8_lossy(tried));
        }
        let left = String::from_utf8(setting.read("in.reduced.lists")).unwrap();
        assert!(
            left.len() <= text.len() && left.contains('x') && left.contains('h'),
            "{algorithm}: {left}"
        );
        if algorithm.starts_with("hdd*") {
            assert_eq!(left, "[[[x[h]]]]");
        }
    }
    setting.script("exit 0");
    let (status, said) = setting.refused(&["wrong", "--grammar", "lists.y", "--test", "test.sh"]);
    assert!(status == 1 && said.contains("the input: "), "{said}");
}

#[test]
fn memory_is_limited() {
    let setting = Setting::new(&[("in.txt", b"lots 4000 of room")]);
    let program =
        "import re, sys\nbytearray(int(re.search('[0-9]+', open(sys.argv[1]).read())[0]) << 20)";
    let command =
        ["--fails-if", "stderr~/^MemoryError/", "--", "/usr/bin/python3", "-c", program, "@@"];
    setting.answer(&[&["in.txt", "--memory", "900"], &command[..]].concat());
    let mut native = Command::new("sh");
    native.args(["-c", "ulimit -v 921600; exec /usr/bin/python3 -c \"$1\" in.reduced.txt", "sh"]);
    let output = native.arg(program).current_dir(setting.path("")).output().unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains("\nMemoryError"));
    let left: u64 = String::from_utf8(setting.read("in.reduced.txt")).unwrap().parse().unwrap();
    assert!(left <= 4000, "{left}");
    let (status, said) = setting.refused(&[&["in.txt", "--memory", "9000"], &command[..]].concat());
    assert!(status == 1 && said.contains("the original does not fail: exit 0"), "{said}");
}

#[test]
fn people_read_it() {
    let word = |number: usize| format!("needed_{number}_{}", "x".repeat(number * 4));
    let words: Vec<String> = (0..14).map(word).collect();
    let setting = Setting::new(&[("in.txt", format!("{}\n", words.join("\n")).as_bytes())]);
    let needs = words
        .iter()
        .map(|word| format!("grep -qw {word} in.txt || {{ echo no {word} >&2; exit 1; }}"));
    setting.script(&needs.collect::<Vec<_>>().join("\n"));
    let arguments = ["in.txt", "--algorithm", "ddmin", "--unit", "token", "--test", "test.sh"];
    let piped = setting.reduce(&arguments);
    assert_eq!(String::from_utf8(piped.stderr).unwrap(), "");
    let told = String::from_utf8(piped.stdout).unwrap();
    assert!(!told.contains('\x1b'), "{told}");
    assert!(told.lines().all(|line| line.chars().count() <= 80), "{told}");
    // The longest are told, in their order, shortened in the middle.
    let without: Vec<&str> = told.lines().filter(|line| line.starts_with("  without ")).collect();
    assert_eq!(without.len(), 12, "{told}");
    let last = "  without needed_13_xxxxx…xxxxxxxx  exit 1: no needed_13_xxx";
    assert!(without[11].starts_with(last) && without[11].ends_with('…'), "{told}");
    assert!(told.ends_with("  … and 2 tokens more\n"), "{told}");

    let long = format!("echo {} >&2; exit 3", "very ".repeat(40));
    let told = setting.reduce(&["in.txt", "--", "sh", "-c", &long]).stdout;
    let told = String::from_utf8(told).unwrap();
    assert!(told.lines().all(|line| line.chars().count() <= 80), "{told}");
    assert!(told.starts_with("failure   exit 3: very very") && told.contains("…\n"), "{told}");

    let why = setting.command(&arguments);
    let words: Vec<_> = why.get_args().map(|word| word.to_str().unwrap()).collect();
    let line = format!("stty cols 80; {} {}", why.get_program().to_str().unwrap(), words.join(" "));
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &line, "/dev/null"]).current_dir(setting.path(""));
    terminal.env("TMPDIR", setting.path("tmp")).env("TERM", "xterm");
    let shown = String::from_utf8(terminal.output().unwrap().stdout).unwrap();
    let progress: Vec<&str> = shown.split('\r').filter(|line| line.contains("/s  ")).collect();
    assert!(!progress.is_empty() && !shown.contains("\x1b[3"), "{shown:?}");
    for line in progress {
        let visible = line.trim_start_matches("\x1b[2K");
        assert!(visible.chars().count() <= 80 && visible.contains(" tests, "), "{line:?}");
    }
}
