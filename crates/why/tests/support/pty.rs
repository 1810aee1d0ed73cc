//! A program on a real terminal: a pty that controls the program's session, and a
//! hand at the keyboard.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::pty::{Winsize, openpty};
use tempfile::TempDir;

use crate::support::job::Job;
use crate::support::leftover::{self, Mark};
use crate::support::outcome::Ended;
use crate::support::run;

/// How long anything may take to appear on the screen.
const PATIENCE: Duration = Duration::from_secs(60);

pub const CTRL_C: &str = "\x03";
pub const CTRL_D: &str = "\x04";
pub const CTRL_Z: &str = "\x1a";
pub const UP: &str = "\x1b[A";

pub struct Terminal {
    keyboard: File,
    child: Child,
    screen: Arc<Screen>,
    /// What of the screen has been waited for already.
    seen: usize,
    mark: Mark,
    _dir: TempDir,
}

#[derive(Default)]
struct Screen {
    text: Mutex<Vec<u8>>,
    changed: Condvar,
}

impl Terminal {
    pub fn start(job: &Job) -> Result<Terminal, String> {
        let dir = run::fresh_dir(job)?;
        let mark = Mark::new();
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).map_err(|error| format!("no pty: {error}"))?;
        // Else every program that another test starts meanwhile would hold it open.
        for end in [&pty.master, &pty.slave] {
            fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).map_err(|error| error.to_string())?;
        }
        let program_end = || pty.slave.try_clone().map_err(|error| error.to_string());
        let mut command = run::command(job, dir.path(), &mark);
        command
            .env("TERM", "xterm")
            .stdin(program_end()?)
            .stdout(program_end()?)
            .stderr(program_end()?);
        let take_the_terminal = || {
            nix::unistd::setsid()?;
            // SAFETY: the call takes no pointer; descriptor 0 is the terminal.
            match unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) } {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        };
        // SAFETY: between fork and exec the closure makes system calls only.
        unsafe { command.pre_exec(take_the_terminal) };
        let child =
            command.spawn().map_err(|error| format!("{}: {error}", job.program.display()))?;
        let keyboard = File::from(pty.master);
        let screen = Arc::new(Screen::default());
        watch(keyboard.try_clone().map_err(|error| error.to_string())?, screen.clone());
        Ok(Terminal { keyboard, child, screen, seen: 0, mark, _dir: dir })
    }

    pub fn types(&mut self, keys: &str) -> Result<(), String> {
        self.keyboard.write_all(keys.as_bytes()).map_err(|error| format!("typing: {error}"))
    }

    /// Waits until the screen shows `text`, after all that was waited for before.
    pub fn shows(&mut self, text: &str) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        let mut screen = self.screen.text.lock().expect("the watcher does not panic");
        loop {
            let new = &screen[self.seen..];
            if let Some(at) = new.windows(text.len()).position(|part| part == text.as_bytes()) {
                self.seen += at + text.len();
                return Ok(());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let new = String::from_utf8_lossy(new);
                return Err(format!("{text:?} did not appear on the terminal, but {new:?}"));
            }
            (screen, _) =
                self.screen.changed.wait_timeout(screen, left).expect("the watcher does not panic");
        }
    }

    /// Waits for its end, and for the end of all that it started.
    pub fn ends(mut self) -> Result<Ended, String> {
        let status = run::wait(&mut self.child, PATIENCE, &self.mark);
        leftover::none_left(&self.mark)?;
        status.map(Ended::from).ok_or_else(|| "it did not end".into())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.mark.kill_all();
        let _ = self.child.wait();
    }
}

/// Copies to the screen until the last program closes the terminal.
fn watch(mut terminal: File, screen: Arc<Screen>) {
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = terminal.read(&mut buffer) {
            screen.text.lock().expect("nobody panics with it").extend(&buffer[..length]);
            screen.changed.notify_all();
        }
    });
}
