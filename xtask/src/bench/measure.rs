//! One execution of one program: its costs, and a fingerprint of all it produced.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::programs::Program;
use crate::process::{self, Finished};
use crate::workspace;

/// Where an execution happens; emptied before each.
pub struct Place {
    pub work: PathBuf,
    pub stdout: PathBuf,
    pub stderr: PathBuf,
    pub cache: PathBuf,
}

pub struct Execution {
    pub finished: Finished,
    /// Of standard output, standard error and every file left behind.
    pub fingerprint: u64,
}

pub fn execute(
    program: &Program,
    prefix: &[&std::ffi::OsStr],
    place: &Place,
    limit: Duration,
) -> io::Result<Execution> {
    workspace::fresh(&place.work)?;
    if let Some(files) = &program.files {
        for entry in fs::read_dir(files)? {
            let entry = entry?;
            fs::copy(entry.path(), place.work.join(entry.file_name()))?;
        }
    }
    let words: Vec<_> =
        prefix.iter().copied().chain(program.command.iter().map(|w| w.as_os_str())).collect();
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .current_dir(&place.work)
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("WHY_")))
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", &place.work)
        .env("LC_ALL", "C")
        .env("WHY_CACHE_DIR", &place.cache)
        .stdin(Stdio::null())
        .stdout(File::create(&place.stdout)?)
        .stderr(File::create(&place.stderr)?);
    if program.one_core {
        // SAFETY: sched_setaffinity is a bare system call, safe between fork and exec.
        unsafe { command.pre_exec(pin) };
    }
    let finished = process::run(&mut command, limit)?;
    let mut hasher = DefaultHasher::new();
    fs::read(&place.stdout)?.hash(&mut hasher);
    fs::read(&place.stderr)?.hash(&mut hasher);
    hash_files(&place.work, &mut hasher)?;
    Ok(Execution { finished, fingerprint: hasher.finish() })
}

/// To the core it happens to be on.
fn pin() -> io::Result<()> {
    // SAFETY: a set of bits, for which zeroes are a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel numbers cores below the size of the set; the pointer is
    // to a live set of the size given.
    let done = unsafe {
        libc::CPU_SET(libc::sched_getcpu().max(0) as usize, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn hash_files(directory: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    let mut paths = fs::read_dir(directory)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        path.file_name().hash(hasher);
        if path.is_dir() {
            hash_files(&path, hasher)?;
        } else {
            fs::read(&path)?.hash(hasher);
        }
    }
    Ok(())
}
