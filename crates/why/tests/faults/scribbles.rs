//! A program that writes over the engine's own data in its memory: the context page and the
//! log of calls. It may do anything to itself, and nothing to the supervisor.

use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::leftover::{self, Mark, none_left};
use crate::support::process::child_of;
use crate::support::random::{Random, turns};
use crate::support::recorded::Setting;

/// How often, unless `WHY_TURNS` says more.
const TURNS: usize = 40;

/// Threads that make calls of all kinds, for ever.
const BUSY: &str = "
    #include <pthread.h>
    #include <time.h>
    #include <unistd.h>
    #include <fcntl.h>
    #include <sys/mman.h>
    static void *work(void *unused) {
        int zero = open(\"/dev/zero\", O_RDONLY);
        for (volatile long i = 0;; i++) {
            char bytes[300];
            struct timespec now;
            for (volatile int j = 0; j < 1000; j++) {}
            read(zero, bytes, sizeof bytes);
            clock_gettime(CLOCK_MONOTONIC, &now);
            if (i % 64 == 0) munmap(mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
        }
        return unused;
    }
    int main(void) {
        pthread_t thread;
        pthread_create(&thread, 0, work, 0);
        work(0);
    }";

#[test]
fn a_recorded_program_cannot_harm_its_supervisor() {
    let setting = Setting::new();
    setting.compile("busy", BUSY);
    let mut random = Random::new();
    for turn in 0..turns(TURNS) {
        scribble_on(&setting, &["record", "-o", "rec", "--", "./busy"], turn, &mut random);
        let _ = fs::remove_dir_all(setting.path("rec"));
    }
}

#[test]
fn a_replayed_program_cannot_harm_its_supervisor() {
    let setting = Setting::new();
    setting.compile("busy", BUSY);
    let mut recorder = setting.why(&["record", "-o", "rec", "--", "./busy"]).spawn().unwrap();
    thread::sleep(Duration::from_secs(2));
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let mut random = Random::new();
    for turn in 0..turns(TURNS) {
        scribble_on(&setting, &["replay", "rec"], turn, &mut random);
    }
}

/// Runs `why`, writes over the engine's data, ends the target, and sees `why` end.
fn scribble_on(setting: &Setting, words: &[&str], turn: usize, random: &mut Random) {
    let mark = Mark::new();
    let mut command = setting.why(words);
    command.env(leftover::VARIABLE, &mark.value).stdout(Stdio::null()).stderr(Stdio::piped());
    let in_child = mark.clone();
    // SAFETY: it only sets a limit, by a plain system call.
    unsafe { command.pre_exec(move || in_child.set_limit()) };
    let mut why = command.spawn().unwrap();
    let target = target_of(&mut why);
    thread::sleep(Duration::from_millis(random.below(150) as u64));
    for _ in 0..1 + random.below(3) {
        if let Some(written) = target.and_then(|target| scribble(target, random)) {
            println!("{turn}: {written}");
        }
        thread::sleep(Duration::from_millis(random.below(40) as u64));
    }
    if let Some(target) = target {
        // It may be over already.
        let _ = kill(Pid::from_raw(target), Signal::SIGKILL);
    }
    let said = said_at_end(&mut why);
    assert!(said.lines().count() <= 1 && !said.contains("defect"), "{said}");
    none_left(&mark).unwrap();
}

/// The target once it is prepared; none if all is over before.
fn target_of(why: &mut Child) -> Option<i32> {
    let deadline = Instant::now() + Duration::from_secs(30);
    while why.try_wait().unwrap().is_none() {
        let target = child_of(why.id() as i32).and_then(child_of);
        if target.and_then(engines_own).is_some() {
            return target;
        }
        assert!(Instant::now() < deadline, "the target does not begin");
        thread::sleep(Duration::from_millis(5));
    }
    None
}

fn said_at_end(why: &mut Child) -> String {
    let deadline = Instant::now() + Duration::from_secs(30);
    while why.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "the supervisor does not end with its target");
        thread::sleep(Duration::from_millis(5));
    }
    let mut said = String::new();
    why.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    said
}

/// Writes somewhere; none if the target is gone, or has nothing to write to yet.
fn scribble(target: i32, random: &mut Random) -> Option<String> {
    let memory = File::options().write(true).open(format!("/proc/{target}/mem")).ok()?;
    let (context, log) = engines_own(target)?;
    let at = match random.below(8) {
        // Slots, counts, sizes, watched descriptors; classes of calls; the log.
        0..=5 => context.start + 8 * random.below(0x800 / 8) as u64,
        6 => context.start + random.below((context.end - context.start) as usize) as u64,
        _ => log.start + random.below(1 << 20) as u64,
    };
    let length = *random.one_of(&[8, 8, 8, 64, 1024]);
    let word = *random.one_of(&[0, 1, u64::MAX, i64::MAX as u64, 1 << 63, log.start + 7]);
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let random_word = random.number();
        bytes.extend(random.one_of(&[word, word, random_word]).to_le_bytes());
    }
    memory.write_all_at(&bytes, at).ok()?;
    Some(format!("{length} bytes like {word:#x} at {at:#x}, context {:#x}", context.start))
}

/// The memory of the context, right before the table of targets, and of the log.
fn engines_own(target: i32) -> Option<(Range<u64>, Range<u64>)> {
    let maps = fs::read_to_string(format!("/proc/{target}/maps")).ok()?;
    let range = |line: &str| {
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(number(start)?..number(end)?)
    };
    let targets = range(maps.lines().find(|line| line.contains("/memfd:targets"))?)?;
    let log = range(maps.lines().find(|line| line.contains("/memfd:log"))?)?;
    let context = maps.lines().filter_map(range).find(|other| other.end == targets.start)?;
    Some((context, log))
}
