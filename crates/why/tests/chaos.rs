//! `why record --chaos`, `--seed` and `--tries`: races are found, their recordings replay to
//! the same failure, a seed repeats its schedule, and programs without races do what they do
//! natively, whatever the schedule.

mod support;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use support::build;
use support::fixture;
use support::process::interruptible;
use support::why::WHY;

/// With some room: see the table in docs/schedules.md.
const TRIES: &str = "150";

struct Setting {
    directory: TempDir,
}

impl Setting {
    fn new() -> Setting {
        Setting { directory: tempfile::tempdir().unwrap() }
    }

    fn recordings(&self) -> PathBuf {
        self.directory.path().join("recordings")
    }

    fn why(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "120", WHY]).args(arguments);
        command.env("WHY_DIR", self.recordings()).current_dir(self.directory.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.why(arguments).output().unwrap()
    }

    /// The answer of `why info` about the newest recording.
    fn info(&self) -> serde_json::Value {
        let told = self.run(&["info", "--json"]);
        serde_json::from_slice(&told.stdout).unwrap()
    }

    fn kept(&self) -> Vec<String> {
        let entries = fs::read_dir(self.recordings()).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// A C program.
    fn compile(&self, name: &str, source: &str) -> String {
        let (file, program) =
            (self.directory.path().join("source.c"), self.directory.path().join(name));
        fs::write(&file, source).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-pthread", "-o"]).args([&program, &file]);
        assert!(compiler.status().unwrap().success());
        program.display().to_string()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// As `why replay` says it.
fn status(output: &Output) -> Option<i32> {
    output.status.code().or(output.status.signal().map(|signal| 128 + signal))
}

/// The program of a fixture, which ends well natively.
fn race(name: &str) -> String {
    let fixture = fixture::named(&format!("races/{name}")).unwrap();
    let program = build::build(&fixture).unwrap();
    assert!(Command::new(&program).stdout(Stdio::null()).status().unwrap().success());
    program.display().to_string()
}

/// Finds the race, replays its recording, and records the same again with its seed.
fn is_found(name: &str, expected: i32, said: &str) {
    let (setting, program) = (Setting::new(), race(name));
    let found = setting.run(&["record", "--tries", TRIES, "--", &program]);
    assert_eq!(status(&found), Some(expected), "{}", text(&found.stderr));
    assert!(text(&found.stderr).contains(said), "{}", text(&found.stderr));
    assert!(found.stdout.is_empty());
    assert_eq!(setting.kept(), [format!("{}-1", file_name(&program))]);
    let first = setting.info();
    let replayed = setting.run(&["replay"]);
    assert_eq!(replayed.status.code(), Some(expected), "{}", text(&replayed.stderr));

    let seed = first["answer"]["manifest"]["seed"].to_string();
    let mut again = setting.why(&["record", "-o", "again", "--seed", &seed, "--", &program]);
    // As it was in the tries: what the C library executes depends on where output goes.
    let again = again.stdout(Stdio::null()).stderr(Stdio::null()).output().unwrap();
    assert_eq!(status(&again), Some(expected));
    let told = setting.run(&["info", "again", "--json"]);
    let second: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    for what in ["instructions", "events"] {
        let of = |info: &serde_json::Value| info["answer"]["manifest"]["finished"][what].clone();
        assert_eq!(of(&first), of(&second), "{what} with seed {seed}");
    }
    let replayed_again = setting.run(&["replay", "again"]);
    assert_eq!(replayed_again.status.code(), Some(expected));
    assert_eq!(text(&replayed_again.stdout), text(&replayed.stdout));
    assert_eq!(text(&replayed_again.stderr), text(&replayed.stderr));
}

fn file_name(program: &str) -> String {
    PathBuf::from(program).file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn a_lost_update_is_found() {
    is_found("lost_update", 1, "status 1");
}

#[test]
fn an_order_violation_is_found() {
    is_found("order_violation", 1, "status 1");
}

#[test]
fn an_atomicity_violation_is_found() {
    is_found("two_locks", 1, "status 1");
}

#[test]
fn a_use_after_free_is_found() {
    is_found("use_after_free", 128 + libc::SIGABRT, "SIGABRT");
}

#[test]
fn a_deadlock_is_found() {
    is_found("deadlock", 128 + libc::SIGKILL, "deadlock: all 3 threads wait for each other");
}

#[test]
fn a_double_checked_initialisation_is_found() {
    is_found("double_checked", 1, "status 1");
}

/// Whatever the schedule, these do what they do natively, and so do their replays.
#[test]
fn programs_without_races_are_not_changed() {
    let programs = [
        "atomics",
        "barrier_spinlock",
        "condvar",
        "eventfd_ping_pong",
        "fork_from_threads",
        "futex_requeue",
        "once",
        "pipe_threads",
        "rwlock",
        "semaphores",
        "spin_on_flag",
        "spin_yield",
        "tls",
    ];
    for name in programs {
        let fixture = fixture::named(&format!("threads/{name}")).unwrap();
        let program = build::build(&fixture).unwrap().display().to_string();
        let native = Command::new(&program).output().unwrap();
        for seed in ["1", "2", "3"] {
            let setting = Setting::new();
            let recorded = setting.run(&["record", "--seed", seed, "--", &program]);
            let replayed = setting.run(&["replay"]);
            for (how, output) in [("recorded", &recorded), ("replayed", &replayed)] {
                let said = text(&output.stderr);
                assert_eq!(status(output), status(&native), "{name} {how} with {seed}: {said}");
                assert_eq!(text(&output.stdout), text(&native.stdout), "{name} {how} with {seed}");
            }
        }
    }
}

#[test]
fn nothing_is_kept_when_nothing_fails() {
    let setting = Setting::new();
    let tried = setting.run(&["record", "--tries", "3", "--", "echo", "hello"]);
    assert_eq!(tried.status.code(), Some(0));
    assert_eq!(text(&tried.stderr), "why: none of 3 tries failed; nothing is kept\n");
    assert!(setting.kept().is_empty());
}

#[test]
fn every_try_reads_the_same_input() {
    let setting = Setting::new();
    fs::write(setting.directory.path().join("input"), "abc").unwrap();
    let input = fs::File::open(setting.directory.path().join("input")).unwrap();
    let script = "[ \"$(cat)\" = abc ]";
    let mut command = setting.why(&["record", "--tries", "3", "--", "sh", "-c", script]);
    let tried = command.stdin(input).output().unwrap();
    assert_eq!(tried.status.code(), Some(0), "{}", text(&tried.stderr));
}

#[test]
fn a_lock_that_nobody_will_release_is_a_deadlock() {
    let setting = Setting::new();
    let program = setting.compile(
        "forgets",
        "#include <pthread.h>
         static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
         static void *forgets(void *unused) { pthread_mutex_lock(&lock); return unused; }
         int main(void) {
             pthread_t thread;
             pthread_create(&thread, 0, forgets, 0);
             pthread_join(thread, 0);
             pthread_mutex_lock(&lock);
         }",
    );
    // The shell waits for it, which is no way out either.
    let script = format!("{program}; exit 0");
    let found = setting.run(&["record", "--seed", "1", "--", "sh", "-c", &script]);
    assert!(text(&found.stderr).contains("deadlock"), "{}", text(&found.stderr));
    assert_eq!(status(&found), Some(128 + libc::SIGKILL));
}

#[test]
fn who_waits_for_a_timer_is_in_no_deadlock() {
    let setting = Setting::new();
    let program = setting.compile(
        "timer",
        "#include <semaphore.h>
         #include <signal.h>
         #include <unistd.h>
         static sem_t rung;
         static void ring(int unused) { (void)unused; sem_post(&rung); }
         int main(void) {
             sem_init(&rung, 0, 0);
             signal(SIGALRM, ring);
             alarm(1);
             while (sem_wait(&rung)) {}
             return 3;
         }",
    );
    let recorded = setting.run(&["record", "--seed", "1", "--", &program]);
    assert_eq!(status(&recorded), Some(3), "{}", text(&recorded.stderr));
}

#[test]
fn a_run_that_takes_too_long_has_failed() {
    let setting = Setting::new();
    let program = setting.compile("spins", "int main(void) { for (;;) __asm__ volatile(\"\"); }");
    let began = Instant::now();
    let tried = setting.run(&["record", "--tries", "5", "--timeout", "0.5", "--", &program]);
    assert!(text(&tried.stderr).contains("time limit"), "{}", text(&tried.stderr));
    assert_eq!(status(&tried), Some(128 + libc::SIGKILL));
    assert!(began.elapsed() < Duration::from_secs(30));
    assert_eq!(setting.run(&["replay"]).status.code(), Some(128 + libc::SIGKILL));
}

#[test]
fn an_interrupt_ends_all_tries_and_leaves_nothing() {
    let setting = Setting::new();
    let mut command = Command::new(WHY);
    command.args(["record", "--tries", "1000", "--", "sh", "-c", "trap '' INT; sleep 0.2"]);
    command.env("WHY_DIR", setting.recordings()).stderr(Stdio::piped());
    let tried = interruptible(&mut command).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    // SAFETY: plain system call; the child has not been waited for.
    unsafe { libc::kill(tried.id() as i32, libc::SIGINT) };
    let ended = tried.wait_with_output().unwrap();
    assert_eq!(ended.status.signal(), Some(libc::SIGINT));
    assert!(text(&ended.stderr).contains("interrupted in try"), "{}", text(&ended.stderr));
    assert!(setting.kept().is_empty());
}

#[test]
fn misuse_is_said_in_one_line() {
    let setting = Setting::new();
    for arguments in [
        &["--tries", "0"][..],
        &["--tries", "many"],
        &["--seed", "-1"],
        &["--seed", "1", "--chaos"],
        &["--chaos", "x"],
        &["--timeout", "5"],
        &["--tries", "2", "--timeout", "0"],
        &["--tries", "2", "--timeout", "soon"],
    ] {
        let mut all = vec!["record"];
        all.extend(arguments);
        all.extend(["--", "true"]);
        let refused = setting.run(&all);
        assert_eq!(refused.status.code(), Some(125), "{arguments:?}");
        let said = text(&refused.stderr);
        assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
        assert!(said.starts_with("why: "), "{arguments:?}: {said}");
    }
    assert!(setting.kept().is_empty());
}
