//! Tests that do what no test should: nothing of them is left, and nothing is lost.

use crate::setting::Setting;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The processes whose numbers a file of the setting holds.
fn all_gone(setting: &Setting, file: &str) {
    let pids = String::from_utf8(setting.read(file)).unwrap();
    assert!(!pids.is_empty());
    for pid in pids.lines() {
        assert!(!Path::new("/proc").join(pid).exists(), "{pid} is still there");
    }
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
    all_gone(&setting, "pids");
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
    all_gone(&setting, "left");
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
fn what_forks_and_hangs_is_ended() {
    let setting = Setting::new(&[("in.txt", b"ab")]);
    // Each test forks, in its own group and out of it, what ignores polite signals; without a
    // `b` nothing of that ever ends.
    setting.script(
        "for i in 1 2 3; do
             (trap '' TERM INT HUP; sh -c 'echo $$ >> ../../../pids; while :; do sleep 100; done') &
             setsid sh -c 'echo $$ >> ../../../pids; sleep 1000 & wait' &
         done
         until [ $(wc -l < ../../../pids) -ge 6 ]; do sleep 0.01; done
         grep -q b in.txt || wait
         grep -q a in.txt",
    );
    setting.answer(&["in.txt", "--timeout", "1", "--test", "test.sh"]);
    assert_eq!(setting.read("in.reduced.txt"), b"ab");
    all_gone(&setting, "pids");
}

#[test]
fn what_a_test_writes_beside_itself_is_of_no_consequence() {
    let setting = Setting::new(&[("in.txt", b"xay")]);
    // It spoils the candidate, and leaves what an ordinary user cannot simply delete.
    setting.script(
        "grep -q a in.txt; status=$?
         echo spoilt > in.txt; ln -s ../../../in.txt link; mkdir -p deep/er; touch deep/er/file
         chmod 000 deep/er deep; exit $status",
    );
    let everybody = fs::Permissions::from_mode(0o777);
    for directory in ["", "tmp"] {
        fs::set_permissions(setting.path(directory), everybody.clone()).unwrap();
    }
    let mut command = setting.command(&["in.txt", "--test", "test.sh"]);
    if nix::unistd::geteuid().is_root() {
        let mut as_nobody = Command::new("setpriv");
        as_nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        as_nobody.arg(command.get_program()).args(command.get_args());
        as_nobody.current_dir(setting.path("")).env("TMPDIR", setting.path("tmp"));
        command = as_nobody;
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(setting.read("in.reduced.txt"), b"a");
    assert_eq!(setting.read("in.txt"), b"xay");
    assert_eq!(fs::read_dir(setting.path("tmp")).unwrap().count(), 0);
}

/// Runs `why reduce` where one directory is a file system of so many kilobytes, which holds
/// what was in it before; prints a file that is left there, and what is left of temporary files.
fn with_little_room(
    setting: &Setting,
    small: &str,
    kilobytes: u64,
    shown: &str,
    arguments: &[&str],
) -> (i32, String, String) {
    let command = setting.command(arguments);
    let script = "cp -r $1 kept; mount -t tmpfs -o size=$2k none $1; cp -r kept/. $1; rm -r kept
                  shown=$3; shift 3; \"$@\"; status=$?; cat $shown 2>&-; ls tmp; exit $status";
    let mut unshared = Command::new("unshare");
    unshared.args(["--map-root-user", "--mount", "sh", "-c", script, "sh", small]);
    unshared
        .arg(kilobytes.to_string())
        .arg(shown)
        .arg(command.get_program())
        .args(command.get_args());
    unshared.current_dir(setting.path("")).env("TMPDIR", setting.path("tmp"));
    let output = unshared.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

const RESULT: &str = "small/in.reduced.txt";

#[test]
fn a_full_disk_is_said_in_a_line() {
    let line = "a line of text with a needle in it\n";
    let text = line.repeat(3000);
    let files: [(&str, &[u8]); 2] =
        [("small/in.txt", text.as_bytes()), ("in.txt", text.as_bytes())];
    let setting = Setting::new(&files);
    setting.script("[ $(grep -c needle in.txt) -ge 2000 ]");
    // There is no room for the result beside the input.
    let (status, left, said) =
        with_little_room(&setting, "small", 160, RESULT, &["small/in.txt", "--test", "test.sh"]);
    assert_eq!((status, said.lines().count()), (1, 1), "{said}");
    let words = "cannot write small/in.reduced.txt: No space left on device (os error 28)";
    assert!(said.contains(words) && said.contains("there is no result yet"), "{said}");
    assert_eq!(left, "");
    // There is no room for a candidate.
    let (status, left, said) =
        with_little_room(&setting, "tmp", 64, RESULT, &["in.txt", "--test", "test.sh"]);
    assert_eq!((status, said.lines().count()), (1, 1), "{said}");
    assert!(said.contains("cannot write a candidate") && said.contains("TMPDIR"), "{said}");
    assert_eq!(left, "");
    assert_eq!(setting.read("in.txt"), text.as_bytes());
}

#[test]
fn verdicts_of_an_earlier_run_outlast_a_full_disk() {
    let text = "a line of text with a needle in it\n".repeat(300);
    let setting = Setting::new(&[("small/in.txt", text.as_bytes())]);
    setting.script("[ $(grep -c needle in.txt) -ge 200 ]");
    let arguments = ["small/in.txt", "--test", "test.sh"];
    setting.answer(&[&arguments[..], &["--max-tests", "5"]].concat());
    let name = "small/in.reduced.txt.verdicts";
    let verdicts = String::from_utf8(setting.read(name)).unwrap();
    assert_eq!(verdicts.lines().count(), 6, "{verdicts}");
    // What is there fills the disk, in pages.
    let pages = |name| setting.read(name).len().div_ceil(4096) as u64;
    let full = 4 * (pages("small/in.txt") + pages(RESULT) + pages(name));
    for more in [&[][..], &["--resume"]] {
        let again = [&arguments[..], more].concat();
        let (status, left, said) = with_little_room(&setting, "small", full, name, &again);
        let words = format!("cannot write {name}: No space left on device (os error 28)");
        assert_eq!((status, said.lines().count()), (1, 1), "{said}");
        assert!(said.contains(&words), "{said}");
        assert_eq!(left, verdicts);
    }
    // A file to which nothing could be written says nothing.
    fs::write(setting.path(name), "").unwrap();
    let rest = setting.answer(&[&arguments[..], &["--resume"]].concat());
    assert_eq!(rest["answer"]["minimal"], true);
    assert_eq!(rest["stats"]["tests"], rest["stats"]["made"]);
}
