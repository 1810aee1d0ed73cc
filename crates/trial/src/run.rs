//! One test: a fresh directory, a process, what it wrote, and an end for all that it started.

use crate::call::Call;
use crate::condition::Facts;
use crate::fault::Images;
use crate::files::Files;
use crate::message::Spec;
use crate::orphans::end_all;
use crate::room::TestDirectory;
use crate::seen::{Ended, Seen};
use crate::telling::telling_line;
use crate::tracer::Tracer;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::ptrace;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, setsid};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// More than this of one stream is no program's intention.
const MOST_OUTPUT: usize = 64 << 20;

pub enum Happened {
    Seen(Seen),
    /// Something came over the control pipe, or its other end is gone.
    Interrupted,
}

/// Runs the test in a directory below the room, unless something comes over the control pipe
/// meanwhile. It is traced if there is somewhere to look up functions.
pub fn run(
    spec: &Spec,
    files: &Files,
    limit: Duration,
    room: &Path,
    images: Option<&mut Images>,
    control: impl AsFd,
) -> io::Result<Happened> {
    let cannot = |error: io::Error| {
        let what = format!("cannot write a candidate below {}: {error}", room.display());
        io::Error::new(error.kind(), format!("{what}; TMPDIR says where else to write it"))
    };
    let directory = TestDirectory::new(room).map_err(cannot)?;
    let call = spec.prepare(files, directory.path()).map_err(cannot)?;
    let start = Instant::now();
    let mut child = spawn(&call, spec.memory, directory.path(), images.is_some())?;
    let group = Pid::from_raw(child.id() as i32);
    let mut tracer = images.map(|images| Tracer::new(group, images)).transpose()?;
    let watched = watch(&mut child, tracer.as_mut(), start + limit, control.as_fd());
    end_all(group);
    let Watched { end, stdout, stderr } = watched?;
    let End::Ended(ended) = end else { return Ok(Happened::Interrupted) };
    let time = start.elapsed();
    let facts = Facts {
        ended,
        stdout: &stdout,
        stderr: &stderr,
        seconds: time.as_secs_f64(),
        directory: directory.path(),
    };
    Ok(Happened::Seen(Seen {
        ended,
        function: tracer.and_then(|tracer| tracer.function),
        message: telling_line(&stderr, directory.path()),
        milliseconds: time.as_millis() as u64,
        holds: spec.condition.as_ref().map(|condition| condition.holds(&facts)),
    }))
}

fn spawn(call: &Call, memory: Option<u64>, directory: &Path, traced: bool) -> io::Result<Child> {
    let words = &call.words;
    let input = match &call.input {
        Some(path) => File::open(path)?.into(),
        None => Stdio::null(),
    };
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(directory).stdin(input);
    command.envs(call.variable.iter().map(|(name, value)| (name, value)));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: what runs between fork and exec only makes system calls.
    unsafe {
        command.pre_exec(move || {
            setsid()?;
            setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
            if let Some(bytes) = memory {
                setrlimit(Resource::RLIMIT_AS, bytes, bytes)?;
            }
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
            SigSet::empty().thread_set_mask()?;
            if traced {
                // Where that is forbidden it is not known in which function it ends.
                let _ = ptrace::traceme();
            }
            Ok(())
        });
    }
    let cannot = |error: io::Error| {
        let what = words[0].to_string_lossy();
        let advice = match error.kind() {
            io::ErrorKind::PermissionDenied => "; is it executable (chmod +x)?",
            _ => "",
        };
        io::Error::new(error.kind(), format!("cannot start {what}: {error}{advice}"))
    };
    command.spawn().map_err(cannot)
}

struct Watched {
    end: End,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

enum End {
    Ended(Ended),
    Interrupted,
}

/// Collects what the process writes until it has ended, or it or we run out of patience.
fn watch(
    child: &mut Child,
    mut tracer: Option<&mut Tracer>,
    deadline: Instant,
    control: impl AsFd,
) -> io::Result<Watched> {
    let mut stdout = Stream::new(File::from(OwnedFd::from(child.stdout.take().expect("piped"))))?;
    let mut stderr = Stream::new(File::from(OwnedFd::from(child.stderr.take().expect("piped"))))?;
    let process = pidfd(child.id())?;
    let end = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break End::Ended(Ended::TimedOut);
        }
        let timeout = PollTimeout::try_from(left + Duration::from_millis(1));
        // One that is traced has to be waited for by whoever traces it.
        let news = tracer.as_ref().map_or(process.as_fd(), |tracer| tracer.news());
        let mut fds = vec![
            PollFd::new(control.as_fd(), PollFlags::POLLIN),
            PollFd::new(news, PollFlags::POLLIN),
        ];
        let open = [&stdout, &stderr].into_iter().filter_map(|stream| stream.file.as_ref());
        fds.extend(open.map(|file| PollFd::new(file.as_fd(), PollFlags::POLLIN)));
        match poll(&mut fds, timeout.unwrap_or(PollTimeout::MAX)) {
            Err(Errno::EINTR) | Ok(0) => continue,
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        let (interrupted, news) = (fds[0].any() == Some(true), fds[1].any() == Some(true));
        stdout.take()?;
        stderr.take()?;
        if interrupted {
            break End::Interrupted;
        }
        let ended = match &mut tracer {
            _ if !news => None,
            Some(tracer) => tracer.attend()?,
            None => Some(ended(child.wait()?)),
        };
        if let Some(ended) = ended {
            break End::Ended(ended);
        }
        if stdout.taken.len().max(stderr.taken.len()) > MOST_OUTPUT {
            break End::Ended(Ended::TooMuchOutput);
        }
    };
    stdout.take()?;
    stderr.take()?;
    Ok(Watched { end, stdout: stdout.taken, stderr: stderr.taken })
}

fn ended(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Status(code),
        (None, signal) => Ended::Signal(signal.unwrap_or(0)),
    }
}

/// One end of a pipe that is never waited for.
struct Stream {
    /// Nothing, once nobody can write to it any more.
    file: Option<File>,
    taken: Vec<u8>,
}

impl Stream {
    fn new(file: File) -> io::Result<Stream> {
        fcntl(&file, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Stream { file: Some(file), taken: Vec::new() })
    }

    /// Takes what is there.
    fn take(&mut self) -> io::Result<()> {
        let mut buffer = [0; 1 << 16];
        while let (Some(file), true) = (&mut self.file, self.taken.len() <= MOST_OUTPUT) {
            match file.read(&mut buffer) {
                Ok(0) => self.file = None,
                Ok(length) => self.taken.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn pidfd(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    // SAFETY: a descriptor that the kernel has just opened belongs to nobody else.
    Errno::result(fd).map(|fd| unsafe { OwnedFd::from_raw_fd(fd as i32) }).map_err(io::Error::from)
}
