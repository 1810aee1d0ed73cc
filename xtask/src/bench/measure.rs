//! One execution of one program: its costs, and fingerprints of all it produced.

use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::peer::Peer;
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
    /// Fingerprints of what was written.
    pub stdout: u64,
    pub stderr: u64,
    /// One of every file left behind.
    pub files: u64,
    /// What went wrong on the other side of a program that serves.
    pub peer_failed: Option<String>,
}

/// Executes a command with copies of these files around it.
pub fn execute(
    words: &[OsString],
    one_core: bool,
    files: Option<&Path>,
    peer: Option<&Peer>,
    place: &Place,
    limit: Duration,
) -> io::Result<Execution> {
    workspace::fresh(&place.work)?;
    if let Some(files) = files {
        for entry in fs::read_dir(files)? {
            let entry = entry?;
            fs::copy(entry.path(), place.work.join(entry.file_name()))?;
        }
    }
    let mut command = Command::new(&words[0]);
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
    if one_core {
        // SAFETY: sched_setaffinity is a bare system call, safe between fork and exec.
        unsafe { command.pre_exec(pin) };
    }
    let (finished, asked) = thread::scope(|scope| {
        let asking = peer.map(|peer| scope.spawn(|| peer.ask(&place.work)));
        let finished = process::run(&mut command, limit);
        (finished, asking.map(|asking| asking.join().expect("asking does not panic")))
    });
    let mut files = DefaultHasher::new();
    hash_files(&place.work, &mut files)?;
    Ok(Execution {
        finished: finished?,
        stdout: hash_of(&place.stdout)?,
        stderr: hash_of(&place.stderr)?,
        files: files.finish(),
        peer_failed: asked.and_then(Result::err),
    })
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

fn hash_of(path: &Path) -> io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    hash_file(path, &mut hasher)?;
    Ok(hasher.finish())
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
            hash_file(&path, hasher)?;
        }
    }
    Ok(())
}

/// Piece by piece: a copy may be larger than memory.
fn hash_file(path: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            n => hasher.write(&buffer[..n]),
        }
    }
    file.metadata()?.len().hash(hasher);
    Ok(())
}
