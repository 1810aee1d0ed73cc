//! Input for the jobs: the same in every run.

use crate::support::job::Job;

const WORDS: [&str; 16] = [
    "alder", "birch", "cedar", "dogwood", "elm", "fir", "ginkgo", "hazel", "ivy", "juniper",
    "larch", "maple", "oak", "pine", "rowan", "willow",
];

/// Lines of words and numbers that look random and compress to about a quarter.
pub fn text(lines: usize) -> String {
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = || {
        // Marsaglia's xorshift.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut text = String::new();
    for _ in 0..lines {
        let (a, b, number) = (next() as usize, next() as usize, next() % 100_000);
        text += &format!("{} {} {number}\n", WORDS[a % 16], WORDS[b % 16]);
    }
    text
}

/// A job that is a script for bash; an error ends it. Without `pipefail`: whether
/// the first part of `sort | head` meets a closed pipe is a matter of luck.
pub fn bash(script: &str) -> Job {
    let script = format!("#!/bin/bash\nset -eu\n{script}");
    Job::new("/bin/bash").args(["job.sh"]).file("job.sh", script)
}
