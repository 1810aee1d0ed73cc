//! Compressors, there and back again.

use crate::Program;
use crate::data::{bash, text};
use crate::support::job::Job;

pub const PROGRAMS: &[Program] = &[
    Program::new("gzip", gzip),
    Program::new("bzip2", bzip2),
    Program::new("xz", xz_with_two_threads),
];

fn gzip() -> Result<Job, String> {
    Ok(round_trip("gzip -n -9", "gzip -d"))
}

fn bzip2() -> Result<Job, String> {
    Ok(round_trip("bzip2 -9", "bzip2 -d"))
}

fn xz_with_two_threads() -> Result<Job, String> {
    // Blocks small enough that both threads get some.
    Ok(round_trip("xz -T2 --block-size=256KiB -3", "xz -d -T2"))
}

fn round_trip(pack: &str, unpack: &str) -> Job {
    bash(&format!(
        "{pack} < words > packed; {unpack} < packed | cmp - words && echo same; wc -c < packed\n\
         head -c 1000 packed | {unpack} > /dev/null 2>&1 || echo \"cut off: $?\"\n"
    ))
    .file("words", text(40_000))
}
