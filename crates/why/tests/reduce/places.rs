//! Where inputs may be and results may go, and that nothing else there is touched.

use crate::setting::Setting;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

const TEXT: &[u8] = b"one\ntwo needed three\nfour\n";

#[test]
fn a_directory_of_somebody_else_is_not_replaced() {
    let setting = Setting::new(&[("a", TEXT), ("b", b"x\n"), ("kept/mine", b"precious")]);
    let test = ["--", "grep", "-q", "needed", "a"];
    let several = [&["a", "b", "--fails-if", "exit=0"], &test[..]].concat();
    let refused = |more: &[&str], words: &str| {
        let (status, said) = setting.refused(&[more, &several].concat());
        assert!(status == 1 && said.contains(words), "{said}");
    };
    refused(&["-o", "kept"], "kept holds more than an earlier result: mine; -o");
    refused(&["-o", "kept/mine"], "kept/mine is no directory; -o");
    assert_eq!(setting.read("kept/mine"), b"precious");
    let one = [&["a", "-o", "kept", "--fails-if", "exit=0"], &test[..]].concat();
    let (status, said) = setting.refused(&one);
    assert!(status == 1 && said.contains("kept is a directory; -o"), "{said}");
    // An earlier result is replaced.
    for _ in 0..2 {
        setting.answer(&several);
        assert_eq!(setting.read("a.reduced/a"), b"needed");
        assert!(!setting.path("a.reduced/b").exists());
    }
}

#[test]
fn in_place_keeps_links_and_permissions() {
    let setting = Setting::new(&[("real/in.txt", TEXT)]);
    symlink("real/in.txt", setting.path("in.txt")).unwrap();
    fs::set_permissions(setting.path("real/in.txt"), fs::Permissions::from_mode(0o750)).unwrap();
    setting.script("grep -q needed in.txt");
    let arguments = ["in.txt", "--in-place", "--test", "test.sh"];
    let output = setting.reduce(&[&arguments[..], &["--max-tests", "3"]].concat());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("budget    used up: more may be possible, the same command"), "{said}");
    assert!(!setting.path("in.reduced.txt.verdicts").exists());
    setting.answer(&arguments);
    assert_eq!(setting.read("real/in.txt"), b"needed");
    assert!(setting.path("in.txt").is_symlink());
    let mode = fs::metadata(setting.path("real/in.txt")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
}

#[test]
fn what_cannot_be_read_to_an_end_is_said() {
    let setting = Setting::new(&[("round/in.txt", TEXT), ("pipe/in.txt", TEXT)]);
    symlink(".", setting.path("round/loop")).unwrap();
    assert!(Command::new("mkfifo").arg(setting.path("pipe/fifo")).status().unwrap().success());
    let (status, said) = setting.refused(&["round", "--", "false"]);
    assert!(status == 1 && said.contains("round/loop leads back to a directory"), "{said}");
    let (status, said) = setting.refused(&["pipe", "--", "false"]);
    assert!(status == 1 && said.contains("pipe/fifo is neither a file nor"), "{said}");
}

#[test]
fn what_cannot_be_written_is_known_at_once() {
    let setting = Setting::new(&[("in.txt", TEXT)]);
    setting.script("echo >> ../../../made; grep -q needed in.txt");
    let (status, said) = setting.refused(&["in.txt", "--plot", "none/x.svg", "--test", "test.sh"]);
    assert!(status == 1 && said.contains("cannot write none/x.svg"), "{said}");
    let mut isolate = Command::new(env!("CARGO_BIN_EXE_why"));
    fs::write(setting.path("passing.txt"), "").unwrap();
    isolate.args(["isolate", "passing.txt", "in.txt", "-o", "in.txt", "--test", "test.sh"]);
    let output = isolate.current_dir(setting.path("")).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && said.contains("cannot write to in.txt"), "{said}");
    assert!(!setting.path("made").exists(), "a test was made");
}

#[test]
fn neither_a_dot_nor_the_directory_of_a_test_matters() {
    let setting = Setting::new(&[("in.txt", TEXT)]);
    // It says where it is, and what a dot is to it.
    let script = r#"[ "$1" = . ] && grep -q needed "$2" && echo "bad: $PWD/$2" >&2 && exit 3"#;
    let command = ["in.txt", "--", "sh", "-c", script, "sh", ".", "@@"];
    let answer = setting.answer(&command);
    assert_eq!(answer["answer"]["failure"], "exit 3: bad: in.txt");
    assert_eq!(setting.read("in.reduced.txt"), b"needed");
}

#[test]
fn the_path_of_the_input_stands_for_the_candidate() {
    let setting = Setting::new(&[("dir/in.txt", TEXT), ("dir/sub/other.txt", b"x")]);
    let fails = ["--fails-if", "exit=0", "--", "grep", "-q", "needed"];
    let answer = setting.answer(&[&["dir/in.txt"], &fails[..], &["dir/in.txt"]].concat());
    assert_eq!(setting.read("dir/in.reduced.txt"), b"needed");
    assert_eq!(answer["answer"]["minimal"], true);
    fs::remove_file(setting.path("dir/in.reduced.txt")).unwrap();
    setting.answer(&[&["dir"], &fails[..], &["dir/in.txt"]].concat());
    assert_eq!(setting.read("dir.reduced/dir/in.txt"), b"needed");
    assert!(!setting.path("dir.reduced/dir/sub").exists());
}
