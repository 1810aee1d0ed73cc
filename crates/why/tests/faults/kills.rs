//! `kill -9` at random moments.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::leftover::{self, Mark, none_left};
use crate::support::process::child_of;
use crate::support::random::Random;
use crate::support::recorded::{Setting, is_beginning, said_in_one_line, text};

const MOMENTS: usize = 50;
const LATEST: usize = 400;

/// Threads that count together and say so, for ever.
const THREADED: &str = "
    #include <pthread.h>
    #include <stdio.h>
    #include <unistd.h>
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static volatile long shared, number;
    static void *count(void *unused) {
        for (;;) {
            for (int i = 0; i < 20000; i++) shared++;
            pthread_mutex_lock(&lock);
            printf(\"%ld after %ld\\n\", number++, shared);
            fflush(stdout);
            pthread_mutex_unlock(&lock);
        }
        return unused;
    }
    int main(void) {
        pthread_t threads[3];
        for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, count, 0);
        count(0);
    }";

/// Processes that come and go, for ever; each says who it is.
const FORKING: &str = "
    #include <stdio.h>
    #include <sys/wait.h>
    #include <unistd.h>
    int main(void) {
        for (int number = 0;; number++) {
            printf(\"%d begins\\n\", number);
            fflush(stdout);
            for (int child = 0; child < 2; child++) {
                if (fork() == 0) {
                    printf(\"child %d of %d is %d\\n\", child, number, getpid());
                    fflush(stdout);
                    _exit(child);
                }
            }
            while (wait(0) > 0) {}
        }
    }";

#[derive(Clone, Copy, Debug)]
enum Victim {
    /// The program alone: the recording is whole.
    Target,
    /// What the user started.
    Recorder,
    /// The process behind it that writes the recording.
    Supervisor,
    TargetAndRecorder,
}

#[test]
fn whoever_is_killed_while_threads_run() {
    // They take turns with writing.
    kill_at_random_moments(THREADED, &|output, replayed| {
        is_beginning(output, replayed)?;
        Ok(output.lines().count() - replayed.lines().count())
    });
}

#[test]
fn whoever_is_killed_while_processes_fork() {
    // Of two that write at the same time, nobody can tell who was first.
    kill_at_random_moments(FORKING, &|output, replayed| {
        let mut written: Vec<&str> = output.lines().collect();
        for line in replayed.lines() {
            let at = written.iter().position(|other| *other == line);
            written.swap_remove(at.ok_or_else(|| format!("nobody wrote {line}"))?);
        }
        Ok(written.len())
    });
}

/// How many lines of what was written are missing where it is replayed; or what else is
/// wrong with those.
type Missing = dyn Fn(&str, &str) -> Result<usize, String>;

/// So many writes may have been made when the processes were killed, and not been seen.
const UNSEEN: usize = 3;

fn kill_at_random_moments(source: &str, missing: &Missing) {
    let setting = Setting::new();
    setting.compile("program", source);
    let mut random = Random::new();
    use Victim::{Recorder, Supervisor, Target, TargetAndRecorder};
    let mut replayed = 0;
    for _ in 0..MOMENTS {
        let victim = *random.one_of(&[Target, Recorder, Supervisor, TargetAndRecorder]);
        let moment = Duration::from_millis(random.below(LATEST) as u64);
        println!("{victim:?} after {moment:?}");
        replayed += usize::from(kill_one(&setting, victim, moment, missing));
        let _ = fs::remove_dir_all(setting.path("rec"));
    }
    assert!(replayed > MOMENTS / 3, "only {replayed} recordings had anything in them");
}

/// Whether anything of the run could be replayed.
fn kill_one(setting: &Setting, victim: Victim, moment: Duration, missing: &Missing) -> bool {
    let mark = Mark::new();
    let mut command = setting.why(&["record", "-o", "rec", "--", "./program"]);
    command.env(leftover::VARIABLE, &mark.value);
    command.stdout(File::create(setting.path("output")).unwrap()).stderr(Stdio::piped());
    let in_child = mark.clone();
    // SAFETY: it only sets a limit, by a plain system call.
    unsafe { command.pre_exec(move || in_child.set_limit()) };
    let recorder = command.spawn().unwrap();
    thread::sleep(moment);

    let pid = recorder.id() as i32;
    let supervisor = child_of(pid);
    let target = supervisor.and_then(child_of);
    let kill = |pid: Option<i32>| pid.is_some_and(|pid| kill_now(pid).is_ok());
    let target_killed = match victim {
        Victim::Target if kill(target) => true,
        // There was none yet, or it was on its way to become one.
        Victim::Target => !kill(Some(pid)),
        Victim::Recorder => !kill(Some(pid)),
        Victim::Supervisor => !kill(supervisor.or(Some(pid))),
        Victim::TargetAndRecorder => {
            // The end of the one may have been written before the other's.
            let killed = kill(target);
            kill(Some(pid));
            killed
        }
    };
    let ended = recorder.wait_with_output().unwrap();
    none_left(&mark).unwrap();

    let output = fs::read_to_string(setting.path("output")).unwrap();
    let replay = setting.run(&["replay", "rec"]);
    let replayed = text(&replay.stdout);
    let context = || format!("replay said {}", text(&replay.stderr));
    let missing = missing(&output, &replayed).unwrap_or_else(|how| panic!("{how}; {}", context()));
    match (target_killed, replay.status.code()) {
        (true, Some(137)) => {
            assert_eq!(ended.status.signal(), Some(9), "{}", text(&ended.stderr));
            assert!(missing <= UNSEEN, "{missing} lines are missing");
            assert!(replay.stderr.is_empty(), "{}", context());
            true
        }
        (_, code) => {
            assert_eq!(code, Some(125), "{}", context());
            said_in_one_line(&replay.stderr, "");
            let said = context();
            let known = ["cut short", "no recording", "cannot run", "was killed"];
            assert!(known.iter().any(|words| said.contains(words)), "{said}");
            said.contains("it ends after event")
        }
    }
}

fn kill_now(pid: i32) -> nix::Result<()> {
    kill(Pid::from_raw(pid), Signal::SIGKILL)
}
