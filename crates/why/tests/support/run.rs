//! Runs a job in a fresh directory and collects everything it leaves.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::personality::{self, Persona};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{Gid, Uid};
use tempfile::TempDir;

use crate::support::build::target_dir;
use crate::support::job::{Before, Job};
use crate::support::leftover::{self, Mark};
use crate::support::outcome::{Ended, Outcome, files_below};
use crate::support::process::heed_keyboard;
use crate::support::seccomp;

/// The outcome; Err if it could not be started or left a process behind.
pub fn run(job: &Job) -> Result<Outcome, String> {
    let (outcome, directory) = run_to_the_letter(job)?;
    Ok(without_directory(outcome, &directory))
}

/// The outcome as it was, and the directory that it names, which is gone.
pub fn run_to_the_letter(job: &Job) -> Result<(Outcome, PathBuf), String> {
    let dir = fresh_dir(job)?;
    let mark = Mark::new();
    let group = Group::new()?;
    let mut command = command(job, dir.path(), &mark);
    command.process_group(group.id());
    let (mut child, streams) = start(&mut command, job)?;
    let ended = wait(&mut child, job.limit, &mark).map_or(Ended::TimedOut, Ended::from);
    // Before the streams are read to their end: a process left behind holds them open.
    let left = leftover::none_left(&mark);
    let (stdout, stderr) = streams.collect();
    let files = files_below(dir.path());
    let outcome = Outcome { ended, stdout, stderr, files };
    if outcome.ended == Ended::TimedOut {
        return Err(format!(
            "no end within {} s; standard output so far: {:?}, standard error: {:?}",
            job.limit.as_secs(),
            tail(&outcome.stdout),
            tail(&outcome.stderr)
        ));
    }
    left?;
    Ok((outcome, dir.path().to_owned()))
}

/// The same wherever it was.
pub fn without_directory(outcome: Outcome, directory: &Path) -> Outcome {
    let path = directory.as_os_str().as_encoded_bytes();
    outcome.map(|text| replace(text, path, b"{dir}"))
}

/// The command with the fixed environment of every run. The program that a
/// caller starts from it itself (in a pty, say) bears the same marks.
pub fn command(job: &Job, dir: &Path, mark: &Mark) -> Command {
    let mut command = Command::new(&job.program);
    command
        .args(&job.args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .env("HOME", dir)
        .env("TMPDIR", dir)
        .env("LC_ALL", "C.UTF-8")
        .env("TZ", "UTC")
        // Outside the working directory: what is cached for later is no result.
        .env("XDG_CACHE_HOME", target_dir().join("fixtures/cache"))
        .env(leftover::VARIABLE, &mark.value)
        .envs(job.env.iter().map(|(name, value)| (name, value)));
    let mark = mark.clone();
    let before = job.before.clone();
    let prepare = move || {
        mark.set_limit()?;
        heed_keyboard()?;
        // A core file would be one more file to compare, and holds addresses.
        let (_, hard) = getrlimit(Resource::RLIMIT_CORE)?;
        setrlimit(Resource::RLIMIT_CORE, 0, hard)?;
        before.iter().try_for_each(|step| change(*step))
    };
    // SAFETY: between fork and exec the closure makes system calls only; it takes
    // no lock and allocates nothing.
    unsafe { command.pre_exec(prepare) };
    command
}

fn change(step: Before) -> io::Result<()> {
    match step {
        Before::NoRandomLayout => {
            let now = personality::get()?;
            personality::set(now | Persona::ADDR_NO_RANDOMIZE)?;
        }
        Before::Cores => {
            let (_, hard) = getrlimit(Resource::RLIMIT_CORE)?;
            setrlimit(Resource::RLIMIT_CORE, hard, hard)?;
        }
        Before::ContainerFilter => seccomp::refuse_like_a_container()?,
        Before::Nobody => {
            nix::unistd::setgroups(&[])?;
            let (gid, uid) = (Gid::from_raw(65534), Uid::from_raw(65534));
            nix::unistd::setresgid(gid, gid, gid)?;
            nix::unistd::setresuid(uid, uid, uid)?;
        }
    }
    Ok(())
}

/// Names of equal length, so that a program sees the same stack in every run.
/// Open to all: a job may run as somebody else.
pub fn fresh_dir(job: &Job) -> Result<TempDir, String> {
    let make = || -> io::Result<TempDir> {
        let dir = tempfile::Builder::new().prefix("why-").tempdir()?;
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777))?;
        for (name, content) in &job.files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().expect("it is below the directory"))?;
            fs::write(&path, content)?;
            let mode = if content.starts_with(b"#!") { 0o755 } else { 0o644 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        }
        Ok(dir)
    };
    make().map_err(|error| format!("the working directory: {error}"))
}

/// A process group that is not the harness's (a fixture may signal its own) and
/// that the program does not lead: under `why` it would not lead it either, and
/// the leader of a group may not call setsid.
struct Group(Child);

impl Group {
    fn new() -> Result<Group, String> {
        // It ends with its standard input, also when the harness is killed.
        Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()
            .map(Group)
            .map_err(|error| format!("cat: {error}"))
    }

    fn id(&self) -> i32 {
        self.0.id().cast_signed()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It may have been killed by a signal to the whole group.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The other ends of a child's three pipes.
pub struct Streams {
    stdin: Option<JoinHandle<()>>,
    stdout: JoinHandle<Vec<u8>>,
    stderr: JoinHandle<Vec<u8>>,
}

/// Starts a command on pipes. Everything that is compared starts this way: a
/// program does other things on a terminal, a device or a file.
pub fn start(command: &mut Command, job: &Job) -> Result<(Child, Streams), String> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(if job.stdin.is_empty() {
        Stdio::null()
    } else {
        Stdio::piped()
    });
    let mut child =
        command.spawn().map_err(|error| format!("{}: {error}", job.program.display()))?;
    let streams = Streams {
        stdin: child.stdin.take().map(|pipe| feed(pipe, job.stdin.clone())),
        stdout: drain(child.stdout.take()),
        stderr: drain(child.stderr.take()),
    };
    Ok((child, streams))
}

impl Streams {
    /// Standard output and standard error, when nobody holds them open any more.
    pub fn collect(self) -> (Vec<u8>, Vec<u8>) {
        if let Some(feeder) = self.stdin {
            feeder.join().expect("the feeder only writes");
        }
        let collected = |reader: JoinHandle<Vec<u8>>| reader.join().expect("the reader only reads");
        (collected(self.stdout), collected(self.stderr))
    }
}

fn feed(mut pipe: impl Write + Send + 'static, text: Vec<u8>) -> JoinHandle<()> {
    thread::spawn(move || {
        // A program need not read all of its input.
        let _ = pipe.write_all(&text);
    })
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut text = Vec::new();
        let mut pipe = pipe.expect("the stream is a pipe");
        pipe.read_to_end(&mut text).expect("a pipe can be read");
        text
    })
}

/// Waits for its end; at the time limit it and all its descendants are killed, and
/// the answer is None.
pub fn wait(child: &mut Child, limit: Duration, mark: &Mark) -> Option<ExitStatus> {
    let started = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if started.elapsed() > limit => {
                mark.kill_all();
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
            Ok(None) => {
                thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(20));
            }
            Err(error) => panic!("waiting for a child: {error}"),
        }
    }
}

fn tail(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[text.len().saturating_sub(500)..]).into_owned()
}

fn replace(text: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    let pattern = regex::escape(&String::from_utf8_lossy(from));
    let pattern = regex::bytes::Regex::new(&pattern).expect("an escaped text is a pattern");
    pattern.replace_all(&text, regex::bytes::NoExpand(to)).into_owned()
}
