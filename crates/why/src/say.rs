//! What commands answer, on standard output, and what they say besides, on standard error.
//!
//! Whoever reads it may go away early, as `head` does. Then nothing more is written, and the
//! command ends as others do that write to a closed pipe: quietly, by SIGPIPE. It does so only in
//! the end, so that all is put in order before. The signal itself stays ignored until then, because
//! pipes to processes of our own may close, too.

use crate::run::end_like;
use std::fmt::Arguments;
use std::io::{self, BufWriter, ErrorKind, Stdout, Write};
use std::process::ExitCode;
use std::sync::OnceLock;
use why_engine::Ended;

/// Why there is no use in writing more.
static FAILED: OnceLock<ErrorKind> = OnceLock::new();

/// As `print!`.
macro_rules! say {
    ($($part:tt)*) => { $crate::say::text(format_args!($($part)*)) };
}

/// As `println!`.
macro_rules! sayln {
    () => { $crate::say::say!("\n") };
    ($($part:tt)*) => { $crate::say::say!("{}\n", format_args!($($part)*)) };
}

/// A line that is not part of the answer.
macro_rules! besides {
    ($($part:tt)*) => { $crate::say::aside(format_args!("why: {}\n", format_args!($($part)*))) };
}

pub(crate) use {besides, say, sayln};

/// Writes to standard error. Where that is impossible, there is nobody to tell.
pub fn aside(text: Arguments) {
    let _ = io::stderr().write_fmt(text);
}

pub fn text(text: Arguments) {
    with(|out| out.write_fmt(text));
}

/// Writes a part of the answer.
pub fn with(write: impl FnOnce(&mut BufWriter<Stdout>) -> io::Result<()>) {
    if FAILED.get().is_some() {
        return;
    }
    let mut out = BufWriter::new(io::stdout());
    if let Err(error) = write(&mut out).and_then(|()| out.flush()) {
        // What could not be written is not to be tried again.
        drop(out.into_parts());
        if error.kind() != ErrorKind::BrokenPipe {
            besides!("the answer could not be written to standard output: {error}");
        }
        let _ = FAILED.set(error.kind());
    }
}

/// The end of a command that would have ended so, had all been written.
pub fn end(code: ExitCode) -> ExitCode {
    match FAILED.get() {
        None => code,
        Some(ErrorKind::BrokenPipe) => end_like(Ended::Signal(libc::SIGPIPE)),
        Some(_) => ExitCode::FAILURE,
    }
}
