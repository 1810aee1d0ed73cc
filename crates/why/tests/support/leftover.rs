//! Which processes of a run are still there.
//!
//! Each run carries two marks that its descendants inherit: a variable in the
//! environment, and an odd soft limit on file locks, which no kernel has looked at
//! for twenty years. The limit survives also a cleared environment, a new session
//! and a change of directory.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

pub const VARIABLE: &str = "WHY_TEST_RUN";

/// How long the kernel may take to bury what has ended.
const GRACE: Duration = Duration::from_secs(3);

/// Marks one run; its value is unique on this machine for as long as it matters.
#[derive(Clone, Debug)]
pub struct Mark {
    pub value: String,
    limit: u64,
}

#[derive(Debug)]
pub struct Process {
    pub pid: Pid,
    pub command: String,
}

impl Mark {
    pub fn new() -> Mark {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let harness = u64::from(std::process::id());
        // Equal width, so that the stack of a marked program has the same layout
        // in every run and its instruction count does not vary.
        Mark { value: format!("{harness:08x}-{number:08x}"), limit: harness << 32 | number }
    }

    /// To be called in the child before it executes the program.
    pub fn set_limit(&self) -> io::Result<()> {
        let (_, hard) = getrlimit(Resource::RLIMIT_LOCKS)?;
        setrlimit(Resource::RLIMIT_LOCKS, self.limit, hard)?;
        Ok(())
    }

    /// The processes that still bear the mark after a short grace.
    pub fn leftovers(&self) -> Vec<Process> {
        let deadline = Instant::now() + GRACE;
        loop {
            let alive = self.alive();
            if alive.is_empty() || Instant::now() > deadline {
                return alive;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills what bears the mark, until nothing does: a forking program is
    /// caught in the next round.
    pub fn kill_all(&self) {
        for _ in 0..200 {
            let alive = self.alive();
            if alive.is_empty() {
                return;
            }
            for process in alive {
                // It may have ended since; that is what is wanted.
                let _ = kill(process.pid, Signal::SIGKILL);
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn alive(&self) -> Vec<Process> {
        fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|&pid| self.is_on(pid) && !has_ended(pid))
            .map(|pid| Process { pid: Pid::from_raw(pid), command: command(pid) })
            .collect()
    }

    fn is_on(&self, pid: i32) -> bool {
        let variable = format!("{VARIABLE}={}", self.value);
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|entry| entry == variable.as_bytes())
            || soft_limit(pid) == Some(self.limit)
    }
}

/// Says what was left, and kills it: the next test must not suffer from it.
pub fn none_left(mark: &Mark) -> Result<(), String> {
    let left = mark.leftovers();
    if left.is_empty() {
        return Ok(());
    }
    mark.kill_all();
    let names: Vec<String> =
        left.iter().map(|process| format!("{} ({})", process.pid, process.command)).collect();
    Err(format!("left behind: {}", names.join(", ")))
}

fn soft_limit(pid: i32) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A zombie has ended; it only waits for its parent to notice.
fn has_ended(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next());
    matches!(state, None | Some("Z" | "X"))
}

fn command(pid: i32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text: Vec<_> = bytes.split(|&byte| byte == 0).map(String::from_utf8_lossy).collect();
    text.join(" ").trim().to_string()
}
