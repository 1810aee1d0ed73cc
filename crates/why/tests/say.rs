//! Answers that nobody reads to the end, as in a pipe to `head`.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

use support::recorded::{Setting, said_in_one_line, text};

mod support;

const PROGRAM: &str = "
    #include <stdio.h>
    int main(int argc, char **argv) {
        int sum = 0;
        for (int i = 0; i < 10; i++) sum += argc * i;
        printf(\"%d\\n\", sum);
        return 3;
    }";

/// With a standard output whose reader has gone.
fn with_closed_pipe(mut command: Command) -> Output {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap()
}

fn setting() -> Setting {
    let setting = Setting::new();
    setting.compile_with("sums", PROGRAM, &["-g", "-O0"]);
    let recorded = setting.run(&["record", "-o", "rec", "--", "./sums"]);
    assert_eq!(recorded.status.code(), Some(3), "{}", text(&recorded.stderr));
    setting
}

#[test]
fn commands_end_quietly_when_nobody_reads_on() {
    let setting = setting();
    setting.run(&["record", "--", "./sums"]);
    std::fs::write(setting.path("bad"), "a\nx\nb\n").unwrap();
    std::fs::write(setting.path("good"), "a\nb\n").unwrap();
    for words in [
        &["ls"][..],
        &["ls", "--json"],
        &["info", "rec"],
        &["info", "rec", "--json"],
        &["print", "rec", "end", "main", "start"],
        &["print", "rec", "main:argc", "--json"],
        &["slice", "rec", "source.c:6:sum", "--all"],
        &["slice", "rec", "source.c:6:sum", "--json"],
        &["pack", "rec", "-o", "packed.why"],
        &["reduce", "bad", "--", "sh", "-c", "! grep -q x $1", "sh", "@@"],
        &["isolate", "good", "bad", "--", "sh", "-c", "! grep -q x $1", "sh", "@@"],
        &["doctor"],
    ] {
        let read = setting.run(words);
        assert!(!read.stdout.is_empty(), "{words:?}: {}", text(&read.stderr));
        if words[0] == "pack" {
            std::fs::remove_file(setting.path("packed.why")).unwrap();
        }
        let unread = with_closed_pipe(setting.why(words));
        assert_eq!(unread.status.signal(), Some(libc::SIGPIPE), "{words:?}: {}", unread.status);
        assert!(!text(&unread.stderr).contains("panicked"), "{words:?}: {}", text(&unread.stderr));
    }
    assert!(setting.path("packed.why").exists(), "what was to be done is done");
    let replayed = with_closed_pipe(setting.why(&["replay", "rec"]));
    assert_eq!((replayed.status.code(), text(&replayed.stderr)), (Some(3), String::new()));
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let setting = setting();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = setting.why(&["info", "rec"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    said_in_one_line(&output.stderr, "No space left");
}

#[test]
fn where_nothing_can_be_said_besides_the_answer_is_the_same() {
    let setting = setting();
    for (words, status) in [
        (&["print", "rec", "end", "--stats"][..], 0),
        (&["slice", "rec", "source.c:6:sum", "--stats"], 0),
        (&["print", "rec", "nowhere"], 1),
        (&["print", "--nonsense"], 2),
    ] {
        let mute = || {
            let full = File::options().write(true).open("/dev/full").unwrap();
            setting.why(words).stderr(full).output().unwrap()
        };
        let (told, untold) = (setting.run(words), mute());
        assert_eq!(untold.status.code(), Some(status), "{words:?}");
        assert!(!told.stderr.is_empty(), "{words:?}");
        assert_eq!(text(&untold.stdout), text(&told.stdout), "{words:?}");
    }
}

/// Which signals are ignored is the program's own affair.
#[test]
fn programs_have_the_sigpipe_that_they_would_have() {
    let setting = Setting::new();
    for before in ["", "trap '' PIPE; "] {
        let ignored = |prefix: &str| {
            let script = format!("{before} exec {prefix} grep SigIgn /proc/self/status");
            let output = setting.command("sh").args(["-c", &script]).output().unwrap();
            assert!(output.status.success(), "{}", text(&output.stderr));
            let told = text(&output.stdout);
            let mask = told.trim().rsplit('\t').next().unwrap();
            u64::from_str_radix(mask, 16).unwrap()
        };
        // Whoever runs the tests may have others ignored.
        let native = ignored("");
        assert!(before.is_empty() || native & 1 << (libc::SIGPIPE - 1) != 0, "{native:x}");
        assert_eq!(ignored(&format!("{} run --", support::why::WHY)), native);
        assert_eq!(ignored(&format!("{} record -o new --", support::why::WHY)), native);
        std::fs::remove_dir_all(setting.path("new")).unwrap();
    }
}

#[test]
fn nothing_is_told_that_a_terminal_obeys() {
    let setting = setting();
    std::fs::write(setting.path("bad"), "a\nx\x1b[2J\nb\n").unwrap();
    std::fs::write(setting.path("good"), "a\n\x1b[2J\nb\n").unwrap();
    let isolate = ["isolate", "good", "bad", "--", "sh", "-c", "! grep -q x $1", "sh", "@@"];
    let told = text(&setting.run(&isolate).stdout);
    assert!(told.contains("\u{fffd}[2J") && !told.contains('\x1b'), "{told:?}");
    setting.run(&["record", "-o", "evil", "--", "./sums", "\x1b]0;x\x07"]);
    let told = text(&setting.run(&["info", "evil"]).stdout);
    assert!(told.contains("./sums \u{fffd}]0;x\u{fffd}") && !told.contains('\x1b'), "{told:?}");
    // Other programs are told what it is.
    let told = text(&setting.run(&["info", "evil", "--json"]).stdout);
    assert!(told.contains("\\u001b]0;x\\u0007"), "{told}");
}
