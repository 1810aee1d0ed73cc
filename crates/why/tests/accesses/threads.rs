//! Each access of a replay is told with the thread that was recorded: the program itself says
//! which of its threads writes where.

use std::collections::BTreeSet;
use std::fs;

use libtest_mimic::Failed;
use tempfile::TempDir;

use crate::support::job::Job;
use crate::support::package;
use crate::support::{recording, retraced, run};

/// Threads that write to a cell of their own often enough to be interrupted; then the program
/// writes who they were, and where their cells are.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 4, TURNS = 300000 };
static volatile long cells[THREADS][64];
static long thread_of[THREADS];

static void *work(void *number) {
    long own = (long)number;
    thread_of[own] = syscall(SYS_gettid);
    for (long turn = 0; turn < TURNS; turn++)
        cells[own][turn % 64] = turn;
    return 0;
}

int main(void) {
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], 0);
    for (int i = 0; i < THREADS; i++)
        printf("%ld %p\n", thread_of[i], (void *)cells[i]);
}
"#;

const TURNS: usize = 300_000;
const CELLS: u64 = 64 * 8;

pub fn test() -> Result<(), Failed> {
    let directory = TempDir::new()?;
    let file = |name: &str| directory.path().join(name);
    fs::write(file("threads.c"), PROGRAM)?;
    let mut compiler = std::process::Command::new(package::find("cc")?);
    compiler.args(["-O1", "-pthread", "-o"]).args([file("threads"), file("threads.c")]);
    if !compiler.status()?.success() {
        return Err("the program cannot be compiled".into());
    }
    let path = file("recording");
    let recorded = run::run(&recording::recorder(&Job::new(file("threads")), &path, &[]))?;
    let option = format!("--accesses={}", file("accesses").display());
    let (replayed, answer) = retraced::retrace(&path, &[&option])?;
    recording::same(&recorded, &replayed)?;
    answer.check(&recording::executed(&path)?)?;
    let accesses = fs::read_to_string(file("accesses"))?;
    for line in String::from_utf8_lossy(&recorded.stdout).lines() {
        let (thread, cell) = line.split_once(' ').ok_or("not `THREAD ADDRESS`")?;
        let cell = u64::from_str_radix(cell.trim_start_matches("0x"), 16)?;
        let (writers, writes) = writes_to(&accesses, cell..cell + CELLS)?;
        if writers != BTreeSet::from([thread]) || writes != TURNS {
            return Err(format!("{writers:?} wrote {writes} times, not {thread} {TURNS}").into());
        }
    }
    Ok(())
}

/// Who wrote to a range, and how often.
fn writes_to(
    accesses: &str,
    range: std::ops::Range<u64>,
) -> Result<(BTreeSet<&str>, usize), String> {
    let mut writers = BTreeSet::new();
    let mut writes = 0;
    for line in accesses.lines() {
        let access = crate::access::parse(line)?;
        if range.contains(&access.address) && access.kind == crate::access::Kind::Written {
            writers.extend(line.split(' ').next());
            writes += 1;
        }
    }
    Ok((writers, writes))
}
