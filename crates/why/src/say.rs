//! What commands answer, on standard output, and what they say besides, on standard error.
//!
//! Whoever reads it may go away early, as `head` does. Then nothing more is written, and the
//! command ends as others do that write to a closed pipe: quietly, by SIGPIPE. It does so only in
//! the end, so that all is put in order before. The signal itself stays ignored until then, because
//! pipes to processes of our own may close, too.

use crate::run::end_like;
use std::borrow::Cow;
use std::fmt::{Arguments, Display};
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
    let _ = Harmless(io::stderr()).write_all(text.to_string().as_bytes());
}

/// A part of the answer, for people.
pub fn text(text: Arguments) {
    with(|out| Harmless(out).write_all(text.to_string().as_bytes()));
}

/// A line of the answer that other programs read, as it is.
pub fn data(line: impl Display) {
    with(|out| writeln!(out, "{line}"));
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

/// Shows characters that a terminal would obey as ones that cannot be shown: sources, and what
/// strangers have recorded, may have any.
pub struct Harmless<W>(pub W);

impl<W: Write> Write for Harmless<W> {
    /// What is formatted comes in whole characters.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(harmless(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

pub fn harmless(text: &str) -> Cow<'_, str> {
    let is_obeyed = |c: char| c.is_control() && !"\n\t".contains(c);
    match text.contains(is_obeyed) {
        true => text.replace(is_obeyed, "\u{fffd}").into(),
        false => text.into(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_that_a_terminal_obeys() {
        assert_eq!(harmless("a\tb\nä"), "a\tb\nä");
        assert_eq!(harmless("\x1b[2J\x07\r\u{9b}2J"), "�[2J���2J");
    }
}
