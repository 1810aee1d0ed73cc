//! Recordings as files: moved, cut short, damaged, listed and deleted.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use support::process::child_of;
use support::recorded::{Setting, text};
use support::why::WHY;
use why_record::event::{Event, Thread};
use why_record::registers::{NAMES, Registers};
use why_record::stream::{Reader, Writer};

mod support;

/// Four threads that lose each other's updates.
const RACY: &str = "
    #include <pthread.h>
    #include <stdio.h>
    #include <time.h>
    static volatile long shared;
    static void *add(void *unused) {
        for (long i = 0; i < 3000000; i++) shared++;
        return unused;
    }
    int main(void) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, add, 0);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
        printf(\"%ld at %ld\\n\", shared, (long)time(0));
        return 7;
    }";

#[test]
fn a_race_is_replayed_the_same_each_time_wherever_it_is() {
    let setting = Setting::new();
    let program = setting.compile("racy", RACY);
    let recorded = setting.run(&["record", "-o", "one", "--", "./racy"]);
    assert_eq!(recorded.status.code(), Some(7), "{}", text(&recorded.stderr));
    fs::remove_file(program).unwrap();
    fs::rename(setting.path("one"), setting.path("elsewhere")).unwrap();
    for _ in 0..5 {
        let replayed = setting.why(&["replay", "elsewhere"]).env_clear().output().unwrap();
        assert_eq!(text(&replayed.stdout), text(&recorded.stdout), "{}", text(&replayed.stderr));
        assert_eq!(replayed.status.code(), Some(7));
    }
}

/// Computes long enough to be looked at meanwhile.
const LONG: &str = "
    #include <stdio.h>
    int main(void) {
        volatile unsigned long sum = 0;
        for (unsigned long i = 0; i < 200000000; i++) sum += i;
        printf(\"%lu\\n\", sum);
        return 0;
    }";

#[test]
fn who_looks_at_a_replay_does_not_make_its_stack_grow() {
    let setting = Setting::new();
    setting.compile("long", LONG);
    // Without chance in it, the stack that a replay begins with reaches as far up as the
    // recorded one, and with a large environment farther down.
    let why = |arguments: &[&str]| {
        let mut why = setting.command("setarch");
        why.args(["-R", WHY]).args(arguments);
        why
    };
    let recorded = why(&["record", "-o", "one", "--", "./long"]).output().unwrap();
    assert_eq!(recorded.status.code(), Some(0), "{}", text(&recorded.stderr));
    let mut replay = why(&["replay", "one"]);
    replay.envs((0..10).map(|each| (format!("LARGE_{each}"), "x".repeat(100_000))));
    let mut replay = replay.stdout(Stdio::null()).spawn().unwrap();
    // Of `why`, its supervisor, and what that runs.
    let (mut stacks, mut looks) = (BTreeSet::new(), 0);
    while replay.try_wait().unwrap().is_none() {
        let process = child_of(replay.id() as i32).and_then(child_of);
        let place = process.map(|process| PathBuf::from(format!("/proc/{process}")));
        if let Some(place) = place
            && is_confined(&place)
        {
            stacks.extend(stack_of(&place));
            let _ = fs::read(place.join("cmdline"));
            let _ = fs::read(place.join("environ"));
            stacks.extend(stack_of(&place));
            looks += 1;
        }
        thread::sleep(Duration::from_millis(5));
    }
    assert!(looks > 10, "looked at only {looks} times");
    assert_eq!(stacks.len(), 1, "{stacks:?}");
}

/// A replayed process is, once all is there that it begins with.
fn is_confined(process: &Path) -> bool {
    let status = fs::read_to_string(process.join("status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("Seccomp:") && line.ends_with('2'))
}

/// The highest memory of a process that can be written to.
fn stack_of(process: &Path) -> Option<String> {
    let maps = fs::read_to_string(process.join("maps")).ok()?;
    let is_stack = |line: &&str| line.starts_with("7ff") && line.contains(" rw-p ");
    let stack = maps.lines().rfind(is_stack)?;
    Some(stack.split(' ').next()?.to_owned())
}

/// Four threads that write whenever they can, in small parts and in several at once.
const WRITING: &str = "
    #include <pthread.h>
    #include <stdio.h>
    #include <sys/uio.h>
    #include <unistd.h>
    static void *write_lines(void *name) {
        char line[64];
        for (int i = 0; i < 500; i++) {
            int size = snprintf(line, sizeof line, \"%s %d\\n\", (char *)name, i);
            if (i % 3 == 0) {
                struct iovec parts[] = {{line, 2}, {line + 2, size - 2}};
                if (writev(1, parts, 2) != size) return 0;
            } else if (write(1, line, size) != size) {
                return 0;
            }
        }
        return name;
    }
    int main(void) {
        pthread_t threads[4];
        char *names[] = {\"a\", \"b\", \"c\", \"d\"};
        for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, write_lines, names[i]);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
        return 0;
    }";

#[test]
fn what_threads_write_at_the_same_time_comes_out_in_the_same_order() {
    let setting = Setting::new();
    setting.compile("writing", WRITING);
    for to_file in [true, false] {
        let mut record = setting.why(&["record", "-o", "one", "--", "./writing"]);
        let wrote = if to_file {
            let file = fs::File::create(setting.path("wrote")).unwrap();
            assert!(record.stdout(file).status().unwrap().success());
            fs::read(setting.path("wrote")).unwrap()
        } else {
            record.output().unwrap().stdout
        };
        assert_eq!(text(&wrote).lines().count(), 2000);
        let replayed = setting.run(&["replay", "one"]);
        assert!(replayed.stdout == wrote, "to a file: {to_file}");
        fs::remove_dir_all(setting.path("one")).unwrap();
    }
}

#[test]
fn the_newest_is_the_default_and_all_are_listed() {
    let setting = Setting::new();
    assert_eq!(setting.run(&["replay"]).status.code(), Some(125));
    for words in [["echo", "first"], ["printf", "second"]] {
        assert!(setting.run(&["record", "--", words[0], words[1]]).status.success());
    }
    assert_eq!(text(&setting.run(&["replay"]).stdout), "second");
    assert_eq!(text(&setting.run(&["replay", "echo-1"]).stdout), "first\n");
    let listed = text(&setting.run(&["ls"]).stdout);
    let names: Vec<&str> = listed.lines().filter_map(|l| l.split_whitespace().next()).collect();
    assert_eq!(names, ["echo-1", "printf-1"]);
    assert!(setting.run(&["rm", "printf-1"]).status.success());
    assert_eq!(text(&setting.run(&["replay"]).stdout), "first\n");
    assert_eq!(setting.run(&["rm", "printf-1"]).status.code(), Some(1));
}

#[test]
fn nothing_is_kept_of_what_cannot_be_run_or_where_nothing_can_be() {
    let setting = Setting::new();
    for (program, status) in [("./missing", 127), ("/", 126)] {
        assert_eq!(setting.run(&["record", "--", program]).status.code(), Some(status));
    }
    assert_eq!(text(&setting.run(&["ls"]).stdout), "");
    let file = setting.path("file");
    fs::write(&file, "").unwrap();
    let mut record = setting.why(&["record", "--", "true"]);
    let refused = record.env("WHY_DIR", &file).output().unwrap();
    assert_eq!(refused.status.code(), Some(125));
    assert!(text(&refused.stderr).contains("cannot create the recording"), "{refused:?}");
}

#[test]
fn the_tree_of_processes_is_told() {
    let setting = Setting::new();
    let script = "true | cat; (exit 3); exec sh -c 'kill -TERM $$'";
    setting.run(&["record", "-o", "tree", "--", "bash", "-c", script]);
    let told = setting.run(&["info", "tree", "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    let processes = told["answer"]["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 4, "{told}");
    let (root, children) = processes.split_first().unwrap();
    assert_eq!(root["ended"], "SIGTERM");
    assert_eq!(root["commands"].as_array().unwrap().len(), 2);
    assert!(children.iter().all(|child| child["parent"] == root["pid"]));
    assert!(children.iter().any(|child| child["ended"] == "status 3"));
    assert_eq!(setting.run(&["replay", "tree"]).status.code(), Some(128 + 15));
}

#[test]
fn a_recorder_that_was_killed_leaves_what_it_had_written() {
    let setting = Setting::new();
    let script = "i=0; while :; do echo $i; i=$((i + 1)); sleep 0.01; done";
    let mut recorder = setting
        .why(&["record", "-o", "cut", "--", "bash", "-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // By then it has written something down at least once since the first lines.
    let mut lines = BufReader::new(recorder.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "80"));
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let replayed = setting.run(&["replay", "cut"]);
    assert!(text(&replayed.stderr).contains("cut short"), "{}", text(&replayed.stderr));
    assert_eq!(replayed.status.code(), Some(125));
    assert!(text(&replayed.stdout).starts_with("0\n1\n2\n3\n"), "{}", text(&replayed.stdout));
    assert!(text(&setting.run(&["info", "cut"]).stdout).contains("cut short"));
}

/// Counts in rax: after 1 + 3n instructions it is n.
const COUNTS: &str = "
    __asm__(\".globl _start\\n_start: xor %eax, %eax\\n mov $1000000, %ecx\\n\"
            \"1: inc %rax\\n dec %ecx\\n jnz 1b\\n mov %eax, table(%rip)\\n\"
            \"xor %edi, %edi\\n mov $60, %eax\\n syscall\\n .data\\n table: .quad 0\\n\");";

#[test]
fn registers_and_memory_are_told_at_every_position() {
    let setting = Setting::new();
    setting.compile_with("counts", COUNTS, &["-nostdlib", "-static"]);
    assert!(setting.run(&["record", "-o", "rec", "--", "./counts"]).status.success());
    let print = |criterion: &str| {
        let printed = setting.run(&["print", "rec", criterion, "--json"]);
        assert!(printed.status.success(), "{criterion}: {}", text(&printed.stderr));
        let printed: serde_json::Value = serde_json::from_slice(&printed.stdout).unwrap();
        printed["answer"].clone()
    };
    let start = print("start")["position"].as_str().unwrap().to_owned();
    let (event, _) = start.split_once('.').unwrap();
    for turns in [0, 1, 2, 3, 41, 42, 1000, 77_777, 999_999, 1_000_000] {
        for (after, expected) in [(0, turns), (1, (turns + 1).min(1_000_000))] {
            if turns == 1_000_000 && after > 0 {
                continue;
            }
            let at = format!("{event}.{}", 2 + 3 * turns + after);
            assert_eq!(print(&at)["registers"]["rax"], expected, "{at}");
        }
    }
    // The loop, a store, three more, and the call.
    let end = print("end");
    assert_eq!(end["position"].as_str().unwrap().split('.').nth(1), Some("3000006"));
    let refused = setting.run(&["print", "rec", &format!("{event}.3000007")]);
    assert!(text(&refused.stderr).contains("3000006 instructions"), "{}", text(&refused.stderr));
    assert_eq!(refused.status.code(), Some(1));
    for misuse in ["end:%xyz", "end:17", "17", "end#2"] {
        assert_eq!(setting.run(&["print", "rec", misuse]).status.code(), Some(2), "{misuse}");
    }
}

/// The first stream of a recording.
fn stream(recording: &Path) -> PathBuf {
    fs::read_dir(recording.join("events")).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn what_is_damaged_is_named() {
    let setting = Setting::new();
    assert!(setting.run(&["record", "-o", "good", "--", "echo", "hello"]).status.success());
    let refused = |what: &str| {
        let replayed = setting.run(&["replay", "bad"]);
        assert_eq!(replayed.status.code(), Some(125), "{what}");
        let said = text(&replayed.stderr);
        assert_eq!(said.lines().count(), 1, "{what}: {said}");
        assert!(said.starts_with("why: ") && !said.contains("defect"), "{what}: {said}");
        said
    };
    let copy = || {
        let _ = fs::remove_dir_all(setting.path("bad"));
        let mut copier = Command::new("cp");
        copier.args(["-r", "good", "bad"]).current_dir(setting.directory.path());
        assert!(copier.status().unwrap().success());
    };
    let flip = |path: &Path, at: u64| {
        let file = fs::File::options().read(true).write(true).open(path).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    };
    copy();
    flip(&stream(&setting.path("bad")), 100);
    assert!(refused("a bit of the log").contains("checksum"));
    copy();
    flip(&stream(&setting.path("bad")), 8);
    assert!(refused("another version").contains("version"));
    copy();
    let kept = fs::read_dir(setting.path("bad/files")).unwrap().next().unwrap().unwrap().path();
    flip(&kept, kept.metadata().unwrap().len() / 2);
    refused("a bit of a file");
    fs::remove_file(kept).unwrap();
    refused("a file is gone");
    copy();
    fs::File::options()
        .write(true)
        .open(stream(&setting.path("bad")))
        .unwrap()
        .set_len(50)
        .unwrap();
    assert!(refused("cut off").contains("cut short"));
    copy();
    fs::write(setting.path("bad/manifest.json"), "{}").unwrap();
    refused("an empty manifest");
    fs::write(setting.path("bad/manifest.json"), "{\"version\": 99}").unwrap();
    assert!(refused("a manifest of the future").contains("version 99"));
}

/// Asks a hundred times for its directory, with a number in r13 that it never uses.
const ASKS: &str = "
    __asm__(\".globl _start\\n_start: mov $100, %r12d\\n mov $0x1234, %r13d\\n\"
            \"1: lea buffer(%rip), %rdi\\n mov $4096, %esi\\n mov $79, %eax\\n syscall\\n\"
            \"dec %r12d\\n jnz 1b\\n xor %edi, %edi\\n mov $60, %eax\\n syscall\\n\"
            \".bss\\n .balign 4096\\n buffer: .skip 4096\\n\");";

fn events(path: &Path) -> Vec<Event> {
    let mut reader = Reader::open(path).unwrap();
    std::iter::from_fn(|| reader.next_event().unwrap()).collect()
}

/// Writes a stream anew, with checksums that are right.
fn rewrite(path: &Path, events: &[Event]) {
    fs::remove_file(path).unwrap();
    let mut writer = Writer::create(path).unwrap();
    events.iter().for_each(|event| writer.add(event).unwrap());
    writer.flush().unwrap();
}

/// The number of the first event from here on that is such, counted from one.
fn number_of(events: &[Event], from: usize, is_such: impl Fn(&Event) -> bool) -> usize {
    from + events[from..].iter().position(is_such).unwrap() + 1
}

#[test]
fn a_bit_of_a_register_that_is_flipped_is_named() {
    const R13: usize = 13;
    let setting = Setting::new();
    setting.compile_with("asks", ASKS, &["-nostdlib", "-static"]);
    assert!(setting.run(&["record", "-o", "rec", "--", "./asks"]).status.success());
    let path = stream(&setting.path("rec"));
    let mut all = events(&path);
    let (mut before, mut resumed) = (Registers::default(), 0);
    // The thread goes on as before, but for one bit; and stops as it did.
    let (flipped, thread): (usize, Thread) = (0..all.len())
        .find_map(|index| match &all[index] {
            Event::Stopped { registers, .. } => {
                before = before.apply(registers).unwrap();
                None
            }
            Event::Resumed { thread, registers } => {
                resumed += 1;
                let goes_on = before.apply(registers).unwrap();
                if resumed < 50 {
                    before = goes_on;
                    return None;
                }
                let thread = *thread;
                let mut other = goes_on;
                other.0[R13] ^= 1 << 4;
                let Event::Stopped { registers, .. } = &mut all[index + 1] else {
                    panic!("nothing happens on the way to the next call");
                };
                *registers = goes_on.apply(registers).unwrap().changed_from(&other);
                let registers = other.changed_from(&before);
                all[index] = Event::Resumed { thread, registers };
                Some((index + 1, thread))
            }
            _ => None,
        })
        .unwrap();
    rewrite(&path, &all);
    let replayed = setting.run(&["replay", "rec", "--verify"]);
    assert_eq!(replayed.status.code(), Some(125));
    let said = text(&replayed.stderr);
    let stopped = flipped + 1;
    for part in [
        format!("at event {stopped}: "),
        format!(", thread {thread}, "),
        // From behind a call to behind the next.
        format!(" position {flipped}.6.0x"),
        format!("{} is 0x1224 and was 0x1234", NAMES[R13]),
    ] {
        assert!(said.contains(&part), "{part}: {said}");
    }
}

#[test]
fn a_bit_of_memory_that_is_flipped_is_named() {
    let setting = Setting::new();
    setting.compile_with("asks", ASKS, &["-nostdlib", "-static"]);
    let record = ["record", "--hash=1", "-o", "rec", "--", "./asks"];
    assert!(setting.run(&record).status.success());
    assert!(setting.run(&["replay", "rec", "--verify"]).status.success());
    let path = stream(&setting.path("rec"));
    let mut all = events(&path);
    let wrote = number_of(&all, all.len() / 2, |event| matches!(event, Event::Wrote { .. }));
    let compared = number_of(&all, wrote, |event| matches!(event, Event::Hashes { .. }));
    let Event::Wrote { at, bytes } = &mut all[wrote - 1] else { unreachable!("just found") };
    let page = *at & !4095;
    bytes[0] ^= 1;
    rewrite(&path, &all);
    // Nothing else depends on it, so only who looks at memory can know.
    assert!(setting.run(&["replay", "rec"]).status.success());
    let replayed = setting.run(&["replay", "rec", "--verify"]);
    assert_eq!(replayed.status.code(), Some(125));
    let said = text(&replayed.stderr);
    let is_resumed = |event: &Event| matches!(event, Event::Resumed { .. });
    let resumed = all[..wrote].iter().rposition(is_resumed).unwrap() + 1;
    let Event::Resumed { thread, .. } = all[resumed - 1] else { unreachable!("just found") };
    for part in [
        format!("at event {compared}: "),
        format!(", thread {thread}, position {resumed}."),
        format!("the page at {page:#x} differs"),
    ] {
        assert!(said.contains(&part), "{part}: {said}");
    }
}
